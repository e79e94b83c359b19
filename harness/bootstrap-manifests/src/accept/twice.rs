//! Objects that a set contains twice: the second one is an update, and some fields cannot be changed.

use super::answer::{Answer, Refusal};
use crate::manifest::Objects;

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
