//! Rules for Pods: creation, scheduling, start and work.

use super::build::{Model, Set, number};
use super::fact::{Change, Fact, Premise};
use crate::cluster::CloudEndpoint;
use crate::known::Need;
use crate::manifest::Place;
use crate::workload::{
    Effect, Expression, Operator, PodTerm, Role, Stage, Term, Workload, WorkloadKind, borne, image_fault,
};

/// Labels that the CCM writes when it initialises a Node (contract section 8).
const CLOUD_LABELS: &[&str] = &[
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
];

/// Ports of the host that programs of a kubeadm Node use: number, program, whether on control planes only.
const NODE_PORTS: &[(i64, &str, bool)] = &[
    (2379, "etcd", true),
    (2380, "etcd", true),
    (6443, "kube-apiserver", true),
    (10_248, "kubelet", false),
    (10_249, "kube-proxy", false),
    (10_250, "kubelet", false),
    (10_256, "kube-proxy", false),
    (10_257, "kube-controller-manager", true),
    (10_259, "kube-scheduler", true),
];

impl Model<'_> {
    pub(super) fn workload(&mut self, index: usize, webhooks_first: bool) {
        let w = number(index);
        self.making(index, webhooks_first);
        if self.elsewhere(index) {
            // It runs next to its control plane, on a cluster that is up.
            let mut body = vec![self.needs(Fact::Made(w))];
            body.extend(self.start_faults(index));
            body.extend(self.work_faults(index));
            self.rule(Fact::Serves(w), body);
        } else {
            for node in 0..self.machines.len() {
                self.scheduling(index, node);
                self.starting(index, node);
                self.working(index, node);
                let works = self.needs(Fact::Works(w, number(node)));
                self.rule(Fact::Serves(w), vec![works]);
            }
        }
        match self.set.workloads[index].role {
            Role::Ccm | Role::NodeManager => self.initialisation(index),
            Role::Dns => {
                let serves = self.needs(Fact::Serves(w));
                self.rule(Fact::DnsRuns, vec![serves]);
            }
            Role::Cni | Role::Other => {}
        }
    }

    fn making(&mut self, index: usize, webhooks_first: bool) {
        let (w, set) = (number(index), self.set);
        let workload = &set.workloads[index];
        let mut body = Vec::new();
        for (place, what, _) in &workload.refused {
            let words = format!("the API server refuses {}: {what}", workload.title());
            body.push(self.never(words, Some(place.clone()), Some(Change::Mend(w, what.clone()))));
        }
        for reference in set.missing[index].iter().filter(|r| r.stage == Stage::Creation) {
            let change = provide(w, reference);
            let words = format!("{} does not exist", reference.title());
            body.push(self.never(words, Some(reference.place.clone()), Some(change)));
        }
        body.extend(self.hindrances(index, Stage::Creation));
        if workload.replicas == 0 {
            let words = format!("{} has no replicas", workload.title());
            let place = workload.replicas_place.clone();
            body.push(self.never(words, Some(place), Some(Change::Replicas(w))));
        }
        if webhooks_first {
            for hook in &set.asked[index] {
                let place = set.webhooks[*hook].place.clone();
                let change = Some(Change::FailOpen(number(*hook)));
                body.push(self.needs_at(Fact::WebhookAnswers(number(*hook)), place, change));
            }
        }
        self.rule(Fact::Made(w), body);
    }

    fn scheduling(&mut self, index: usize, node: usize) {
        let (w, n) = (number(index), number(node));
        let workload = &self.set.workloads[index];
        let mut body = vec![self.needs(Fact::Made(w))];
        let tolerations = workload.effective_tolerations();
        for at in self.tainted[node].clone() {
            let taint = self.taints[at].clone();
            let hard = match taint.effect {
                // `nodeName` bypasses the scheduler; the kubelet and the taint manager only consider NoExecute.
                Effect::NoSchedule => workload.node_name.is_none(),
                Effect::NoExecute => true,
                Effect::PreferNoSchedule => false,
            };
            if hard && !borne(&tolerations, &taint) {
                let change = Some(Change::Tolerate(w, taint));
                let place = workload.tolerations_place.clone();
                body.push(self.needs_at(Fact::Untainted(n, number(at)), place, change));
            }
        }
        if workload.kind == WorkloadKind::Pod && workload.node_name.is_some() {
            return self.rule(Fact::Schedulable(w, n), body);
        }
        for (key, value, place) in &workload.node_selector {
            let wanted = Expression {
                key: key.clone(),
                operator: Operator::In,
                values: vec![value.clone()],
                place: Some(place.clone()),
                field: false,
            };
            body.extend(self.label(index, node, &wanted));
        }
        for (key, place) in &workload.spread {
            let wanted = Expression {
                key: key.clone(),
                operator: Operator::Exists,
                values: Vec::new(),
                place: Some(place.clone()),
                field: false,
            };
            body.extend(self.label(index, node, &wanted));
        }
        body.extend(self.hindrances(index, Stage::Scheduling));
        for reference in self.set.missing[index].iter().filter(|r| r.stage == Stage::Scheduling) {
            let words = format!("{} does not exist", reference.title());
            body.push(self.never(words, Some(reference.place.clone()), Some(provide(w, reference))));
        }
        if let Some(place) = workload.storage.first() {
            body.push(self.needs_at(Fact::StorageWorks, place.clone(), Some(Change::DropStorage(w))));
        }
        for term in &workload.near {
            body.extend(self.near(index, node, term));
        }
        let Some(terms) = &workload.node_affinity else {
            return self.rule(Fact::Schedulable(w, n), body);
        };
        // Terms are alternatives, and so are the resulting rules. Affinity without a usable term matches no Node.
        if terms.is_empty() {
            let words = format!("the node affinity of {} matches no Node", workload.title());
            let change = Change::DropNodeRequirement(w, String::new());
            body.push(self.never(words, Some(workload.affinity_place.clone()), Some(change)));
            return self.rule(Fact::Schedulable(w, n), body);
        }
        for term in terms {
            let mut with = body.clone();
            with.extend(self.term(index, node, term));
            self.rule(Fact::Schedulable(w, n), with);
        }
    }

    fn term(&mut self, index: usize, node: usize, term: &Term) -> Vec<Premise> {
        term.expressions.iter().filter_map(|expression| self.label(index, node, expression)).collect()
    }

    /// What a requirement on a Node's label waits for; `None` if the label is already there.
    fn label(&mut self, index: usize, node: usize, wanted: &Expression) -> Option<Premise> {
        let (w, machine) = (number(index), &self.machines[node]);
        let value = if wanted.field { Some(&machine.name) } else { machine.labels.get(&wanted.key) };
        if wanted.holds(value) {
            return None;
        }
        let absent = value.is_none();
        let words = format!("Node {} does not match '{}'", machine.name, wanted.words());
        let place = wanted.place.clone();
        let change = Change::DropNodeRequirement(w, wanted.key.clone());
        if absent && CLOUD_LABELS.contains(&wanted.key.as_str()) {
            let fact = self.fact(Fact::Initialised(number(node)));
            return Some(Premise { fact, place, change: Some(change) });
        }
        Some(self.never(words, place, Some(change)))
    }

    /// Required Pod affinity: a matching Pod is bound in the same place. The first Pod of a group that requires its own
    /// kind is scheduled anyway (interpodaffinity, `satisfyPodAffinity`).
    fn near(&mut self, index: usize, node: usize, term: &PodTerm) -> Option<Premise> {
        let own = &self.set.workloads[index];
        let means = |other: &Workload| term.means(&own.namespace, &other.namespace, &other.labels);
        let change = Some(Change::DropPodAffinity(number(index)));
        let there = self.machines[node].labels.contains_key(&term.topology_key);
        if !there && CLOUD_LABELS.contains(&term.topology_key.as_str()) {
            return Some(self.needs_at(Fact::Initialised(number(node)), term.place.clone(), change));
        }
        if there && means(own) {
            return None;
        }
        let others: Vec<usize> =
            (0..self.set.workloads.len()).filter(|other| means(&self.set.workloads[*other])).collect();
        let domain = self.machines[node].labels.get(&term.topology_key).cloned();
        match others.first() {
            // In practice there is one matching workload; if there are several, the first one represents them.
            Some(other) if domain.is_some() => {
                let place = term.place.clone();
                Some(self.needs_at(Fact::Bound(number(*other), number(node)), place, change))
            }
            _ => {
                let words = format!("no Pod that the affinity of {} requires can be there", own.title());
                Some(self.never(words, Some(term.place.clone()), change))
            }
        }
    }

    fn starting(&mut self, index: usize, node: usize) {
        let (w, n) = (number(index), number(node));
        let workload = &self.set.workloads[index];
        let mut body = vec![self.needs(Fact::Bound(w, n))];
        if !workload.host_network {
            let place = workload.host_network_place.clone();
            body.push(self.needs_at(Fact::Networked(n), place, Some(Change::HostNetwork(w))));
        }
        if let Some(place) = workload.host_ip.first() {
            body.push(self.needs_at(Fact::Addressed(n), place.clone(), Some(Change::DropHostIp(w))));
        }
        body.extend(self.start_faults(index));
        self.rule(Fact::Runs(w, n), body);
    }

    /// Faults that keep containers from starting on any Node.
    fn start_faults(&mut self, index: usize) -> Vec<Premise> {
        let (w, set) = (number(index), self.set);
        let workload = &set.workloads[index];
        let mut body = self.hindrances(index, Stage::Start);
        for reference in set.missing[index].iter().filter(|r| r.stage == Stage::Start) {
            let key = reference.key.as_ref().map(|key| format!(" with the key '{key}'")).unwrap_or_default();
            let words = format!("{}{key} does not exist", reference.title());
            body.push(self.never(words, Some(reference.place.clone()), Some(provide(w, reference))));
        }
        for (at, container) in workload.containers.iter().enumerate() {
            if let Some(fault) = image_fault(&container.image) {
                let words = format!("the image '{}' cannot be parsed: {fault}", container.image);
                let change = Change::Image(w, number(at));
                body.push(self.never(words, Some(container.image_place.clone()), Some(change)));
            }
        }
        body
    }

    fn working(&mut self, index: usize, node: usize) {
        let (w, n) = (number(index), number(node));
        let workload = &self.set.workloads[index];
        let mut body = vec![self.needs(Fact::Runs(w, n))];
        let client = matches!(workload.role, Role::Ccm | Role::NodeManager | Role::Cni | Role::Dns);
        if client && !self.set.names_api_server(index) {
            let place = workload.spec_place.clone();
            body.push(self.needs_at(Fact::ServicesAnswer(n), place, Some(Change::ApiServer(w))));
        }
        if workload.role == Role::Ccm {
            let by_name = match self.cluster.cloud_endpoint {
                CloudEndpoint::Name => true,
                CloudEndpoint::Address => false,
                CloudEndpoint::Auto => self.set.cloud_by_name.unwrap_or(true),
            };
            if by_name && workload.needs_cluster_dns() {
                let place = workload.dns_place.clone();
                body.push(self.needs_at(Fact::DnsAnswers(n), place, Some(Change::NodeDns(w))));
            }
        }
        if let Some((port, owner, place)) = self.port_of_the_node(index, node) {
            let words = format!("port {port} of the host is used by {owner}");
            body.push(self.never(words, Some(place), Some(Change::Port(w))));
        }
        body.extend(self.work_faults(index));
        self.rule(Fact::Works(w, n), body);
    }

    /// Faults that keep a CCM from working on any Node.
    fn work_faults(&mut self, index: usize) -> Vec<Premise> {
        let (w, set) = (number(index), self.set);
        let workload = &set.workloads[index];
        if !matches!(workload.role, Role::Ccm | Role::NodeManager) {
            return Vec::new();
        }
        let mut body = self.hindrances(index, Stage::Work);
        body.extend(self.right(index, Need::Election, "take part in the leader election"));
        for hook in &set.asked_for_leases[index] {
            let place = set.webhooks[*hook].place.clone();
            let change = Some(Change::FailOpen(number(*hook)));
            body.push(self.needs_at(Fact::WebhookAnswers(number(*hook)), place, change));
        }
        // Its absence is not a fault here: many vendors' programs set their own provider.
        if let Some((value, place)) = workload.flag("cloud-provider")
            && (value.is_empty() || value == "external")
            && workload.role == Role::Ccm
        {
            let words = format!("--cloud-provider={value} does not name a provider, and the process exits");
            body.push(self.never(words, Some(place), Some(Change::CloudProvider(w))));
        }
        body
    }
}

