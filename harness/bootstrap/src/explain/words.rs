//! Facts, and what they wait for, as sentences.

use super::chain::Chain;
use super::step::Step;
use crate::model::{Fact, Model, State};
use bootstrap_manifests::cluster::{Cni, KubeProxy};
use bootstrap_manifests::known::ApiServer;
use bootstrap_manifests::workload::Role;

/// The subject of a fact: several facts about one workload have the same subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A workload.
    Workload(u32),
    /// Anything else, identified by its fact.
    Fact(usize),
}

/// The subject of a fact.
pub(crate) fn subject(model: &Model, fact: usize) -> Subject {
    match model.facts[fact] {
        Fact::Serves(w)
        | Fact::Works(w, _)
        | Fact::Runs(w, _)
        | Fact::Bound(w, _)
        | Fact::Schedulable(w, _)
        | Fact::Made(w) => Subject::Workload(w),
        _ => Subject::Fact(fact),
    }
}

/// The steps of a chain: one for each change of subject.
pub(crate) fn steps(model: &Model, state: &State, chain: &Chain) -> Vec<Step> {
    let mut steps: Vec<Step> = pairs(chain)
        .filter(|(from, to)| subject(model, *from) != subject(model, *to))
        .map(|(from, to)| step(model, state, from, to))
        .collect();
    if steps.is_empty() {
        steps.extend(chain.facts.iter().map(|fact| {
            let text = format!("{} does not happen", name(model, *fact));
            Step { text, place: None }
        }));
    }
    steps
}

/// The step of a chain that names an obstacle in the manifests, for the list of other obstacles.
pub(crate) fn obstacle(model: &Model, state: &State, chain: &Chain) -> Option<Step> {
    let steps = steps(model, state, chain);
    steps.iter().find(|step| step.place.is_some()).or(steps.first()).cloned()
}

/// The step that a cycle leads back to.
pub(crate) fn back_to(_model: &Model, chain: &Chain) -> Option<usize> {
    // The explanation of a cycle starts at its beginning.
    chain.back_to.map(|_| 0)
}

/// Pairs of neighbours in a chain, including the way back.
pub(crate) fn pairs(chain: &Chain) -> impl Iterator<Item = (usize, usize)> {
    let back = chain.facts.last().copied().zip(chain.back_to);
    chain.facts.iter().copied().zip(chain.facts.iter().copied().skip(1)).chain(back)
}

fn step(model: &Model, state: &State, from: usize, to: usize) -> Step {
    let place = model
        .rules
        .iter()
        .filter(|rule| rule.head == from)
        .flat_map(|rule| &rule.body)
        .find(|premise| premise.fact == to)
        .and_then(|premise| premise.place.clone())
        .filter(|place| place.line > 0);
    Step { text: sentence(model, state, from, to), place: place.map(|place| place.to_string()) }
}

/// The name of a fact.
pub(crate) fn name(model: &Model, fact: usize) -> String {
    let node = |n: u32| model.machines[n as usize].name.as_str();
    match model.facts[fact] {
        Fact::Initialised(n) => format!("the initialisation of Node {}", node(n)),
        Fact::Addressed(n) => format!("the addresses of Node {}", node(n)),
        Fact::Networked(n) => format!("the pod network of Node {}", node(n)),
        Fact::Ready(n) => format!("Node {} being Ready", node(n)),
        Fact::Untainted(n, t) => {
            format!("the removal of the taint {} from Node {}", model.taints[t as usize], node(n))
        }
        Fact::ServicesAnswer(n) => format!("Service addresses on Node {}", node(n)),
        Fact::DnsAnswers(n) => format!("cluster DNS on Node {}", node(n)),
        Fact::DnsRuns => String::from("cluster DNS"),
        Fact::StorageWorks => String::from("the storage system"),
        Fact::OrdinaryPods => String::from("ordinary Pods"),
        Fact::WebhookAnswers(k) => model.set.webhooks[k as usize].title.clone(),
        Fact::CloudAnswers(s, _) => model.set.cloud_services[s as usize].title.clone(),
        Fact::Serves(w)
        | Fact::Works(w, _)
        | Fact::Runs(w, _)
        | Fact::Bound(w, _)
        | Fact::Schedulable(w, _)
        | Fact::Made(w) => model.set.workloads[w as usize].title(),
        Fact::Never(reason) => model.reasons[reason as usize].words.clone(),
    }
}

