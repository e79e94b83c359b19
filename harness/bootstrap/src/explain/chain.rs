//! The shortest cycle, or the shortest path to a fact that never becomes true, among the facts that wait for one another.

use crate::model::{Change, Fact, Model, State};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// A chain of facts: each waits for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) facts: Vec<usize>,
    /// The fact that the last one waits for, if it is part of the chain.
    pub(crate) back_to: Option<usize>,
}

/// The facts for which each unfulfilled fact waits in a state.
pub(crate) fn waits_for(model: &Model, state: &State, fact: usize) -> Vec<(usize, Option<Change>)> {
    let mut found: Vec<(usize, Option<Change>)> = Vec::new();
    for rule in model.rules.iter().filter(|rule| rule.head == fact) {
        for premise in rule.body.iter().filter(|premise| !state.holds(premise.fact)) {
            if !found.iter().any(|(known, _)| *known == premise.fact) {
                found.push((premise.fact, premise.change.clone()));
            }
        }
    }
    // Binding is a choice of the scheduler, not a rule: it waits until the Pod is schedulable.
    if let Fact::Bound(w, n) = model.facts[fact]
        && let Some(may) = model.find(Fact::Schedulable(w, n))
        && found.is_empty()
    {
        if !state.holds(may) {
            found.push((may, None));
        }
        let there = |v: u32| state.bound.contains(&(v, n));
        let contests = model.contests.iter().filter(|(own, v, _)| *own == w && there(*v));
        found.extend(contests.map(|(_, _, reason)| (*reason, None)));
    }
    found
}

struct Waiting {
    edges: HashMap<usize, Vec<(usize, Option<Change>)>>,
}

impl Waiting {
    /// All facts for which the missing goals wait.
    fn new(model: &Model, state: &State) -> Waiting {
        let mut edges = HashMap::new();
        let mut open: Vec<usize> = model.goals.iter().filter(|goal| !state.holds(**goal)).copied().collect();
        while let Some(fact) = open.pop() {
            if edges.contains_key(&fact) {
                continue;
            }
            let next = waits_for(model, state, fact);
            open.extend(next.iter().map(|(to, _)| *to));
            edges.insert(fact, next);
        }
        Waiting { edges }
    }

    fn next(&self, fact: usize) -> impl Iterator<Item = usize> {
        self.edges.get(&fact).into_iter().flatten().map(|(to, _)| *to)
    }

    /// The shortest path between two facts, including both ends.
    fn way(&self, from: usize, arrived: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut came: HashMap<usize, usize> = HashMap::from([(from, from)]);
        let mut open = VecDeque::from([from]);
        while let Some(fact) = open.pop_front() {
            if arrived(fact) {
                let mut way = vec![fact];
                let mut at = fact;
                while came[&at] != at {
                    at = came[&at];
                    way.push(at);
                }
                way.reverse();
                return Some(way);
            }
            for next in self.next(fact) {
                came.entry(next).or_insert_with(|| {
                    open.push_back(next);
                    fact
                });
            }
        }
        None
    }

    /// Edges that one of the changes would remove, in a fixed order.
    fn cut_by(&self, changes: &[Change]) -> BTreeSet<(usize, usize)> {
        let mut found = BTreeSet::new();
        for (from, next) in &self.edges {
            for (to, change) in next {
                if change.as_ref().is_some_and(|change| changes.contains(change)) {
                    found.insert((*from, *to));
                }
            }
        }
        found
    }

    fn cycle_through(&self, (from, to): (usize, usize)) -> Option<Chain> {
        let mut facts = self.way(to, |fact| fact == from)?;
        facts.rotate_right(1);
        Some(Chain { back_to: facts.first().copied(), facts })
    }

    fn end_behind(&self, (from, to): (usize, usize)) -> Option<Chain> {
        let way = self.way(to, |fact| self.next(fact).next().is_none())?;
        Some(Chain { facts: std::iter::once(from).chain(way).collect(), back_to: None })
    }
}

