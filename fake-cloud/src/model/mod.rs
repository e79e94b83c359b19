//! The cloud itself: state machines without HTTP. Time is passed in, never read.

mod instances;
mod load_balancers;
mod routes;

pub use load_balancers::LbRequest;

use crate::admin::{Auxiliary, Instance, Inventory, LoadBalancer, Op, Route, Settings};
use std::collections::BTreeMap;

/// A moment: milliseconds since the cloud began.
pub type Millis = u64;

/// Why the model refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The object does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The object collides with another, or is still in use.
    #[error("{0}")]
    Conflict(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
}

/// Everything the cloud holds.
#[derive(Clone, Debug, Default)]
pub struct Model {
    instances: BTreeMap<String, Instance>,
    load_balancers: BTreeMap<String, load_balancers::Held>,
    auxiliaries: BTreeMap<String, Auxiliary>,
    routes: BTreeMap<String, Route>,
    timing: Timing,
    last_lb: u64,
    last_aux: u64,
    last_route: u64,
    last_address: u32,
}

/// The settings in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Greatest number of items in a page.
    pub page_size: u32,
    /// How long a new load balancer has no address.
    pub provisioning: Millis,
    /// How long a deleted load balancer stays visible.
    pub deletion: Millis,
    /// How old a list may be.
    pub stale: Millis,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { page_size: 50, provisioning: 0, deletion: 0, stale: 0 }
    }
}

impl Model {
    /// The settings in force.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Takes the given settings over, leaves the others; says what is in force then.
    pub fn set(&mut self, settings: &Settings) -> Settings {
        let timing = &mut self.timing;
        timing.page_size = settings.page_size.map_or(timing.page_size, |size| size.max(1));
        timing.provisioning = settings.provisioning_ms.unwrap_or(timing.provisioning);
        timing.deletion = settings.deletion_ms.unwrap_or(timing.deletion);
        timing.stale = settings.stale_ms.unwrap_or(timing.stale);
        Settings {
            page_size: Some(timing.page_size),
            provisioning_ms: Some(timing.provisioning),
            deletion_ms: Some(timing.deletion),
            stale_ms: Some(timing.stale),
        }
    }

    /// Everything there is at `now`, sorted by id.
    pub fn inventory(&mut self, now: Millis) -> Inventory {
        Inventory {
            instances: self.instances.values().cloned().collect(),
            load_balancers: self.list_load_balancers(now),
            auxiliaries: self.auxiliaries.values().cloned().collect(),
            routes: self.routes.values().cloned().collect(),
        }
    }

    /// Replaces everything by an earlier inventory. Ids given since are not given again.
    pub fn restore(&mut self, inventory: Inventory, now: Millis) {
        self.instances = inventory.instances.into_iter().map(|i| (i.id.clone(), i)).collect();
        self.load_balancers =
            inventory.load_balancers.into_iter().map(|lb| (lb.id.clone(), load_balancers::Held::settled(lb, now))).collect();
        self.auxiliaries = inventory.auxiliaries.into_iter().map(|a| (a.id.clone(), a)).collect();
        self.routes = inventory.routes.into_iter().map(|r| (r.id.clone(), r)).collect();
    }

    /// Empties the cloud and brings its settings back to their defaults.
    pub fn reset(&mut self, now: Millis) {
        self.restore(Inventory::default(), now);
        self.timing = Timing::default();
    }

    /// Every name an object goes by: id, name, provider id, owner. `key` is any of them.
    pub fn aliases(&self, op: Op, key: &str) -> Vec<String> {
        let mut names = vec![key.to_owned()];
        match op {
            Op::InstanceGet | Op::InstanceList | Op::InstanceWrite => {
                for i in self.instances.values() {
                    if i.id == key || i.name == key || i.provider_id.as_deref() == Some(key) {
                        names.extend([i.id.clone(), i.name.clone()]);
                        names.extend(i.provider_id.clone());
                    }
                }
            }
            Op::LbGet | Op::LbList | Op::LbCreate | Op::LbUpdate | Op::LbDelete => {
                for held in self.load_balancers.values() {
                    let lb: &LoadBalancer = held.load_balancer();
                    if lb.id == key || lb.name == key || lb.owner == key {
                        names.extend([lb.id.clone(), lb.name.clone(), lb.owner.clone()]);
                    }
                }
            }
            Op::AuxRead | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete => {
                for aux in self.auxiliaries.values() {
                    if aux.id == key || aux.name == key || aux.owner == key {
                        names.extend([aux.id.clone(), aux.name.clone(), aux.owner.clone()]);
                        names.extend(aux.load_balancer.clone());
                    }
                }
            }
            Op::RouteList | Op::RouteCreate | Op::RouteDelete => {
                for route in self.routes.values() {
                    if route.id == key || route.destination == key {
                        names.extend([route.id.clone(), route.destination.clone()]);
                        names.extend(route.target_instance.clone());
                    }
                }
            }
            Op::Other => {}
        }
        names.sort();
        names.dedup();
        names
    }

    /// The owner of a load balancer or auxiliary by any of its names.
    pub fn owner_of(&self, op: Op, key: &str) -> Option<String> {
        let owner = match op {
            Op::LbGet | Op::LbList | Op::LbCreate | Op::LbUpdate | Op::LbDelete => self
                .load_balancers
                .values()
                .map(load_balancers::Held::load_balancer)
                .find(|lb| lb.id == key || lb.name == key || lb.owner == key)
                .map(|lb| lb.owner.clone()),
            Op::AuxRead | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete => self
                .auxiliaries
                .values()
                .find(|aux| aux.id == key || aux.name == key || aux.owner == key)
                .map(|aux| aux.owner.clone()),
            _ => None,
        };
        owner.filter(|owner| !owner.is_empty())
    }
}
