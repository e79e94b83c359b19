//! Topology spread constraints, with the Pods that a cluster runs before anything is installed
//! (`pkg/scheduler/framework/plugins/podtopologyspread`).

use super::build::{Model, number};
use super::fact::{Change, Premise};
use bootstrap_manifests::workload::{Expression, Operator, Spread, Workload};
use std::collections::BTreeMap;

impl Model<'_> {
    /// What keeps the first Pod of a workload off a Node because of a constraint.
    pub(super) fn spread(&mut self, index: usize, node: usize, constraint: &Spread) -> Option<Premise> {
        let wanted = Expression {
            key: constraint.topology_key.clone(),
            operator: Operator::Exists,
            values: Vec::new(),
            place: Some(constraint.place.clone()),
            field: false,
        };
        self.label(index, node, &wanted).or_else(|| self.skewed(index, node, constraint))
    }

    fn skewed(&mut self, index: usize, node: usize, constraint: &Spread) -> Option<Premise> {
        let workload = &self.set.workloads[index];
        let place_of = |node: usize| self.machines[node].labels.get(&constraint.topology_key);
        let mut counts: BTreeMap<&String, i64> = BTreeMap::new();
        for other in 0..self.machines.len() {
            let allowed = !constraint.honors_affinity || self.may_be_on(workload, other);
            if let Some(place) = place_of(other).filter(|_| allowed) {
                *counts.entry(place).or_default() += self.there(workload, other, constraint);
            }
        }
        let here = *counts.get(place_of(node)?)?;
        let own = i64::from(constraint.counts(&workload.labels));
        // With too few places the fewest count as none.
        let fewest = if constraint.any_number { counts.values().copied().min().unwrap_or(0) } else { 0 };
        if here + own - fewest <= constraint.max_skew {
            return None;
        }
        let words = format!(
            "Node {} already has {here} Pods that its topology spread constraint counts, and {fewest} is the fewest",
            self.machines[node].name
        );
        let change = Change::DropNodeRequirement(number(index), constraint.topology_key.clone());
        Some(self.never(words, Some(constraint.place.clone()), Some(change)))
    }

    /// How many Pods of the cluster on a Node count.
    fn there(&self, workload: &Workload, node: usize, constraint: &Spread) -> i64 {
        if workload.namespace != "kube-system" {
            return 0;
        }
        let count = self.present(node).filter(|pod| constraint.counts(&pod.labels())).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// Whether the labels of a Node are those that the workload requires.
    fn may_be_on(&self, workload: &Workload, node: usize) -> bool {
        let machine = &self.machines[node];
        let holds = |wanted: &Expression| {
            let value = if wanted.field { Some(&machine.name) } else { machine.labels.get(&wanted.key) };
            wanted.holds(value)
        };
        let selected =
            workload.node_selector.iter().all(|(key, value, _)| machine.labels.get(key) == Some(value));
        let terms = workload.node_affinity.as_ref();
        selected && terms.is_none_or(|terms| terms.iter().any(|term| term.expressions.iter().all(holds)))
    }
}