/// The shortest explanation: a cycle through something that the changes would remove, or a path to a fact that never
/// becomes true if there is no cycle.
pub(crate) fn shortest(model: &Model, state: &State, changes: &[Change]) -> Chain {
    let waiting = Waiting::new(model, state);
    let mut cuts = waiting.cut_by(changes);
    if cuts.is_empty() {
        let edges = waiting.edges.iter();
        cuts = edges.flat_map(|(from, next)| next.iter().map(|(to, _)| (*from, *to))).collect();
    }
    let cycles = cuts.iter().filter_map(|cut| waiting.cycle_through(*cut));
    let best = cycles.min_by_key(|chain| chain.facts.len());
    // If no change helps, a fact that never becomes true explains more than a cycle that would remain without it.
    let ends = || {
        let chains = cuts.iter().filter_map(|cut| waiting.end_behind(*cut));
        chains.min_by_key(|chain| (chain.facts.first().map(|fact| stage(model, *fact)), chain.facts.len()))
    };
    let chain = if changes.is_empty() { ends().or(best) } else { best.or_else(ends) };
    let chain = chain.unwrap_or_else(|| {
        let facts = model.goals.iter().find(|goal| !state.holds(**goal)).copied().into_iter().collect();
        Chain { facts, back_to: None }
    });
    if chain.back_to.is_some() {
        begin_with_workload(model, chain)
    } else {
        from_goal(&waiting, model, state, chain)
    }
}

/// The stage of a Pod's life that a fact belongs to; earlier stages are explained first.
fn stage(model: &Model, fact: usize) -> u8 {
    match model.facts[fact] {
        Fact::Made(_) => 0,
        Fact::Schedulable(..) | Fact::Bound(..) => 1,
        Fact::Runs(..) => 2,
        Fact::Works(..) | Fact::Serves(_) => 3,
        _ => 4,
    }
}

/// A cycle is easiest to read when it begins with a workload.
fn begin_with_workload(model: &Model, mut chain: Chain) -> Chain {
    let of_workload = |fact: &usize| {
        matches!(
            model.facts[*fact],
            Fact::Serves(_)
                | Fact::Works(..)
                | Fact::Runs(..)
                | Fact::Bound(..)
                | Fact::Schedulable(..)
                | Fact::Made(_)
        )
    };
    let serves = chain.facts.iter().position(|fact| matches!(model.facts[*fact], Fact::Serves(_)));
    if let Some(at) = serves.or_else(|| chain.facts.iter().position(of_workload)) {
        chain.facts.rotate_left(at);
    }
    chain.back_to = chain.facts.first().copied();
    chain
}

/// A chain without a cycle begins with the goal of the boot.
fn from_goal(waiting: &Waiting, model: &Model, state: &State, chain: Chain) -> Chain {
    let Some(first) = chain.facts.first().copied() else { return chain };
    let goals = model.goals.iter().filter(|goal| !state.holds(**goal));
    let ways = goals.filter_map(|goal| waiting.way(*goal, |fact| fact == first));
    match ways.min_by_key(Vec::len) {
        Some(mut way) => {
            way.extend(chain.facts.iter().skip(1));
            Chain { facts: way, back_to: None }
        }
        None => chain,
    }
}

/// Other obstacles: one chain for each change that the main chain does not show.
pub(crate) fn others(model: &Model, state: &State, main: &Chain, changes: &[Change]) -> Vec<Chain> {
    let waiting = Waiting::new(model, state);
    let mut found = Vec::new();
    for change in changes {
        let cuts = waiting.cut_by(std::slice::from_ref(change));
        let shown = cuts.iter().any(|(from, to)| {
            main.facts.iter().zip(main.facts.iter().cycle().skip(1)).any(|(a, b)| a == from && b == to)
        });
        if shown {
            continue;
        }
        let chains =
            cuts.iter().filter_map(|cut| waiting.cycle_through(*cut).or_else(|| waiting.end_behind(*cut)));
        if let Some(chain) = chains.min_by_key(|chain| chain.facts.len()) {
            found.push(chain);
        }
    }
    found
}

/// A chain and how it ends.
pub(super) fn is_cycle(chain: &Chain) -> bool {
    chain.back_to.is_some()
}
