//! Who may read the page of a run, and which updates it gets.

use super::{PageServer, Watch, Watched};
use harness_core::check::{Isolation, Level};
use harness_core::events::{Events, Payload, PlannedCheck};
use harness_core::ledger::Outcome;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn begun(folder: &Path) -> Events {
    let lock = Events::lock_folder(folder).expect("the folder is free");
    let events = Events::begin(&folder.join("events.jsonl"), Vec::new(), lock).expect("a file");
    let check = |id: &str| PlannedCheck {
        id: id.to_owned(),
        suite: "taint-removal".to_owned(),
        title: "a claim".to_owned(),
        level: Level::Must,
        sharing: Isolation::Shared,
        private: false,
        skipped: None,
    };
    events.emit(Payload::ChecksPlanned { checks: vec![check("NODE-INIT-01"), check("NODE-INIT-02")] });
    events
}

fn fails(events: &Events, id: &str) {
    events.of_check(id).emit(Payload::EvidenceTaken { folder: format!("evidence/{id}") });
    events.of_check(id).emit(Payload::CheckEnded {
        ended: Outcome::Fail { message: "no".to_owned() },
        duration_ms: 1,
        budget_used_percent: None,
        facts: BTreeMap::new(),
    });
}

/// The run is served alone.
fn alone(events: &Events, folder: &Path) -> Watched {
    Watched::begin(&Watch::Own, events, folder).expect("it is served").expect("it is watched")
}

/// Host and port, and the path of the page.
fn parts(watched: &Watched) -> (String, String) {
    let url = watched.server().url().strip_prefix("http://").expect("plain HTTP on loopback");
    let (address, path) = url.split_once('/').expect("a path");
    (address.to_owned(), format!("/{path}"))
}

/// The answer to a request with these lines: status, head, body.
fn asked(address: &str, lines: &[&str]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).expect("a listener");
    let mut request = lines.join("\r\n");
    request.push_str("\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, head.to_ascii_lowercase(), body.to_owned())
}

fn get(address: &str, path: &str) -> (u16, String, String) {
    asked(address, &[&format!("GET {path} HTTP/1.1"), &format!("Host: {address}")])
}

fn news(address: &str, page: &str, from: u64, head: &str) -> (Value, String) {
    let (status, _, body) = get(address, &format!("{page}news?from={from}&head={head}&run=0"));
    assert_eq!(status, 200, "{body}");
    let (first, lines) = body.split_once('\n').expect("a first line");
    (serde_json::from_str(first).expect("JSON"), lines.to_owned())
}

#[test]
fn requests_without_the_secret_address_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = begun(folder.path());
    let watched = alone(&events, folder.path());
    let (address, page) = parts(&watched);
    let port = address.rsplit(':').next().expect("a port");
    assert!(address.starts_with("127.0.0.1:") && page.len() > 64, "{address}{page}");
    let news = format!("{page}news?from=0&head=&run=0");

    let (status, head, body) = get(&address, &page);
    assert_eq!(status, 200);
    assert!(body.contains("connect-src 'self'") && body.matches("<script").count() == 2, "{body}");
    for said in [
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "x-frame-options: deny",
        "content-security-policy: frame-ancestors 'none'",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(said), "{said}: {head}");
    }
    assert!(!head.contains("access-control"), "{head}");

    let wrong = page.replace(char::is_alphanumeric, "0");
    for path in
        ["/", "/news?from=0", "/favicon.ico", &wrong, page.trim_end_matches('/'), &format!("{page}x"), "//"]
    {
        let (status, head, body) = get(&address, path);
        assert_eq!((status, body.as_str()), (404, "404 Not Found\n"), "{path}: {head}");
    }
    let with = |path: &str, more: &[&str]| {
        let (first, host) = (format!("GET {path} HTTP/1.1"), format!("Host: {address}"));
        asked(&address, &[&[first.as_str(), &host], more].concat()).0
    };
    // A page of another origin, in a browser of this user, knows the address or guesses it.
    assert_eq!(with(&news, &["Origin: http://evil.example"]), 403);
    assert_eq!(with(&news, &["Origin: null"]), 403);
    assert_eq!(with(&news, &["Sec-Fetch-Site: cross-site"]), 403);
    assert_eq!(with(&news, &["Sec-Fetch-Site: same-origin", &format!("Origin: http://{address}")]), 200);
    assert_eq!(with(&page, &["Sec-Fetch-Site: cross-site"]), 200, "a link to the page");
    // A foreign host name that resolves to this address.
    let hosts = |lines: &[&str]| {
        let first = format!("GET {news} HTTP/1.1");
        asked(&address, &[&[first.as_str()], lines].concat()).0
    };
    assert_eq!(hosts(&[&format!("Host: evil.example:{port}")]), 421);
    assert_eq!(hosts(&["Host: 127.0.0.1"]), 421);
    assert_eq!(hosts(&[]), 421);
    assert_eq!(hosts(&[&format!("Host: {address}"), "Host: evil.example"]), 421);
    assert_eq!(hosts(&[&format!("Host: localhost:{port}")]), 200);
    let absolute = format!("GET http://evil.example{news} HTTP/1.1");
    assert_eq!(asked(&address, &[&absolute, &format!("Host: {address}")]).0, 421);
    let post = format!("POST {news} HTTP/1.1");
    assert_eq!(asked(&address, &[&post, &format!("Host: {address}"), "Content-Length: 0"]).0, 405);
    assert_eq!(with(&format!("{page}news?from=x&run=0"), &[]), 400);
    let long = "x".repeat(20 << 10);
    assert_eq!(with(&format!("/{long}"), &[]), 431);

    // It is not in any file.
    let token = page.trim_matches('/');
    let stream = std::fs::read_to_string(folder.path().join("events.jsonl")).expect("the stream");
    assert!(!stream.contains(token));
    drop(watched);
}

