//! The state of a load balancer of Azure, which is spread over several objects of the model: each of its
//! frontends, with the rules and probes of the frontend, is a load balancer of the model, since a Service has one;
//! everything that its Services share (pools, outbound rules, tags) is an auxiliary object.

use super::names::{LOCATION, same};
use fake_cloud_driver::{Auxiliary, LbState, LoadBalancer};
use fake_cloud_kit::Error;
use fake_cloud_model::{AuxSpec, Cloud};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The kind of the auxiliary object with the shared part.
pub(super) const SHARED: &str = "load-balancer";

/// The part of a load balancer that its frontends share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Shared {
    pub(super) location: String,
    pub(super) sku: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) tags: Value,
    pub(super) pools: Vec<PoolSpec>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) outbound_rules: Vec<Value>,
    /// Probes that no rule uses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) probes: Vec<Value>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            location: LOCATION.to_owned(),
            sku: json!({"name": "Standard", "tier": "Regional"}),
            tags: Value::Null,
            pools: Vec::new(),
            outbound_rules: Vec::new(),
            probes: Vec::new(),
        }
    }
}

/// A backend pool as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct PoolSpec {
    pub(super) name: String,
    /// Machines, or addresses that no machine has.
    pub(super) members: BTreeSet<String>,
    /// The addresses of a pool by address, as they were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) addresses: Vec<Value>,
    /// The network of a pool by address.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) network: Value,
}

/// A load balancer of Azure.
#[derive(Clone, Debug)]
pub(super) struct Balancer {
    pub(super) name: String,
    /// The shared part and its id; `None` for one that the driver API has made.
    pub(super) shared: Option<(String, Shared)>,
    /// Its frontends, without those that are being deleted.
    pub(super) fronts: Vec<LoadBalancer>,
}

impl Balancer {
    fn named(name: &str) -> Balancer {
        Balancer { name: name.to_owned(), shared: None, fronts: Vec::new() }
    }

    /// Its frontends whose rules lead to this pool.
    pub(super) fn fronts_of(&self, pool: &str) -> impl Iterator<Item = &LoadBalancer> {
        self.fronts.iter().filter(move |front| same(pool_of(front), pool))
    }
}

/// The name of the load balancer of Azure that a frontend belongs to: its own for one that the driver API has made.
pub(super) fn balancer_of(front: &LoadBalancer) -> &str {
    front.details["balancer"].as_str().unwrap_or(&front.name)
}

/// The pool that the rules of a frontend lead to.
pub(super) fn pool_of(front: &LoadBalancer) -> &str {
    front.details["pool"].as_str().unwrap_or_default()
}

fn shared_of(aux: &Auxiliary) -> Option<(String, (String, Shared))> {
    let shared = serde_json::from_value(aux.spec.clone()).ok()?;
    (aux.kind == SHARED).then(|| (aux.name.clone(), (aux.id.clone(), shared)))
}

/// All load balancers by name, as they are now.
pub(super) fn all(cloud: &mut Cloud, now: Duration) -> Vec<Balancer> {
    let shared: Vec<_> = cloud.auxiliaries().filter_map(shared_of).collect();
    let fronts: Vec<LoadBalancer> = cloud.load_balancers(now).cloned().collect();
    grouped(shared, fronts)
}

/// All load balancers by name, as a list shows them.
pub(super) fn listed(cloud: &mut Cloud, now: Duration) -> Vec<Balancer> {
    let fronts: Vec<LoadBalancer> = cloud.list_load_balancers(now).into_iter().cloned().collect();
    let shared: Vec<_> = cloud.list_auxiliaries(now).into_iter().filter_map(shared_of).collect();
    grouped(shared, fronts)
}

fn grouped(shared: Vec<(String, (String, Shared))>, fronts: Vec<LoadBalancer>) -> Vec<Balancer> {
    let mut found: BTreeMap<String, Balancer> = BTreeMap::new();
    for (name, shared) in shared {
        let balancer = found.entry(name.to_ascii_lowercase()).or_insert_with(|| Balancer::named(&name));
        balancer.shared = Some(shared);
    }
    for front in fronts.into_iter().filter(|front| front.state != LbState::Deleting) {
        let name = balancer_of(&front).to_owned();
        let balancer = found.entry(name.to_ascii_lowercase()).or_insert_with(|| Balancer::named(&name));
        balancer.fronts.push(front);
    }
    found.into_values().collect()
}

/// The load balancer with this name.
pub(super) fn find(cloud: &mut Cloud, name: &str, now: Duration) -> Option<Balancer> {
    let own = |candidate: &str| same(candidate, name);
    let shared: Vec<_> = cloud.auxiliaries().filter(|aux| own(&aux.name)).filter_map(shared_of).collect();
    let fronts = cloud.load_balancers(now).filter(|front| own(balancer_of(front))).cloned().collect();
    grouped(shared, fronts).into_iter().next()
}

/// Stores the shared part of a load balancer.
pub(super) fn store(
    cloud: &mut Cloud,
    balancer: &Balancer,
    shared: &Shared,
    now: Duration,
) -> Result<(), Error> {
    let spec = AuxSpec {
        name: balancer.name.clone(),
        owner: String::new(),
        load_balancer: None,
        spec: serde_json::to_value(shared)?,
    };
    match &balancer.shared {
        Some((id, _)) => cloud.update_auxiliary(SHARED, id, spec, now)?,
        None => cloud.create_auxiliary(SHARED, "lbs", spec, now)?,
    };
    Ok(())
}
