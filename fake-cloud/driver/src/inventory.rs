//! Compares inventories: what was added, removed and changed between two moments. Pure functions.

use super::types::{Auxiliary, Instance, Inventory, LoadBalancer, Op, Route};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The kinds of objects in an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// A machine.
    Instance,
    /// A load balancer.
    LoadBalancer,
    /// An object that belongs to a load balancer.
    Auxiliary,
    /// A route.
    Route,
}

impl Op {
    /// The kind of object that the operation is about; `None` if it is not about an object of the model.
    pub fn object_kind(self) -> Option<ObjectKind> {
        match self {
            Op::InstanceGet | Op::InstanceList | Op::InstanceWrite => Some(ObjectKind::Instance),
            Op::LbGet | Op::LbList | Op::LbCreate | Op::LbUpdate | Op::LbDelete => {
                Some(ObjectKind::LoadBalancer)
            }
            Op::AuxRead | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete => Some(ObjectKind::Auxiliary),
            Op::RouteList | Op::RouteCreate | Op::RouteDelete => Some(ObjectKind::Route),
            Op::Other => None,
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Instance => "instance",
            ObjectKind::LoadBalancer => "load balancer",
            ObjectKind::Auxiliary => "auxiliary",
            ObjectKind::Route => "route",
        })
    }
}

/// An object that only one of the inventories has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// Its id.
    pub id: String,
    /// The facts that identify it for a reader, e.g. `name web, owner 4be1`.
    pub summary: String,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.kind, self.id, self.summary)
    }
}

/// An object that both inventories have, with differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// Its id.
    pub id: String,
    /// The fields that differ, by name.
    pub fields: Vec<FieldChange>,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.kind, self.id)?;
        for (i, field) in self.fields.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} {} -> {}", field.field, field.before, field.after)?;
        }
        Ok(())
    }
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The name of the field in the driver API.
    pub field: String,
    /// Its value before.
    pub before: Value,
    /// Its value after.
    pub after: Value,
}

/// The difference between two inventories, sorted by kind and id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryDiff {
    /// Objects that only the later inventory has.
    pub added: Vec<Item>,
    /// Objects that only the earlier inventory has.
    pub removed: Vec<Item>,
    /// Objects that both have, with different content.
    pub changed: Vec<Changed>,
}

impl InventoryDiff {
    /// Whether the inventories are the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl fmt::Display for InventoryDiff {
    /// One line for each object, or `no difference`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no difference");
        }
        let added = self.added.iter().map(|item| format!("added {item}"));
        let removed = self.removed.iter().map(|item| format!("removed {item}"));
        let changed = self.changed.iter().map(|change| format!("changed {change}"));
        let lines: Vec<String> = added.chain(removed).chain(changed).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Inventory {
    /// The difference between `self`, the earlier inventory, and `later`.
    pub fn diff(&self, later: &Inventory) -> InventoryDiff {
        let mut diff = InventoryDiff::default();
        compare(&self.instances, &later.instances, &mut diff);
        compare(&self.load_balancers, &later.load_balancers, &mut diff);
        compare(&self.auxiliaries, &later.auxiliaries, &mut diff);
        compare(&self.routes, &later.routes, &mut diff);
        diff
    }

    /// The load balancers of an owner, and the auxiliary objects that belong to the owner or to one of those
    /// load balancers. Instances and routes have no owner and are left out.
    pub fn owned_by(&self, owner: &str) -> Inventory {
        let load_balancers: Vec<LoadBalancer> =
            self.load_balancers.iter().filter(|lb| lb.owner == owner).cloned().collect();
        let serves =
            |aux: &Auxiliary| load_balancers.iter().any(|lb| aux.load_balancer.as_ref() == Some(&lb.id));
        let auxiliaries =
            self.auxiliaries.iter().filter(|aux| aux.owner == owner || serves(aux)).cloned().collect();
        Inventory { load_balancers, auxiliaries, ..Inventory::default() }
    }
}

/// The parts of an object that a comparison needs.
trait Listed: Serialize + PartialEq {
    const KIND: ObjectKind;
    fn id(&self) -> &str;
    fn summary(&self) -> String;
}

impl Listed for Instance {
    const KIND: ObjectKind = ObjectKind::Instance;
    fn id(&self) -> &str {
        &self.id
    }
    fn summary(&self) -> String {
        format!("name {}", self.name)
    }
}

impl Listed for LoadBalancer {
    const KIND: ObjectKind = ObjectKind::LoadBalancer;
    fn id(&self) -> &str {
        &self.id
    }
    fn summary(&self) -> String {
        named(&self.name, &self.owner)
    }
}

impl Listed for Auxiliary {
    const KIND: ObjectKind = ObjectKind::Auxiliary;
    fn id(&self) -> &str {
        &self.id
    }
    fn summary(&self) -> String {
        let serves = self.load_balancer.as_deref().unwrap_or("nothing");
        format!("{} for {serves}, {}", self.kind, named(&self.name, &self.owner))
    }
}

