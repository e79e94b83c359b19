//! Computes the ledger from events.

use super::event::{Event, Payload, PlannedCheck};
use super::process_history::ProcessHistory;
use crate::check::label_of;
use crate::ledger::{Entry, FIRST_TRY, Ledger, Outcome, StageTime, Stream};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// How the error of a run begins whose stream of events has no end.
pub const CUT: &str = "the stream of events was cut";

/// The check that judges the exits of the CCM's processes, and excuses those that an unresponsive API server caused.
const ENDS_ROW: &str = "OBS-10";

/// The result of the events so far. It takes them one by one, and can return, at any moment, the ledger of a run that
/// ended at that point.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    ledger: Ledger,
    planned: Vec<PlannedCheck>,
    judged: BTreeMap<String, Judged>,
    conduct: ProcessHistory,
    events: u64,
    at_ms: u64,
    ended: bool,
    digest: Sha256,
}

/// A check that has started.
#[derive(Clone, Debug, Default)]
struct Judged {
    started: String,
    ended: Option<(Outcome, u64)>,
    budget_used_percent: Option<u32>,
    evidence: Option<String>,
    facts: BTreeMap<String, String>,
    /// The lane in which it ended.
    lane: Option<u32>,
}

impl Fold {
    /// Folds a whole stream.
    pub fn of(events: &[Event]) -> Fold {
        let mut fold = Fold::default();
        events.iter().for_each(|event| fold.take(event));
        fold
    }

    /// Adds the next event.
    pub fn take(&mut self, event: &Event) {
        self.take_line(event, &event.line());
    }

    /// Adds the next event, whose line this is.
    pub(super) fn take_line(&mut self, event: &Event, line: &str) {
        if self.ended {
            // The digest ends here, so later events must not count.
            return;
        }
        self.events += 1;
        self.digest.update(line.as_bytes());
        self.at_ms = self.at_ms.max(event.at_ms);
        self.conduct.take(event);
        match &event.event {
            Payload::RunBegan(run) => self.ledger.started.clone_from(&run.started),
            Payload::StageEnded { stage, took_ms, .. } => {
                self.ledger.stages.push(StageTime { stage: stage.clone(), took_ms: *took_ms });
            }
            Payload::EnvironmentFailed { message } => {
                self.ledger.environment_error = Some(message.clone());
            }
            Payload::SubjectKnown(subject) => self.ledger.subject = subject.as_ref().clone(),
            Payload::ChecksPlanned { checks } => self.planned.clone_from(checks),
            Payload::CheckBegan { started } => {
                if let Some(judged) = self.judged(event) {
                    judged.started.clone_from(started);
                }
            }
            Payload::CheckEnded { ended, duration_ms, budget_used_percent, facts } => {
                if let Some(judged) = self.judged(event) {
                    judged.ended = Some((ended.clone(), *duration_ms));
                    judged.budget_used_percent = *budget_used_percent;
                    judged.facts.clone_from(facts);
                    judged.lane = event.lane;
                }
            }
            Payload::EvidenceTaken { folder } => {
                if let Some(judged) = self.judged(event) {
                    judged.evidence = Some(folder.clone());
                }
            }
            Payload::RunEnded { duration_ms } => {
                self.ledger.duration_ms = *duration_ms;
                let digest = self.digest.clone().finalize();
                let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                self.ledger.stream = Some(Stream { events: self.events, sha256 });
                self.ended = true;
            }
            Payload::Said { .. }
            | Payload::StageBegan { .. }
            | Payload::CheckRepeated { .. }
            | Payload::PromiseBegan(_)
            | Payload::PromiseMet { .. }
            | Payload::PromiseBroken(_)
            | Payload::CcmLeads
            | Payload::ReplicaDisturbed { .. }
            | Payload::ReplicaEnded { .. }
            | Payload::NodesWithdrawn { .. }
            | Payload::ObjectChanged(_)
            | Payload::CloudCall(_)
            | Payload::FaultInjected { .. }
            | Payload::FaultCleared { .. }
            | Payload::BarrierRaised { .. }
            | Payload::BarrierReleased { .. } => {}
        }
    }

