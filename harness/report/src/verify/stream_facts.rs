//! The facts that a stream of events contains about its run.

use super::differ::apart;
use super::finding::Finding;
use crate::file::{CHECKS, DERIVED, document, read, to_yaml};
use crate::wording::one_line;
use harness_core::check::Level;
use harness_core::events::{Event, Fold, Payload, after_end};
use harness_core::ledger::{FIRST_TRY, Ledger, Outcome, Stream};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The facts that a stream of events contains about its run: the report that is created from it, and its contradictions.
#[derive(Clone, Debug)]
pub struct StreamFacts {
    document: Value,
    stream: Option<Stream>,
    /// How many events it has.
    events: u64,
    contradictions: Vec<String>,
}

impl StreamFacts {
    /// The facts in these events.
    pub fn by(events: &[Event]) -> StreamFacts {
        let ledger = Fold::of(events).ledger();
        // As it is parsed again: if YAML changes a text, both sides have the change.
        let written = to_yaml(&ledger).ok().and_then(|text| read(&text, Path::new("report.yaml")).ok());
        StreamFacts {
            document: document(written.as_ref().map_or(&ledger, |written| &written.ledger)),
            stream: ledger.stream,
            events: events.len() as u64,
            contradictions: contradictions(events),
        }
    }

    /// The differences from a report; `said` is its content.
    pub(super) fn against(&self, report: &Ledger, said: &Value, findings: &mut Vec<Finding>) {
        match (&report.stream, &self.stream) {
            (named, None) => {
                let of = named.as_ref().map(|named| named.events);
                // A stream that is longer than the report says is another one, which has no end either.
                let of = of.filter(|of| self.events < *of);
                findings.push(Finding::Cut { after: self.events, of });
            }
            (None, Some(_)) => findings.push(Finding::OtherStream("the report names none".to_owned())),
            (Some(named), Some(is)) if named != is => {
                let show = |one: &Stream| format!("{} events, sha256 {}", one.events, one.sha256);
                let (named, is) = (show(named), show(is));
                findings.push(Finding::OtherStream(format!("it was {named}, this one is {is}")));
            }
            (Some(_), Some(_)) => {}
        }
        let stream_facts = &self.document;
        subjects(&said["subject"], &stream_facts["subject"], findings);
        checks(&said[CHECKS], &stream_facts[CHECKS], findings);
        each_key(
            said,
            stream_facts,
            &[DERIVED, &["stream", "subject", CHECKS]].concat(),
            |what, report, stream| {
                findings.push(Finding::Figure { what: what.to_owned(), stream, report });
            },
        );
        findings.extend(self.contradictions.iter().cloned().map(Finding::Contradiction));
    }
}

/// Shows every key whose values differ, with both values.
fn each_key(said: &Value, stream_facts: &Value, but: &[&str], mut differs: impl FnMut(&str, String, String)) {
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flat_map(serde_json::Map::keys).cloned().collect()
    };
    let all: BTreeSet<String> = keys(said).into_iter().chain(keys(stream_facts)).collect();
    for key in all.iter().filter(|key| !but.contains(&key.as_str())) {
        let (report, stream) = (said.get(key), stream_facts.get(key));
        if report != stream {
            let (report, stream) = apart(report, stream);
            differs(key, report, stream);
        }
    }
}

fn subjects(said: &Value, stream_facts: &Value, findings: &mut Vec<Finding>) {
    each_key(said, stream_facts, &["settings"], |key, report, stream| {
        findings.push(Finding::Subject { key: key.to_owned(), stream, report });
    });
    let list = |subject: &Value| subject["settings"].as_array().cloned().unwrap_or_default();
    let (said, stream_facts) = (list(said), list(stream_facts));
    for at in 0..said.len().max(stream_facts.len()) {
        if said.get(at) != stream_facts.get(at) {
            let (report, stream) = apart(said.get(at), stream_facts.get(at));
            findings.push(Finding::Setting { stream, report });
        }
    }
}

