//! What differs between two inventories.

use super::types::{Auxiliary, Instance, Inventory, LoadBalancer, Route};
use std::collections::BTreeMap;
use std::fmt;

/// Ids that came, went or changed, each as `kind id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryDiff {
    /// In the later inventory only.
    pub added: Vec<String>,
    /// In the earlier inventory only.
    pub removed: Vec<String>,
    /// In both, but not the same.
    pub changed: Vec<String>,
}

impl InventoryDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl fmt::Display for InventoryDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no difference");
        }
        let parts = [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)];
        let shown: Vec<String> =
            parts.iter().filter(|(_, ids)| !ids.is_empty()).map(|(what, ids)| format!("{what} {}", ids.join(", "))).collect();
        f.write_str(&shown.join("; "))
    }
}

impl Inventory {
    /// What `later` has more, less or otherwise.
    pub fn diff(&self, later: &Inventory) -> InventoryDiff {
        let mut diff = InventoryDiff::default();
        compare("instance", &self.instances, &later.instances, |i: &Instance| &i.id, &mut diff);
        compare("load balancer", &self.load_balancers, &later.load_balancers, |l: &LoadBalancer| &l.id, &mut diff);
        compare("auxiliary", &self.auxiliaries, &later.auxiliaries, |a: &Auxiliary| &a.id, &mut diff);
        compare("route", &self.routes, &later.routes, |r: &Route| &r.id, &mut diff);
        diff
    }

    /// Load balancers and auxiliaries of one owner, and auxiliaries of its load balancers.
    pub fn owned_by(&self, owner: &str) -> Inventory {
        let load_balancers: Vec<LoadBalancer> =
            self.load_balancers.iter().filter(|lb| lb.owner == owner).cloned().collect();
        let belongs = |aux: &&Auxiliary| {
            aux.owner == owner
                || aux.load_balancer.as_ref().is_some_and(|id| load_balancers.iter().any(|lb| lb.id == *id))
        };
        let auxiliaries = self.auxiliaries.iter().filter(belongs).cloned().collect();
        Inventory { instances: Vec::new(), load_balancers, auxiliaries, routes: Vec::new() }
    }
}

fn compare<T: PartialEq>(kind: &str, before: &[T], after: &[T], id: fn(&T) -> &String, diff: &mut InventoryDiff) {
    let earlier: BTreeMap<&String, &T> = before.iter().map(|item| (id(item), item)).collect();
    let later: BTreeMap<&String, &T> = after.iter().map(|item| (id(item), item)).collect();
    for (id, item) in &later {
        match earlier.get(id) {
            None => diff.added.push(format!("{kind} {id}")),
            Some(old) if old != item => diff.changed.push(format!("{kind} {id}")),
            Some(_) => {}
        }
    }
    diff.removed.extend(earlier.keys().filter(|id| !later.contains_key(*id)).map(|id| format!("{kind} {id}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(id: &str, destination: &str) -> Route {
        Route {
            id: id.into(),
            destination: destination.into(),
            target_instance: None,
            target_addresses: Vec::new(),
            blackhole: true,
        }
    }

    #[test]
    fn names_what_came_went_and_changed() {
        let before = Inventory { routes: vec![route("r-1", "10.0.0.0/24"), route("r-2", "10.0.1.0/24")], ..Inventory::default() };
        let after = Inventory { routes: vec![route("r-2", "10.0.9.0/24"), route("r-3", "10.0.2.0/24")], ..Inventory::default() };
        assert_eq!(before.diff(&after).to_string(), "added route r-3; removed route r-1; changed route r-2");
        assert_eq!(before.diff(&before).to_string(), "no difference");
    }
}
