//! Routes of the cloud's network. One whose target is gone is a black hole.

use super::Refusal;
use super::checks::{is_network, parse_cidr, shown};
use super::ids::Ids;
use super::instances::Instances;
use crate::admin::{ObjectKind, Route};
use std::collections::BTreeMap;

/// What routes' ids begin with.
pub(super) const PREFIX: &str = "r";

/// All routes by id, as they were written.
#[derive(Debug, Default)]
pub(super) struct Routes(BTreeMap<String, Route>);

impl Routes {
    /// All routes as the cloud shows them.
    pub(super) fn seen(&self, instances: &Instances) -> impl Iterator<Item = Route> {
        let leads_nowhere = |route: &Route| match route.target_instance.as_deref() {
            Some(id) => instances.get(id).is_none(),
            None => true,
        };
        self.0
            .values()
            .map(move |route| Route { blackhole: route.blackhole || leads_nowhere(route), ..route.clone() })
    }

    /// All routes as they were written.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.values()
    }

    pub(super) fn create(
        &mut self,
        destination: &str,
        target: &str,
        instances: &Instances,
        ids: &mut Ids,
    ) -> Result<Route, Refusal> {
        let Some(network) = parse_cidr(destination) else {
            return Err(Refusal::Invalid(format!("destination {} is no CIDR", shown(destination))));
        };
        if !is_network(network.0, network.1) {
            return Err(Refusal::Invalid(format!(
                "destination {destination} has bits set beyond its prefix"
            )));
        }
        let Some(instance) = instances.get(target) else {
            return Err(Refusal::Invalid(format!("target {} is no instance", shown(target))));
        };
        if let Some(taken) = self.0.values().find(|route| parse_cidr(&route.destination) == Some(network)) {
            return Err(Refusal::Conflict(format!("route {} leads to {destination}", taken.id)));
        }
        let internal = instance.addresses.iter().filter(|address| address.kind == "InternalIP");
        let route = Route {
            id: ids.next(PREFIX),
            destination: destination.to_owned(),
            target_instance: Some(target.to_owned()),
            target_addresses: internal.map(|address| address.address.clone()).collect(),
            blackhole: false,
        };
        self.put(route.clone());
        Ok(route)
    }

    pub(super) fn put(&mut self, route: Route) {
        self.0.insert(route.id.clone(), route);
    }

    pub(super) fn remove(&mut self, id: &str) -> Result<(), Refusal> {
        self.0.remove(id).map(drop).ok_or_else(|| Refusal::no(ObjectKind::Route, id))
    }
}

impl FromIterator<Route> for Routes {
    fn from_iter<I: IntoIterator<Item = Route>>(routes: I) -> Routes {
        Routes(routes.into_iter().map(|route| (route.id.clone(), route)).collect())
    }
}
