//! Builds the rules from manifests and a cluster.

use super::asked::Asked;
use super::fact::{Change, Fact, Premise, Reason, Rule};
use super::ordinary::OrdinaryPods;
use bootstrap_manifests::accept;
use bootstrap_manifests::cluster::{Cluster, Machine, Topology};
use bootstrap_manifests::known::{
    ApiServer, Assumed, CloudService, Gap, Need, Webhook, api_server, apply_policies, cloud_services, gaps,
    missing, mutated, ordinary_pod, webhooks,
};
use bootstrap_manifests::manifest::{Object, Objects, Place};
use bootstrap_manifests::workload::{Condition, Ref, Role, Stage, Taint, Workload, WorkloadKind};
use std::collections::{BTreeSet, HashMap};

/// The contents of the manifests, independent of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// The workloads of the manifests, then cluster DNS if the manifests do not contain it.
    pub(crate) workloads: Vec<Workload>,
    /// References to objects that do not exist, by workload.
    pub(crate) missing: Vec<Vec<Ref>>,
    /// Missing permissions, by workload; only for CCMs.
    pub(crate) gaps: Vec<Vec<Gap>>,
    pub(crate) webhooks: Vec<Webhook>,
    /// The webhooks that are sent requests of the boot, by workload.
    pub(crate) asked: Vec<Asked>,
    /// Whether the cloud of a CCM is reached by a DNS name, as far as the manifests show.
    pub(crate) cloud_by_name: Option<bool>,
    /// Objects other than workloads that the API server refuses.
    pub(crate) refused: Vec<Refused>,
    /// Objects other than workloads that the garbage collector deletes.
    pub(crate) orphans: Vec<Refused>,
    /// What ordinary Pods depend on after the boot.
    pub(crate) ordinary: OrdinaryPods,
    /// Fields that Kubernetes does not know.
    pub(crate) unknown: Vec<accept::UnknownField>,
    /// Whether a program outside of the manifests initialises Nodes (`--assume NodeManager/NAME`).
    pub(crate) node_manager: bool,
    /// How it reaches the API server, by workload.
    pub(crate) api_servers: Vec<ApiServer>,
    /// Services of the manifests through which CCMs reach their clouds.
    pub(crate) cloud_services: Vec<CloudService>,
}

/// An object that the API server refuses, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Index of the object in the set.
    pub(crate) object: usize,
    /// Document and name.
    pub(crate) title: String,
    pub(crate) what: String,
    pub(crate) place: Place,
}

