//! The files of a run, made again from its stream.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// Every file that is made from a stream.
const MADE: [&str; 4] = ["report.yaml", "junit.xml", "badge.json", "report.html"];

fn program(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    command.args(arguments).args(paths).output().expect("the program runs")
}

/// Runs one check that fails, so that there is evidence as well. The files are made again byte for byte, from
/// the plain and from the compressed stream. The run left checks out, so it is neither verified nor attested.
#[test]
fn a_stream_makes_the_files_of_its_run_again_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let results = folder.path().join("results");
    let one = ["run", "--cluster", "embedded", "--profile", "null", "--only", "NODE-INIT-01", "--out"];
    let run = program(&one, &[&results]);
    assert_eq!(run.status.code(), Some(1), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(results.join("evidence/NODE-INIT-01").is_dir(), "it has evidence");
    let (stream, packed) = (results.join("events.jsonl"), results.join("events.jsonl.gz"));
    let text = fs::read(&stream).expect("the stream");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).expect("memory takes it");
    fs::write(&packed, encoder.finish().expect("memory takes it")).expect("written");
    for stream in [&stream, &packed] {
        let again = folder.path().join("again");
        let replay = program(&["replay", "--out"], &[&again, stream]);
        assert_eq!(replay.status.code(), Some(1), "{}", String::from_utf8_lossy(&replay.stderr));
        for name in MADE {
            let of = |folder: &Path| fs::read(folder.join(name)).expect("a file of the run");
            assert!(of(&results) == of(&again), "{name} is another from {}", stream.display());
        }
        fs::remove_dir_all(again).expect("removed");
    }
    // Either is found next to the report.
    fs::remove_file(&stream).expect("removed");
    let report = results.join("report.yaml");
    let verify = program(&["verify"], &[&report]);
    let output = String::from_utf8_lossy(&verify.stdout);
    assert!(verify.status.code() == Some(1) && output.starts_with("REFUSED, "), "{output}");
    assert!(output.contains("relaxed: --only"), "{output}");
    let attest = program(&["attest"], &[&report]);
    let output = String::from_utf8_lossy(&attest.stderr);
    assert_eq!((attest.status.code(), attest.stdout), (Some(1), Vec::new()));
    assert!(output.contains("not attested") && output.contains("relaxed: --only"), "{output}");
}
