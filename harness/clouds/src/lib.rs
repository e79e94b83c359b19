//! The cloud of a run: its operations ([`Cloud`]), the program that carries them out ([`Driver`]), and how a
//! cloud is started ([`start`]) or joined by another process of the run ([`Cloud::attach`]).
//!
//! A run and its checks use only [`Cloud`]. To add a driver, write a file or folder in `drivers` and a line
//! in its table.

mod as_written;
mod callers;
mod conformance;
mod driver;
mod drivers;
mod error;
mod handle;
mod network;
mod operators;
mod record;
mod tails;
mod token;

pub use callers::is_nameless;
pub use conformance::{Found, Tried, check_driver, check_running, facility_of};
pub use driver::{
    Admission, Answer, Barriers, Driver, Faults, InventorySource, Journalled, Machines, Objects, Routes,
    Tunable,
};
pub use drivers::{CloudSpec, OnMessage, Place, RunningCloud, StartError, start};
pub use error::{CloudError, Problem};
pub use handle::READING_THE_JOURNAL;
pub use handle::{Cloud, Disturbance};
pub use network::network_of;
pub use operators::operators_balancer;
pub use record::CloudRecord;
pub use token::fresh_token;

// The types that describe a cloud, whatever its driver.
pub use fake_cloud_driver::{
    ActiveFault, Address, Auxiliary, BarrierStatus, Credential, Effect, Entry, Fault, Frontend, HealthCheck,
    Instance, InstanceState, Inventory, LbAddress, LbAddressing, LbChange, LbParts, LbState, LoadBalancer,
    Match, Op, Outcome, Route, Settings, fresh_id,
};
pub use fake_cloud_driver::{InstanceIds, Shown};