impl Set {
    /// Reads the set. `ccm` names the CCM if its name does not show it.
    pub(crate) fn new(objects: &Objects, assumed: &Assumed, ccm: Option<&str>) -> Set {
        let answer = accept::answer(objects);
        let refused_ones: Vec<usize> = answer.refusals.iter().map(|refusal| refusal.object).collect();
        let orphans = orphans(objects);
        let gone =
            refused_ones.iter().copied().chain(orphans.iter().map(|own| own.object)).collect::<Vec<_>>();
        // kubectl goes on after an object that is refused.
        let mut applied = objects.applied(&gone);
        let ordinary = ordinary_pod().map(|pod| applied.push(pod));
        let mut all = mutated(&mut applied, assumed, &refused_ones);
        let ordinary = all.iter().position(|workload| workload.object == ordinary).map(|at| all.remove(at));
        if let Some(named) = ccm {
            for workload in &mut all {
                let own = workload.title().eq_ignore_ascii_case(named) || workload.name == named;
                match (own, workload.role) {
                    (true, _) => workload.role = Role::Ccm,
                    (false, Role::Ccm) => workload.role = Role::Other,
                    (false, _) => {}
                }
            }
        }
        let titles = objects;
        let objects = &applied;
        apply_policies(objects, assumed, &mut all);
        let mut refused = Vec::new();
        for accept::Refusal { object, place, what, hint } in answer.refusals {
            match all.iter_mut().find(|workload| workload.object == Some(object)) {
                Some(workload) => workload.refused.push((place, what, hint)),
                None => {
                    unchanged(objects, &titles.all[object], &place, &mut all);
                    refused.push(Refused { object, title: accept::title(&titles.all[object]), what, place });
                }
            }
        }
        for field in &answer.unknown {
            if let Some(workload) = all.iter_mut().find(|workload| workload.object == Some(field.object)) {
                let words = format!(
                    "it is applied without {}, a field that Kubernetes does not know; kubectl refuses it",
                    field.path
                );
                workload.conditions.push(Condition { words, place: field.place.clone() });
            }
        }
        if !all.iter().any(|workload| workload.role == Role::Dns) {
            all.push(bootstrap_manifests::dns::coredns());
        }
        let hooks = webhooks(objects, &all);
        let asked = Asked::new(objects, &hooks, &mut all);
        let ordinary =
            ordinary.map(|pod| OrdinaryPods::new(objects, assumed, &hooks, pod, &all)).unwrap_or_default();
        let of_ccm = |w: &Workload| {
            if matches!(w.role, Role::Ccm | Role::NodeManager) {
                gaps(objects, assumed, w)
            } else {
                Vec::new()
            }
        };
        Set {
            missing: all.iter().map(|workload| missing(objects, assumed, workload)).collect(),
            gaps: all.iter().map(of_ccm).collect(),
            asked,
            cloud_by_name: bootstrap_manifests::dns::cloud_by_name(objects, &all),
            node_manager: assumed.any("NodeManager"),
            api_servers: all.iter().map(|w| api_server(objects, w)).collect(),
            cloud_services: cloud_services(objects, &all),
            refused,
            orphans,
            unknown: answer.unknown,
            ordinary,
            webhooks: hooks,
            workloads: all,
        }
    }

    /// The workloads behind webhooks and behind Services through which CCMs reach their clouds.
    pub(crate) fn backends(&self) -> BTreeSet<usize> {
        let of_hooks = self.webhooks.iter().filter_map(|hook| hook.backends.as_ref()).flatten();
        let of_clouds = self.cloud_services.iter().flat_map(CloudService::pods);
        of_hooks.chain(of_clouds).copied().collect()
    }

    /// Whether the manifests contain a network plugin.
    pub(crate) fn brings_cni(&self) -> bool {
        self.workloads.iter().any(|workload| workload.role == Role::Cni)
    }
}

/// Whether a machine has no taint that stays, so that ordinary Pods can run.
pub(super) fn takes_ordinary_pods(machines: &[Machine]) -> bool {
    machines.iter().any(|machine| machine.taints.is_empty())
}

/// Objects other than workloads that name an owner.
fn orphans(objects: &Objects) -> Vec<Refused> {
    let of_workload = |object: &Object| WorkloadKind::parse(&object.api_version, &object.kind).is_some();
    let all = objects.all.iter().enumerate().filter(|(_, object)| !of_workload(object));
    let orphan = |(index, object): (usize, &Object)| {
        let (place, what) = accept::orphan(object)?;
        Some(Refused { object: index, title: accept::title(object), what, place })
    };
    all.filter_map(orphan).collect()
}

/// Records that workloads use a ConfigMap or a Secret as it was before a change that is refused.
fn unchanged(applied: &Objects, change: &Object, place: &Place, workloads: &mut [Workload]) {
    let is_there = applied.find(&change.kind, &change.namespace, &change.name).is_some();
    if !is_there || !matches!(change.kind.as_str(), "ConfigMap" | "Secret") {
        return;
    }
    for workload in workloads {
        let uses = workload.refs.iter().any(|own| {
            own.kind == change.kind && own.namespace == change.namespace && own.name == change.name
        });
        if uses {
            let words = format!(
                "it works with {}/{} as it was before document {}, which is refused",
                change.kind, change.name, change.document
            );
            workload.conditions.push(Condition { words, place: place.clone() });
        }
    }
}

