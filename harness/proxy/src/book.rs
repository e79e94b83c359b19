//! Under which names the cloud knows its objects, as far as the proxy has heard: a call names an object by one of them, a
//! fault by another.

use fake_cloud::driver::{Instance, Inventory, LoadBalancer, ObjectKind, Op, Route};
use std::collections::{BTreeMap, BTreeSet};

/// An object's names beside its id.
#[derive(Debug, Default)]
struct Known {
    names: Vec<String>,
    /// Of a load balancer, and of what serves one.
    owner: String,
}

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct Book {
    instances: BTreeMap<String, Known>,
    balancers: BTreeMap<String, Known>,
    auxiliaries: BTreeMap<String, Known>,
    routes: BTreeMap<String, Known>,
    /// Names that the cloud's inventory did not have when it was last asked; forgotten as soon as something is created.
    absent: BTreeSet<String>,
}

fn kind_of(op: Op) -> Option<ObjectKind> {
    match op {
        Op::InstanceGet | Op::InstanceList | Op::InstanceWrite => Some(ObjectKind::Instance),
        Op::LbGet | Op::LbList | Op::LbCreate | Op::LbUpdate | Op::LbDelete => Some(ObjectKind::LoadBalancer),
        Op::AuxRead | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete => Some(ObjectKind::Auxiliary),
        Op::RouteList | Op::RouteCreate | Op::RouteDelete => Some(ObjectKind::Route),
        Op::Other => None,
    }
}

impl Book {
    pub(crate) fn put_instances(&mut self, instances: &[Instance]) {
        for instance in instances {
            let names = std::iter::once(instance.name.clone()).chain(instance.provider_id.clone());
            let known = Known { names: names.collect(), owner: String::new() };
            self.instances.insert(instance.id.clone(), known);
        }
    }

    pub(crate) fn remove_instance(&mut self, id: &str) {
        self.instances.remove(id);
    }

    pub(crate) fn put_load_balancer(&mut self, lb: &LoadBalancer) {
        let known = Known { names: vec![lb.name.clone()], owner: lb.owner.clone() };
        self.balancers.insert(lb.id.clone(), known);
    }

    pub(crate) fn put_route(&mut self, route: &Route) {
        let names = std::iter::once(route.destination.clone()).chain(route.target_instance.clone());
        self.routes.insert(route.id.clone(), Known { names: names.collect(), owner: String::new() });
    }

    /// Takes in all that the cloud holds; `asked` are the names for which it was asked.
    pub(crate) fn replace(&mut self, inventory: &Inventory, asked: &[String]) {
        *self = Book { absent: std::mem::take(&mut self.absent), ..Book::default() };
        self.put_instances(&inventory.instances);
        inventory.load_balancers.iter().for_each(|lb| self.put_load_balancer(lb));
        inventory.routes.iter().for_each(|route| self.put_route(route));
        for aux in &inventory.auxiliaries {
            let names = std::iter::once(aux.name.clone()).chain(aux.load_balancer.clone());
            let known = Known { names: names.collect(), owner: aux.owner.clone() };
            self.auxiliaries.insert(aux.id.clone(), known);
        }
        self.absent.extend(asked.iter().cloned());
    }

    /// A call has created an object with this id, which it named so.
    pub(crate) fn created(&mut self, op: Op, id: &str, named: &[String], owner: Option<&str>) {
        let known = Known { names: named.to_vec(), owner: owner.unwrap_or_default().to_owned() };
        if let Some(objects) = kind_of(op).map(|kind| self.of_mut(kind)) {
            objects.insert(id.to_owned(), known);
        }
    }

    /// A call has changed the cloud in a way that only the cloud knows.
    pub(crate) fn is_changed(&mut self) {
        self.absent.clear();
    }

    /// Whether asking the cloud may tell more of what a call names so. Machines are put there under the proxy's eyes.
    pub(crate) fn is_ignorant_of(&self, op: Op, named: &[String]) -> bool {
        let kind = kind_of(op).filter(|kind| *kind != ObjectKind::Instance);
        kind.is_some_and(|kind| {
            let known = named.iter().any(|name| self.find(kind, name).next().is_some());
            !named.is_empty() && !known && !named.iter().all(|name| self.absent.contains(name))
        })
    }

    /// All names of the objects that a call names so, those included.
    pub(crate) fn names(&self, op: Op, named: &[String]) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = named.iter().cloned().collect();
        let Some(kind) = kind_of(op) else { return all };
        let mut kinds = vec![kind];
        // A route is known by its target as well, and that by all its names.
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
        let own = match kind_of(op)? {
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
        objects.filter(move |(id, known)| *id == name || known.names.iter().any(|one| one == name))
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
        let mut book = Book::default();
        let machine = json!([{"id": "i-1", "name": "n1", "provider_id": "p://i-1"}]);
        book.put_instances(&serde_json::from_value::<Vec<Instance>>(machine).expect("machines"));
        assert!(book.names(Op::InstanceGet, &names(&["n1"])).contains("p://i-1"));
        assert!(!book.is_ignorant_of(Op::InstanceGet, &names(&["nobody"])));
        book.created(Op::LbCreate, "lb-1", &names(&["web"]), Some("uid"));
        assert_eq!(book.owner(Op::LbDelete, &names(&["lb-1"])).as_deref(), Some("uid"));
        assert_eq!(book.owner(Op::AuxCreate, &names(&["lb-1"])).as_deref(), Some("uid"));
        assert_eq!(book.owner(Op::LbGet, &names(&["lb-2"])), None);
        let route: Route = serde_json::from_value(
            json!({"id": "r", "destination": "10.0.0.0/24", "target_instance": "i-1"}),
        )
        .expect("a route");
        book.put_route(&route);
        assert!(book.names(Op::RouteDelete, &names(&["r"])).contains("i-1"));
        assert!(book.names(Op::RouteCreate, &names(&["i-1"])).contains("n1"));
    }

    #[test]
    fn the_cloud_is_asked_once_for_what_it_does_not_have() {
        let mut book = Book::default();
        let absent = names(&["lb-9"]);
        assert!(book.is_ignorant_of(Op::LbGet, &absent));
        book.replace(&Inventory::default(), &absent);
        assert!(!book.is_ignorant_of(Op::LbGet, &absent));
        book.is_changed();
        assert!(book.is_ignorant_of(Op::LbGet, &absent) && !book.is_ignorant_of(Op::LbList, &[]));
    }
}
