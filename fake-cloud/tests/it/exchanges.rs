//! Replays the exchanges in `fixtures/dialects/<dialect>/`: each file is a cloud of its own, with its
//! machines, its settings and calls in order. Every answer has to be as recorded, except for times and for
//! the address of the cloud.
//!
//! `FAKE_CLOUD_RECORD=1 cargo test -p fake-cloud --test it exchanges` records the answers again; review them
//! before you commit them.

use crate::support::{LIMIT, TestCloud};
use fake_cloud::Unknown;
use fake_cloud_driver::{Instance, Settings};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    about: String,
    instances: Vec<Instance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Value>,
    exchanges: Vec<Exchange>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    request: Request,
    response: Option<Response>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Request {
    method: String,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Response {
    status: u16,
    content_type: String,
    body: Value,
}

#[tokio::test]
async fn recorded_exchanges_are_answered_as_they_were() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/dialects");
    let mut played = 0;
    for folder in entries(&root) {
        let dialect = folder.file_name().and_then(|name| name.to_str()).expect("a dialect's name").to_owned();
        for file in entries(&folder).iter().filter(|file| file.extension().is_some_and(|end| end == "json")) {
            play(&dialect, file).await;
            played += 1;
        }
    }
    assert!(played > 0, "there are recordings");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

async fn play(dialect: &str, file: &Path) {
    let text = std::fs::read_to_string(file).expect("a recording");
    let mut recording: Recording =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let cloud = TestCloud::speaking(dialect, Unknown::Refused, &recording.instances).await;
    if let Some(settings) = &recording.settings {
        cloud.set(Settings::deserialize(settings).expect("settings")).await;
    }
    let record = std::env::var_os("FAKE_CLOUD_RECORD").is_some();
    for exchange in &mut recording.exchanges {
        let seen = call(&cloud, &exchange.request).await;
        if record {
            exchange.response = Some(seen);
            continue;
        }
        let Request { method, path, .. } = &exchange.request;
        assert_eq!(Some(seen), exchange.response, "{}: {method} {path}", file.display());
    }
    if record {
        let text = serde_json::to_string_pretty(&recording).expect("JSON");
        std::fs::write(file, text + "\n").expect("written");
    }
}

async fn call(cloud: &TestCloud, request: &Request) -> Response {
    let method: Method = request.method.parse().expect("a method");
    let mut call = cloud.request(method, &request.path);
    match &request.body {
        // A text stands for a body that is not JSON.
        Some(Value::String(text)) => call = call.body(text.clone()),
        Some(body) => call = call.json(body),
        None => {}
    }
    let response = call.timeout(LIMIT).send().await.expect("an answer");
    let status = response.status().as_u16();
    let content_type = response.headers().get("content-type").map(|value| value.to_str().expect("text"));
    let content_type = content_type.unwrap_or_default().to_owned();
    let text = response.text().await.expect("a body").replace(&cloud.url(""), "<cloud>");
    let mut body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    without_times(&mut body);
    Response { status, content_type, body }
}

/// Replaces times, which differ from run to run.
fn without_times(value: &mut Value) {
    match value {
        Value::String(text) if is_time(text) => "<time>".clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(without_times),
        Value::Object(fields) => fields.values_mut().for_each(without_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a text begins with the form `2026-01-02T03:04:05`.
fn is_time(text: &str) -> bool {
    let form = b"dddd-dd-ddTdd:dd:dd";
    text.len() >= form.len()
        && form.iter().zip(text.bytes()).all(|(wanted, seen)| match wanted {
            b'd' => seen.is_ascii_digit(),
            other => *other == seen,
        })
}
