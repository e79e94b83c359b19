//! Admission webhooks that block requests if they cannot be reached (`failurePolicy: Fail`, the default).

use super::evaluation::{Truth, truth};
use super::leases::{lease_exists, lease_of};
use super::matching::{Rules, namespace_labels};
use super::request::Request;
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Condition, Hindrance, Labels, Selector, Stage, Workload, WorkloadKind, mounts_token};

/// The requests that a webhook intercepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Creation of Pods.
    pub pods: bool,
    /// Binding of Pods to Nodes.
    pub bindings: bool,
    /// Requests for tokens of service accounts.
    pub tokens: bool,
    /// Creation of ConfigMaps.
    pub config_maps: bool,
    /// Creation of the revisions of DaemonSets and StatefulSets.
    pub revisions: bool,
    /// Creation of ReplicaSets.
    pub replica_sets: bool,
    /// Creation of Jobs.
    pub jobs: bool,
    /// Creation of Deployments.
    pub deployments: bool,
    /// Creation of DaemonSets.
    pub daemon_sets: bool,
    /// Creation of StatefulSets.
    pub stateful_sets: bool,
    /// Updates of Nodes.
    pub nodes: bool,
    /// Updates of the status of Nodes.
    pub statuses: bool,
    /// Creation of Leases.
    pub leases: bool,
    /// Updates of Leases.
    pub lease_updates: bool,
}

/// A webhook of the manifests.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// `ValidatingWebhookConfiguration/name`.
    pub title: String,
    /// Its own name.
    name: String,
    /// Index of its object, and of the webhook inside it.
    pub object: usize,
    /// The index of the webhook in its object.
    pub index: usize,
    /// Where its name is.
    pub place: Place,
    /// Where it begins.
    at: Place,
    /// The requests for which it is called.
    pub guards: Guards,
    /// The workloads behind its Service; `None` if it is reached by URL.
    pub backends: Option<Vec<usize>>,
    namespaces: Option<Selector>,
    objects: Option<Selector>,
    /// The expressions of its conditions (CEL).
    conditions: Vec<String>,
}

impl Webhook {
    /// Whether it checks the creation of the workload itself, which matters if the webhook exists before it.
    fn guards_object(&self, kind: WorkloadKind) -> bool {
        match kind {
            WorkloadKind::Deployment => self.guards.deployments,
            WorkloadKind::DaemonSet => self.guards.daemon_sets,
            WorkloadKind::StatefulSet => self.guards.stateful_sets,
            WorkloadKind::ReplicaSet => self.guards.replica_sets,
            WorkloadKind::Job => self.guards.jobs,
            WorkloadKind::CronJob | WorkloadKind::Pod => false,
        }
    }

    /// Whether it is sent the creation of the Pods of a workload, or of what stands between them; also that of the workload
    /// itself if it exists before (`first`).
    pub fn sees_creation(&self, objects: &Objects, workload: &Workload, first: bool) -> Truth {
        let namespace = namespace_labels(objects, &workload.namespace);
        if !self.asks_about(&namespace, &workload.labels) {
            return Truth::No;
        }
        let between = match workload.kind {
            WorkloadKind::Deployment => self.guards.replica_sets,
            WorkloadKind::CronJob => self.guards.jobs,
            WorkloadKind::DaemonSet | WorkloadKind::StatefulSet => self.guards.revisions,
            WorkloadKind::ReplicaSet | WorkloadKind::Job | WorkloadKind::Pod => false,
        };
        Truth::any([
            self.sees(self.guards.pods, || Request::pod(objects, workload)),
            self.sees(between, || Request::owner(objects, workload)),
            self.sees(first && self.guards_object(workload.kind), || Request::object(objects, workload)),
        ])
    }

    /// Whether it is sent the binding of the workload's Pods. A binding has no labels.
    pub fn sees_bindings(&self, objects: &Objects, workload: &Workload) -> Truth {
        let in_namespace = self.in_namespace(objects, &workload.namespace);
        self.sees(in_namespace && self.guards.bindings, || Request::binding(objects, workload))
    }

    /// Whether it is sent the kubelets' requests for the tokens of the workload's Pods, or the creation of the ConfigMap with
    /// the authority that is mounted next to a token, in a namespace that is created after the webhook.
    pub fn sees_tokens(&self, objects: &Objects, workload: &Workload) -> Truth {
        let asked = self.in_namespace(objects, &workload.namespace) && mounts_token(objects, workload);
        let is_later = |(at, one): (usize, &Object)| at > self.object && one.name == workload.namespace;
        let is_new = objects.numbered("Namespace").any(is_later);
        Truth::any([
            self.sees(asked && self.guards.tokens, || Request::token(objects, workload)),
            self.sees(asked && is_new && self.guards.config_maps, || Request::authority(objects, workload)),
        ])
    }