    fn judged(&mut self, event: &Event) -> Option<&mut Judged> {
        event.check.as_ref().map(|id| self.judged.entry(id.clone()).or_default())
    }

    /// How the CCM behaved.
    pub fn conduct(&self) -> &ProcessHistory {
        &self.conduct
    }

    /// Ids of the checks of a lane with an aborted attempt: one that ended in an error of the environment, whether or not
    /// the check was judged once more.
    pub fn aborted_in(&self, lane: u32) -> Vec<&str> {
        let aborted = |judged: &Judged| {
            judged.facts.contains_key(FIRST_TRY) || matches!(judged.ended, Some((Outcome::Error { .. }, _)))
        };
        let of_it = self.judged.iter().filter(|(_, judged)| judged.lane == Some(lane) && aborted(judged));
        of_it.map(|(id, _)| id.as_str()).collect()
    }

    /// The check that has created something with this name: all names of a check begin with its id. `None` if it is none
    /// of the planned checks.
    pub fn maker_of(&self, name: &str) -> Option<&str> {
        let begins = |id: &&str| name.strip_prefix(&label_of(id)).is_some_and(|rest| rest.starts_with('-'));
        // 'svc-upd-01-port-abcd' belongs to SVC-UPD-01.port, not to SVC-UPD-01.
        self.planned.iter().map(|check| check.id.as_str()).filter(begins).max_by_key(|id| id.len())
    }

    /// Ids of the checks that should run and have not ended.
    pub fn unended(&self) -> Vec<String> {
        let ended = |id: &str| self.judged.get(id).is_some_and(|judged| judged.ended.is_some());
        let open = self.planned.iter().filter(|check| check.skipped.is_none() && !ended(&check.id));
        open.map(|check| check.id.clone()).collect()
    }

    /// Whether the end of the run is among the events.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// The ledger of a run in progress, for which a missing end is not an error of the environment. A check that has
    /// started and not ended has an outcome that only says so; [`unended`](Fold::unended) names it.
    pub fn ledger_so_far(&self) -> Ledger {
        let mut ledger = self.ledger();
        if !self.ended {
            ledger.environment_error.clone_from(&self.ledger.environment_error);
            ledger.duration_ms = self.at_ms;
        }
        ledger
    }

