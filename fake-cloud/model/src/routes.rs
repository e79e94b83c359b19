//! Routes of the cloud's network. One whose target is gone is a black hole.

use super::Refusal;
use super::checks::{is_network, parse_cidr, shown};
use super::ids::Ids;
use super::instances::Instances;
use fake_cloud_driver::{Instance, ObjectKind, Route};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The prefix of routes' ids.
pub(super) const PREFIX: &str = "r";

/// Where a new route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteTarget<'a> {
    /// To the instance with this id.
    Instance(&'a str),
    /// To an address: that of the instance with this internal address, if there is one; otherwise into a
    /// black hole.
    Address(IpAddr),
}

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
        target: RouteTarget<'_>,
        instances: &Instances,
        ids: &mut Ids,
    ) -> Result<Route, Refusal> {
        let Some(network) = parse_cidr(destination) else {
            return Err(Refusal::Invalid(format!("destination {} is not a CIDR", shown(destination))));
        };
        if !is_network(network) {
            return Err(Refusal::Invalid(format!(
                "destination {destination} has bits set beyond its prefix"
            )));
        }
        let (target_instance, target_addresses) = resolve(target, instances)?;
        if let Some(taken) = self.0.values().find(|route| parse_cidr(&route.destination) == Some(network)) {
            return Err(Refusal::Conflict(format!("route {} leads to {destination}", taken.id)));
        }
        let route = Route {
            id: ids.next(PREFIX),
            destination: destination.to_owned(),
            blackhole: target_instance.is_none(),
            target_instance,
            target_addresses,
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

/// The instance that a route leads to, and its addresses.
fn resolve(target: RouteTarget<'_>, instances: &Instances) -> Result<(Option<String>, Vec<String>), Refusal> {
    let internal = |instance: &'_ Instance| -> Vec<String> {
        let internal = instance.addresses.iter().filter(|address| address.kind == "InternalIP");
        internal.map(|address| address.address.clone()).collect()
    };
    match target {
        RouteTarget::Instance(id) => match instances.get(id) {
            Some(instance) => Ok((Some(id.to_owned()), internal(instance))),
            None => Err(Refusal::Invalid(format!("target {} is not an instance", shown(id)))),
        },
        RouteTarget::Address(ip) => {
            let has = |address: &String| address.parse() == Ok(ip);
            let owner = instances.iter().find(|instance| internal(instance).iter().any(has));
            Ok((owner.map(|instance| instance.id.clone()), vec![ip.to_string()]))
        }
    }
}

impl FromIterator<Route> for Routes {
    fn from_iter<I: IntoIterator<Item = Route>>(routes: I) -> Routes {
        Routes(routes.into_iter().map(|route| (route.id.clone(), route)).collect())
    }
}