#[test]
fn a_page_receives_new_events_and_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let evidence = folder.path().join("evidence/NODE-INIT-01");
    std::fs::create_dir_all(&evidence).expect("a folder");
    std::fs::write(evidence.join("objects.yaml"), "taints: []").expect("a file");
    let events = begun(folder.path());
    let watched = alone(&events, folder.path());
    let (address, page) = parts(&watched);

    let (first, lines) = news(&address, &page, 0, "");
    assert_eq!(first["ended"], false);
    assert_eq!((&first["head"]["verdict"], lines.lines().count()), (&"under-way".into(), 2));
    assert_eq!(first["head"]["unended"], serde_json::json!(["NODE-INIT-01", "NODE-INIT-02"]));
    assert_eq!(first["head"]["because"], serde_json::json!([]), "nothing speaks against it yet");
    assert!(first["demands"]["NODE-INIT-01"]["requires"].is_string(), "{first}");
    let (status, _, _) = get(&address, &format!("{page}evidence?check=NODE-INIT-01"));
    assert_eq!(status, 404, "there is none yet");

    fails(&events, "NODE-INIT-01");
    let next = first["next"].as_u64().expect("a number");
    let (second, lines) = news(&address, &page, next, first["digest"].as_str().expect("a digest"));
    assert_eq!(second["head"]["unended"], serde_json::json!(["NODE-INIT-02"]));
    assert_eq!(second["head"]["because"][0]["checks"][0], "NODE-INIT-01");
    assert_eq!(lines.lines().count(), 2, "what came since: {lines}");
    let (_, _, files) = get(&address, &format!("{page}evidence?check=NODE-INIT-01"));
    assert_eq!(files, r#"[["objects.yaml","taints: []"]]"#);
    assert_eq!(get(&address, &format!("{page}evidence?check=../NODE-INIT-01")).0, 404);

    // Waiting pages learn at once that the run has ended, and then serving ends.
    let (next, digest) = (second["next"].as_u64().expect("a number"), second["digest"].to_string());
    events.emit(Payload::RunEnded { duration_ms: 7 });
    let waits = std::thread::spawn({
        let (address, page) = (address.clone(), page.clone());
        move || {
            let last = news(&address, &page, next, digest.trim_matches('"'));
            let (status, _, files) = get(&address, &format!("{page}evidence?check=NODE-INIT-01"));
            assert_eq!((status, files.is_empty()), (200, false), "there is time to take it");
            assert_eq!(get(&address, &format!("{page}taken")).0, 200);
            last
        }
    });
    let began = Instant::now();
    let cost = watched.end().expect("it was served").expect("its server has ended");
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    let (last, _) = waits.join().expect("an answer");
    assert_eq!((&last["ended"], &last["head"]["verdict"]), (&true.into(), &"not-conformant".into()));
    assert!(
        last["head"]["unended"].is_null() && last["kept"].as_str().expect("a path").ends_with("report.html")
    );
    assert!(TcpStream::connect(&address).is_err(), "it ends with the run");
    assert!(cost.to_string().starts_with("watched: opened 0 times, 8 answers"), "{cost}");
}

#[test]
fn a_silent_connection_is_closed_and_blocks_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = begun(folder.path());
    let watched = alone(&events, folder.path());
    let (address, page) = parts(&watched);
    let mut silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(&address).expect("a listener")).collect();
    assert_eq!(get(&address, &page).0, 200);
    let mut nothing = Vec::new();
    silent[0].set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    silent[0].read_to_end(&mut nothing).expect("it is closed");
    watched.end().expect("it was served");
}

#[test]
fn a_page_follows_from_one_run_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Arc::new(PageServer::open().expect("it is served"));
    let address = server.url().strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a path");
    let (address, page) = (address.0.to_owned(), format!("/{}", address.1));
    let by = Watch::By(server.clone());
    // A page that is opened before the first run waits for it.
    let early = std::thread::spawn({
        let (address, page) = (address.clone(), page.clone());
        move || news(&address, &page, 0, "").0
    });
    let numbers: Vec<Value> = (1..=2)
        .map(|_| {
            let events = begun(folder.path());
            let watched = Watched::begin(&by, &events, folder.path()).expect("it is served").expect("a run");
            fails(&events, "NODE-INIT-01");
            events.emit(Payload::RunEnded { duration_ms: 7 });
            watched.run_ended();
            watched.end().expect("it goes on");
            drop(events);
            // It is still shown, although its folder is free for the next one.
            let (last, lines) = news(&address, &page, 0, "");
            assert_eq!(
                (&last["ended"], &last["goes_on"], lines.lines().count()),
                (&true.into(), &true.into(), 5)
            );
            assert_eq!(last["head"]["verdict"], "not-conformant");
            get(&address, &format!("{page}taken"));
            last["run"].clone()
        })
        .collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(early.join().expect("an answer")["run"], 1);
    // A page of the first run loads again.
    for path in ["next?run=1", "news?from=9&head=&run=1"] {
        assert_eq!(get(&address, &format!("{page}{path}")).2, "{\"again\":true}\n", "{path}");
    }
}
