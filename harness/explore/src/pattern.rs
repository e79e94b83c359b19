//! Patterns: the faults that can be put at a point.

use crate::point::Point;
use crate::scenario::Scenario;
use harness_clouds::{Effect, Op};
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
    /// The request takes effect, and its answer breaks off in the middle.
    AnswerCut,
    /// The answer does not have the form of the API.
    Malformed,
    /// Ten lists in a row begin with a page without items; the items follow on the next one.
    EmptyPage,
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
    /// The CCM's watches show a step, and those that follow it without a wait, some seconds later, in order.
    Delayed,
    /// The cloud's lists show the state before a step for some seconds, while look-ups of one object are up to date.
    ListsBehind,
    /// The CCM is killed after a step and starts again, and its watches and cached lists show the state before the step
    /// for some seconds.
    StaleStart,
    /// The leader is killed before the request takes effect, and a standby takes over.
    TakenOverBefore,
    /// The leader is killed when the request has taken effect and is not answered, and a standby takes over.
    TakenOverAfter,
    /// Another client has the Lease during a step, so that the leader ends, and then gives it up.
    LeaseLost,
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
    Pattern::AnswerCut,
    Pattern::Malformed,
    Pattern::EmptyPage,
    Pattern::KilledBefore,
    Pattern::KilledAfter,
    Pattern::Down,
    Pattern::WatchesLost,
    Pattern::Unseen,
    Pattern::Delayed,
    Pattern::ListsBehind,
    Pattern::StaleStart,
    Pattern::TakenOverBefore,
    Pattern::TakenOverAfter,
    Pattern::LeaseLost,
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
            Pattern::AnswerCut => "answer-cut",
            Pattern::Malformed => "malformed",
            Pattern::EmptyPage => "empty-page",
            Pattern::KilledBefore => "killed-before",
            Pattern::KilledAfter => "killed-after",
            Pattern::Down => "down",
            Pattern::WatchesLost => "watches-lost",
            Pattern::Unseen => "unseen",
            Pattern::Delayed => "delayed",
            Pattern::ListsBehind => "lists-behind",
            Pattern::StaleStart => "stale-start",
            Pattern::TakenOverBefore => "taken-over-before",
            Pattern::TakenOverAfter => "taken-over-after",
            Pattern::LeaseLost => "lease-lost",
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
            Pattern::AnswerCut => "takes effect and its answer breaks off in the middle",
            Pattern::Malformed => "takes effect and its answer is malformed",
            Pattern::EmptyPage => "and the nine after it begin with a page without items",
            Pattern::KilledBefore => "does not take effect, as the CCM is killed; it starts again",
            Pattern::KilledAfter => "takes effect, and the CCM is killed before the answer; it starts again",
            Pattern::Down => "happens while the CCM does not run; it starts afterwards",
            Pattern::WatchesLost => "happens while the CCM has no watches; then their history is gone (410)",
            Pattern::Unseen => {
                "and the next one happen while the CCM has no watches; it sees only the result"
            }
            Pattern::Delayed => "is shown to the CCM only some seconds later",
            Pattern::ListsBehind => "happens, and the cloud's lists show it only some seconds later",
            Pattern::StaleStart => {
                "happens; the CCM is killed and starts again, and sees the state before for some seconds"
            }
            Pattern::TakenOverBefore => "does not take effect, as the leader is killed; a standby takes over",
            Pattern::TakenOverAfter => {
                "takes effect, and the leader is killed before the answer; a standby takes over"
            }
            Pattern::LeaseLost => "happens while another client has the Lease, so that the leader ends",
        }
    }

    /// Whether the CCM, or its leader, ends in it.
    pub fn kills(self) -> bool {
        let restarts = matches!(
            self,
            Pattern::KilledBefore | Pattern::KilledAfter | Pattern::Down | Pattern::StaleStart
        );
        restarts || self.needs_standby()
    }

    /// Whether a second replica has to be ready to take over.
    pub(crate) fn needs_standby(self) -> bool {
        matches!(self, Pattern::TakenOverBefore | Pattern::TakenOverAfter | Pattern::LeaseLost)
    }

    /// Whether it is about a step, and not about a request.
    fn is_of_a_step(self) -> bool {
        match self {
            Pattern::Down
            | Pattern::WatchesLost
            | Pattern::Unseen
            | Pattern::Delayed
            | Pattern::ListsBehind
            | Pattern::StaleStart
            | Pattern::LeaseLost => true,
            Pattern::Conflict
            | Pattern::TooMany
            | Pattern::Failure
            | Pattern::Failures
            | Pattern::Unavailable
            | Pattern::RequestLost
            | Pattern::AnswerLost
            | Pattern::AnswerCut
            | Pattern::Malformed
            | Pattern::EmptyPage
            | Pattern::KilledBefore
            | Pattern::KilledAfter
            | Pattern::TakenOverBefore
            | Pattern::TakenOverAfter => false,
        }
    }

    /// Whether only the embedded API server can do it.
    pub fn needs_embedded(self) -> bool {
        matches!(self, Pattern::Conflict | Pattern::AnswerCut | Pattern::Delayed | Pattern::StaleStart)
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
            Pattern::AnswerCut => (RequestEffect::CutAnswer, 1),
            Pattern::KilledBefore | Pattern::TakenOverBefore => (RequestEffect::HoldRequest, 1),
            Pattern::KilledAfter | Pattern::TakenOverAfter => (RequestEffect::HoldAnswer, 1),
            _ => return None,
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
            Pattern::EmptyPage => (Effect::EmptyFirstPage, 10),
            Pattern::KilledBefore | Pattern::TakenOverBefore => (Effect::Hang { ms: None }, 1),
            Pattern::KilledAfter | Pattern::TakenOverAfter => (Effect::LoseAnswer { ms: Some(120_000) }, 1),
            _ => return None,
        })
    }

    /// Whether it can be put at a point.
    pub(crate) fn fits(self, point: &Point, scenario: &Scenario) -> bool {
        match point {
            Point::Api { verb, .. } => {
                // Nothing else writes to what is deleted without conditions.
                self.at_api_server().is_some() && !(self == Pattern::Conflict && verb == "delete")
            }
            // A read has no effect that could be lost, and only a list has pages.
            Point::Cloud { operation, .. } => {
                self.at_cloud().is_some()
                    && (self != Pattern::EmptyPage || *operation == Op::LbList)
                    && (operation.is_write()
                        || !matches!(
                            self,
                            Pattern::AnswerLost | Pattern::KilledAfter | Pattern::TakenOverAfter
                        ))
            }
            Point::Step { step } => match self {
                // Otherwise nothing is combined.
                Pattern::Unseen => scenario.acts_at(step + 1),
                _ => self.is_of_a_step(),
            },
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let list = Point::Cloud { operation: Op::LbList, object: String::new(), nth: 1 };
        assert!(Pattern::EmptyPage.fits(&list, &life) && !Pattern::EmptyPage.fits(&read, &life));
        assert!(Pattern::LeaseLost.fits(&Point::Step { step: 0 }, &life));
        assert!(Pattern::Down.fits(&Point::Step { step: 0 }, &life));
        assert!(!Pattern::Unseen.fits(&Point::Step { step: 0 }, &life), "nothing happens in the next step");
        assert!(Pattern::Unseen.fits(&Point::Step { step: 2 }, &scenario("quick-edits")));
    }
}