impl Model<'_> {
    /// Obstacles that are written in the workload and take effect at a stage.
    fn hindrances(&mut self, index: usize, stage: Stage) -> Vec<Premise> {
        let (set, minor) = (self.set, self.cluster.version.minor);
        let own = set.workloads[index].hindrances.iter();
        own.filter(|hindrance| hindrance.stage == stage && hindrance.since <= minor)
            .map(|hindrance| {
                let change = Change::Amend(number(index), hindrance.advice.clone());
                self.never(hindrance.words.clone(), Some(hindrance.place.clone()), Some(change))
            })
            .collect()
    }

    /// The port on which a CCM of the host's network listens, if another program of the Node already uses it.
    fn port_of_the_node(&self, index: usize, node: usize) -> Option<(i64, &'static str, Place)> {
        let workload = &self.set.workloads[index];
        if workload.role != Role::Ccm || !workload.host_network {
            return None;
        }
        let (text, place) = workload.flag("secure-port")?;
        let port: i64 = text.parse().ok()?;
        let machine = &self.machines[node];
        let taken = |(own, _, control_plane): &&(i64, &str, bool)| {
            *own == port && (machine.control_plane || !control_plane)
        };
        NODE_PORTS.iter().find(taken).map(|(_, owner, _)| (port, *owner, place))
    }
}

impl Set {
    /// Whether the workload reaches the API server without its Service address.
    pub(crate) fn names_api_server(&self, index: usize) -> bool {
        let workload = &self.workloads[index];
        let flag = |name: &str| workload.flag(name).is_some_and(|(value, _)| !value.is_empty());
        let env = |container: &crate::workload::Container| {
            container.env_names.iter().any(|name| name == "KUBERNETES_SERVICE_HOST")
        };
        flag("kubeconfig")
            || flag("master")
            || workload.containers.iter().any(env)
            || self.api_from_map[index]
    }
}

fn provide(w: u32, reference: &crate::workload::Ref) -> Change {
    Change::Provide(w, reference.kind.to_owned(), reference.namespace.clone(), reference.name.clone())
}