/// One fact waits for another, as a sentence.
pub(crate) fn sentence(model: &Model, state: &State, from: usize, to: usize) -> String {
    let what = name(model, to);
    let wait = Waiting { model, state, to, target: model.facts[to], what };
    match model.facts[from] {
        Fact::Made(w) => wait.made(w),
        Fact::Schedulable(w, n) | Fact::Bound(w, n) => wait.scheduled(w, n),
        Fact::Runs(w, n) => wait.started(w, n),
        Fact::Works(w, n) => wait.working(w, n),
        Fact::Serves(w) => format!("{} does not work: {}", wait.title(w), wait.what),
        Fact::Untainted(n, t) => wait.untainted(n, t),
        Fact::Ready(n) => format!("Node {} is not Ready: it waits for {}", wait.node(n), wait.what),
        Fact::Networked(n) => wait.networked(n),
        Fact::Addressed(n) => wait.addressed(n),
        Fact::Initialised(n) => wait.initialised(n),
        Fact::ServicesAnswer(n) => wait.services_answer(n),
        Fact::DnsAnswers(n) => match wait.target {
            Fact::DnsRuns => {
                format!("cluster DNS does not answer on Node {}: none of its Pods works", wait.node(n))
            }
            _ => format!("cluster DNS does not answer on Node {}: it waits for {}", wait.node(n), wait.what),
        },
        Fact::DnsRuns => format!("cluster DNS is {}", wait.what),
        Fact::StorageWorks => format!("the storage system runs as Pods and waits for {}", wait.what),
        Fact::OrdinaryPods => format!("ordinary Pods do not run: {}", wait.what),
        Fact::WebhookAnswers(k) => wait.webhook(k),
        Fact::CloudAnswers(s, _) => wait.cloud(s),
        Fact::Never(_) => wait.what,
    }
}

/// A fact that waits, and its target.
struct Waiting<'a> {
    model: &'a Model<'a>,
    state: &'a State,
    to: usize,
    target: Fact,
    /// The target in words.
    what: String,
}

/// Sentences about workloads.
impl Waiting<'_> {
    fn title(&self, w: u32) -> String {
        self.model.set.workloads[w as usize].title_with_place()
    }

    fn node(&self, n: u32) -> &str {
        self.model.machines[n as usize].name.as_str()
    }

    fn is_never(&self) -> bool {
        matches!(self.target, Fact::Never(_))
    }

    fn made(&self, w: u32) -> String {
        let (title, what) = (self.title(w), &self.what);
        match self.is_never() {
            true => format!("no Pod of {title} is created: {what}"),
            false => format!("no Pod of {title} is created before {what} can be reached"),
        }
    }

    fn scheduled(&self, w: u32, n: u32) -> String {
        let head = format!("{} is Pending, not scheduled to Node {}", self.title(w), self.node(n));
        match self.target {
            Fact::Untainted(_, t) => {
                format!("{head}: it does not tolerate the taint {}", self.model.taints[t as usize])
            }
            Fact::Initialised(_) => format!("{head}: it requires a label that the CCM sets"),
            _ => self.waits(&head),
        }
    }

    fn started(&self, w: u32, n: u32) -> String {
        let head = format!("{} does not start on Node {}", self.title(w), self.node(n));
        let what = &self.what;
        match self.target {
            Fact::Networked(_) => format!("{head}: without hostNetwork it waits for {what}"),
            Fact::Addressed(_) => format!("{head}: it reads status.hostIP and waits for {what}"),
            _ => self.waits(&head),
        }
    }

    fn working(&self, w: u32, n: u32) -> String {
        let head = format!("{} does not work on Node {}", self.title(w), self.node(n));
        let what = &self.what;
        match self.target {
            Fact::ServicesAnswer(_) => {
                format!("{head}: it reaches the API server by its Service address and waits for {what}")
            }
            Fact::DnsAnswers(_) => {
                let by_name = match self.model.set.api_servers[w as usize] {
                    ApiServer::ClusterName(_) => "the API server",
                    _ => "its cloud",
                };
                format!("{head}: it looks up {by_name} by name and waits for {what}")
            }
            Fact::CloudAnswers(..) => format!("{head}: it reaches its cloud through {what}"),
            _ => self.waits(&head),
        }
    }

    fn waits(&self, head: &str) -> String {
        match self.is_never() {
            true => format!("{head}: {}", self.what),
            false => format!("{head}: it waits for {}", self.what),
        }
    }

    fn cloud(&self, s: u32) -> String {
        let title = &self.model.set.cloud_services[s as usize].title;
        match self.target {
            Fact::Never(_) => self.what.clone(),
            Fact::Runs(..) => format!("{title} answers only when {} runs", self.what),
            _ => format!("{title} waits for {}", self.what),
        }
    }

    fn webhook(&self, k: u32) -> String {
        let title = &self.model.set.webhooks[k as usize].title;
        match self.is_never() {
            true => format!("{title} cannot be reached: {}", self.what),
            false => format!("{title} is answered by {}", self.what),
        }
    }
}

