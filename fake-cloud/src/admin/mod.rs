//! The admin API: how a test sets the cloud up, provokes trouble and reads back what happened.

#[cfg(feature = "client")]
mod client;
mod inventory;
mod replies;
#[cfg(feature = "server")]
pub(crate) mod routes;
mod types;

#[cfg(feature = "client")]
pub use client::{Client, ClientError};
pub use inventory::{Changed, FieldChange, InventoryDiff, Item, ObjectKind};
pub use replies::{Health, JournalPage, Problem};
pub use types::{
    ActiveFault, Address, Auxiliary, BarrierStatus, Credential, Effect, Entry, Fault, Frontend, HealthCheck,
    Instance, InstanceState, Inventory, LbAddress, LbState, LoadBalancer, Match, Op, Outcome, Route,
    Settings,
};
