//! Merges the streams of a run's parts into one, as if the parts had run at the same time.

use super::event::{Event, Payload, PlannedCheck, RunBegan, SCHEMA, after_end};
use super::fold::Fold;
use crate::check::Isolation;
use crate::ledger::{Ledger, MergedShard, Outcome, Setting, Share, SkipReason, Subject};
use std::collections::{BTreeMap, BTreeSet};

/// The stream of a part, and where it was found.
#[derive(Debug)]
pub struct Part {
    /// Its place, for messages.
    pub name: String,
    /// The stream.
    pub events: Vec<Event>,
}

/// What may differ between machines without affecting the result.
#[derive(Clone, Copy, Debug)]
pub struct Merging<'a> {
    /// The stage in which checks run; the merged stream has one of them, as long as the longest.
    pub checks_stage: &'a str,
    /// The setting that says which part it is; the merged report has none.
    pub shard_setting: &'a str,
    /// Settings that may differ from machine to machine.
    pub machine_settings: &'a [&'a str],
    /// The command that merges.
    pub command: &'a str,
}

/// A part with what was derived from its stream.
struct Read<'a> {
    part: &'a Part,
    share: Share,
    run: Option<&'a str>,
    ledger: Ledger,
    planned: BTreeMap<&'a str, &'a PlannedCheck>,
}

/// The events of the whole run. A check's events are those of the part that it belongs to; one that judges the whole run
/// was judged in every part, and the worst outcome counts.
///
/// # Errors
/// All reasons why these parts are not one run, by name: parts of different runs, versions, profiles or clusters; a part
/// that is missing, duplicate, cut, or not a part.
pub fn merge(parts: &[Part], merging: Merging<'_>) -> Result<Vec<Event>, Vec<String>> {
    let mut wrong = Vec::new();
    let mut read: Vec<Read<'_>> = Vec::new();
    for part in parts {
        match Read::of(part) {
            Ok(part) => read.push(part),
            Err(why) => wrong.push(format!("{}: {why}", part.name)),
        }
    }
    read.sort_by_key(|part| part.share);
    if wrong.is_empty() {
        complete(&read, &mut wrong);
    }
    if wrong.is_empty() {
        alike(&read, merging, &mut wrong);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let owners = owners(&read, &mut wrong);
    if wrong.is_empty() { Ok(joined(&read, &owners, merging)) } else { Err(wrong) }
}

impl Read<'_> {
    fn of(part: &Part) -> Result<Read<'_>, String> {
        let ledger = Fold::of(&part.events).ledger();
        if ledger.stream.is_none() {
            return Err(ledger.environment_error.unwrap_or_default());
        }
        if let Some(event) = after_end(&part.events) {
            return Err(format!(
                "'{}' after the end of the run, where a run only writes messages",
                event.kind()
            ));
        }
        let of = part.events.iter().rev().find_map(|event| match &event.event {
            Payload::SubjectKnown(subject) => Some(subject.shard.as_ref()),
            _ => None,
        });
        let Some(shard) = of.flatten() else {
            return Err("a complete run, not a part of one; '--shard K/N' creates parts".to_owned());
        };
        if ledger.subject.certify && shard.run.as_deref().unwrap_or_default().is_empty() {
            let why = "a certifying part without the name of its run, which may come from another run than the rest; \
                       run all parts with the same '--shard-of NAME'";
            return Err(why.to_owned());
        }
        let planned = part.events.iter().rev().find_map(|event| match &event.event {
            Payload::ChecksPlanned { checks } => Some(checks),
            _ => None,
        });
        let planned = planned.into_iter().flatten().map(|check| (check.id.as_str(), check)).collect();
        Ok(Read { part, share: shard.share, run: shard.run.as_deref(), ledger, planned })
    }

    fn name(&self) -> String {
        format!("{} (part {})", self.part.name, self.share)
    }

    /// The number of its lanes.
    fn lanes(&self) -> u32 {
        self.part.events.iter().filter_map(|event| event.lane).max().map_or(0, |last| last + 1)
    }
}

