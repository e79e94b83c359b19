//! The driver protocol, with which a test sets up the cloud, disturbs its calls and reads what happened. The
//! harness knows a cloud only through these types, whichever program serves them.

mod capabilities;
#[cfg(feature = "client")]
mod client;
mod fault_types;
mod ids;
mod inventory;
mod openapi;
mod replies;
mod shown;
mod types;

pub use capabilities::{Capabilities, DriverFacility, PROTOCOL};
#[cfg(feature = "client")]
pub use client::{Client, ClientError, fresh_id};
pub use fault_types::{ActiveFault, BarrierStatus, Effect, Fault, Match};
pub use ids::InstanceIds;
pub use inventory::{Changed, FieldChange, InventoryDiff, Item, ObjectKind};
pub use openapi::{OPERATIONS, Operation, document};
pub use replies::{JournalPage, Problem};
pub use shown::Shown;
pub use types::{
    Address, Auxiliary, Credential, Entry, Frontend, HealthCheck, Instance, InstanceState, Inventory,
    LbAddress, LbAddressing, LbChange, LbParts, LbState, LoadBalancer, Op, Outcome, Route, Settings,
};
