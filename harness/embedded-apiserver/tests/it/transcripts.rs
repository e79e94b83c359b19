//! Recorded exchanges with a real API server, replayed against ours over the network.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::{Answer, Cluster, answer};

/// Exchanges with a different answer, by scenario and position, and the reason.
const EXCEPTIONS: &[(&str, usize, &str)] = &[];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/apiserver-transcripts")
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_exchanges_are_answered_alike() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap_or_else(|why| panic!("{}: {why}", folder().display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let mut report = String::new();
    let (mut alike, mut all, mut differences) = (0, 0, String::new());
    let scenarios = files.iter().map(|file| {
        let text = std::fs::read_to_string(file).expect("a recording");
        let scenario: Value = serde_json::from_str(&text).expect("JSON");
        tokio::spawn(
            async move { (scenario["name"].as_str().unwrap_or("?").to_owned(), replay(&scenario).await) },
        )
    });
    for scenario in futures::future::join_all(scenarios).await {
        let (name, (good, count, text)) = scenario.expect("a scenario");
        let _ = writeln!(report, "{name:24} {good:3} of {count:3} identical");
        alike += good;
        all += count;
        differences.push_str(&text);
    }
    let _ = writeln!(report, "{:24} {alike:3} of {all:3} identical", "all");
    assert_eq!(all, 156, "recordings are missing");
    for (name, at, why) in EXCEPTIONS {
        let _ = writeln!(report, "{name} #{at} differs: {why}");
    }
    assert!(differences.is_empty() && alike + EXCEPTIONS.len() == all, "{report}\n{differences}");
    #[expect(clippy::print_stderr, reason = "the figure that this test is asked for")]
    {
        eprintln!("{report}");
    }
}

async fn replay(scenario: &Value) -> (usize, usize, String) {
    let cluster = Cluster::start().await;
    let mut saved = BTreeMap::new();
    let mut good = 0;
    let mut differences = String::new();
    let exchanges = scenario["exchanges"].as_array().expect("exchanges");
    for (at, exchange) in exchanges.iter().enumerate() {
        let (request, expected) = (&exchange["request"], &exchange["response"]);
        let answer = send(&cluster, request, &saved).await;
        if let Some(wanted) = exchange["save"].as_object() {
            for (name, path) in wanted {
                let path = path.as_str().expect("a path");
                let value = path.split('.').fold(&answer.body(), |value, part| &value[part]).clone();
                saved.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
        let found = compare(expected, &answer);
        let name = scenario["name"].as_str().unwrap_or("?");
        let excepted = EXCEPTIONS.iter().find(|(of, place, _)| *of == name && *place == at);
        if found.is_empty() {
            good += 1;
            assert!(excepted.is_none(), "{name} #{at} is identical: no exception any more");
        } else if excepted.is_none() {
            let _ = writeln!(
                differences,
                "--- {} #{at} {} {}\n{found}",
                scenario["name"].as_str().unwrap_or("?"),
                request["method"].as_str().unwrap_or("?"),
                request["path"].as_str().unwrap_or("?"),
            );
        }
    }
    // Without its clients, the server does not have to wait.
    let Cluster { server, admin, anonymous } = cluster;
    drop((admin, anonymous));
    server.shutdown().await;
    (good, exchanges.len(), differences)
}

fn fill(text: &str, saved: &BTreeMap<String, String>) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

async fn send(cluster: &Cluster, request: &Value, saved: &BTreeMap<String, String>) -> Answer {
    let client = if request["anonymous"] == true { &cluster.anonymous } else { &cluster.admin };
    let method = request["method"].as_str().expect("a method").parse().expect("a method");
    let path = fill(request["path"].as_str().expect("a path"), saved);
    let mut builder = client.request(method, format!("{}{path}", cluster.server.url()));
    for (name, value) in request["headers"].as_object().expect("headers") {
        builder = builder.header(name, value.as_str().expect("a header"));
    }
    match &request["body"] {
        Value::Null => {}
        Value::String(text) => builder = builder.body(fill(text, saved)),
        object => builder = builder.body(fill(&object.to_string(), saved)),
    }
    answer(builder.send().await.expect("an answer")).await
}

fn compare(expected: &Value, answer: &Answer) -> String {
    let mut text = String::new();
    if expected["status"] != answer.status {
        let _ = writeln!(text, "  status {} instead of {}", answer.status, expected["status"]);
    }
    if expected["contentType"].as_str().unwrap_or_default() != answer.content_type {
        let _ =
            writeln!(text, "  content type {} instead of {}", answer.content_type, expected["contentType"]);
    }
    if let Some(headers) = expected["headers"].as_object()
        && let Some(warning) = headers.get("Warning")
    {
        let warnings = Value::String(answer.warnings.join(", "));
        if *warning != warnings {
            let _ = writeln!(text, "  warning {warnings} instead of {warning}");
        }
    }
    let (mut wanted, mut seen) = match expected["events"].as_array() {
        Some(events) => {
            let lines =
                answer.text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
            (Value::Array(events.clone()), Value::Array(lines))
        }
        None => (expected["body"].clone(), answer.body()),
    };
    normalise("", &mut wanted);
    normalise("", &mut seen);
    differ("", &wanted, &seen, &mut text);
    text
}

/// Replaces values that differ from run to run, as in the recordings.
fn normalise(name: &str, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("managedFields");
            // Each server has its own address.
            map.remove("serverAddressByClientCIDRs");
            for (name, value) in map.iter_mut() {
                normalise(name, value);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| normalise(name, value)),
        Value::String(text) => {
            let placeholder = match name {
                "uid" => "<uid>",
                "resourceVersion" => "<rv>",
                "continue" if !text.is_empty() => "<continue>",
                "message" => return,
                _ if is_time(text) => "<time>",
                _ if text.starts_with("10.96.") && text.parse::<std::net::IpAddr>().is_ok() => "<ip>",
                _ => return,
            };
            placeholder.clone_into(text);
        }
        Value::Number(number)
            if name.to_lowercase().ends_with("nodeport")
                && number.as_i64().is_some_and(|port| port >= 30_000) =>
        {
            *value = Value::String("<port>".into());
        }
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}

fn differ(path: &str, wanted: &Value, seen: &Value, text: &mut String) {
    match (wanted, seen) {
        (Value::Object(wanted), Value::Object(seen)) => {
            for (name, value) in wanted {
                match seen.get(name) {
                    Some(other) => differ(&format!("{path}.{name}"), value, other, text),
                    None => drop(writeln!(text, "  {path}.{name}: absent instead of {value}")),
                }
            }
            for (name, value) in seen.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
                let _ = writeln!(text, "  {path}.{name}: {value} instead of absent");
            }
        }
        (Value::Array(wanted), Value::Array(seen)) if wanted.len() == seen.len() => {
            for (at, (wanted, seen)) in wanted.iter().zip(seen).enumerate() {
                differ(&format!("{path}[{at}]"), wanted, seen, text);
            }
        }
        _ if wanted == seen => {}
        _ => drop(writeln!(text, "  {path}: {seen}\n    instead of {wanted}")),
    }
}