    /// Whether it is sent the first write of the workload's Lease.
    pub fn sees_leases(&self, objects: &Objects, workload: &Workload) -> Truth {
        let Some((namespace, _)) = lease_of(workload) else { return Truth::No };
        let (operation, guarded) = match lease_exists(objects, workload) {
            true => ("UPDATE", self.guards.lease_updates),
            false => ("CREATE", self.guards.leases),
        };
        let asked = guarded && self.in_namespace(objects, &namespace);
        self.sees(asked, || Request::lease(objects, workload, operation, &namespace))
    }

    /// Whether it is sent the workload's updates of Nodes with or without a taint that stays.
    pub fn sees_nodes(&self, objects: &Objects, workload: &Workload, tainted: bool) -> Truth {
        self.sees(self.guards.nodes, || Request::node(objects, workload, tainted))
    }

    /// Whether it is sent the workload's updates of the status of Nodes.
    pub fn sees_statuses(&self, objects: &Objects, workload: &Workload) -> Truth {
        self.sees(self.guards.statuses, || Request::node_status(objects, workload))
    }

    /// Whether it is sent a request that its rules match if `guarded`: its conditions decide.
    fn sees(&self, guarded: bool, request: impl FnOnce() -> Request) -> Truth {
        match (guarded, self.conditions.is_empty()) {
            (false, _) => Truth::No,
            (true, true) => Truth::Yes,
            (true, false) => {
                let request = request();
                Truth::all(self.conditions.iter().map(|expression| truth(expression, &request, &[])))
            }
        }
    }

    fn in_namespace(&self, objects: &Objects, namespace: &str) -> bool {
        self.asks_about(&namespace_labels(objects, namespace), &Labels::new())
    }

    /// What happens to requests whose conditions cannot be evaluated.
    pub fn fails(&self, stage: Stage) -> Hindrance {
        let words = format!(
            "a condition of the webhook '{}' of {} cannot be evaluated for its writes, which are refused then",
            self.name, self.title
        );
        let advice = String::from("test with has() whether the field exists, or set failurePolicy: Ignore");
        Hindrance::new(stage, words, self.at.clone(), advice)
    }

    /// The condition that it allows what it is sent.
    pub fn allows(&self) -> Condition {
        let words = format!("the webhook '{}' of {} allows its Pods and its writes", self.name, self.title);
        Condition { words, place: self.at.clone() }
    }

    /// Whether it is sent requests about an object of the cluster scope with these labels. A selector of namespaces does
    /// not matter there.
    pub fn chooses(&self, labels: &Labels) -> bool {
        self.objects.as_ref().is_none_or(|selector| selector.chooses(labels))
    }

    /// Whether Pods with these labels in this namespace are sent to it.
    fn asks_about(&self, namespace: &Labels, labels: &Labels) -> bool {
        let chosen = |selector: &Option<Selector>, labels: &Labels| {
            selector.as_ref().is_none_or(|selector| selector.chooses(labels))
        };
        chosen(&self.namespaces, namespace) && chosen(&self.objects, labels)
    }
}

/// All webhooks that block requests for Pods, Nodes or leases if they cannot be reached.
pub fn webhooks(objects: &Objects, workloads: &[Workload]) -> Vec<Webhook> {
    let mut all = Vec::new();
    let kinds = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
    for (at, object) in kinds.iter().flat_map(|kind| objects.numbered(kind)) {
        let items = object.node.get("webhooks").map(Node::items).unwrap_or_default();
        for (index, node) in items.iter().enumerate() {
            let conditions = expressions(node);
            let never = conditions.iter().any(|expression| expression.trim() == "false");
            if node.text_at("failurePolicy") == Some("Ignore") || never {
                continue;
            }
            let guards = guards(node);
            if guards == Guards::default() {
                continue;
            }
            all.push(Webhook {
                title: format!("{}/{}", object.kind, object.name),
                name: node.text_at("name").unwrap_or_default().to_owned(),
                at: object.place(node),
                object: at,
                index,
                place: object.place_of(node, "failurePolicy"),
                guards,
                backends: backends(objects, object, node, workloads),
                namespaces: Selector::read(node.get("namespaceSelector")),
                objects: Selector::read(node.get("objectSelector")),
                conditions,
            });
        }
    }
    all
}

fn expressions(webhook: &Node) -> Vec<String> {
    let conditions = webhook.get("matchConditions").map(Node::items).unwrap_or_default();
    conditions.iter().map(|own| own.text_at("expression").unwrap_or_default().to_owned()).collect()
}

fn guards(webhook: &Node) -> Guards {
    let rules = Rules::of(webhook.get("rules"));
    Guards {
        pods: rules.pods(),
        bindings: rules.bindings(),
        tokens: rules.tokens(),
        config_maps: rules.config_maps(),
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
