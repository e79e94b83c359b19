//! Under which names the cloud knows an object: its id, its name, its provider id, its owner.

use super::Cloud;
use crate::admin::{ObjectKind, Op};

/// The kind of object an operation is about.
fn kind_of(op: Op) -> Option<ObjectKind> {
    match op {
        Op::InstanceGet | Op::InstanceList | Op::InstanceWrite => Some(ObjectKind::Instance),
        Op::LbGet | Op::LbList | Op::LbCreate | Op::LbUpdate | Op::LbDelete => Some(ObjectKind::LoadBalancer),
        Op::AuxRead | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete => Some(ObjectKind::Auxiliary),
        Op::RouteList | Op::RouteCreate | Op::RouteDelete => Some(ObjectKind::Route),
        Op::Other => None,
    }
}

impl Cloud {
    /// Whether a call that names an object by `named` is about the object `wanted`, whichever of its names that is.
    pub(crate) fn is_about(&self, op: Op, named: &[String], wanted: &str) -> bool {
        if named.iter().any(|name| name == wanted) {
            return true;
        }
        let both = |names: &[&str]| {
            names.contains(&wanted) && named.iter().any(|name| names.contains(&name.as_str()))
        };
        match kind_of(op) {
            Some(ObjectKind::Instance) => self.is_instance(both),
            Some(ObjectKind::LoadBalancer) => {
                self.load_balancers.iter().any(|lb| both(&[&lb.id, &lb.name, &lb.owner]))
            }
            Some(ObjectKind::Auxiliary) => self.auxiliaries.iter().any(|aux| {
                both(&[&aux.id, &aux.name, &aux.owner, aux.load_balancer.as_deref().unwrap_or(&aux.id)])
            }),
            // A route is known by its target as well, and that by all its names.
            Some(ObjectKind::Route) => {
                self.is_instance(both)
                    || self.routes.iter().any(|route| {
                        let target = route.target_instance.as_deref().unwrap_or(&route.id);
                        both(&[&route.id, &route.destination, target])
                    })
            }
            None => false,
        }
    }

    /// The owner of the load balancer that a call is about.
    pub(crate) fn owner_of(&self, op: Op, named: &[String]) -> Option<String> {
        let is_named = |id: &str, name: &str| named.iter().any(|n| n == id || n == name);
        let owner = match kind_of(op)? {
            _ if named.is_empty() => None,
            ObjectKind::LoadBalancer => {
                self.load_balancers.iter().find(|lb| is_named(&lb.id, &lb.name)).map(|lb| &lb.owner)
            }
            ObjectKind::Auxiliary => {
                let own =
                    self.auxiliaries.iter().find(|aux| is_named(&aux.id, &aux.name)).map(|aux| &aux.owner);
                own.or_else(|| {
                    self.load_balancers.iter().find(|lb| is_named(&lb.id, &lb.name)).map(|lb| &lb.owner)
                })
            }
            ObjectKind::Instance | ObjectKind::Route => None,
        };
        owner.filter(|owner| !owner.is_empty()).cloned()
    }

    fn is_instance(&self, both: impl Fn(&[&str]) -> bool) -> bool {
        self.instances.iter().any(|i| both(&[&i.id, &i.name, i.provider_id.as_deref().unwrap_or(&i.id)]))
    }
}
