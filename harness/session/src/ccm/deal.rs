//! Which of a hosted CCM's manifests go to which cluster. Pure functions.

use serde_json::Value;

/// Where a document is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the cluster that the CCM serves: its identity and its permissions there.
    Served,
    /// On the management cluster, where its Pods run.
    Management,
    /// On both: namespaces and service accounts are needed for permissions on the served cluster and for Pods on the
    /// other.
    Both,
}

/// Where documents of this kind go: namespaces and service accounts to both clusters, roles and their bindings to the
/// served one, everything else (workload, ConfigMap, Secret, PriorityClass) to the management cluster.
fn place_of(kind: &str) -> Place {
    match kind {
        "Namespace" | "ServiceAccount" => Place::Both,
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => Place::Served,
        _ => Place::Management,
    }
}

/// The documents for the served cluster and those for the management cluster, each in the order given.
pub(super) fn dealt(documents: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let of = |other: Place| {
        let is_of = |document: &&Value| place_of(document["kind"].as_str().unwrap_or_default()) != other;
        documents.iter().filter(is_of).cloned().collect()
    };
    (of(Place::Management), of(Place::Served))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rights_are_given_where_the_ccm_works_and_pods_run_where_it_lives() {
        let kinds = [
            "Namespace",
            "PriorityClass",
            "ServiceAccount",
            "ClusterRole",
            "Role",
            "ClusterRoleBinding",
            "RoleBinding",
            "Secret",
            "ConfigMap",
            "Deployment",
        ];
        let documents: Vec<Value> = kinds.iter().map(|kind| json!({"kind": kind})).collect();
        let (served, management) = dealt(&documents);
        let names = |documents: &[Value]| -> Vec<String> {
            documents.iter().map(|one| one["kind"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let rights =
            ["Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"];
        assert_eq!(names(&served), rights);
        let pods = ["Namespace", "PriorityClass", "ServiceAccount", "Secret", "ConfigMap", "Deployment"];
        assert_eq!(names(&management), pods);
    }
}