fn checks(said: &Value, stream_facts: &Value, findings: &mut Vec<Finding>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (said, stream_facts) = (list(said), list(stream_facts));
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let ids = |list: &[Value]| -> Vec<String> { list.iter().map(|check| text(check, "id")).collect() };
    let by_id: BTreeMap<String, &Value> = ids(&said).into_iter().zip(&said).collect();
    for stream_facts in &stream_facts {
        let id = text(stream_facts, "id");
        // A missing one is reported by the version's list, or is only in the stream.
        let Some(said) = by_id.get(&id) else {
            let stream = text(stream_facts, "outcome");
            findings.push(Finding::Outcome { id, stream, report: "nothing".to_owned() });
            continue;
        };
        let (report, stream) = (text(said, "outcome"), text(stream_facts, "outcome"));
        if report != stream {
            findings.push(Finding::Outcome { id, stream, report });
            continue;
        }
        each_key(said, stream_facts, &["id"], |key, report, stream| {
            findings.push(Finding::Figure { what: format!("{key} of {id}"), stream, report });
        });
    }
    let (said_ids, fact_ids) = (ids(&said), ids(&stream_facts));
    for check in said.iter().filter(|check| !fact_ids.contains(&text(check, "id"))) {
        let (id, report) = (text(check, "id"), text(check, "outcome"));
        findings.push(Finding::Outcome { id, stream: "nothing".to_owned(), report });
    }
    if let Some((report, stream)) =
        said_ids.iter().zip(&fact_ids).find(|(said, stream_facts)| said != stream_facts)
    {
        let (stream, report) = (stream.clone(), report.clone());
        findings.push(Finding::Order { stream, report });
    }
}

/// Contradictions that a stream written by a run cannot contain.
fn contradictions(events: &[Event]) -> Vec<String> {
    let mut found = Vec::new();
    let mut broken: BTreeMap<&str, &str> = BTreeMap::new();
    // Why checks were judged once more.
    let mut repeated: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut begun, mut ended, mut runs) = (BTreeSet::new(), BTreeSet::new(), 0);
    // A check that only records has no expected answer.
    let mut records = BTreeSet::new();
    let mut say = |what: String| found.push(what);
    let mut version = None;
    for event in events {
        let id = event.check.as_deref().unwrap_or_default();
        match &event.event {
            Payload::RunBegan(head) => {
                runs += 1;
                version = Some(head.harness_version.as_str());
            }
            Payload::SubjectKnown(subject)
                if version.is_some_and(|known| known != subject.harness_version) =>
            {
                let said = version.unwrap_or_default();
                say(format!(
                    "it was begun by version {said} and speaks of version {}",
                    subject.harness_version
                ));
            }
            Payload::ChecksPlanned { checks } => {
                let info = checks.iter().filter(|check| check.level == Level::Info);
                records.extend(info.map(|check| check.id.as_str()));
            }
            Payload::CheckBegan { .. } => {
                begun.insert(id);
            }
            Payload::PromiseBroken(promise) if promise.judged && !records.contains(id) => {
                broken.insert(id, promise.promise.as_str());
            }
            Payload::CheckRepeated { why } => {
                broken.remove(id);
                repeated.insert(id, why.as_str());
            }
            Payload::CheckEnded { ended: outcome, facts, .. } => {
                if !ended.insert(id) {
                    say(format!("check {id} ends twice"));
                }
                if let Some(why) = repeated.get(id)
                    && facts.get(FIRST_TRY).is_none_or(|first| first != why)
                {
                    say(format!("check {id} was judged again, and its end does not say why"));
                }
                if *outcome == Outcome::Pass {
                    if !begun.contains(id) {
                        say(format!("check {id} passes and has not begun"));
                    }
                    if let Some(promise) = broken.get(id) {
                        say(format!("check {id} passes, and its promise '{}' was broken", one_line(promise)));
                    }
                }
            }
            _ => {}
        }
    }
    if runs > 1 {
        say(format!("it holds the beginning of {runs} runs"));
    }
    if let Some(event) = after_end(events) {
        say(format!("'{}' comes after the end of the run, where a run only writes messages", event.kind()));
    }
    found
}
