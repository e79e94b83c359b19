//! Objects that name an owner. A new cluster has no object with a uid that was written before, so the garbage collector
//! takes the owner for absent and deletes what it owned (`pkg/controller/garbagecollector`).

use super::order::cluster_wide;
use crate::manifest::{Node, Object, Place};

/// Why the garbage collector deletes the object, if it does. Owners of kinds that are not Kubernetes' own are left out: the
/// collector does not look for kinds that the cluster does not have.
pub fn orphan(object: &Object) -> Option<(Place, String)> {
    let owners = object.node.at(&["metadata", "ownerReferences"]).map(Node::items).unwrap_or_default();
    let text = |owner: &Node, key: &str| owner.text_at(key).unwrap_or_default().to_owned();
    let of_kubernetes = |owner: &&Node| {
        let version = text(owner, "apiVersion");
        let group = version.split_once('/').map_or("", |(group, _)| group);
        !group.contains('.') || group.ends_with(".k8s.io")
    };
    // It does not look for the owner of an object without a namespace in a namespace, and leaves the object.
    let is_found = |owner: &&Node| !cluster_wide(&object.kind) || cluster_wide(&text(owner, "kind"));
    let owner = owners.first()?;
    if !owners.iter().all(|owner| of_kubernetes(&owner) && is_found(&owner)) {
        return None;
    }
    let words = format!(
        "it names {}/{} with a uid as its owner: a new cluster has no object with that uid, so it is deleted",
        text(owner, "kind"),
        text(owner, "name")
    );
    Some((object.place(owner), words))
}