    /// The ledger. A stream without its end counts as an error of the environment, so that it never results in a good
    /// verdict.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        let lost = match &ledger.environment_error {
            Some(why) => why.clone(),
            None if self.ended => "it did not run".to_owned(),
            None => {
                let cut = format!(
                    "{CUT}: it ends after {} events, {:.1} s into the run",
                    self.events,
                    self.at_ms as f64 / 1000.0
                );
                ledger.duration_ms = self.at_ms;
                ledger.environment_error = Some(cut.clone());
                cut
            }
        };
        let excused =
            self.judged.get(ENDS_ROW).is_some_and(|ends| matches!(ends.ended, Some((Outcome::Pass, _))));
        ledger.explanations = self.conduct.explanations(excused);
        let entries = |private: bool| {
            let of_kind = self.planned.iter().filter(move |check| check.private == private);
            of_kind.map(|check| self.entry(check, &lost)).collect()
        };
        (ledger.entries, ledger.private) = (entries(false), entries(true));
        ledger
    }

    fn entry(&self, check: &PlannedCheck, lost: &str) -> Entry {
        let Judged { started, ended, budget_used_percent, evidence, facts, .. } =
            self.judged.get(&check.id).cloned().unwrap_or_default();
        let (outcome, duration_ms) = match (&check.skipped, ended) {
            (_, Some(ended)) => ended,
            (Some(skipped), None) => {
                (Outcome::Skip { reason: skipped.reason, detail: skipped.detail.clone() }, 0)
            }
            (None, None) => (Outcome::Error { message: lost.to_owned() }, 0),
        };
        Entry {
            id: check.id.clone(),
            suite: check.suite.clone(),
            title: check.title.clone(),
            level: check.level,
            sharing: check.sharing,
            outcome,
            duration_ms,
            budget_used_percent,
            evidence,
            started,
            facts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{RunBegan, SCHEMA, Skipped};
    use super::*;
    use crate::check::{Isolation, Level};
    use crate::ledger::{Conformance, SkipReason};

    #[test]
    fn objects_of_an_aborted_attempt_are_recognised_by_name() {
        let mut fold = Fold::default();
        let mut take = |check: Option<&str>, payload| {
            let (check, lane) = (check.map(str::to_owned), Some(2));
            fold.take(&Event { at_ms: 1, lane, check, event: payload });
        };
        let ids = ["SVC-UPD-01", "SVC-UPD-01.port", "SVC-DEL-11", "SVC-DEL-12"];
        take(None, Payload::ChecksPlanned { checks: ids.iter().map(|id| planned(id, None)).collect() });
        let ended = |ended: Outcome, facts: &[(&str, &str)]| Payload::CheckEnded {
            ended,
            duration_ms: 1,
            budget_used_percent: None,
            facts: facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        take(Some("SVC-UPD-01"), ended(Outcome::Pass, &[("auxiliaries", "2")]));
        take(
            Some("SVC-UPD-01.port"),
            ended(Outcome::Pass, &[(FIRST_TRY, "the environment failed it: etcd")]),
        );
        take(Some("SVC-DEL-11"), ended(Outcome::Error { message: "etcd".to_owned() }, &[]));
        assert_eq!(fold.aborted_in(2), ["SVC-DEL-11", "SVC-UPD-01.port"]);
        assert!(fold.aborted_in(1).is_empty());
        assert_eq!(fold.maker_of("svc-upd-01-port-abcd"), Some("SVC-UPD-01.port"));
        assert_eq!(fold.maker_of("svc-upd-01-abcd-other"), Some("SVC-UPD-01"));
        assert_eq!((fold.maker_of("svc-del-1-abcd"), fold.maker_of("default")), (None, None));
    }

    fn planned(id: &str, skipped: Option<Skipped>) -> PlannedCheck {
        let text = str::to_owned;
        PlannedCheck {
            id: text(id),
            suite: text("s"),
            title: text("t"),
            level: Level::Must,
            sharing: Isolation::Shared,
            private: false,
            skipped,
        }
    }

    /// A run of two checks that pass and one that is not declared.
    fn stream() -> Vec<Event> {
        let undeclared = Skipped { reason: SkipReason::NotDeclared, detail: "no routes".to_owned() };
        let run = RunBegan {
            schema: SCHEMA.to_owned(),
            started: "2026-03-01T12:00:00Z".to_owned(),
            harness_version: "0.0.0".to_owned(),
        };
        let checks = vec![planned("B-01", None), planned("A-01", None), planned("C-01", Some(undeclared))];
        let ended = || Payload::CheckEnded {
            ended: Outcome::Pass,
            duration_ms: 7,
            budget_used_percent: Some(3),
            facts: BTreeMap::new(),
        };
        let of = |check: Option<&str>, event| (check.map(str::to_owned), event);
        let list = [
            of(None, Payload::RunBegan(run)),
            of(None, Payload::StageEnded { stage: "cluster".to_owned(), took_ms: 5, ok: true }),
            of(None, Payload::ChecksPlanned { checks }),
            of(Some("A-01"), Payload::CheckBegan { started: "2026-03-01T12:00:01Z".to_owned() }),
            of(Some("B-01"), Payload::CheckBegan { started: "2026-03-01T12:00:02Z".to_owned() }),
            of(Some("A-01"), ended()),
            of(Some("B-01"), ended()),
            of(None, Payload::RunEnded { duration_ms: 90 }),
        ];
        (0..).zip(list).map(|(at_ms, (check, event))| Event { at_ms, lane: None, check, event }).collect()
    }

    #[test]
    fn a_whole_stream_is_its_ledger_in_the_order_of_the_plan() {
        let ledger = Fold::of(&stream()).ledger();
        let ids: Vec<&str> = ledger.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["B-01", "A-01", "C-01"]);
        assert_eq!(ledger.conformance(), Conformance::Conformant);
        assert_eq!((ledger.duration_ms, ledger.stages.len(), ledger.environment_error), (90, 1, None));
    }

    #[test]
    fn a_private_check_that_fails_leaves_the_verdict_as_it_is() {
        let mut events = stream();
        let Payload::ChecksPlanned { checks } = &mut events[2].event else { panic!("{:?}", events[2]) };
        checks[0].private = true;
        let Payload::CheckEnded { ended, .. } = &mut events[6].event else { panic!("{:?}", events[6]) };
        *ended = Outcome::Fail { message: "no label".to_owned() };
        let ledger = Fold::of(&events).ledger();
        let ids = |entries: &[Entry]| entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
        assert_eq!(
            (ids(&ledger.entries), ids(&ledger.private)),
            (ids(&ledger.entries), vec!["B-01".to_owned()])
        );
        assert!(matches!(ledger.private[0].outcome, Outcome::Fail { .. }));
        assert_eq!(ledger.conformance(), Conformance::Conformant);
        assert_eq!(ledger.all().count(), 3);
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_conformant_and_says_where_it_ends() {
        let whole = stream();
        for length in 1..whole.len() {
            let fold = Fold::of(&whole[..length]);
            let ledger = fold.ledger();
            assert_eq!(ledger.conformance(), Conformance::NotJudged, "after {length} events");
            let why = ledger.environment_error.expect("an error");
            assert!(why.contains(&format!("it ends after {length} events")), "{why}");
        }
        assert_eq!(Fold::of(&whole[..6]).unended(), ["B-01"]);
    }

    #[test]
    fn events_after_the_end_do_not_count() {
        let mut events = stream();
        let ledger = Fold::of(&events).ledger();
        let at_ms = 99;
        let subject = crate::ledger::Subject { profile: "other".to_owned(), ..Default::default() };
        for event in [
            Payload::SubjectKnown(Box::new(subject)),
            Payload::ChecksPlanned { checks: Vec::new() },
            Payload::StageEnded { stage: "more".to_owned(), took_ms: 5, ok: true },
            Payload::EnvironmentFailed { message: "no disk".into() },
            Payload::RunEnded { duration_ms: 1 },
        ] {
            events.push(Event { at_ms, lane: None, check: None, event });
            assert_eq!(Fold::of(&events).ledger(), ledger, "{:?}", events.last());
        }
    }

    #[test]
    fn an_unfinished_run_is_not_an_error() {
        let whole = stream();
        let fold = Fold::of(&whole[..6]);
        let so_far = fold.ledger_so_far();
        assert_eq!((fold.is_ended(), so_far.environment_error, so_far.duration_ms), (false, None, 5));
        assert_eq!(so_far.entries[1].outcome, Outcome::Pass);
        let fold = Fold::of(&whole);
        assert!(fold.is_ended() && fold.ledger_so_far() == fold.ledger());
    }

    #[test]
    fn an_environment_that_failed_is_the_reason_of_every_check() {
        let mut events = stream();
        events.truncate(3);
        let at_ms = 3;
        events.push(Event {
            at_ms,
            lane: None,
            check: None,
            event: Payload::EnvironmentFailed { message: "no disk".into() },
        });
        events.push(Event { at_ms, lane: None, check: None, event: Payload::RunEnded { duration_ms: 3 } });
        let ledger = Fold::of(&events).ledger();
        assert_eq!(ledger.environment_error.as_deref(), Some("no disk"));
        assert_eq!(ledger.entries[0].outcome, Outcome::Error { message: "no disk".into() });
        assert!(matches!(ledger.entries[2].outcome, Outcome::Skip { .. }));
    }
}