/// The rules for one cluster and one set of manifests.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    pub(crate) set: &'a Set,
    pub(crate) cluster: &'a Cluster,
    pub(crate) machines: Vec<Machine>,
    /// Taints with which Nodes start, numbered as in `Fact::Untainted`.
    pub(crate) taints: Vec<Taint>,
    /// The taints of each Node.
    pub(crate) tainted: Vec<Vec<usize>>,
    pub(crate) facts: Vec<Fact>,
    index: HashMap<Fact, usize>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) reasons: Vec<Reason>,
    reason_index: HashMap<Reason, usize>,
    /// True from the start.
    pub(crate) given: Vec<usize>,
    /// The goals of the boot.
    pub(crate) goals: Vec<usize>,
    /// Workloads that get no Pods, if the question is whether the cluster boots without them.
    pub(super) absent: Vec<usize>,
    /// Workloads whose Pods are bound in every possible order.
    pub(crate) explored: Vec<usize>,
    /// Pairs of explored workloads that keep each other off a Node: the one that waits, the one that is there, and the
    /// fact of the reason.
    pub(crate) contests: Vec<(u32, u32, usize)>,
}

impl<'a> Model<'a> {
    /// Builds the rules. `webhooks_first` means that webhooks take effect before any Pod is created.
    pub(crate) fn new(set: &'a Set, cluster: &'a Cluster, webhooks_first: bool) -> Model<'a> {
        Model::without(set, cluster, webhooks_first, Vec::new())
    }

    /// The same if some workloads get no Pods.
    pub(super) fn without(
        set: &'a Set,
        cluster: &'a Cluster,
        webhooks_first: bool,
        absent: Vec<usize>,
    ) -> Model<'a> {
        let machines = cluster.machines();
        let mut model = Model {
            set,
            cluster,
            taints: Vec::new(),
            tainted: vec![Vec::new(); machines.len()],
            machines,
            facts: Vec::new(),
            index: HashMap::new(),
            rules: Vec::new(),
            reasons: Vec::new(),
            reason_index: HashMap::new(),
            given: Vec::new(),
            goals: Vec::new(),
            absent,
            explored: Vec::new(),
            contests: Vec::new(),
        };
        for node in 0..model.machines.len() {
            model.node(node);
        }
        model.storage();
        model.ordinary_pods();
        for workload in 0..set.workloads.len() {
            model.workload(workload, webhooks_first);
        }
        for hook in 0..set.webhooks.len() {
            model.webhook(hook);
        }
        for service in 0..set.cloud_services.len() {
            model.cloud_service(service);
        }
        model.choose_explored();
        model
    }

    /// The number of a fact, if any rule mentions it.
    pub(crate) fn find(&self, fact: Fact) -> Option<usize> {
        self.index.get(&fact).copied()
    }

    /// The number of a fact.
    pub(super) fn fact(&mut self, fact: Fact) -> usize {
        let facts = &mut self.facts;
        *self.index.entry(fact).or_insert_with(|| {
            facts.push(fact);
            facts.len() - 1
        })
    }

    pub(super) fn needs(&mut self, fact: Fact) -> Premise {
        Premise { fact: self.fact(fact), place: None, change: None }
    }

    pub(super) fn needs_at(&mut self, fact: Fact, place: Place, change: Option<Change>) -> Premise {
        Premise { fact: self.fact(fact), place: Some(place), change }
    }

    /// A fact that never becomes true.
    pub(super) fn never(&mut self, words: String, place: Option<Place>, change: Option<Change>) -> Premise {
        let reason = Reason { words, place: place.clone() };
        let reasons = &mut self.reasons;
        let at = *self.reason_index.entry(reason).or_insert_with_key(|reason| {
            reasons.push(reason.clone());
            reasons.len() - 1
        });
        Premise { fact: self.fact(Fact::Never(number(at))), place, change }
    }

    pub(super) fn rule(&mut self, head: Fact, body: Vec<Premise>) {
        let head = self.fact(head);
        self.rules.push(Rule { head, body });
    }

    pub(super) fn give(&mut self, fact: Fact) {
        let fact = self.fact(fact);
        self.given.push(fact);
    }

    pub(super) fn goal(&mut self, fact: Fact) {
        let fact = self.fact(fact);
        self.goals.push(fact);
    }

    /// An ordinary Pod has to run if some Node has no taint that stays.
    fn ordinary_pods(&mut self) {
        let ordinary = &self.set.ordinary;
        let nothing = ordinary.webhooks.is_empty() && ordinary.hindrances.is_empty();
        if nothing || !takes_ordinary_pods(&self.machines) {
            return;
        }
        let mut body: Vec<Premise> = ordinary.webhooks.iter().map(|hook| self.answer_of(*hook)).collect();
        let minor = self.cluster.version.minor;
        for hindrance in ordinary.hindrances.iter().filter(|hindrance| hindrance.since <= minor) {
            let (words, place) = (&hindrance.words, &hindrance.place);
            body.push(self.never(words.clone(), Some(place.clone()), None));
        }
        self.rule(Fact::OrdinaryPods, body);
        self.goal(Fact::OrdinaryPods);
    }

    /// Provisioners and CSI drivers are Pods that wait for an initialised, Ready Node.
    fn storage(&mut self) {
        for node in 0..self.machines.len() {
            let n = number(node);
            let body = vec![self.needs(Fact::Initialised(n)), self.needs(Fact::Ready(n))];
            self.rule(Fact::StorageWorks, body);
        }
    }

    /// What initialises a Node: any CCM that works, or the Node's own node manager.
    pub(super) fn initialisation(&mut self, w: usize) {
        let workload = &self.set.workloads[w];
        for node in 0..self.machines.len() {
            let n = number(node);
            let works = match workload.role {
                Role::NodeManager => Fact::Works(number(w), n),
                _ => Fact::Serves(number(w)),
            };
            let mut after = self.machines[node].labels.clone();
            for label in bootstrap_manifests::cluster::CLOUD_LABELS {
                after.entry((*label).to_owned()).or_insert_with(|| "of the cloud".to_owned());
            }
            let mut body = vec![self.needs(works)];
            body.extend(self.right(w, Need::Initialise, "initialise Nodes"));
            body.extend(self.hindrances(w, Stage::Initialisation));
            let tainted = !self.machines[node].taints.is_empty();
            let of_kind = if tainted { Stage::TaintedNodes } else { Stage::UntaintedNodes };
            body.extend(self.hindrances(w, of_kind));
            for hook in 0..self.set.webhooks.len() {
                let own = &self.set.webhooks[hook];
                // A selector is tried on the Node before and after the change, which adds the labels of the cloud.
                let chosen = own.chooses(&self.machines[node].labels) || own.chooses(&after);
                let asked = &self.set.asked[w];
                let asked = if tainted { &asked.tainted_nodes } else { &asked.untainted_nodes };
                if asked.contains(&hook) && chosen {
                    body.push(self.answer_of(hook));
                }
            }
            self.rule(Fact::Initialised(n), body);
            let mut body = vec![self.needs(Fact::Initialised(n)), self.needs(works)];
            body.extend(self.right(w, Need::Addresses, "write the addresses of Nodes"));
            for hook in 0..self.set.webhooks.len() {
                let own = &self.set.webhooks[hook];
                if self.set.asked[w].statuses.contains(&hook) && own.chooses(&self.machines[node].labels) {
                    body.push(self.answer_of(hook));
                }
            }
            self.rule(Fact::Addressed(n), body);
        }
    }

    /// The premise for a missing permission, if one is missing.
    pub(super) fn right(&mut self, w: usize, need: Need, what: &str) -> Option<Premise> {
        let gap = self.set.gaps[w].iter().find(|gap| gap.need == need)?;
        let workload = &self.set.workloads[w];
        let group = if gap.group.is_empty() { String::new() } else { format!(".{}", gap.group) };
        let words = format!(
            "ServiceAccount/{} may not {what}: no role grants it '{}' on {}{group} ({})",
            workload.service_account, gap.verb, gap.resource, gap.row
        );
        let place = workload.service_account_place.clone();
        Some(self.never(words, Some(place), Some(Change::Grant(number(w)))))
    }

    /// Whether the workload runs on another cluster.
    pub(crate) fn elsewhere(&self, w: usize) -> bool {
        self.cluster.topology == Topology::Hosted && self.set.workloads[w].role == Role::Ccm
    }
}

/// Indices are small.
pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
