//! Commands that work on results of earlier runs: other formats, many runs, and the commit that changed a result.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");

/// The folders of submitted reports, sorted.
fn submitted() -> Vec<PathBuf> {
    let minor = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reports/1.36");
    let folders =
        fs::read_dir(minor).expect("submitted reports").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).expect("a name")
}

fn report() -> PathBuf {
    submitted()[0].join("report.yaml")
}

fn ccm_conformance(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().expect("the program runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn exported(format: &str) -> Value {
    let output = ccm_conformance(&["export", &report().display().to_string(), "--format", format]);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_submitted_report_is_exported_in_every_format() {
    let sarif = exported("sarif");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(!results.is_empty());
    for result in results {
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{result}");
        let line = result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64();
        assert!(line.is_some_and(|line| line > 1), "{result}");
    }
    let spans = exported("otlp");
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").len();
    assert!(spans > 250, "{spans}");

    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("job").display().to_string();
    let prow = ["export", &report().display().to_string(), "--format", "prow", "--out", &out];
    let output = ccm_conformance(&prow);
    assert!(output.status.success(), "{}", text(&output));
    let finished = fs::read_to_string(folder.path().join("job/finished.json")).expect("finished.json");
    assert!(finished.contains("\"result\": \"FAILURE\""), "{finished}");
    assert!(folder.path().join("job/artifacts/junit_ccm-conformance.xml").is_file());
    let again = ccm_conformance(&prow);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again).contains("job: it exists already"), "{}", text(&again));
}

#[test]
fn impossible_exports_are_named() {
    let missing = ccm_conformance(&["export", "./nope.yaml", "--format", "sarif"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing).contains("./nope.yaml: "), "{}", text(&missing));
    let no_folder = ccm_conformance(&["export", "./nope.yaml", "--format", "prow"]);
    assert_eq!(no_folder.status.code(), Some(2));
    assert!(text(&no_folder).contains("--out"), "{}", text(&no_folder));
}

#[test]
fn a_trend_shows_what_a_report_changed() {
    let folder = TempDir::new().expect("a folder");
    let original = fs::read_to_string(report()).expect("readable");
    // The same report, as of a run a day later.
    let later = original.replacen("\nstarted: \"2026-11-25T", "\nstarted: \"2026-11-26T", 1);
    assert_ne!(original, later);
    for (name, report) in [("a", &original), ("b", &later)] {
        fs::create_dir(folder.path().join(name)).expect("created");
        fs::write(folder.path().join(name).join("report.yaml"), report).expect("written");
    }
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
    let output = ccm_conformance(&["trend", &b, &a]);
    assert!(output.status.success(), "{}", text(&output));
    let lines = text(&output);
    assert!(lines.starts_with("  1  2026-11-25 "), "{lines}");
    assert!(lines.ends_with("2 runs: 0 worse, 0 flaky, 0 better, 0 slower\n"), "{lines}");
    let (first, other) = (&submitted()[0], &submitted()[1]);
    let mixed = ccm_conformance(&["trend", &a, &other.display().to_string()]);
    assert_eq!(mixed.status.code(), Some(2));
    let both = format!("different CCMs ({}, {})", name(first), name(other));
    assert!(text(&mixed).contains(&both), "{}", text(&mixed));
}

#[test]
fn a_site_has_a_page_a_badge_and_the_files_of_each_report() {
    let folder = TempDir::new().expect("a folder");
    let (reports, site) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reports"), folder.path().join("site"));
    let arguments =
        ["submission", "site", &reports.display().to_string(), "--out", &site.display().to_string()];
    let output = ccm_conformance(&arguments);
    assert!(output.status.success(), "{}", text(&output));
    let index = fs::read_to_string(site.join("index.html")).expect("an index");
    for vendor in submitted().iter().map(|folder| name(folder)) {
        assert!(index.contains(&format!("href=\"1.36/{vendor}/index.html\"")), "{index}");
        for file in ["index.html", "badge.svg", "badge.json", "report.yaml", "events.jsonl.gz"] {
            assert!(site.join("1.36").join(vendor).join(file).is_file(), "{vendor}/{file}");
        }
        let verified = ccm_conformance(&[
            "verify",
            &site.join("1.36").join(vendor).join("report.yaml").display().to_string(),
        ]);
        assert!(text(&verified).contains("VERIFIED"), "{}", text(&verified));
    }
    assert_eq!(ccm_conformance(&arguments).status.code(), Some(2), "a site is not written over");
}

/// A repository of a CCM that works at first and ends at once since a commit: its folder, and that commit.
fn repository() -> (TempDir, String) {
    // Not below the folder of temporary files, which a run may hide from its CCM.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@test.invalid"];
        let git = Command::new("git").arg("-C").arg(folder.path()).args(identity).args(arguments).output();
        let output = git.expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    let works = "#!/bin/sh\nexec \"$(dirname \"$0\")/program\" reference-ccm \"$@\"\n";
    let broken = "#!/bin/sh\nexit 1\n";
    let mut culprit = String::new();
    for (name, ccm) in [("good", works), ("also-good", works), ("culprit", broken), ("later", broken)] {
        fs::write(folder.path().join("ccm.sh"), ccm).expect("written");
        fs::write(folder.path().join("version"), name).expect("written");
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", name]);
        git(&["tag", name]);
        if name == "culprit" {
            culprit = git(&["rev-parse", "HEAD"]);
        }
    }
    (folder, culprit)
}

#[test]
fn bisect_names_the_first_commit_at_which_a_check_fails_and_leaves_nothing() {
    let (folder, culprit) = repository();
    let build = format!("ln -f '{PROGRAM}' program && cp ccm.sh acme-ccm && chmod 755 acme-ccm");
    let bisect_for = |check: &str, good: &str, build: &str| {
        let repository = folder.path().display().to_string();
        let mut arguments = vec!["bisect", "--good", good, "--bad", "main", "--build", build];
        arguments.extend(["--binary", "acme-ccm", "--check", check, "--repository", &repository]);
        arguments.extend(["--", "--profile", "reference", "--cluster", "embedded"]);
        ccm_conformance(&arguments)
    };
    let bisect = |good: &str, build: &str| bisect_for("NODE-INIT-01", good, build);
    let found = bisect("good", &build);
    let said = text(&found);
    assert_eq!(found.status.code(), Some(0), "{said}");
    let answer = String::from_utf8_lossy(&found.stdout);
    assert!(answer.starts_with(&format!("first commit at which NODE-INIT-01 fails:\n{culprit}\n")), "{said}");
    assert!(said.contains("NODE-INIT-01 passes") && said.contains("NODE-INIT-01 fails"), "{said}");

    let unknown = bisect_for("NODE-LIVE-01", "good", &build);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown).contains("error: --check: no check or suite matches 'NODE-LIVE-01'"),
        "{}",
        text(&unknown)
    );

    let wrong = bisect("nope", &build);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong).contains("--good nope: there is no such commit"), "{}", text(&wrong));
    let unbuilt = bisect("good", "echo no compiler >&2; exit 4");
    assert_eq!(unbuilt.status.code(), Some(2));
    assert!(text(&unbuilt).contains("no compiler"), "{}", text(&unbuilt));

    let worktrees = Command::new("git").arg("-C").arg(folder.path()).args(["worktree", "list"]).output();
    let worktrees = text(&worktrees.expect("git runs"));
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    let status = Command::new("git").arg("-C").arg(folder.path()).args(["status", "--porcelain"]).output();
    assert_eq!(text(&status.expect("git runs")), "");
}
