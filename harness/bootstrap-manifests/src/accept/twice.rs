//! Objects that a set contains twice: the second one is an update, and some fields cannot be changed.

use super::answer::{Answer, Refusal};
use crate::manifest::{Node, Object, Objects};

/// Fields that no update may change, by kind.
const FIXED: &[(&str, &[&str])] = &[
    ("ClusterRoleBinding", &["roleRef"]),
    ("RoleBinding", &["roleRef"]),
    ("Deployment", &["spec", "selector"]),
    ("DaemonSet", &["spec", "selector"]),
    ("StatefulSet", &["spec", "selector"]),
    ("ReplicaSet", &["spec", "selector"]),
    ("PriorityClass", &["value"]),
    ("RuntimeClass", &["handler"]),
    ("Secret", &["type"]),
];

/// Refuses objects that change a fixed field of an object of the same kind and name before them.
pub(super) fn check(objects: &Objects, answer: &mut Answer) {
    for (index, object) in objects.all.iter().enumerate() {
        immutable(objects, index, object, answer);
        let Some((_, path)) = FIXED.iter().find(|(kind, _)| *kind == object.kind) else { continue };
        let same = objects.all[..index].iter().rfind(|before| {
            before.kind == object.kind && before.name == object.name && before.namespace == object.namespace
        });
        let Some(before) = same else { continue };
        let (old, new) = (before.node.at(path), object.node.at(path));
        if old.map(|node| node.json()) == new.map(|node| node.json()) {
            continue;
        }
        let field = path.join(".");
        answer.refusals.push(Refusal {
            object: index,
            place: new.map_or_else(|| object.at(), |node| object.place(node)),
            what: format!("{field} cannot be changed, and document {} has another one", before.document),
            hint: String::from("remove one of the two documents, or give them different names"),
        });
    }
}

/// Refuses changes of the data of a ConfigMap or a Secret that an earlier document has made immutable.
fn immutable(objects: &Objects, index: usize, object: &Object, answer: &mut Answer) {
    const DATA: &[&str] = &["data", "stringData", "binaryData", "immutable"];
    if !matches!(object.kind.as_str(), "ConfigMap" | "Secret") {
        return;
    }
    let is_fixed = |own: &Object| own.node.get("immutable").and_then(Node::bool) == Some(true);
    let before = objects.all[..index].iter().rfind(|before| before.is_same(object) && is_fixed(before));
    let Some(before) = before else { return };
    let of = |own: &Object, key: &str| own.node.get(key).map(Node::json);
    let Some(changed) = DATA.iter().find(|key| of(before, key) != of(object, key)) else { return };
    answer.refusals.push(Refusal {
        object: index,
        place: object.place_of(&object.node, changed),
        what: format!("{changed} cannot be changed: document {} has made it immutable", before.document),
        hint: String::from("remove one of the two documents, or give them different names"),
    });
}
