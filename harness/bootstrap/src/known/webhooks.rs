//! Admission webhooks that block requests if they cannot be reached (`failurePolicy: Fail`, the default).

use super::matching::Rules;
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Labels, Selector, Workload, WorkloadKind};

/// The requests that a webhook intercepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guards {
    /// Creation of Pods.
    pub(crate) pods: bool,
    /// Binding of Pods to Nodes.
    pub(crate) bindings: bool,
    /// Requests for tokens of service accounts.
    pub(crate) tokens: bool,
    /// Creation of the revisions of DaemonSets and StatefulSets.
    pub(crate) revisions: bool,
    /// Creation of ReplicaSets.
    pub(crate) replica_sets: bool,
    /// Creation of Jobs.
    pub(crate) jobs: bool,
    /// Creation of Deployments.
    pub(crate) deployments: bool,
    /// Creation of DaemonSets.
    pub(crate) daemon_sets: bool,
    /// Creation of StatefulSets.
    pub(crate) stateful_sets: bool,
    /// Updates of Nodes.
    pub(crate) nodes: bool,
    /// Updates of the status of Nodes.
    pub(crate) statuses: bool,
    /// Creation of Leases.
    pub(crate) leases: bool,
    /// Updates of Leases.
    pub(crate) lease_updates: bool,
}

/// A webhook of the manifests.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    /// `ValidatingWebhookConfiguration/name`.
    pub(crate) title: String,
    /// Index of its object, and of the webhook inside it.
    pub(crate) object: usize,
    pub(crate) index: usize,
    pub(crate) place: Place,
    pub(crate) guards: Guards,
    /// The workloads behind its Service; `None` if it is reached by URL.
    pub(crate) backends: Option<Vec<usize>>,
    namespaces: Option<Selector>,
    objects: Option<Selector>,
}

impl Webhook {
    /// Whether it checks the creation of the Pods of a workload, or of what stands between them.
    pub(crate) fn guards_creation(&self, kind: WorkloadKind) -> bool {
        let between = match kind {
            WorkloadKind::Deployment => self.guards.replica_sets,
            WorkloadKind::CronJob => self.guards.jobs,
            WorkloadKind::DaemonSet | WorkloadKind::StatefulSet => self.guards.revisions,
            WorkloadKind::ReplicaSet | WorkloadKind::Job | WorkloadKind::Pod => false,
        };
        self.guards.pods || between
    }

    /// Whether it checks the creation of the workload itself, which matters if the webhook exists before it.
    pub(crate) fn guards_object(&self, kind: WorkloadKind) -> bool {
        match kind {
            WorkloadKind::Deployment => self.guards.deployments,
            WorkloadKind::DaemonSet => self.guards.daemon_sets,
            WorkloadKind::StatefulSet => self.guards.stateful_sets,
            WorkloadKind::ReplicaSet => self.guards.replica_sets,
            WorkloadKind::Job => self.guards.jobs,
            WorkloadKind::CronJob | WorkloadKind::Pod => false,
        }
    }

    /// Whether it is sent requests about an object of the cluster scope with these labels. A selector of namespaces does
    /// not matter there.
    pub(crate) fn chooses(&self, labels: &Labels) -> bool {
        self.objects.as_ref().is_none_or(|selector| selector.chooses(labels))
    }

    /// Whether Pods with these labels in this namespace are sent to it.
    pub(crate) fn asks_about(&self, namespace: &Labels, labels: &Labels) -> bool {
        let chosen = |selector: &Option<Selector>, labels: &Labels| {
            selector.as_ref().is_none_or(|selector| selector.chooses(labels))
        };
        chosen(&self.namespaces, namespace) && chosen(&self.objects, labels)
    }
}

/// All webhooks that block requests for Pods, Nodes or leases if they cannot be reached.
pub(crate) fn webhooks(objects: &Objects, workloads: &[Workload]) -> Vec<Webhook> {
    let mut all = Vec::new();
    for (at, object) in objects.all.iter().enumerate() {
        if !matches!(object.kind.as_str(), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
        {
            continue;
        }
        let items = object.node.get("webhooks").map(Node::items).unwrap_or_default();
        for (index, node) in items.iter().enumerate() {
            // CEL expressions are not evaluated, so it is unknown which requests they exclude.
            if node.text_at("failurePolicy") == Some("Ignore") || conditional(node) {
                continue;
            }
            let guards = guards(node);
            if guards == Guards::default() {
                continue;
            }
            all.push(Webhook {
                title: format!("{}/{}", object.kind, object.name),
                object: at,
                index,
                place: object.place_of(node, "failurePolicy"),
                guards,
                backends: backends(objects, object, node, workloads),
                namespaces: Selector::read(node.get("namespaceSelector")),
                objects: Selector::read(node.get("objectSelector")),
            });
        }
    }
    all
}

/// Whether conditions decide which requests it is sent; constants decide nothing.
pub(super) fn conditional(webhook: &Node) -> bool {
    let conditions = webhook.get("matchConditions").map(Node::items).unwrap_or_default();
    conditions.iter().any(|own| own.text_at("expression").is_none_or(|text| text.trim() != "true"))
}

/// Whether the webhook checks any request of the boot.
pub(super) fn matters(webhook: &Node) -> bool {
    let excludes =
        |condition: &Node| condition.text_at("expression").is_some_and(|text| text.trim() == "false");
    let conditions = webhook.get("matchConditions").map(Node::items).unwrap_or_default();
    guards(webhook) != Guards::default() && !conditions.iter().any(excludes)
}

fn guards(webhook: &Node) -> Guards {
    let rules = Rules::of(webhook.get("rules"));
    Guards {
        pods: rules.pods(),
        bindings: rules.bindings(),
        tokens: rules.tokens(),
        revisions: rules.owners(WorkloadKind::DaemonSet),
        replica_sets: rules.owners(WorkloadKind::Deployment),
        jobs: rules.owners(WorkloadKind::CronJob),
        deployments: rules.creation("deployments"),
        daemon_sets: rules.creation("daemonsets"),
        stateful_sets: rules.creation("statefulsets"),
        nodes: rules.nodes(),
        statuses: rules.statuses(),
        leases: rules.new_leases(),
        lease_updates: rules.lease_updates(),
    }
}

fn backends(
    objects: &Objects,
    configuration: &Object,
    webhook: &Node,
    workloads: &[Workload],
) -> Option<Vec<usize>> {
    let service = webhook.at(&["clientConfig", "service"])?;
    let name = service.text_at("name").unwrap_or_default();
    let namespace = service.text_at("namespace").unwrap_or(&configuration.namespace);
    let selector = objects
        .find("Service", namespace, name)
        .and_then(|service| service.node.at(&["spec", "selector"]))
        .map(|selector| {
            let entries = selector.entries().iter();
            entries.filter_map(|e| Some((e.key.clone(), e.value.scalar()?))).collect::<Labels>()
        })
        .unwrap_or_default();
    let behind = |workload: &Workload| {
        !selector.is_empty()
            && workload.namespace == namespace
            && selector.iter().all(|(key, value)| workload.labels.get(key) == Some(value))
    };
    Some(workloads.iter().enumerate().filter(|(_, w)| behind(w)).map(|(index, _)| index).collect())
}