impl Listed for Route {
    const KIND: ObjectKind = ObjectKind::Route;
    fn id(&self) -> &str {
        &self.id
    }
    fn summary(&self) -> String {
        format!("{} to {}", self.destination, self.target_instance.as_deref().unwrap_or("nothing"))
    }
}

fn named(name: &str, owner: &str) -> String {
    if owner.is_empty() { format!("name {name}, no owner") } else { format!("name {name}, owner {owner}") }
}

fn compare<T: Listed>(before: &[T], after: &[T], diff: &mut InventoryDiff) {
    let by_id = |list: &'_ [T]| -> BTreeMap<String, usize> {
        list.iter().enumerate().map(|(index, object)| (object.id().to_owned(), index)).collect()
    };
    let item = |object: &T| Item { kind: T::KIND, id: object.id().to_owned(), summary: object.summary() };
    let (old, new) = (by_id(before), by_id(after));
    diff.added
        .extend(new.iter().filter(|(id, _)| !old.contains_key(*id)).map(|(_, index)| item(&after[*index])));
    for (id, index) in old {
        let earlier = &before[index];
        match new.get(&id).map(|index| &after[*index]) {
            None => diff.removed.push(item(earlier)),
            Some(later) if later == earlier => {}
            Some(later) => diff.changed.push(Changed { kind: T::KIND, id, fields: fields(earlier, later) }),
        }
    }
}

fn fields<T: Serialize>(before: &T, after: &T) -> Vec<FieldChange> {
    let object = |value: &T| match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        // Our own simple structures are always objects.
        _ => serde_json::Map::new(),
    };
    let (before, after) = (object(before), object(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let value =
        |side: &serde_json::Map<String, Value>, name: &str| side.get(name).cloned().unwrap_or(Value::Null);
    names
        .into_iter()
        .map(|name| FieldChange {
            field: name.clone(),
            before: value(&before, name),
            after: value(&after, name),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::types::{InstanceState, LbState};
    use super::*;

    fn instance(id: &str) -> Instance {
        Instance {
            id: id.to_owned(),
            name: format!("node-{id}"),
            provider_id: None,
            instance_type: String::new(),
            zone: String::new(),
            region: String::new(),
            addresses: Vec::new(),
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }

    fn load_balancer(id: &str, owner: &str) -> LoadBalancer {
        LoadBalancer {
            id: id.to_owned(),
            name: format!("name-{id}"),
            owner: owner.to_owned(),
            frontends: Vec::new(),
            backends: Vec::new(),
            health_check: None,
            source_ranges: Vec::new(),
            session_affinity: "None".to_owned(),
            addresses: Vec::new(),
            state: LbState::Active,
            details: Value::Null,
        }
    }

    fn firewall(id: &str, owner: &str, load_balancer: Option<&str>) -> Auxiliary {
        Auxiliary {
            id: id.to_owned(),
            kind: "firewall".to_owned(),
            name: format!("name-{id}"),
            owner: owner.to_owned(),
            load_balancer: load_balancer.map(str::to_owned),
            spec: Value::Null,
        }
    }

    #[test]
    fn equal_inventories_do_not_differ() {
        let inventory = Inventory { instances: vec![instance("i-1")], ..Inventory::default() };
        let diff = inventory.diff(&inventory.clone());
        assert!(diff.is_empty());
        assert_eq!(diff.to_string(), "no difference");
    }

    #[test]
    fn a_difference_names_every_object_and_field() {
        let before = Inventory {
            instances: vec![instance("i-1"), instance("i-2")],
            load_balancers: vec![load_balancer("lb-1", "u-1")],
            ..Inventory::default()
        };
        let after = Inventory {
            instances: vec![Instance { state: InstanceState::Stopped, zone: "z".into(), ..instance("i-1") }],
            load_balancers: vec![load_balancer("lb-2", "")],
            auxiliaries: vec![firewall("fw-1", "u-1", Some("lb-1"))],
            ..Inventory::default()
        };
        assert_eq!(
            before.diff(&after).to_string(),
            "added load balancer lb-2 (name name-lb-2, no owner)\n\
             added auxiliary fw-1 (firewall for lb-1, name name-fw-1, owner u-1)\n\
             removed instance i-2 (name node-i-2)\n\
             removed load balancer lb-1 (name name-lb-1, owner u-1)\n\
             changed instance i-1: state \"running\" -> \"stopped\", zone \"\" -> \"z\""
        );
    }

    #[test]
    fn owned_are_the_owners_and_what_serves_them() {
        let inventory = Inventory {
            instances: vec![instance("i-1")],
            load_balancers: vec![load_balancer("lb-1", "u-1"), load_balancer("lb-2", "u-2")],
            auxiliaries: vec![
                firewall("fw-1", "", Some("lb-1")),
                firewall("fw-2", "u-1", None),
                firewall("fw-3", "u-2", Some("lb-2")),
            ],
            routes: Vec::new(),
        };
        let owned = inventory.owned_by("u-1");
        let ids: Vec<&str> = owned.auxiliaries.iter().map(|aux| aux.id.as_str()).collect();
        assert_eq!(ids, ["fw-1", "fw-2"]);
        assert_eq!(owned.load_balancers.len(), 1);
        assert!(owned.instances.is_empty());
    }
}
