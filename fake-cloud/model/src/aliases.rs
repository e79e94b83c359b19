//! All names of an object: its id, its name, its provider id, its owner.

use super::Cloud;
use super::names::{is_at, names_of_auxiliary, names_of_instance, names_of_load_balancer, names_of_route};
use fake_cloud_driver::{LbParts, ObjectKind, Op};
use std::collections::BTreeSet;

impl Cloud {
    /// All names of the objects with the names `named`, including these: a test may refer to an object by any
    /// of them.
    pub fn names_of(&self, op: Op, named: &[String]) -> BTreeSet<String> {
        let mut known: BTreeSet<String> = named.iter().cloned().collect();
        if named.is_empty() {
            return known;
        }
        let mut add = |names: &[&str]| {
            if named.iter().any(|name| names.contains(&name.as_str())) {
                known.extend(names.iter().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()));
            }
        };
        match op.object_kind() {
            Some(ObjectKind::Instance) => {
                self.instances.iter().for_each(|instance| add(&names_of_instance(instance)))
            }
            Some(ObjectKind::LoadBalancer) => {
                self.load_balancers.iter().for_each(|lb| add(&names_of_load_balancer(lb)));
                // Some clouds look a load balancer up by its address.
                let at = self.load_balancers.iter().filter(|lb| named.iter().any(|name| is_at(lb, name)));
                known.extend(
                    at.flat_map(names_of_load_balancer).filter(|name| !name.is_empty()).map(str::to_owned),
                );
            }
            Some(ObjectKind::Auxiliary) => {
                self.auxiliaries.iter().for_each(|aux| add(&names_of_auxiliary(aux)));
            }
            // A route also has the names of its target.
            Some(ObjectKind::Route) => {
                self.instances.iter().for_each(|instance| add(&names_of_instance(instance)));
                self.routes.iter().for_each(|route| add(&names_of_route(route)));
            }
            None => {}
        }
        known
    }

    /// The owner of the load balancer that a call is about.
    pub fn owner_of(&self, op: Op, named: &[String]) -> Option<String> {
        let is_named = |id: &str, name: &str| named.iter().any(|n| n == id || n == name);
        let owner = match op.object_kind()? {
            _ if named.is_empty() => None,
            ObjectKind::LoadBalancer => {
                let named_so = self.load_balancers.iter().find(|lb| is_named(&lb.id, &lb.name));
                let at = || self.load_balancers.iter().find(|lb| named.iter().any(|name| is_at(lb, name)));
                named_so.or_else(at).map(|lb| &lb.owner)
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

    /// The load balancers that a write is about, with the objects that belong to them; `None` for any other call.
    pub fn parts_of(&self, op: Op, named: &[String]) -> Option<LbParts> {
        if !op.is_write() {
            return None;
        }
        let is_named = |id: &str, name: &str| named.iter().any(|n| n == id || n == name);
        let kind = op.object_kind()?;
        let served: Vec<&str> = match kind {
            ObjectKind::LoadBalancer | ObjectKind::Auxiliary => {
                let of_named = self.auxiliaries.iter().filter(|aux| is_named(&aux.id, &aux.name));
                of_named.filter_map(|aux| aux.load_balancer.as_deref()).collect()
            }
            ObjectKind::Instance | ObjectKind::Route => return None,
        };
        let meant = self
            .load_balancers
            .iter()
            .filter(|lb| is_named(&lb.id, &lb.name) || served.contains(&lb.id.as_str()));
        let load_balancers: Vec<_> = meant.cloned().collect();
        let belongs = |serves: Option<&str>| load_balancers.iter().any(|lb| Some(lb.id.as_str()) == serves);
        let auxiliaries = self
            .auxiliaries
            .iter()
            .filter(|aux| belongs(aux.load_balancer.as_deref()) || is_named(&aux.id, &aux.name));
        let auxiliaries = auxiliaries.cloned().collect();
        Some(LbParts { load_balancers, auxiliaries })
    }
}
