//! Submitted reports: each is accepted by the checks of the version that made it, whatever has changed since,
//! and is refused after an edit.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");

fn reports() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reports")
}

/// The folders of all submitted reports.
fn submitted() -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut found: Vec<PathBuf> = below(&reports()).iter().flat_map(|minor| below(minor)).collect();
    found.sort();
    assert!(found.len() >= 2, "{found:?}");
    found
}

/// Runs a command on a file. Returns its exit code and its whole output.
fn said(command: &str, file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM).arg(command).arg(file).args(more).output().expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("text"))
}

fn unpacked(stream: &Path) -> String {
    let mut text = String::new();
    let packed = fs::File::open(stream).expect("packed events");
    GzDecoder::new(packed).read_to_string(&mut text).expect("text");
    text
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[test]
fn submissions_are_verified_and_in_the_table() {
    let folder = reports();
    let list =
        Command::new(PROGRAM).args(["submission", "list"]).arg(&folder).output().expect("the program runs");
    let table = String::from_utf8_lossy(&list.stdout);
    assert!(list.status.success(), "{table}{}", String::from_utf8_lossy(&list.stderr));
    let page = fs::read_to_string(folder.join("README.md")).expect("the page is there");
    assert!(
        page.contains(table.trim()),
        "docs/reports/README.md has another table; 'submission list docs/reports --write docs/reports/README.md' writes it"
    );
}

#[test]
fn submissions_are_verified_attested_and_replayed_from_packed_events() {
    for folder in submitted() {
        let report = folder.join("report.yaml");
        // Its exit code is that of the run.
        let (_, verified) = said("verify", &report, &[]);
        assert!(verified.starts_with("VERIFIED: "), "{}: {verified}", folder.display());
        let (code, attested) = said("attest", &report, &[]);
        assert_eq!(code, Some(0), "{}: {attested}", folder.display());
        let out = tempfile::tempdir().expect("a folder");
        let again = |stream: &Path| {
            let (_, printed) = said("replay", stream, &["--out", out.path().to_str().expect("text")]);
            fs::read_to_string(out.path().join("report.html"))
                .unwrap_or_else(|error| panic!("{error}: {printed}"))
        };
        let page = again(&folder.join("events.jsonl.gz"));
        assert!(page.len() > 100_000, "{}: a page of {} bytes has no events", folder.display(), page.len());
        let plain = out.path().join("events.jsonl");
        fs::write(&plain, unpacked(&folder.join("events.jsonl.gz"))).expect("written");
        assert!(page == again(&plain), "{}: packed or not, the page is the same", folder.display());
        let (_, replayed) = said("verify", &out.path().join("report.yaml"), &[]);
        assert_eq!(replayed, verified);
    }
}

/// A submitted report in a folder of its own, next to a stream.
fn report_next_to(stream: &[u8], name: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (report, events) = (folder.path().join("report.yaml"), folder.path().join(name));
    fs::copy(submitted()[0].join("report.yaml"), &report).expect("copied");
    fs::write(&events, stream).expect("written");
    (folder, report, events)
}

/// The line of the stream that names the subject, with this edit.
fn subject_with(stream: &str, from: &str, to: &str) -> String {
    let line = stream.lines().find(|line| line.contains("\"type\":\"subject-known\"")).expect("a subject");
    let other = line.replacen(from, to, 1);
    assert_ne!(line, other, "{from} is not in {line}");
    other + "\n"
}

#[test]
fn a_subject_after_the_end_of_the_run_is_refused_by_all_who_read_it() {
    let stream = unpacked(&submitted()[0].join("events.jsonl.gz"));
    let other = stream.clone() + &subject_with(&stream, "\"profile\":\"", "\"profile\":\"better-");
    let (folder, report, events) = report_next_to(other.as_bytes(), "events.jsonl");
    for (command, file) in [("verify", &report), ("attest", &report), ("replay", &events)] {
        let before = fs::read(&report).expect("the report");
        let (code, printed) = said(command, file, &[]);
        let expected = if command == "replay" { 2 } else { 1 };
        assert_eq!(code, Some(expected), "{command}: {printed}");
        assert!(printed.contains("'subject-known' after the end of the run"), "{command}: {printed}");
        assert_eq!(fs::read(&report).expect("the report"), before, "{command}");
    }
    let out = folder.path().join("merged");
    let (code, printed) = said("merge", &events, &["--out", out.to_str().expect("text")]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("'subject-known' after the end of the run") && !out.exists(), "{printed}");
}

#[test]
fn a_stream_in_another_form_is_not_the_one_that_was_submitted() {
    let stream = unpacked(&submitted()[0].join("events.jsonl.gz"));
    let halves = stream.split_at(stream.find('\n').expect("a line") + 1);
    let last = stream.trim_end().rfind('\n').expect("lines") + 1;
    for (what, forged, refusal) in [
        ("as it is", packed(&stream), "VERIFIED"),
        (
            "two members",
            [packed(halves.0), packed(halves.1)].concat(),
            "data after the end of the packed stream",
        ),
        ("bytes after it", [packed(&stream), vec![0]].concat(), "data after the end of the packed stream"),
        ("cut", packed(&stream)[..100_000].to_vec(), "error: "),
        ("CRLF", packed(&stream.replace('\n', "\r\n")), ":1: the event is not in the form"),
        ("blanks", packed(&stream.replacen("\":", "\": ", 1)), ":1: the event is not in the form"),
        (
            "an unknown key",
            packed(&stream.replacen("{\"at_ms\"", "{\"more\":1,\"at_ms\"", 1)),
            "unknown field `more`",
        ),
        (
            "a repeated key",
            packed(&stream.replacen("{\"at_ms\"", "{\"at_ms\":0,\"at_ms\"", 1)),
            "duplicate field `at_ms`",
        ),
        ("a last line that is cut", packed(&stream[..stream.len() - 9]), "the last line is cut"),
        ("no last line end", packed(stream.trim_end()), "the last line is cut"),
        ("one message less", packed(&stream[..last]), "VERIFIED"),
    ] {
        let (_folder, report, _) = report_next_to(&forged, "events.jsonl.gz");
        let (code, printed) = said("verify", &report, &[]);
        assert!(printed.contains(refusal) && code != Some(0), "{what}: {printed}");
        assert_eq!(printed.starts_with("VERIFIED"), refusal == "VERIFIED", "{what}: {printed}");
    }
}

#[test]
fn the_end_of_a_reason_is_as_true_as_its_beginning() {
    let folder = submitted()[0].clone();
    let text = fs::read_to_string(folder.join("report.yaml")).expect("a report");
    let seen = text.match_indices("last seen: ").map(|(at, _)| at + "last seen: ".len());
    // The entries of the list of reasons are removed: they follow from the checks' own.
    let (place, mut edited) = (seen.filter(|at| *at > text.find("\nchecks:").expect("checks")), 0);
    for at in place.collect::<Vec<_>>().into_iter().step_by(5) {
        let other = format!("{}none, {}", &text[..at], &text[at..]);
        let (out, report, _) = report_next_to(&[], "unused");
        fs::write(&report, other).expect("written");
        let events = folder.join("events.jsonl.gz");
        let (code, printed) = said("verify", &report, &["--events", events.to_str().expect("text")]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.starts_with("REFUSED") && printed.contains("reason of "), "{printed}");
        edited += 1;
        drop(out);
    }
    assert!(edited > 3, "{edited} reasons");
}

#[test]
fn an_image_is_asked_for_by_its_sha_256() {
    let report = submitted()[0].join("report.yaml");
    let text = fs::read_to_string(&report).expect("a report");
    let digest = text.lines().find_map(|line| line.trim().strip_prefix("imageDigest: ")).expect("a digest");
    let digest = digest.trim_matches('"');
    let hex = digest.strip_prefix("sha256:").expect("of SHA-256");
    for asked in [digest.to_owned(), format!("registry.example/a@{digest}")] {
        let (_, printed) = said("verify", &report, &["--image", &asked]);
        assert!(printed.starts_with("VERIFIED: "), "{asked}: {printed}");
    }
    for asked in [format!("md5:{hex}"), format!("sha512:{hex}"), hex.to_owned(), format!("{digest}0")] {
        let (code, printed) = said("verify", &report, &["--image", &asked]);
        assert!(code == Some(2) && printed.contains("64 hexadecimal digits"), "{asked}: {printed}");
    }
    let (code, printed) = said("verify", &report, &["--image", &format!("sha256:{}", "0".repeat(64))]);
    assert!(code == Some(1) && printed.contains("it is about the image"), "{printed}");
}
