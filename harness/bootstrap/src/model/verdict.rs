//! Derives a verdict from the explored orders.

use super::asked::Asked;
use super::build::{Model, Set};
use super::explore::{State, explore};
use bootstrap_manifests::cluster::Cluster;
use serde::{Deserialize, Serialize};

/// Whether the cluster boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// In every order.
    Boots,
    /// In every order, on conditions that the manifests do not show: images, the size of Nodes, files on them.
    BootsIf,
    /// In no order.
    Deadlock,
    /// In some orders.
    SomeOrders,
    /// There are more states than are explored.
    Undecided,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Outcome::Boots => "boots",
            Outcome::BootsIf => "boots if",
            Outcome::Deadlock => "does not boot",
            Outcome::SomeOrders => "boots only in some orders",
            Outcome::Undecided => "undecided",
        })
    }
}

/// Whether the CCM may be evicted while the cluster boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Eviction {
    /// The workload, `Kind/name`.
    pub workload: String,
    /// How long its Pods stay on a Node that is not Ready, in seconds.
    pub after_seconds: i64,
    /// Whether that happens again and again, because the Node never becomes Ready.
    pub lasting: bool,
}

impl Outcome {
    /// Whether the cluster boots in every order, as far as the manifests can tell.
    pub fn is_boot(self) -> bool {
        matches!(self, Outcome::Boots | Outcome::BootsIf)
    }
}

/// A verdict with the states on which it is based.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    pub(crate) states: usize,
    pub(crate) eviction: Option<Eviction>,
    /// A final state that is not a boot, and whether webhooks took effect first in it.
    pub(crate) stuck: Option<(State, bool)>,
    /// A final state that is a boot.
    pub(crate) booted: bool,
}

/// The shortest boot that counts as slow, in seconds: the API server's own default toleration.
const SLOW_BOOT: i64 = 300;

/// Judges one cluster.
pub(crate) fn judge(set: &Set, cluster: &Cluster) -> Judged {
    let mut judged =
        Judged { outcome: Outcome::Boots, states: 0, eviction: None, stuck: None, booted: false };
    let mut complete = true;
    // Webhooks that a file creates before the workload act in every order.
    let late = |(w, asked): (usize, &Asked)| asked.creation.iter().any(|hook| !set.precedes(*hook, w));
    let guarded = set.asked.iter().enumerate().any(late);
    let orders: &[bool] = if guarded { &[false, true] } else { &[false] };
    for webhooks_first in orders {
        let model = Model::new(set, cluster, *webhooks_first);
        let explored = explore(&model);
        judged.states += explored.states;
        judged.booted |= explored.booted.is_some();
        complete &= explored.complete;
        if judged.stuck.is_none() {
            judged.stuck = explored.stuck.map(|state| (state, *webhooks_first));
        }
        for (w, lasting) in explored.unready_hosts {
            let workload = &set.workloads[w as usize];
            let Some(seconds) = workload.bears_for(bootstrap_manifests::workload::NOT_READY) else {
                continue;
            };
            let worse = judged.eviction.as_ref().is_none_or(|known| lasting && !known.lasting);
            if worse && (lasting || seconds < SLOW_BOOT) {
                judged.eviction =
                    Some(Eviction { workload: workload.title(), after_seconds: seconds, lasting });
            }
        }
    }
    judged.outcome = match (judged.booted, judged.stuck.is_some(), complete) {
        (true, true, _) => Outcome::SomeOrders,
        (_, _, false) => Outcome::Undecided,
        (false, true, true) => Outcome::Deadlock,
        (_, false, true) if set.conditions(cluster).is_empty() => Outcome::Boots,
        (_, false, true) => Outcome::BootsIf,
    };
    judged
}