/// Checks that each part is there once, all from one split.
fn complete(read: &[Read<'_>], wrong: &mut Vec<String>) {
    let Some(first) = read.first() else { return wrong.push("no parts were given".to_owned()) };
    for other in read.iter().filter(|other| other.share.of() != first.share.of()) {
        wrong.push(format!("{} and {} are parts of different splits", first.name(), other.name()));
    }
    if !wrong.is_empty() {
        return;
    }
    for part in 1..=first.share.of() {
        let there: Vec<&str> =
            read.iter().filter(|one| one.share.part() == part).map(|one| one.part.name.as_str()).collect();
        match there.as_slice() {
            [_] => {}
            [] => wrong.push(format!("part {part} of {} is missing", first.share.of())),
            many => wrong.push(format!("part {part} was given {} times: {}", many.len(), many.join(", "))),
        }
    }
}

/// Checks that subject, cluster and settings are the same in all parts.
fn alike(read: &[Read<'_>], merging: Merging<'_>, wrong: &mut Vec<String>) {
    let base = base(read);
    for other in read.iter().filter(|other| other.share != base.share) {
        let mut differs = |what: &str, is: String, was: String| {
            wrong.push(format!("{}: {what} is {is}, in {} it is {was}", other.name(), base.name()));
        };
        if other.run != base.run {
            let show = |run: Option<&str>| run.map_or("without a name".to_owned(), |run| format!("'{run}'"));
            differs("its run", show(other.run), show(base.run));
        }
        let (known, own) = (plain(&base.ledger.subject), plain(&other.ledger.subject));
        // Missing facts of an environment that could not be created are not a difference.
        let cut = other.ledger.environment_error.is_some();
        let keys: BTreeSet<&String> = known.keys().chain(own.keys()).collect();
        for key in keys {
            let (is, was) = (own.get(key), known.get(key));
            let unsaid = is.is_none_or(|is| is.as_str() == Some(""));
            if is != was && !(cut && unsaid) {
                let show = |value: Option<&serde_json::Value>| {
                    value.map_or("nothing".to_owned(), ToString::to_string)
                };
                differs(&format!("subject.{key}"), show(is), show(was));
            }
        }
        let settings = |of: &Read<'_>| -> BTreeSet<String> {
            let differing = of.ledger.subject.settings.iter().filter(|one| {
                one.setting != merging.shard_setting
                    && !merging.machine_settings.contains(&one.setting.as_str())
            });
            differing.map(ToString::to_string).collect()
        };
        let (known, own) = (settings(base), settings(other));
        if let (Some(was), false) = (known.difference(&own).next(), cut) {
            differs("a setting", "missing".to_owned(), format!("'{was}'"));
        }
        if let Some(is) = own.difference(&known).next() {
            differs("a setting", format!("'{is}'"), "missing".to_owned());
        }
        let ids = |of: &Read<'_>| of.planned.keys().map(|id| (*id).to_owned()).collect::<BTreeSet<String>>();
        if let Some(id) = ids(base).symmetric_difference(&ids(other)).next() {
            differs(&format!("check {id}"), "another".to_owned(), "not the same".to_owned());
        }
    }
}

/// The part that describes the whole: the first one whose environment was created.
fn base<'a, 'b>(read: &'a [Read<'b>]) -> &'a Read<'b> {
    read.iter().find(|one| one.ledger.environment_error.is_none()).unwrap_or(&read[0])
}

/// The properties of a subject that must not differ from part to part.
fn plain(subject: &Subject) -> serde_json::Map<String, serde_json::Value> {
    let mut value = serde_json::to_value(subject).expect("a subject is plain data");
    let map = value.as_object_mut().expect("it has keys");
    for key in ["settings", "reproduce", "shard", "merged"] {
        map.remove(key);
    }
    std::mem::take(map)
}

/// The part that a check's outcome comes from, by position among the parts.
fn owners<'a>(read: &[Read<'a>], wrong: &mut Vec<String>) -> BTreeMap<&'a str, usize> {
    let mut owners = BTreeMap::new();
    let ids: BTreeSet<&str> = read.iter().flat_map(|one| one.planned.keys().copied()).collect();
    for id in ids {
        let whole_run = read
            .iter()
            .any(|one| one.planned.get(id).is_some_and(|check| check.sharing == Isolation::AfterTheRun));
        let outcome =
            |at: usize| read[at].ledger.all().find(|entry| entry.id == id).map(|entry| &entry.outcome);
        let all = || 0..read.len();
        if whole_run {
            owners.extend(
                all()
                    .max_by_key(|at| (outcome(*at).map_or(0, badness), std::cmp::Reverse(*at)))
                    .map(|at| (id, at)),
            );
            continue;
        }
        let left_out = |at: &usize| {
            matches!(
                outcome(*at),
                None | Some(Outcome::Skip { reason: SkipReason::Deselected | SkipReason::NotDeclared, .. })
            )
        };
        let judging: Vec<usize> = all().filter(|at| !left_out(at)).collect();
        match judging.as_slice() {
            [one] => drop(owners.insert(id, *one)),
            [] => drop(owners.insert(id, 0)),
            [one, other, ..] => {
                wrong.push(format!(
                    "check {id} was judged in both {} and {}",
                    read[*one].name(),
                    read[*other].name()
                ));
            }
        }
    }
    owners
}

/// How strongly an outcome counts against the CCM.
fn badness(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Fail { .. } => 4,
        Outcome::Blocked { .. } => 3,
        Outcome::Error { .. } => 2,
        Outcome::Skip { .. } => 1,
        Outcome::Pass => 0,
    }
}

