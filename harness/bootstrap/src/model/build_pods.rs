//! Rules for Pods: creation, scheduling, start and work.

use super::build::{Model, Set, number};
use super::fact::{Change, Fact, Premise};
use bootstrap_manifests::cluster::{CLOUD_LABELS, CloudEndpoint};
use bootstrap_manifests::known::{ApiServer, Need};
use bootstrap_manifests::manifest::Place;
use bootstrap_manifests::workload::{
    Effect, Expression, Operator, PodTerm, Role, Stage, Term, Workload, borne, image_fault,
};

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
        if self.absent.contains(&index) {
            body.push(self.never(format!("{} has no Pods", workload.title()), None, None));
        }
        for (place, what, _) in &workload.refused {
            let words = format!("the API server refuses {}: {what}", workload.title());
            body.push(self.never(words, Some(place.clone()), Some(Change::Repair(w, what.clone()))));
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
        for hook in &set.asked[index].creation {
            if webhooks_first || set.precedes(*hook, index) {
                body.push(self.answer_of(*hook));
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
        body.extend(self.kept_off(index, node));
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
        // What `nodeName` bypasses with the scheduler; the kubelet itself compares selector and node affinity.
        if workload.node_name.is_none() {
            for constraint in &workload.spread {
                body.extend(self.spread(index, node, constraint));
            }
            body.extend(self.hindrances(index, Stage::Scheduling));
        }
        for reference in self.set.missing[index].iter().filter(|r| r.stage == Stage::Scheduling) {
            let words = format!("{} does not exist", reference.title());
            body.push(self.never(words, Some(reference.place.clone()), Some(provide(w, reference))));
        }
        if let Some(place) = workload.storage.first() {
            body.push(self.needs_at(Fact::StorageWorks, place.clone(), Some(Change::DropStorage(w))));
        }
        for term in workload.near.iter().filter(|_| workload.node_name.is_none()) {
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

    /// What keeps the workload off the Node from the start: Pods of the cluster, and webhooks on bindings.
    fn kept_off(&mut self, index: usize, node: usize) -> Vec<Premise> {
        let (w, set) = (number(index), self.set);
        let workload = &set.workloads[index];
        let mut body = Vec::new();
        if let Some((at, owner)) = self.static_port(workload, node) {
            let (port, _, place) = &workload.host_ports[at];
            let words = format!("port {port} of the host is taken by the static Pod {owner}");
            body.push(self.never(words, Some(place.clone()), Some(Change::Port(w))));
        }
        for term in workload.apart.iter().filter(|_| workload.node_name.is_none()) {
            if let Some(pod) = self.static_pod(workload, node, term) {
                let words = format!("anti-affinity keeps it away from the Pod {}", pod.name);
                let change = Change::DropPodAffinity(w);
                body.push(self.never(words, Some(term.place.clone()), Some(change)));
            }
        }
        if workload.node_name.is_none() {
            for hook in &set.asked[index].bindings {
                body.push(self.answer_of(*hook));
            }
        }
        body
    }

    fn term(&mut self, index: usize, node: usize, term: &Term) -> Vec<Premise> {
        term.expressions.iter().filter_map(|expression| self.label(index, node, expression)).collect()
    }

    /// What a requirement on a Node's label waits for; `None` if the label is already there.
    pub(super) fn label(&mut self, index: usize, node: usize, wanted: &Expression) -> Option<Premise> {
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
        if self.static_pod(own, node, term).is_some() {
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
        for (path, place) in &workload.files_of_control_planes {
            if !self.machines[node].control_plane {
                let advice = format!("let it run on control planes only, which have '{path}'");
                let words = format!("only control planes have '{path}', which it mounts");
                body.push(self.never(words, Some(place.clone()), Some(Change::Amend(w, advice))));
            }
        }
        body.extend(self.start_faults(index));
        self.rule(Fact::Runs(w, n), body);
    }

    /// Faults that keep containers from starting on any Node.
    fn start_faults(&mut self, index: usize) -> Vec<Premise> {
        let (w, set) = (number(index), self.set);
        let workload = &set.workloads[index];
        let mut body = self.hindrances(index, Stage::Start);
        for hook in &set.asked[index].tokens {
            body.push(self.answer_of(*hook));
        }
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
        if client {
            body.extend(self.api_server(index, node));
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
        for (at, service) in self.set.cloud_services.iter().enumerate().filter(|(_, own)| own.ccm == index) {
            body.push(self.needs_at(Fact::CloudAnswers(number(at), n), service.place.clone(), None));
        }
        if let Some((port, owner, place)) = self.port_of_the_node(index, node) {
            let words = format!("port {port} of the host is used by {owner}");
            body.push(self.never(words, Some(place), Some(Change::Port(w))));
        }
        body.extend(self.work_faults(index));
        self.rule(Fact::Works(w, n), body);
    }

    /// What the way to the API server needs on a Node.
    fn api_server(&mut self, index: usize, node: usize) -> Vec<Premise> {
        let (w, n, set) = (number(index), number(node), self.set);
        let change = Some(Change::ApiServer(w));
        let spec_place = set.workloads[index].spec_place.clone();
        match &set.api_servers[index] {
            ApiServer::Named => Vec::new(),
            ApiServer::Service => vec![self.needs_at(Fact::ServicesAnswer(n), spec_place, change)],
            ApiServer::ClusterName(place) => vec![
                self.needs_at(Fact::DnsAnswers(n), place.clone(), change.clone()),
                self.needs_at(Fact::ServicesAnswer(n), spec_place, change),
            ],
            ApiServer::OwnNode(_) if self.machines[node].control_plane => Vec::new(),
            ApiServer::OwnNode(place) => {
                let words =
                    "it looks for the API server at the address of its Node, and only control planes run one";
                vec![self.never(words.to_owned(), Some(place.clone()), change)]
            }
            ApiServer::Loopback(place) | ApiServer::FileOfKubeadm(place) => {
                let loopback = matches!(set.api_servers[index], ApiServer::Loopback(_));
                let words = match (self.machines[node].control_plane, loopback) {
                    (true, true) if !set.workloads[index].host_network => {
                        "the loopback address of its own network has no API server"
                    }
                    (true, _) => return Vec::new(),
                    (false, true) => {
                        "it looks for the API server at the loopback address, and only control planes run one"
                    }
                    (false, false) => "only control planes have the kubeconfig that it mounts",
                };
                vec![self.never(words.to_owned(), Some(place.clone()), change)]
            }
        }
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
        for hook in &set.asked[index].leases {
            body.push(self.answer_of(*hook));
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
    pub(super) fn hindrances(&mut self, index: usize, stage: Stage) -> Vec<Premise> {
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
        matches!(
            self.api_servers[index],
            ApiServer::Named | ApiServer::Loopback(_) | ApiServer::FileOfKubeadm(_)
        )
    }

    /// Whether a webhook is created before a workload, by the same file, so that it checks the workload's Pods for certain.
    pub(crate) fn precedes(&self, hook: usize, index: usize) -> bool {
        let (file, object) = (&self.webhooks[hook].place.file, self.webhooks[hook].object);
        self.workloads[index].object.is_some_and(|own| object < own)
            && *file == self.workloads[index].place.file
    }
}

fn provide(w: u32, reference: &bootstrap_manifests::workload::Ref) -> Change {
    Change::Provide(w, reference.kind.to_owned(), reference.namespace.clone(), reference.name.clone())
}
