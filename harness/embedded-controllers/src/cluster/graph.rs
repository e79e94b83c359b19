//! The graph of owners and owned objects, and the actions that follow from it. Pure functions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use embedded_runtime::cache::Key;

/// Dependents have to be deleted first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Dependents stay, without their owner.
pub(super) const ORPHAN: &str = "orphan";

/// The identity of an object: its kind (an index into the collector's list) and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) kind: usize,
    pub(super) key: Key,
}

/// The known facts about an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vertex {
    pub(super) uid: String,
    pub(super) version: Option<String>,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) deleting: bool,
    pub(super) finalizers: Vec<String>,
}

impl Vertex {
    pub(super) fn of(meta: &ObjectMeta) -> Vertex {
        Vertex {
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta.resource_version.clone(),
            owners: meta.owner_references.clone().unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
        }
    }

    /// Whether another version of the same object has the same relations.
    fn is_alike(&self, other: &Vertex) -> bool {
        self.uid == other.uid
            && self.deleting == other.deleting
            && self.owners == other.owners
            && self.finalizers == other.finalizers
    }

    pub(super) fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|one| one == finalizer)
    }
}

/// The action that is due for an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Deed {
    Nothing,
    /// It is being deleted after its dependents: delete these; if there are none, it may be removed.
    Foreground(Vec<Id>),
    /// It is being deleted and these have to lose it as owner; if there are none, it may be removed.
    Orphan(Vec<Id>),
    /// Its owners seem to be gone or to wait for it: make sure, then delete it.
    Unowned(Vec<OwnerReference>),
}

/// All objects that own others or are owned.
#[derive(Debug, Default)]
pub(super) struct Graph {
    vertices: HashMap<Id, Vertex>,
    by_uid: HashMap<String, Id>,
    dependents: BTreeMap<String, BTreeSet<Id>>,
}

impl Graph {
    /// Adds or changes an object; returns the objects that are affected.
    pub(super) fn put(&mut self, id: Id, vertex: Vertex) -> Vec<Id> {
        let mut concerned = Vec::new();
        // Most changes, such as every heartbeat, affect other fields.
        if let Some(known) = self.vertices.get_mut(&id)
            && known.is_alike(&vertex)
        {
            known.version = vertex.version;
            return concerned;
        }
        if self.vertices.get(&id).is_some_and(|known| known.uid != vertex.uid) {
            concerned.extend(self.remove(&id));
        }
        let before = self.vertices.insert(id.clone(), vertex.clone());
        self.by_uid.insert(vertex.uid.clone(), id.clone());
        for owner in before.iter().flat_map(|before| &before.owners) {
            if let Some(known) = self.dependents.get_mut(&owner.uid) {
                known.remove(&id);
            }
        }
        for owner in &vertex.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(id.clone());
        }
        // When the deletion of an owner begins, its dependents are affected.
        if vertex.deleting && !before.is_some_and(|before| before.deleting) {
            concerned.extend(self.dependents.get(&vertex.uid).into_iter().flatten().cloned());
        }
        if !vertex.owners.is_empty() || vertex.deleting {
            concerned.push(id);
        }
        concerned
    }

    /// Removes an object; returns the objects that are affected.
    pub(super) fn remove(&mut self, id: &Id) -> Vec<Id> {
        let Some(gone) = self.vertices.remove(id) else { return Vec::new() };
        self.by_uid.remove(&gone.uid);
        let mut concerned: Vec<Id> = self.dependents.get(&gone.uid).into_iter().flatten().cloned().collect();
        for owner in &gone.owners {
            if let Some(known) = self.dependents.get_mut(&owner.uid) {
                known.remove(id);
                if known.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
            concerned.extend(self.by_uid.get(&owner.uid).cloned());
        }
        concerned
    }

    /// The objects of a kind.
    pub(super) fn of_kind(&self, kind: usize) -> Vec<Id> {
        self.vertices.keys().filter(|id| id.kind == kind).cloned().collect()
    }

    /// The known facts about an object.
    pub(super) fn get(&self, id: &Id) -> Option<&Vertex> {
        self.vertices.get(id)
    }

    /// Whether an object owns anything.
    pub(super) fn owns(&self, uid: &str) -> bool {
        self.dependents.get(uid).is_some_and(|dependents| !dependents.is_empty())
    }

    /// The action that is due for this object.
    pub(super) fn deed(&self, id: &Id) -> Deed {
        let Some(vertex) = self.vertices.get(id) else { return Deed::Nothing };
        let owned: Vec<Id> = self.dependents.get(&vertex.uid).into_iter().flatten().cloned().collect();
        if vertex.deleting {
            if vertex.has(ORPHAN) {
                return Deed::Orphan(owned);
            }
            if vertex.has(FOREGROUND) {
                return Deed::Foreground(owned);
            }
            return Deed::Nothing;
        }
        let solid = |owner: &OwnerReference| {
            let known = self.by_uid.get(&owner.uid).and_then(|id| self.vertices.get(id));
            known.is_some_and(|owner| !(owner.deleting && owner.has(FOREGROUND)))
        };
        if vertex.owners.is_empty() || vertex.owners.iter().any(solid) {
            return Deed::Nothing;
        }
        Deed::Unowned(vertex.owners.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        Id { kind: 0, key: Key::new("n", name) }
    }

    fn vertex(uid: &str, owner: Option<&str>, finalizer: Option<&str>) -> Vertex {
        let reference = |uid: &str| OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() };
        Vertex {
            uid: uid.to_owned(),
            version: None,
            owners: owner.into_iter().map(reference).collect(),
            deleting: finalizer.is_some(),
            finalizers: finalizer.into_iter().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn objects_without_their_owner_are_deleted() {
        let mut graph = Graph::default();
        graph.put(id("owner"), vertex("1", None, None));
        graph.put(id("owned"), vertex("2", Some("1"), None));
        assert_eq!(graph.deed(&id("owned")), Deed::Nothing);
        assert_eq!(graph.remove(&id("owner")), [id("owned")]);
        assert!(matches!(graph.deed(&id("owned")), Deed::Unowned(_)));
        // Another object with the same name is not the owner.
        graph.put(id("owner"), vertex("3", None, None));
        assert!(matches!(graph.deed(&id("owned")), Deed::Unowned(_)));
    }

    #[test]
    fn foreground_waits_for_dependents_and_orphans_are_let_go() {
        let mut graph = Graph::default();
        graph.put(id("owned"), vertex("2", Some("1"), None));
        let concerned = graph.put(id("owner"), vertex("1", None, Some(FOREGROUND)));
        assert_eq!(concerned, [id("owned"), id("owner")]);
        assert_eq!(graph.deed(&id("owner")), Deed::Foreground(vec![id("owned")]));
        assert!(matches!(graph.deed(&id("owned")), Deed::Unowned(_)));
        assert_eq!(graph.remove(&id("owned")), [id("owner")]);
        assert_eq!(graph.deed(&id("owner")), Deed::Foreground(vec![]));
        graph.put(id("keeper"), vertex("9", None, Some(ORPHAN)));
        graph.put(id("kept"), vertex("8", Some("9"), None));
        assert_eq!(graph.deed(&id("keeper")), Deed::Orphan(vec![id("kept")]));
    }
}
