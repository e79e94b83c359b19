//! Facts and their waiting in sentences.

use super::chain::Chain;
use super::step::Step;
use crate::cluster::{Cni, KubeProxy};
use crate::model::{Fact, Model, State};
use crate::workload::Role;

/// Who a fact is about: several facts about one workload are one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A workload.
    Workload(u32),
    /// Anything else, by its fact.
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
            let text = format!("{} does not come about", name(model, *fact));
            Step { text, place: None }
        }));
    }
    steps
}

/// The step of a chain that names an obstacle in the manifests, for the list of what else is in the way.
pub(crate) fn obstacle(model: &Model, state: &State, chain: &Chain) -> Option<Step> {
    let steps = steps(model, state, chain);
    steps.iter().find(|step| step.place.is_some()).or(steps.first()).cloned()
}

/// Which step a cycle leads back to.
pub(crate) fn back_to(_model: &Model, chain: &Chain) -> Option<usize> {
    // A cycle is told from its beginning.
    chain.back_to.map(|_| 0)
}

/// Neighbours in a chain, the way back included.
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

/// What a fact is called.
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
        Fact::Accepted => String::from("the installation of the manifests"),
        Fact::StorageWorks => String::from("the storage system"),
        Fact::WebhookAnswers(k) => model.set.webhooks[k as usize].title.clone(),
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
    let node = |n: u32| model.machines[n as usize].name.as_str();
    let title = |w: u32| model.set.workloads[w as usize].title_with_place();
    let target = model.facts[to];
    let never = matches!(target, Fact::Never(_));
    let what = name(model, to);
    match model.facts[from] {
        Fact::Made(w) if never => format!("no Pod of {} is made: {what}", title(w)),
        Fact::Made(w) => format!("no Pod of {} is made before {what} can be reached", title(w)),
        Fact::Schedulable(w, n) | Fact::Bound(w, n) => {
            let head = format!("{} is Pending, not scheduled to Node {}", title(w), node(n));
            match target {
                Fact::Untainted(_, t) => {
                    format!("{head}: it does not tolerate the taint {}", model.taints[t as usize])
                }
                Fact::Initialised(_) => format!("{head}: it requires a label that the CCM sets"),
                Fact::Never(_) => format!("{head}: {what}"),
                _ => format!("{head}: it waits for {what}"),
            }
        }
        Fact::Runs(w, n) => {
            let head = format!("{} does not start on Node {}", title(w), node(n));
            match target {
                Fact::Networked(_) => format!("{head}: without hostNetwork it waits for {what}"),
                Fact::Addressed(_) => format!("{head}: it reads status.hostIP and waits for {what}"),
                Fact::Never(_) => format!("{head}: {what}"),
                _ => format!("{head}: it waits for {what}"),
            }
        }
        Fact::Works(w, n) => {
            let head = format!("{} does nothing on Node {}", title(w), node(n));
            match target {
                Fact::ServicesAnswer(_) => {
                    format!("{head}: it reaches the API server by its Service address and waits for {what}")
                }
                Fact::DnsAnswers(_) => format!("{head}: it looks up its cloud by name and waits for {what}"),
                Fact::Never(_) => format!("{head}: {what}"),
                _ => format!("{head}: it waits for {what}"),
            }
        }
        Fact::Serves(w) => format!("{} does nothing: {what}", title(w)),
        Fact::Untainted(n, t) => {
            let taint = &model.taints[t as usize];
            match target {
                Fact::Never(_) => what,
                Fact::Networked(_) => {
                    format!(
                        "the taint {taint} of Node {} is removed by the CNI, once it has set up {what}",
                        node(n)
                    )
                }
                Fact::Initialised(_) => {
                    format!("the taint {taint} of Node {} goes with its initialisation", node(n))
                }
                _ => format!("the taint {taint} of Node {} goes once the Node is Ready", node(n)),
            }
        }
        Fact::Ready(n) => format!("Node {} is not Ready: it waits for {what}", node(n)),
        Fact::Networked(n) => {
            let own = model.set.workloads.iter().find(|workload| workload.role == Role::Cni);
            let who = match (&target, model.cluster.cni, own) {
                (Fact::Works(..), ..) => String::from("it is set up by"),
                (_, _, Some(own)) => format!("{} waits for", own.title_with_place()),
                (_, Cni::Kindnet, None) => String::from("kindnet reads status.hostIP there and waits for"),
                _ => String::from("the CNI waits for"),
            };
            if never {
                format!("the pod network of Node {} is not set up: {what}", node(n))
            } else {
                format!("the pod network of Node {} is not set up: {who} {what}", node(n))
            }
        }
        Fact::Addressed(n) => match target {
            Fact::Never(_) => format!("Node {} gets no addresses: {what}", node(n)),
            Fact::Initialised(_) => format!("Node {} has no addresses before its initialisation", node(n)),
            _ => format!("the addresses of Node {} are set by {}", node(n), who(model, state, to)),
        },
        Fact::Initialised(n) => match target {
            Fact::Never(_) => format!("Node {} is not initialised: {what}", node(n)),
            Fact::WebhookAnswers(_) => {
                format!("Node {} cannot be updated while {what} is out of reach", node(n))
            }
            _ => format!("Node {} is initialised by {}", node(n), who(model, state, to)),
        },
        Fact::ServicesAnswer(n) => match (target, model.cluster.kube_proxy) {
            (Fact::Never(_), _) => format!("Service addresses do not answer on Node {}: {what}", node(n)),
            (_, KubeProxy::Cni) => {
                format!("Service addresses on Node {} are served by the CNI: {what}", node(n))
            }
            _ => format!("Service addresses on Node {} wait for {what}", node(n)),
        },
        Fact::DnsAnswers(n) => {
            format!("cluster DNS does not answer on Node {}: it waits for {what}", node(n))
        }
        Fact::DnsRuns => format!("cluster DNS is {what}"),
        Fact::Accepted => format!("the manifests are not installed: {what}"),
        Fact::StorageWorks => format!("the storage system runs as Pods and waits for {what}"),
        Fact::WebhookAnswers(k) => {
            let title = &model.set.webhooks[k as usize].title;
            if never {
                format!("{title} cannot be reached: {what}")
            } else {
                format!("{title} is answered by {what}")
            }
        }
        Fact::Never(_) => what,
    }
}

fn who(model: &Model, _state: &State, fact: usize) -> String {
    match model.facts[fact] {
        Fact::Serves(w) | Fact::Works(w, _) => {
            let workload = &model.set.workloads[w as usize];
            let role = if workload.role == Role::NodeManager { "the Node's own manager " } else { "" };
            format!("{role}{}", workload.title())
        }
        _ => name(model, fact),
    }
}
