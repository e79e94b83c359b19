//! Patterns: the faults that can be put at a point.

use crate::point::Point;
use crate::scenario::{Scenario, Step};
use harness_clouds::Effect;
use harness_clusters::RequestEffect;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What goes wrong at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// The API server answers that the object was changed by another client (409).
    Conflict,
    /// The server answers that there are too many requests (429), with Retry-After.
    TooMany,
    /// The server answers with an internal error (500).
    Failure,
    /// Three requests in a row are answered with an internal error (500).
    Failures,
    /// The server answers that it is not available (503).
    Unavailable,
    /// The connection ends before the request takes effect.
    RequestLost,
    /// The request takes effect, and the connection ends before the answer.
    AnswerLost,
    /// The answer does not have the form of the API.
    Malformed,
    /// The CCM is killed before the request takes effect, and starts again.
    KilledBefore,
    /// The CCM is killed when the request has taken effect and is not answered, and starts again.
    KilledAfter,
    /// The CCM does not run during a step, and starts afterwards.
    Down,
    /// The CCM's watches break off before a step; after it, their history is gone (410).
    WatchesLost,
    /// The CCM's watches break off before a step and begin again after the next one, so that it sees only the last state.
    Unseen,
}

/// All patterns.
pub const PATTERNS: &[Pattern] = &[
    Pattern::Conflict,
    Pattern::TooMany,
    Pattern::Failure,
    Pattern::Failures,
    Pattern::Unavailable,
    Pattern::RequestLost,
    Pattern::AnswerLost,
    Pattern::Malformed,
    Pattern::KilledBefore,
    Pattern::KilledAfter,
    Pattern::Down,
    Pattern::WatchesLost,
    Pattern::Unseen,
];

/// What a fault at the API server needs.
pub(crate) struct ApiFault {
    pub(crate) effect: RequestEffect,
    pub(crate) times: u64,
}

impl Pattern {
    /// Its name in reports, files and options.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Conflict => "conflict",
            Pattern::TooMany => "too-many",
            Pattern::Failure => "failure",
            Pattern::Failures => "failures",
            Pattern::Unavailable => "unavailable",
            Pattern::RequestLost => "request-lost",
            Pattern::AnswerLost => "answer-lost",
            Pattern::Malformed => "malformed",
            Pattern::KilledBefore => "killed-before",
            Pattern::KilledAfter => "killed-after",
            Pattern::Down => "down",
            Pattern::WatchesLost => "watches-lost",
            Pattern::Unseen => "unseen",
        }
    }

    /// What happens, as the second part of a sentence that begins with the point.
    pub fn in_words(self) -> &'static str {
        match self {
            Pattern::Conflict => "is answered with 409 Conflict",
            Pattern::TooMany => "is answered with 429 and Retry-After",
            Pattern::Failure => "is answered with 500",
            Pattern::Failures => "and the two after it are answered with 500",
            Pattern::Unavailable => "is answered with 503",
            Pattern::RequestLost => "is lost before it takes effect",
            Pattern::AnswerLost => "takes effect and its answer is lost",
            Pattern::Malformed => "takes effect and its answer is malformed",
            Pattern::KilledBefore => "does not take effect, as the CCM is killed; it starts again",
            Pattern::KilledAfter => "takes effect, and the CCM is killed before the answer; it starts again",
            Pattern::Down => "happens while the CCM does not run; it starts afterwards",
            Pattern::WatchesLost => "happens while the CCM has no watches; then their history is gone (410)",
            Pattern::Unseen => {
                "and the next one happen while the CCM has no watches; it sees only the result"
            }
        }
    }

    /// Whether the CCM ends in it.
    pub fn kills(self) -> bool {
        matches!(self, Pattern::KilledBefore | Pattern::KilledAfter | Pattern::Down)
    }

    /// What it is at the API server; `None` if it is nothing there.
    pub(crate) fn at_api_server(self) -> Option<ApiFault> {
        let refuse = |code| RequestEffect::Refuse { code };
        let (effect, times) = match self {
            Pattern::Conflict => (refuse(409), 1),
            Pattern::TooMany => (refuse(429), 1),
            Pattern::Failure => (refuse(500), 1),
            Pattern::Failures => (refuse(500), 3),
            Pattern::Unavailable => (refuse(503), 1),
            Pattern::RequestLost => (RequestEffect::LoseRequest, 1),
            Pattern::AnswerLost => (RequestEffect::LoseAnswer, 1),
            Pattern::KilledBefore => (RequestEffect::HoldRequest, 1),
            Pattern::KilledAfter => (RequestEffect::HoldAnswer, 1),
            Pattern::Malformed | Pattern::Down | Pattern::WatchesLost | Pattern::Unseen => return None,
        };
        Some(ApiFault { effect, times })
    }

    /// What it is at the cloud, and for how many calls; `None` if it is nothing there.
    pub(crate) fn at_cloud(self) -> Option<(Effect, u64)> {
        let status = |status, retry_after_s| Effect::Status { status, retry_after_s };
        Some(match self {
            Pattern::TooMany => (status(429, Some(1)), 1),
            Pattern::Failure => (status(500, None), 1),
            Pattern::Failures => (status(500, None), 3),
            Pattern::Unavailable => (status(503, None), 1),
            Pattern::RequestLost => (Effect::Refuse, 1),
            Pattern::AnswerLost => (Effect::LoseAnswer { ms: None }, 1),
            Pattern::Malformed => (Effect::Malformed, 1),
            Pattern::KilledBefore => (Effect::Hang { ms: None }, 1),
            Pattern::KilledAfter => (Effect::LoseAnswer { ms: Some(120_000) }, 1),
            Pattern::Conflict | Pattern::Down | Pattern::WatchesLost | Pattern::Unseen => return None,
        })
    }

    /// Whether it can be put at a point.
    fn fits(self, point: &Point, scenario: &Scenario) -> bool {
        match point {
            Point::Api { verb, .. } => {
                // Nothing else writes to what is deleted without conditions.
                self.at_api_server().is_some() && !(self == Pattern::Conflict && verb == "delete")
            }
            // A read has no effect that could be lost.
            Point::Cloud { operation, .. } => {
                self.at_cloud().is_some()
                    && (operation.is_write() || !matches!(self, Pattern::AnswerLost | Pattern::KilledAfter))
            }
            Point::Step { step } => match self {
                Pattern::Down | Pattern::WatchesLost => true,
                Pattern::Unseen => acts(scenario, step + 1),
                _ => false,
            },
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scenario, and one fault in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Where.
    pub point: Point,
    /// What.
    pub pattern: Pattern,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { scenario, point, pattern } = self;
        match point {
            Point::Step { step } => {
                let what = scenario.steps.get(*step).map(Step::to_string).unwrap_or_default();
                write!(f, "{}: '{what}' {}", scenario.name, pattern.in_words())
            }
            _ => write!(f, "{}: the {point} {}", scenario.name, pattern.in_words()),
        }
    }
}