/// Sentences about Nodes.
impl Waiting<'_> {
    fn untainted(&self, n: u32, t: u32) -> String {
        let (taint, node, what) = (&self.model.taints[t as usize], self.node(n), &self.what);
        match self.target {
            Fact::Never(_) => what.clone(),
            Fact::Networked(_) => {
                format!("the taint {taint} of Node {node} is removed by the CNI, once it has set up {what}")
            }
            Fact::Initialised(_) => {
                format!("the taint {taint} of Node {node} is removed when the Node is initialised")
            }
            _ => format!("the taint {taint} of Node {node} is removed once the Node is Ready"),
        }
    }

    fn networked(&self, n: u32) -> String {
        let own = self.model.set.workloads.iter().find(|workload| workload.role == Role::Cni);
        let who = match (&self.target, self.model.cluster.cni, own) {
            (Fact::Never(_), ..) => String::new(),
            (Fact::Works(..), ..) => String::from("it is set up by "),
            (_, _, Some(own)) => format!("{} waits for ", own.title_with_place()),
            (_, Cni::Kindnet, None) => String::from("kindnet reads status.hostIP there and waits for "),
            _ => String::from("the CNI waits for "),
        };
        format!("the pod network of Node {} is not set up: {who}{}", self.node(n), self.what)
    }

    fn addressed(&self, n: u32) -> String {
        let node = self.node(n);
        match self.target {
            Fact::Never(_) => format!("Node {node} gets no addresses: {}", self.what),
            Fact::Initialised(_) => format!("Node {node} has no addresses before it is initialised"),
            _ => format!("the addresses of Node {node} are set by {}", who(self.model, self.state, self.to)),
        }
    }

    fn initialised(&self, n: u32) -> String {
        let (node, what) = (self.node(n), &self.what);
        match self.target {
            Fact::Never(_) => format!("Node {node} is not initialised: {what}"),
            Fact::WebhookAnswers(_) => {
                format!("Node {node} cannot be updated while {what} cannot be reached")
            }
            _ => format!("Node {node} is initialised by {}", who(self.model, self.state, self.to)),
        }
    }

    fn services_answer(&self, n: u32) -> String {
        let (node, what) = (self.node(n), &self.what);
        match (self.target, self.model.cluster.kube_proxy) {
            (Fact::Never(_), _) => format!("Service addresses do not answer on Node {node}: {what}"),
            (_, KubeProxy::Cni) => format!("Service addresses on Node {node} are served by the CNI: {what}"),
            _ => format!("Service addresses on Node {node} wait for {what}"),
        }
    }
}

fn who(model: &Model, _state: &State, fact: usize) -> String {
    match model.facts[fact] {
        Fact::Serves(w) | Fact::Works(w, _) => {
            let workload = &model.set.workloads[w as usize];
            let role =
                if workload.role == Role::NodeManager { "the node manager of that Node, " } else { "" };
            format!("{role}{}", workload.title())
        }
        _ => name(model, fact),
    }
}
