//! Plans that wait for their turn: scenarios without faults first, then single faults, then pairs of them.

use crate::pattern::Pattern;
use crate::plan::{Pairs, Plan, plans};
use crate::point::Point;
use crate::scenario::Scenario;
use harness_core::ledger::Share;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// The plans of one exploration.
pub(crate) struct Queue {
    seed: u64,
    patterns: Vec<Pattern>,
    shard: Option<Share>,
    waiting: VecDeque<Plan>,
    /// How many scenarios are being carried out without faults: plans will follow.
    recording: usize,
    /// All plans with one fault, of which pairs are made.
    singles: Vec<Plan>,
    pairs: Option<Pairs>,
    /// How many pairs may still be given out.
    pairs_left: usize,
}

/// What a lane gets.
pub(crate) enum Next {
    /// A plan.
    Plan(Plan),
    /// Nothing yet: a scenario is being carried out, and plans will follow.
    Wait,
    /// Nothing more.
    End,
}

impl Queue {
    /// `plain` are carried out first; `most_pairs` limits the number of pairs.
    pub(crate) fn new(
        seed: u64,
        patterns: Vec<Pattern>,
        shard: Option<Share>,
        plain: Vec<Plan>,
        most_pairs: usize,
    ) -> Queue {
        let (waiting, singles) = (plain.into(), Vec::new());
        Queue { seed, patterns, shard, waiting, recording: 0, singles, pairs: None, pairs_left: most_pairs }
    }

    /// How many plans wait, not counting pairs.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many pairs there are; 0 until the first is given out.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.as_ref().map_or(0, Pairs::all)
    }

    /// The next plan, if possible one for the environment that the lane has.
    pub(crate) fn next(&mut self, has_standby: Option<bool>) -> Next {
        let fits = |plan: &Plan| has_standby.is_none_or(|has| has == plan.needs_standby());
        let at = self.waiting.iter().position(|plan| plan.faults.is_empty() || fits(plan)).unwrap_or(0);
        if let Some(plan) = self.waiting.remove(at) {
            self.recording += usize::from(plan.faults.is_empty());
            return Next::Plan(plan);
        }
        if self.recording > 0 {
            return Next::Wait;
        }
        self.pair().map_or(Next::End, Next::Plan)
    }

    fn pair(&mut self) -> Option<Plan> {
        self.pairs_left = self.pairs_left.checked_sub(1)?;
        let (seed, singles) = (self.seed, &mut self.singles);
        let pairs = self.pairs.get_or_insert_with(|| {
            // The order in which scenarios ended must not matter.
            singles.sort_by_cached_key(ToString::to_string);
            Pairs::new(seed, std::mem::take(singles))
        });
        let shard = self.shard;
        std::iter::from_fn(|| pairs.next()).find(|plan| is_of(shard, seed, plan))
    }

    /// A scenario did not end as it must without any fault, so no plans follow.
    pub(crate) fn not_recorded(&mut self) {
        self.recording -= 1;
    }

    /// A scenario ended as it must without any fault, and has these points. Returns the number of plans that follow.
    pub(crate) fn recorded(&mut self, scenario: &Scenario, points: &[Point]) -> usize {
        self.recording -= 1;
        let all = plans(scenario, points, &self.patterns);
        self.singles.extend(all.iter().cloned());
        let (shard, seed, before) = (self.shard, self.seed, self.waiting.len());
        self.waiting.extend(all.into_iter().filter(|plan| is_of(shard, seed, plan)));
        let added = self.waiting.len() - before;
        // Scenarios that were not carried out yet go first: their plans follow.
        let order = |plan: &Plan| (!plan.faults.is_empty(), place(seed, plan));
        self.waiting.make_contiguous().sort_by_cached_key(order);
        added
    }
}

fn is_of(shard: Option<Share>, seed: u64, plan: &Plan) -> bool {
    shard.is_none_or(|shard| {
        let first = usize::from(u16::from_be_bytes([place(seed, plan)[0], place(seed, plan)[1]]));
        first % shard.of() == shard.part() - 1
    })
}

/// The place of a plan in the order that the seed chooses.
fn place(seed: u64, plan: &Plan) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_be_bytes());
    hash.update(plan.to_string());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::PATTERNS;
    use std::collections::BTreeSet;

    fn life() -> Scenario {
        Scenario::built_in(&["service-life".to_owned()]).expect("a scenario").remove(0)
    }

    /// All plans with faults that a part gives out.
    fn all(shard: Option<Share>, most_pairs: usize) -> Vec<String> {
        let plain = vec![Plan::plain(life())];
        let mut queue = Queue::new(1, PATTERNS.to_vec(), shard, plain, most_pairs);
        let mut all = Vec::new();
        loop {
            match queue.next(None) {
                Next::Plan(plan) if plan.faults.is_empty() => {
                    assert!(matches!(queue.next(None), Next::Wait), "its plans follow");
                    queue.recorded(&plan.scenario, &[]);
                }
                Next::Plan(plan) => all.push(plan.to_string()),
                Next::Wait => panic!("nothing is being carried out"),
                Next::End => return all,
            }
        }
    }

    #[test]
    fn shards_have_all_plans_and_share_none() {
        let whole = all(None, 0);
        let part = |part: &str| all(Some(part.parse().expect("a share")), 0);
        let parts: Vec<Vec<String>> = ["1/3", "2/3", "3/3"].map(part).into();
        let joined: BTreeSet<&String> = parts.iter().flatten().collect();
        assert_eq!(joined.len(), whole.len());
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), whole.len());
        assert!(parts.iter().all(|part| !part.is_empty()));
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_pairs_come_last() {
        let points = [Point::Api {
            verb: "patch".to_owned(),
            resource: "services".to_owned(),
            object: "web".to_owned(),
            nth: 1,
        }];
        let run = || {
            let mut queue = Queue::new(5, PATTERNS.to_vec(), None, vec![Plan::plain(life())], 4);
            let Next::Plan(plan) = queue.next(None) else { panic!("the scenario") };
            queue.recorded(&plan.scenario, &points);
            let mut faults = Vec::new();
            while let Next::Plan(plan) = queue.next(None) {
                faults.push((plan.faults.len(), plan.to_string()));
            }
            (faults, queue.pairs())
        };
        let (faults, pairs) = run();
        assert_eq!(run().0, faults);
        assert!(faults.is_sorted_by_key(|(number, _)| *number), "{faults:#?}");
        assert_eq!(faults.iter().filter(|(number, _)| *number == 2).count(), 4);
        assert!(pairs > 4, "{pairs}");
    }
}
