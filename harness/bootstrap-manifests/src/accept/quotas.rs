//! The scopes of resource quotas (`pkg/apis/core/validation`, `validateResourceQuotaScopes`).

use super::answer::{Answer, Refusal};
use crate::manifest::{Node, Objects};

/// What quotas with a scope of Pods may bound.
const OF_PODS: &[&str] = &[
    "pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Scopes that exclude each other.
const PAIRS: &[(&str, &str)] = &[("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

/// Refuses quotas whose scopes do not apply to what they bound.
pub(super) fn check(objects: &Objects, answer: &mut Answer) {
    for (index, object) in objects.numbered("ResourceQuota") {
        let scopes = object.node.at(&["spec", "scopes"]).map(Node::items).unwrap_or_default();
        let bounded = object.node.at(&["spec", "hard"]).map(Node::entries).unwrap_or_default();
        for scope in scopes {
            let name = scope.text().unwrap_or_default();
            let allowed: &[&str] = match name {
                "BestEffort" => &["pods"],
                "NotBestEffort"
                | "Terminating"
                | "NotTerminating"
                | "PriorityClass"
                | "CrossNamespacePodAffinity" => OF_PODS,
                _ => continue,
            };
            let refused = bounded.iter().find(|entry| {
                let key = entry.key.as_str();
                // Extended resources, counted kinds and huge pages are left to the quota.
                let is_standard = !key.contains('/') && !key.contains("hugepages-");
                is_standard && !allowed.contains(&key)
            });
            if let Some(entry) = refused {
                answer.refusals.push(Refusal {
                    object: index,
                    place: object.place(scope),
                    what: format!("spec.scopes: the scope {name} does not apply to {}", entry.key),
                    hint: format!("bound {} by a quota without scopes", entry.key),
                });
            }
        }
        let has = |name: &str| scopes.iter().any(|scope| scope.text() == Some(name));
        if let Some((one, other)) = PAIRS.iter().find(|(one, other)| has(one) && has(other)) {
            answer.refusals.push(Refusal {
                object: index,
                place: object.at(),
                what: format!("spec.scopes: {one} and {other} exclude each other"),
                hint: String::from("remove one of the two scopes"),
            });
        }
    }
}
