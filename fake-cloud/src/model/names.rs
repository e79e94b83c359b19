//! By what an object is known. An empty name is none.

use crate::driver::{Auxiliary, Instance, LoadBalancer, Route};

pub(super) fn names_of_instance(instance: &Instance) -> [&str; 3] {
    [&instance.id, &instance.name, instance.provider_id.as_deref().unwrap_or_default()]
}

pub(super) fn names_of_load_balancer(lb: &LoadBalancer) -> [&str; 3] {
    [&lb.id, &lb.name, &lb.owner]
}

pub(super) fn names_of_auxiliary(aux: &Auxiliary) -> [&str; 4] {
    [&aux.id, &aux.name, &aux.owner, aux.load_balancer.as_deref().unwrap_or_default()]
}

pub(super) fn names_of_route(route: &Route) -> [&str; 3] {
    [&route.id, &route.destination, route.target_instance.as_deref().unwrap_or_default()]
}
