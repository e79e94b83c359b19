//! The admin API: how a test sets the cloud up, provokes trouble and reads back what happened.

#[cfg(feature = "client")]
mod client;
mod inventory;
mod replies;
#[cfg(feature = "server")]
pub(crate) mod routes;
mod trouble;
mod types;

#[cfg(feature = "client")]
pub use client::{Client, ClientError};
pub use inventory::{Changed, FieldChange, InventoryDiff, Item, ObjectKind};
pub use replies::{Health, JournalPage, Problem};
pub use trouble::{ActiveFault, BarrierStatus, Effect, Fault, Match};
pub use types::{
    Address, Auxiliary, Credential, Entry, Frontend, HealthCheck, Instance, InstanceState, Inventory,
    LbAddress, LbState, LoadBalancer, Op, Outcome, Route, Settings,
};