/// The merged stream, in the order of time since each part began.
fn joined(read: &[Read<'_>], owners: &BTreeMap<&str, usize>, merging: Merging<'_>) -> Vec<Event> {
    let of_run = |at_ms, event| Event { at_ms, lane: None, check: None, event };
    let started = read.iter().map(|one| one.ledger.started.clone()).min().unwrap_or_default();
    let harness_version = base(read).ledger.subject.harness_version.clone();
    let head = RunBegan { schema: SCHEMA.to_owned(), started, harness_version };
    let mut all = vec![
        of_run(0, Payload::RunBegan(head)),
        of_run(0, Payload::SubjectKnown(Box::new(subject(read, merging)))),
        of_run(0, Payload::ChecksPlanned { checks: planned(read, owners) }),
    ];
    let mut timed = Vec::new();
    let mut lanes = 0;
    for (at, one) in read.iter().enumerate() {
        let judged =
            one.part.events.iter().take_while(|event| !matches!(event.event, Payload::RunEnded { .. }));
        timed.extend(judged.filter_map(|event| taken(event, at, one, lanes, owners, merging)));
        lanes += one.lanes();
    }
    timed.sort_by_key(|event| event.at_ms);
    all.append(&mut timed);
    let longest =
        |wanted: &dyn Fn(&Ledger) -> u64| read.iter().map(|one| wanted(&one.ledger)).max().unwrap_or(0);
    let end = longest(&|ledger| ledger.duration_ms);
    let at_ms = all.last().map_or(end, |event| event.at_ms.max(end));
    let took = |ledger: &Ledger| {
        let checks = ledger.stages.iter().filter(|stage| stage.stage == merging.checks_stage);
        checks.map(|stage| stage.took_ms).sum()
    };
    let checks =
        Payload::StageEnded { stage: merging.checks_stage.to_owned(), took_ms: longest(&took), ok: true };
    all.push(of_run(at_ms, checks));
    all.push(of_run(at_ms, Payload::RunEnded { duration_ms: end }));
    all
}

/// An event of a part in the merged stream, if it belongs there.
fn taken(
    event: &Event,
    at: usize,
    of: &Read<'_>,
    lanes: u32,
    owners: &BTreeMap<&str, usize>,
    merging: Merging<'_>,
) -> Option<Event> {
    let foreign = event.check.as_deref().is_some_and(|id| owners.get(id) != Some(&at));
    let named = |text: &str| format!("part {}: {text}", of.share);
    let payload = match &event.event {
        Payload::RunBegan(_)
        | Payload::SubjectKnown(_)
        | Payload::ChecksPlanned { .. }
        | Payload::RunEnded { .. } => {
            return None;
        }
        Payload::StageBegan { stage } | Payload::StageEnded { stage, .. }
            if stage == merging.checks_stage =>
        {
            return None;
        }
        Payload::CheckBegan { .. }
        | Payload::CheckRepeated { .. }
        | Payload::CheckEnded { .. }
        | Payload::EvidenceTaken { .. }
        | Payload::PromiseBegan(_)
        | Payload::PromiseMet { .. }
        | Payload::PromiseBroken(_)
            if foreign =>
        {
            return None;
        }
        Payload::StageBegan { stage } => Payload::StageBegan { stage: named(stage) },
        Payload::StageEnded { stage, took_ms, ok } => {
            Payload::StageEnded { stage: named(stage), took_ms: *took_ms, ok: *ok }
        }
        Payload::Said { text, detail } => Payload::Said { text: named(text), detail: *detail },
        Payload::EnvironmentFailed { message } => Payload::EnvironmentFailed { message: named(message) },
        other => other.clone(),
    };
    let lane = event.lane.map(|lane| lane + lanes);
    Some(Event { at_ms: event.at_ms, lane, check: event.check.clone(), event: payload })
}

/// The subject of all parts.
fn subject(read: &[Read<'_>], merging: Merging<'_>) -> Subject {
    let mut subject = base(read).ledger.subject.clone();
    subject.settings.retain(|one| one.setting != merging.shard_setting);
    for setting in
        subject.settings.iter_mut().filter(|one| merging.machine_settings.contains(&one.setting.as_str()))
    {
        let of = |one: &Read<'_>| {
            let same = |other: &&Setting| other.setting == setting.setting;
            one.ledger.subject.settings.iter().find(same).map(|one| one.value.clone())
        };
        let values: BTreeSet<String> = read.iter().filter_map(of).collect();
        setting.value = Vec::from_iter(values).join(", ");
    }
    subject.shard = None;
    let merged = read.iter().map(|one| MergedShard {
        share: one.share,
        started: one.ledger.started.clone(),
        stream: one.ledger.stream.clone().expect("a stream without its end was refused"),
        reproduce: one.ledger.subject.reproduce.clone(),
    });
    subject.merged = merged.collect();
    subject.reproduce = merging.command.to_owned();
    subject
}

/// All checks, each as planned in its own part.
fn planned(read: &[Read<'_>], owners: &BTreeMap<&str, usize>) -> Vec<PlannedCheck> {
    let of =
        |id: &str| read[owners.get(id).copied().unwrap_or(0)].planned.get(id).map(|check| (*check).clone());
    base(read).ledger.all().filter_map(|entry| of(&entry.id)).collect()
}

#[cfg(test)]
mod tests;
