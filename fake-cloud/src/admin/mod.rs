//! The admin API: how a test sets the cloud up, disturbs its calls and reads back what happened.

#[cfg(feature = "client")]
mod client;
mod fault_types;
mod inventory;
mod replies;
#[cfg(feature = "server")]
pub(crate) mod routes;
mod types;

#[cfg(feature = "client")]
pub use client::{Client, ClientError};
pub use fault_types::{ActiveFault, BarrierStatus, Effect, Fault, Match};
pub use inventory::{Changed, FieldChange, InventoryDiff, Item, ObjectKind};
pub use replies::{Health, JournalPage, Problem};
pub use types::{
    Address, Auxiliary, Credential, Entry, Frontend, HealthCheck, Instance, InstanceState, Inventory,
    LbAddress, LbAddressing, LbState, LoadBalancer, Op, Outcome, Route, Settings,
};