fn acts(scenario: &Scenario, step: usize) -> bool {
    scenario.steps.get(step).is_some_and(|step| *step != Step::Settle)
}

/// All plans for a scenario with these points.
pub(crate) fn plans(scenario: &Scenario, points: &[Point], wanted: &[Pattern]) -> Vec<Plan> {
    let steps =
        (0..scenario.steps.len()).filter(|step| acts(scenario, *step)).map(|step| Point::Step { step });
    let all = points.iter().cloned().chain(steps);
    all.flat_map(|point| {
        let fits =
            wanted.iter().filter(|pattern| pattern.fits(&point, scenario)).copied().collect::<Vec<_>>();
        fits.into_iter().map(move |pattern| (point.clone(), pattern))
    })
    .map(|(point, pattern)| Plan { scenario: scenario.clone(), point, pattern })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_clouds::Op;

    fn scenario(name: &str) -> Scenario {
        Scenario::built_in(&[name.to_owned()]).expect("a scenario").remove(0)
    }

    #[test]
    fn a_pattern_is_put_only_where_it_means_something() {
        let read = Point::Cloud { operation: Op::LbGet, object: String::new(), nth: 1 };
        let write = Point::Cloud { operation: Op::LbCreate, object: String::new(), nth: 1 };
        let life = scenario("service-life");
        assert!(!Pattern::AnswerLost.fits(&read, &life) && Pattern::AnswerLost.fits(&write, &life));
        assert!(!Pattern::Conflict.fits(&write, &life) && !Pattern::Down.fits(&write, &life));
        assert!(Pattern::Down.fits(&Point::Step { step: 0 }, &life));
        assert!(!Pattern::Unseen.fits(&Point::Step { step: 0 }, &life), "nothing happens in the next step");
        assert!(Pattern::Unseen.fits(&Point::Step { step: 2 }, &scenario("quick-edits")));
    }

    #[test]
    fn every_pattern_is_used_and_every_plan_reads_as_a_sentence() {
        let points = [
            Point::Cloud { operation: Op::LbCreate, object: String::new(), nth: 1 },
            Point::Api {
                verb: "patch".to_owned(),
                resource: "services/status".to_owned(),
                object: "web".to_owned(),
                nth: 2,
            },
        ];
        let all = plans(&scenario("quick-edits"), &points, PATTERNS);
        for pattern in PATTERNS {
            assert!(all.iter().any(|plan| plan.pattern == *pattern), "{pattern} is never used");
        }
        let shown: Vec<String> = all.iter().map(Plan::to_string).collect();
        let expected =
            "quick-edits: the 2nd patch services/status of web takes effect and its answer is lost";
        assert!(shown.iter().any(|one| one == expected), "{shown:#?}");
        let expected =
            "quick-edits: 'delete Service web' happens while the CCM does not run; it starts afterwards";
        assert!(shown.iter().any(|one| one == expected), "{shown:#?}");
    }
}
