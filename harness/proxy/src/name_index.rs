//! The names of the cloud's objects, as far as the proxy has observed them: calls and faults may use different names for
//! one object.

use fake_cloud_driver::{Instance, Inventory, LoadBalancer, ObjectKind, Op, Route};
use std::collections::{BTreeMap, BTreeSet};

/// Number of remembered names that the cloud does not have.
const MOST_ABSENT: usize = 10_000;

/// An object's names besides its id.
#[derive(Debug, Default)]
struct Known {
    names: Vec<String>,
    /// Names of a load balancer, and of its auxiliaries.
    owner: String,
}

/// The known names.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    instances: BTreeMap<String, Known>,
    balancers: BTreeMap<String, Known>,
    auxiliaries: BTreeMap<String, Known>,
    routes: BTreeMap<String, Known>,
    /// Names that were not in the cloud's inventory when it was last read; cleared when something is created.
    absent: BTreeSet<String>,
    /// The number of observations: an inventory that was requested earlier is older than later observations.
    heard: u64,
}

impl NameIndex {
    /// The current number; see [`NameIndex::replace`].
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = NameIndex { heard: self.heard + 1, ..NameIndex::default() };
    }

    pub(crate) fn put_instances(&mut self, instances: &[Instance]) {
        self.heard += 1;
        for instance in instances {
            let names = std::iter::once(instance.name.clone()).chain(instance.provider_id.clone());
            let known = Known { names: names.collect(), owner: String::new() };
            self.instances.insert(instance.id.clone(), known);
        }
    }

    pub(crate) fn remove(&mut self, kind: ObjectKind, id: &str) {
        self.heard += 1;
        self.of_mut(kind).remove(id);
    }

    pub(crate) fn put_load_balancer(&mut self, lb: &LoadBalancer) {
        self.heard += 1;
        // Some clouds look up a load balancer by its address.
        let at = lb
            .addresses
            .iter()
            .flat_map(|at| at.ip.map(|ip| ip.to_string()).into_iter().chain(at.hostname.clone()));
        let known =
            Known { names: std::iter::once(lb.name.clone()).chain(at).collect(), owner: lb.owner.clone() };
        self.balancers.insert(lb.id.clone(), known);
    }

    pub(crate) fn put_route(&mut self, route: &Route) {
        self.heard += 1;
        let names = std::iter::once(route.destination.clone()).chain(route.target_instance.clone());
        self.routes.insert(route.id.clone(), Known { names: names.collect(), owner: String::new() });
    }

    /// Adds the whole inventory of the cloud; `asked` are the names for which it was requested, when the book was at
    /// `since`. Later observations may be missing in it, and are kept.
    pub(crate) fn replace(&mut self, inventory: &Inventory, asked: &[String], since: u64) {
        let is_of_now = self.heard == since;
        if is_of_now {
            *self = NameIndex {
                absent: std::mem::take(&mut self.absent),
                heard: self.heard,
                ..NameIndex::default()
            };
        }
        self.put_instances(&inventory.instances);
        inventory.load_balancers.iter().for_each(|lb| self.put_load_balancer(lb));
        inventory.routes.iter().for_each(|route| self.put_route(route));
        for aux in &inventory.auxiliaries {
            let names = std::iter::once(aux.name.clone()).chain(aux.load_balancer.clone());
            let known = Known { names: names.collect(), owner: aux.owner.clone() };
            self.auxiliaries.insert(aux.id.clone(), known);
        }
        if self.absent.len() > MOST_ABSENT {
            self.absent.clear();
        }
        if is_of_now {
            self.absent.extend(asked.iter().cloned());
        }
    }

    /// Records that a call has created an object with this id, under these names.
    pub(crate) fn created(&mut self, op: Op, id: &str, named: &[String], owner: Option<&str>) {
        self.heard += 1;
        let known = Known { names: named.to_vec(), owner: owner.unwrap_or_default().to_owned() };
        if let Some(objects) = op.object_kind().map(|kind| self.of_mut(kind)) {
            objects.insert(id.to_owned(), known);
        }
    }

    /// Records that a call has changed the cloud in a way that only the cloud knows.
    pub(crate) fn is_changed(&mut self) {
        self.heard += 1;
        self.absent.clear();
    }

    /// Whether the inventory may contain more about this name. The proxy itself observes the creation of machines.
    pub(crate) fn is_ignorant_of(&self, op: Op, named: &[String]) -> bool {
        let kind = op.object_kind().filter(|kind| *kind != ObjectKind::Instance);
        kind.is_some_and(|kind| {
            let known = named.iter().any(|name| self.find(kind, name).next().is_some());
            !named.is_empty() && !known && !named.iter().all(|name| self.absent.contains(name))
        })
    }

    /// All names of the objects that a call may mean by these names, including these.
    pub(crate) fn names(&self, op: Op, named: &[String]) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = named.iter().cloned().collect();
        let Some(kind) = op.object_kind() else { return all };
        let mut kinds = vec![kind];
        // A route can also be identified by its target, which may have several names.
        kinds.extend((kind == ObjectKind::Route).then_some(ObjectKind::Instance));
        for kind in kinds {
            for (id, known) in named.iter().flat_map(|name| self.find(kind, name)) {
                all.insert(id.clone());
                all.extend(known.names.iter().chain([&known.owner]).filter(|name| !name.is_empty()).cloned());
            }
        }
        all
    }

    /// The owner of the load balancer that a call is about.
    pub(crate) fn owner(&self, op: Op, named: &[String]) -> Option<String> {
        let own = match op.object_kind()? {
            ObjectKind::LoadBalancer => &[ObjectKind::LoadBalancer][..],
            ObjectKind::Auxiliary => &[ObjectKind::Auxiliary, ObjectKind::LoadBalancer],
            ObjectKind::Instance | ObjectKind::Route => &[],
        };
        let found = |kind: &ObjectKind| {
            let all = named.iter().flat_map(|name| self.find(*kind, name));
            all.map(|(_, known)| &known.owner).find(|owner| !owner.is_empty()).cloned()
        };
        own.iter().find_map(found)
    }

    fn of(&self, kind: ObjectKind) -> &BTreeMap<String, Known> {
        match kind {
            ObjectKind::Instance => &self.instances,
            ObjectKind::LoadBalancer => &self.balancers,
            ObjectKind::Auxiliary => &self.auxiliaries,
            ObjectKind::Route => &self.routes,
        }
    }

    fn of_mut(&mut self, kind: ObjectKind) -> &mut BTreeMap<String, Known> {
        match kind {
            ObjectKind::Instance => &mut self.instances,
            ObjectKind::LoadBalancer => &mut self.balancers,
            ObjectKind::Auxiliary => &mut self.auxiliaries,
            ObjectKind::Route => &mut self.routes,
        }
    }

    fn find<'a>(
        &'a self,
        kind: ObjectKind,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Known)> + 'a {
        let objects = self.of(kind).iter();
        objects.filter(move |(id, known)| {
            *id == name
                || known.names.iter().any(|one| one == name)
                || !known.owner.is_empty() && known.owner == name
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_object_is_known_by_all_its_names() {
        let mut book = NameIndex::default();
        let machine = json!([{"id": "i-1", "name": "n1", "provider_id": "p://i-1"}]);
        book.put_instances(&serde_json::from_value::<Vec<Instance>>(machine).expect("machines"));
        assert!(book.names(Op::InstanceGet, &names(&["n1"])).contains("p://i-1"));
        assert!(!book.is_ignorant_of(Op::InstanceGet, &names(&["nobody"])));
        book.created(Op::LbCreate, "lb-1", &names(&["web"]), Some("uid"));
        assert_eq!(book.owner(Op::LbDelete, &names(&["lb-1"])).as_deref(), Some("uid"));
        assert_eq!(book.owner(Op::AuxCreate, &names(&["lb-1"])).as_deref(), Some("uid"));
        assert_eq!(book.owner(Op::LbGet, &names(&["lb-2"])), None);
        assert!(book.names(Op::LbList, &names(&["uid"])).contains("lb-1"), "by its owner");
        let at = json!({"id": "lb-3", "name": "w", "owner": "u", "frontends": [], "backends": [],
            "addresses": [{"ip": "192.0.2.7"}], "state": "active"});
        book.put_load_balancer(&serde_json::from_value(at).expect("a load balancer"));
        assert!(book.names(Op::LbGet, &names(&["192.0.2.7"])).contains("lb-3"));
        book.remove(ObjectKind::LoadBalancer, "lb-3");
        assert!(!book.names(Op::LbGet, &names(&["192.0.2.7"])).contains("lb-3"));
        let route: Route = serde_json::from_value(
            json!({"id": "r", "destination": "10.0.0.0/24", "target_instance": "i-1"}),
        )
        .expect("a route");
        book.put_route(&route);
        assert!(book.names(Op::RouteDelete, &names(&["r"])).contains("i-1"));
        assert!(book.names(Op::RouteCreate, &names(&["i-1"])).contains("n1"));
    }

    #[test]
    fn objects_created_during_a_query_stay_known() {
        let mut book = NameIndex::default();
        let asked_at = book.heard();
        book.created(Op::LbCreate, "lb-1", &names(&["web"]), Some("uid"));
        book.replace(&Inventory::default(), &names(&["web"]), asked_at);
        assert_eq!(book.owner(Op::LbGet, &names(&["web"])).as_deref(), Some("uid"));
        book.replace(&Inventory::default(), &names(&["web"]), book.heard());
        assert_eq!(book.owner(Op::LbGet, &names(&["web"])), None);
        book.clear();
        assert!(book.is_ignorant_of(Op::LbGet, &names(&["web"])));
    }

    #[test]
    fn the_cloud_is_asked_once_for_what_it_does_not_have() {
        let mut book = NameIndex::default();
        let absent = names(&["lb-9"]);
        assert!(book.is_ignorant_of(Op::LbGet, &absent));
        book.replace(&Inventory::default(), &absent, book.heard());
        assert!(!book.is_ignorant_of(Op::LbGet, &absent));
        book.is_changed();
        assert!(book.is_ignorant_of(Op::LbGet, &absent) && !book.is_ignorant_of(Op::LbList, &[]));
    }
}
