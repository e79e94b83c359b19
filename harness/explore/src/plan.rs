//! Plans: a scenario, and the faults that are put into it.

use crate::pattern::Pattern;
use crate::point::Point;
use crate::scenario::{Scenario, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A fault at a point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutFault {
    /// Where.
    pub at: Point,
    /// What.
    pub pattern: Pattern,
}

impl PutFault {
    /// Whether both can be put into one trial: the CCM is killed only once, and only one of them is about a step.
    fn goes_with(&self, other: &PutFault) -> bool {
        let both = |is: fn(&PutFault) -> bool| is(self) && is(other);
        self.at != other.at
            && !both(|fault| fault.pattern.kills())
            && !both(|fault| matches!(fault.at, Point::Step { .. }))
            && !self.pattern.needs_standby()
            && !other.pattern.needs_standby()
    }
}

/// A scenario, and the faults in it: usually one, none to see what is right, or two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// The faults.
    pub faults: Vec<PutFault>,
}

impl Plan {
    /// The scenario without any fault.
    pub(crate) fn plain(scenario: Scenario) -> Plan {
        Plan { scenario, faults: Vec::new() }
    }

    /// Whether a second replica has to be ready to take over.
    pub(crate) fn needs_standby(&self) -> bool {
        self.faults.iter().any(|fault| fault.pattern.needs_standby())
    }

    /// The fault that happens around a step.
    pub(crate) fn at_step(&self) -> Option<(usize, Pattern)> {
        self.faults.iter().find_map(|fault| match fault.at {
            Point::Step { step } => Some((step, fault.pattern)),
            _ => None,
        })
    }

    /// The same scenario with both faults; `None` if they cannot be put into one trial.
    pub(crate) fn with(&self, other: &PutFault) -> Option<Plan> {
        let [first] = self.faults.as_slice() else { return None };
        if !first.goes_with(other) {
            return None;
        }
        let mut faults = vec![first.clone(), other.clone()];
        faults.sort();
        Some(Plan { scenario: self.scenario.clone(), faults })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { scenario, faults } = self;
        write!(f, "{}: ", scenario.name)?;
        if faults.is_empty() {
            return f.write_str("without any fault");
        }
        for (number, PutFault { at, pattern }) in faults.iter().enumerate() {
            if number > 0 {
                f.write_str(", and ")?;
            }
            match at {
                Point::Step { step } => {
                    let what = scenario.steps.get(*step).map(Step::to_string).unwrap_or_default();
                    write!(f, "'{what}' {}", pattern.in_words())?;
                }
                _ => write!(f, "the {at} {}", pattern.in_words())?,
            }
        }
        Ok(())
    }
}

/// All plans with one fault for a scenario with these points.
pub(crate) fn plans(scenario: &Scenario, points: &[Point], wanted: &[Pattern]) -> Vec<Plan> {
    let acts = (0..scenario.steps.len()).filter(|step| scenario.acts_at(*step));
    let all = points.iter().cloned().chain(acts.map(|step| Point::Step { step }));
    all.flat_map(|at| {
        let fits: Vec<Pattern> =
            wanted.iter().filter(|pattern| pattern.fits(&at, scenario)).copied().collect();
        fits.into_iter().map(move |pattern| PutFault { at: at.clone(), pattern })
    })
    .map(|fault| Plan { scenario: scenario.clone(), faults: vec![fault] })
    .collect()
}

/// Chooses pairs of faults, each once, by a seed.
pub(crate) struct Pairs {
    random: fastrand::Rng,
    singles: Vec<Plan>,
    given: BTreeSet<(usize, usize)>,
    all: usize,
}

impl Pairs {
    /// Pairs of the faults of these plans.
    pub(crate) fn new(seed: u64, singles: Vec<Plan>) -> Pairs {
        let with_later = |(at, one): (usize, &Plan)| {
            singles[at + 1..].iter().filter(|other| are_compatible(one, other)).count()
        };
        let all = singles.iter().enumerate().map(with_later).sum();
        Pairs { random: fastrand::Rng::with_seed(seed), singles, given: BTreeSet::new(), all }
    }

    /// The number of all pairs.
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    /// One that was not returned before; `None` if none is found in many attempts, as nearly all were returned.
    pub(crate) fn next(&mut self) -> Option<Plan> {
        const ATTEMPTS: usize = 10_000;
        if self.singles.len() < 2 {
            return None;
        }
        (0..ATTEMPTS).find_map(|_| {
            let (a, b) = (self.random.usize(..self.singles.len()), self.random.usize(..self.singles.len()));
            let plan = together(&self.singles[a.min(b)], &self.singles[a.max(b)]).filter(|_| a != b)?;
            self.given.insert((a.min(b), a.max(b))).then_some(plan)
        })
    }
}

fn are_compatible(one: &Plan, other: &Plan) -> bool {
    let go = |(first, second): (&PutFault, &PutFault)| first.goes_with(second);
    one.scenario.name == other.scenario.name && one.faults.iter().zip(&other.faults).all(go)
}

fn together(one: &Plan, other: &Plan) -> Option<Plan> {
    let fault = other.faults.first().filter(|_| are_compatible(one, other))?;
    one.with(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::PATTERNS;
    use harness_clouds::Op;

    fn scenario(name: &str) -> Scenario {
        Scenario::built_in(&[name.to_owned()]).expect("a scenario").remove(0)
    }

    fn points() -> [Point; 3] {
        [
            Point::Cloud { operation: Op::LbCreate, object: String::new(), nth: 1 },
            Point::Cloud { operation: Op::LbList, object: String::new(), nth: 1 },
            Point::Api {
                verb: "patch".to_owned(),
                resource: "services/status".to_owned(),
                object: "web".to_owned(),
                nth: 2,
            },
        ]
    }

    #[test]
    fn every_pattern_is_used_and_every_plan_reads_as_a_sentence() {
        let all = plans(&scenario("quick-edits"), &points(), PATTERNS);
        for pattern in PATTERNS {
            let uses = |plan: &Plan| plan.faults.iter().any(|fault| fault.pattern == *pattern);
            assert!(all.iter().any(uses), "{pattern} is never used");
        }
        let shown: Vec<String> = all.iter().map(Plan::to_string).collect();
        for expected in [
            "quick-edits: the 2nd patch services/status of web takes effect and its answer is lost",
            "quick-edits: 'delete Service web' happens while the CCM does not run; it starts afterwards",
        ] {
            assert!(shown.iter().any(|one| one == expected), "{shown:#?}");
        }
    }

    #[test]
    fn pairs_are_compatible_different_and_chosen_by_the_seed() {
        let singles = plans(&scenario("quick-edits"), &points(), PATTERNS);
        let taken = |seed| {
            let mut pairs = Pairs::new(seed, singles.clone());
            let all = pairs.all();
            let taken: Vec<String> = (0..50).filter_map(|_| pairs.next()).map(|p| p.to_string()).collect();
            (all, taken)
        };
        let (all, first) = taken(1);
        assert!(all > 100 && first.len() == 50);
        assert_eq!(taken(1).1, first, "the same seed");
        assert_ne!(taken(2).1, first, "another seed");
        let distinct: BTreeSet<&String> = first.iter().collect();
        assert_eq!(distinct.len(), first.len());
        for plan in &singles {
            for other in &singles {
                let Some(pair) = together(plan, other) else { continue };
                assert!(pair.faults.iter().filter(|fault| fault.pattern.kills()).count() <= 1, "{pair}");
            }
        }
    }
}
