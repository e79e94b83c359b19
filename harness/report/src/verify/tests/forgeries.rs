//! About 5,000 forgeries of the submitted reports: values of the report and events of the stream are changed, removed,
//! extended, repeated or moved, and each forgery is refused. `cargo xtask hard --only forgeries` does the same with the
//! files and the built program.

use crate::file::{Written, read};
use crate::{Finding, Golden, Material, StreamFacts, to_yaml, verify};
use harness_core::events::{Event, Payload, open_stream, read_whole};
use serde_json::{Value, json};
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

/// One in this many forgeries of a report is tried, counted over all submitted reports.
const EVERY_OF_REPORTS: usize = 7;
/// One in this many forgeries of a stream is tried.
const EVERY_OF_STREAMS: usize = 13;
/// One in this many events that only record observations is kept, because reading a stream takes most of the time.
const KEPT: usize = 250;

/// A submitted report, and the part of its stream that is kept.
struct Submitted {
    name: String,
    golden: Golden,
    /// The report of that part.
    text: String,
    document: Value,
    lines: Vec<String>,
}

fn folders() -> Vec<PathBuf> {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reports");
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut found: Vec<PathBuf> = below(&reports).iter().flat_map(|minor| below(minor)).collect();
    found.sort();
    assert!(found.len() >= 2, "{found:?}");
    found
}

fn submitted() -> Vec<Submitted> {
    folders().iter().map(|folder| Submitted::of(folder)).collect()
}

impl Submitted {
    fn of(folder: &Path) -> Submitted {
        let stream = open_stream(&folder.join("events.jsonl.gz")).expect("packed events");
        let tells = |line: &str| {
            ["object-changed", "cloud-call", "promise-began", "promise-met"]
                .iter()
                .any(|kind| line.contains(&format!("\"event\":{{\"type\":\"{kind}\"")))
        };
        let all = stream.lines().map(|line| line.expect("text") + "\n").enumerate();
        let lines: Vec<String> =
            all.filter(|(at, line)| at % KEPT == 0 || !tells(line)).map(|(_, line)| line).collect();
        let ledger = harness_core::events::Fold::of(&events(&lines).expect("a stream")).ledger();
        let text = to_yaml(&ledger).expect("YAML");
        let written = read(&text, Path::new("report.yaml")).expect("a report");
        let golden = Golden::of(&ledger.subject.harness_version).expect("a list").expect("a known version");
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        Submitted { name, golden, text, document: written.document, lines }
    }

    fn findings(&self, report: &Written, stream_facts: &StreamFacts) -> Vec<Finding> {
        verify(&Material { report, stream_facts, golden: Some(&self.golden), image: None })
    }
}

/// The events in these lines, read from a file; an error is the reason for a refusal.
fn events(lines: &[String]) -> Result<Vec<Event>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("events.jsonl");
    std::fs::write(&file, lines.concat()).expect("written");
    read_whole(&file).map_err(|error| error.to_string())
}

/// The path of a value: keys and positions from the top.
type Place = Vec<String>;

/// Every value below this one.
fn places(value: &Value, at: &Place, found: &mut Vec<Place>) {
    let mut below = |key: String, value: &Value| {
        let place = [at.as_slice(), &[key]].concat();
        found.push(place.clone());
        places(value, &place, found);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(at, value)| below(at.to_string(), value)),
        _ => {}
    }
}

/// A change of a value.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// It is replaced by another value of its kind.
    Changes,
    /// Its last character is replaced.
    EndsOtherwise,
    /// It is removed.
    Goes,
    /// It is duplicated.
    Repeats,
    /// It is swapped with the next one.
    Moves,
    /// An unknown key, or an entry, is added to it.
    Grows,
}

const ALL: [Does; 6] =
    [Does::Changes, Does::EndsOtherwise, Does::Goes, Does::Repeats, Does::Moves, Does::Grows];

