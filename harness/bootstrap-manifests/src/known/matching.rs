//! Which requests the rules of webhooks and admission policies match.

use crate::manifest::{Node, Objects};
use crate::workload::{Labels, WorkloadKind, labels};

/// A list of rules with groups, versions, resources, operations and a scope.
pub(super) struct Rules<'n>(&'n [Node]);

impl<'n> Rules<'n> {
    /// The rules of a list.
    pub(super) fn of(node: Option<&'n Node>) -> Rules<'n> {
        Rules(node.map(Node::items).unwrap_or_default())
    }

    /// Whether a rule matches a request for a resource, `resource` or `resource/subresource`. Rules for certain names only
    /// do not count: those of the boot's objects are not known.
    fn matches(&self, group: &str, resource: &str, operations: &[&str], namespaced: bool) -> bool {
        self.0.iter().any(|rule| {
            let texts = |key: &str| rule.get(key).map(Node::texts).unwrap_or_default();
            let lists = |list: &[String], what: &str| list.iter().any(|own| own == "*" || own == what);
            let scope = match rule.text_at("scope") {
                Some("Cluster") => !namespaced,
                Some("Namespaced") => namespaced,
                _ => true,
            };
            let given = texts("operations");
            let resources = texts("resources");
            let named = match resource.split_once('/') {
                // `*` means all resources but no subresources, `*/*` both; `nodes/*` means Nodes as well.
                None => {
                    let with_all = format!("{resource}/*");
                    lists(&resources, resource)
                        || resources.iter().any(|own| own == "*/*" || *own == with_all)
                }
                Some((parent, sub)) => {
                    let ways =
                        [resource.to_owned(), format!("{parent}/*"), format!("*/{sub}"), "*/*".to_owned()];
                    resources.iter().any(|own| ways.contains(own))
                }
            };
            // All resources of the boot are served in one version only, so a rule for another one matches nothing, even
            // with the matchPolicy Equivalent.
            let version = lists(&texts("apiVersions"), "v1");
            let of_all = texts("resourceNames").is_empty();
            let listed = scope && version && of_all && lists(&texts("apiGroups"), group) && named;
            listed && operations.iter().any(|operation| lists(&given, operation))
        })
    }

    /// Creation of Pods.
    pub(super) fn pods(&self) -> bool {
        self.matches("", "pods", &["CREATE"], true)
    }

    /// Binding of Pods to Nodes.
    pub(super) fn bindings(&self) -> bool {
        self.matches("", "pods/binding", &["CREATE"], true)
    }

    /// Requests for the tokens of service accounts, without which a kubelet cannot mount them.
    pub(super) fn tokens(&self) -> bool {
        self.matches("", "serviceaccounts/token", &["CREATE"], true)
    }

    /// Creation of ConfigMaps.
    pub(super) fn config_maps(&self) -> bool {
        self.matches("", "configmaps", &["CREATE"], true)
    }

    /// Updates of Nodes.
    pub(super) fn nodes(&self) -> bool {
        self.matches("", "nodes", &["UPDATE"], false)
    }

    /// Updates of the status of Nodes.
    pub(super) fn statuses(&self) -> bool {
        self.matches("", "nodes/status", &["UPDATE"], false)
    }

    /// Creation of Leases.
    pub(super) fn new_leases(&self) -> bool {
        self.matches("coordination.k8s.io", "leases", &["CREATE"], true)
    }

    /// Updates of Leases, with which a leader renews its own, or takes over one that exists.
    pub(super) fn lease_updates(&self) -> bool {
        self.matches("coordination.k8s.io", "leases", &["UPDATE"], true)
    }

    /// Creation of a kind of the group `apps`.
    pub(super) fn creation(&self, resource: &str) -> bool {
        self.matches("apps", resource, &["CREATE"], true)
    }

    /// Creation of the objects that stand between a workload and its Pods.
    pub(super) fn owners(&self, kind: WorkloadKind) -> bool {
        let made = |group: &str, resource: &str| self.matches(group, resource, &["CREATE"], true);
        match kind {
            WorkloadKind::Deployment => made("apps", "replicasets"),
            WorkloadKind::CronJob => made("batch", "jobs"),
            // Their controllers record the revision of the template before they create Pods.
            WorkloadKind::DaemonSet | WorkloadKind::StatefulSet => made("apps", "controllerrevisions"),
            WorkloadKind::ReplicaSet | WorkloadKind::Job | WorkloadKind::Pod => false,
        }
    }
}

/// Labels of a namespace: its own, and its name (since Kubernetes 1.21).
pub(super) fn namespace_labels(objects: &Objects, name: &str) -> Labels {
    let object = objects.of_kind("Namespace").find(|object| object.name == name);
    let mut labels = labels(object.and_then(|object| object.node.at(&["metadata", "labels"])));
    labels.insert(String::from("kubernetes.io/metadata.name"), name.to_owned());
    labels
}