/// The document with that change at a place; `None` if the change is impossible or has no effect.
fn forged(document: &Value, place: &Place, does: Does) -> Option<Value> {
    let mut forged = document.clone();
    let (key, above) = place.split_last()?;
    let mut parent = &mut forged;
    for key in above {
        parent = match parent {
            Value::Object(map) => map.get_mut(key)?,
            Value::Array(list) => list.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    match (does, parent) {
        (Does::Goes, Value::Object(map)) => drop(map.remove(key)?),
        (Does::Goes, Value::Array(list)) => drop(list.remove(key.parse().ok()?)),
        (Does::Repeats, Value::Array(list)) => {
            let at: usize = key.parse().ok()?;
            list.insert(at, list[at].clone());
        }
        (Does::Repeats, _) => return None,
        (Does::Moves, Value::Array(list)) => {
            let at: usize = key.parse().ok()?;
            (at + 1 < list.len()).then(|| list.swap(at, at + 1))?;
        }
        (Does::Moves, Value::Object(map)) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let next = keys.get(keys.iter().position(|one| one == key)? + 1)?;
            let (one, other) = (map[key].clone(), map[next].clone());
            map.insert(key.clone(), other);
            map.insert(next.clone(), one);
        }
        (does, parent) => {
            let value = match parent {
                Value::Object(map) => map.get_mut(key)?,
                Value::Array(list) => list.get_mut(key.parse::<usize>().ok()?)?,
                _ => return None,
            };
            changed(value, does)?;
        }
    }
    (forged != *document).then_some(forged)
}

fn changed(value: &mut Value, does: Does) -> Option<()> {
    match (does, &mut *value) {
        (Does::Grows, Value::Object(map)) => drop(map.insert("more".to_owned(), json!("x"))),
        (Does::Grows, Value::Array(list)) => list.push(list.first().cloned().unwrap_or(json!("x"))),
        (Does::EndsOtherwise, Value::String(text)) => {
            let last = text.pop()?;
            text.push(if last == 'x' { 'y' } else { 'x' });
        }
        (Does::Changes, Value::String(text)) => text.push('x'),
        (Does::Changes, Value::Number(number)) => *value = json!(number.as_u64()? + 1),
        (Does::Changes, Value::Bool(is)) => *is = !*is,
        (Does::Changes, Value::Null) => *value = json!("x"),
        _ => return None,
    }
    Some(())
}

#[test]
fn a_report_with_any_value_forged_is_refused() {
    let all = submitted();
    let mut cases = Vec::new();
    for one in &all {
        let stream_facts = StreamFacts::by(&events(&one.lines).expect("a stream"));
        let written = Written::of(one.document.clone()).expect("a report");
        assert_eq!(one.findings(&written, &stream_facts), [], "{} as it is", one.name);
        let mut found = Vec::new();
        places(&one.document, &Vec::new(), &mut found);
        let stream_facts = std::rc::Rc::new(stream_facts);
        for place in found {
            cases.extend(ALL.map(|does| (one, std::rc::Rc::clone(&stream_facts), place.clone(), does)));
        }
    }
    let mut tried = 0;
    let mut accepted = Vec::new();
    for (one, stream_facts, place, does) in cases.iter().step_by(EVERY_OF_REPORTS) {
        let Some(document) = forged(&one.document, place, *does) else { continue };
        tried += 1;
        // A text without the structure of a report is refused when it is read.
        let Some(written) = Written::of(document) else { continue };
        if one.findings(&written, stream_facts).is_empty() {
            accepted.push(format!("{}: {} {does:?}", one.name, place.join(".")));
        }
    }
    assert!(tried > 3_500, "{tried} forgeries");
    // There is no exception: each value of a report is derived from others or recorded in the stream.
    assert_eq!(accepted, [""; 0], "of {tried}");
}

/// The forgeries of a stream at one of its lines, each with a description.
fn forged_lines(lines: &[String], at: usize) -> Vec<(&'static str, Vec<String>)> {
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut forged = lines.to_vec();
        change(&mut forged);
        forged
    };
    let line = &lines[at];
    let put = |text: String| with(&|all| all[at].clone_from(&text));
    // The structure is still that of a run: the digest decides.
    let value: Value = serde_json::from_str(line).expect("an event");
    let mut found = Vec::new();
    places(&value, &Vec::new(), &mut found);
    let turned: Vec<&Place> = found.iter().cycle().skip(at).take(found.len()).collect();
    let in_form = turned.iter().find_map(|place| {
        let forged = forged(&value, place, Does::Changes)?;
        serde_json::from_value::<Event>(forged).ok().map(|event| event.line())
    });
    let mut forgeries = vec![
        ("dropped", with(&|all| drop(all.remove(at)))),
        ("repeated", with(&|all| all.insert(at, line.clone()))),
        (
            "moved",
            with(&|all| {
                if at + 1 < all.len() {
                    all.swap(at, at + 1)
                }
            }),
        ),
        ("changed", put(in_form.expect("an event has a value that can be another"))),
        ("written with a blank", put(line.replacen("\":", "\": ", 1))),
        ("written with CRLF", put(line.replacen('\n', "\r\n", 1))),
        ("with an unknown key", put(line.replacen("{\"at_ms\"", "{\"more\":1,\"at_ms\"", 1))),
        ("with an unknown key inside", put(line.replacen("\"event\":{", "\"event\":{\"more\":1,", 1))),
        ("with a repeated key", put(line.replacen("{\"at_ms\"", "{\"at_ms\":0,\"at_ms\"", 1))),
        ("without its line end", put(line.trim_end().to_owned())),
        ("again at the end", with(&|all| all.push(line.clone()))),
    ];
    forgeries.retain(|(_, forged)| forged.concat() != lines.concat());
    forgeries
}

#[test]
fn a_stream_with_any_event_forged_is_refused() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for (nth, one) in submitted().iter().enumerate() {
        let written = Written::of(one.document.clone()).expect("a report");
        let all = events(&one.lines).expect("a stream");
        let end = all.iter().position(|event| matches!(event.event, Payload::RunEnded { .. }));
        let end = end.expect("the end of the run");
        // All lines around the end, and a sample of the others: more of the first report than of the second.
        let around = |at: usize| at < 4 || at + 3 > end;
        let every = EVERY_OF_STREAMS * (1 + 2 * nth);
        for at in (0..one.lines.len()).filter(|at| around(*at) || at % every == 0) {
            for (what, lines) in forged_lines(&one.lines, at) {
                tried += 1;
                let accepted = events(&lines)
                    .is_ok_and(|events| one.findings(&written, &StreamFacts::by(&events)).is_empty());
                // The exception: messages after the end of the run are neither in the report nor in the page. They may
                // differ in number and content, as long as they have the form of messages.
                let is_message = all[at].is_message();
                let may = match what {
                    "again at the end" => is_message,
                    "dropped" | "repeated" | "moved" | "changed" => is_message && at > end,
                    _ => false,
                };
                if accepted != may {
                    wrong.push(format!("{}:{}: {what}: accepted: {accepted}", one.name, at + 1));
                }
            }
        }
    }
    assert!(tried > 1_000, "{tried} forgeries");
    assert_eq!(wrong, [""; 0], "of {tried}");
}

#[test]
fn only_what_means_nothing_in_yaml_may_be_another_in_a_report() {
    let one = &submitted()[0];
    let stream_facts = StreamFacts::by(&events(&one.lines).expect("a stream"));
    let accepted = |text: &str| {
        let written = read(text, Path::new("report.yaml"));
        written.is_ok_and(|written| one.findings(&written, &stream_facts).is_empty())
    };
    let with = |from: &str, to: &str| {
        let text = one.text.replacen(from, to, 1);
        assert_ne!(text, one.text, "{from} is not in the report");
        accepted(&text)
    };
    // Formatting: the same values, written in another way.
    assert!(accepted(&one.text) && accepted(&format!("---\n{}# the end\n", one.text)));
    assert!(with("kind: Report", "kind: Report   # of a run"));
    assert!(with("kind: Report", "kind: \"Report\"") && with("kind: Report", "\"kind\": 'Report'"));
    assert!(with(
        "apiVersion: ccm-conformance/v1\nkind: Report\n",
        "kind: Report\napiVersion: ccm-conformance/v1\n"
    ));
    assert!(with("verdict: not-conformant", "verdict: &a not-conformant"));
    assert!(with("\nbecause:", "\n\nbecause:"));
    // The same places, and another value.
    assert!(!with("verdict: not-conformant", "verdict: conformant"));
    assert!(!with("kind: Report", "kind: Report\nkind: Report"), "a repeated key");
    assert!(
        !with("verdict: not-conformant", "verdict: not-conformant\nverdict: conformant"),
        "a repeated key"
    );
    assert!(!with("  outcome: fail", "  outcome: fail\n  outcome: pass"), "a repeated key");
    assert!(!with("kind: Report", "kind: Report\nmore: 1"), "an unknown key");
    assert!(!with("  outcome: fail", "  outcome: fail\n  more: 1"), "an unknown key");
    assert!(!accepted(&format!("{}---\n{}", one.text, one.text)), "two documents");
    assert!(!accepted(&format!("{}---\nmore: 1\n", one.text)), "two documents");
    assert!(!accepted(""), "nothing");
}
