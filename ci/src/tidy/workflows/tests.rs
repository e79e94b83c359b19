//! The rules with examples that they reject: the repository's own files with one change.

use super::{DEPENDABOT, check, dependabot, jobs, pins};
use crate::process::root;
use crate::tidy::{texts, tracked};
use serde_json::Value;
use std::collections::BTreeMap;

const WORKFLOW: &str = ".github/workflows/conformance.yml";

fn workflow() -> String {
    std::fs::read_to_string(root().join(WORKFLOW)).expect("a file of this repository")
}

/// The findings in the workflow with every `from` replaced by `to`.
fn found(from: &str, to: &str) -> Vec<String> {
    let text = workflow();
    assert!(text.contains(from), "the workflow has no '{from}'");
    let text = text.replace(from, to);
    let document: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{to}: {error}"));
    let mut findings = Vec::new();
    jobs::check(WORKFLOW, &text, &document, &mut findings);
    pins::actions(&BTreeMap::from([(WORKFLOW.to_owned(), text)]), &mut findings);
    findings
}

#[test]
fn this_repository_keeps_the_rules() {
    let mut findings = Vec::new();
    let files = tracked(&root(), "").expect("git");
    check(&root(), &files, &mut findings).expect("files of this repository");
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(found("name: conformance", "name: conformance").is_empty());
}

#[test]
fn violations_of_rules_are_found() {
    let cases = [
        ("    timeout-minutes: 90\n", "", "job 'hard': no 'timeout-minutes' from 1 to 120"),
        ("timeout-minutes: 90", "timeout-minutes: 900", "job 'hard': no 'timeout-minutes' from 1 to 120"),
        (
            "cargo test --locked --workspace",
            "cargo test --workspace",
            "'cargo test --workspace' lacks --locked",
        ),
        (
            "cargo install --locked cargo-deny@0.20.2",
            "sudo true && cargo install cargo-deny",
            "'cargo install cargo-deny' lacks --locked",
        ),
        ("github.event_name == 'pull_request' }}", "true }}", "runs of main or of a tag could be cancelled"),
        ("&& github.ref || github.run_id }}", "|| github.ref }}", "the one that waits would be cancelled"),
        ("permissions:\n  contents: read", "permissions:\n  contents: write", "are not read alone"),
        ("      - lint\n", "", "job 'publish': publishes, and does not need: lint"),
        (
            "      - merge\n      - other-subjects\n",
            "",
            "job 'publish': publishes, and does not need: merge, other-subjects",
        ),
        (
            "    if: startsWith(github.ref, 'refs/tags/v')\n",
            "",
            "job 'publish': publishes, and its 'if' is not",
        ),
        (
            "          persist-credentials: false\n          fetch-depth",
            "          fetch-depth",
            "job 'release': a checkout without",
        ),
        (
            "      - uses: ./.github/actions/prepare\n      - run: cargo xtask hard --all",
            "      - run: cargo xtask hard --all",
            "job 'hard': compiles before it uses ./.github/actions/prepare",
        ),
        (
            "${{ matrix.profile }} --cluster",
            "${{ github.head_ref }} --cluster",
            "job 'other-subjects': 'run' has an expression of 'github' or 'inputs'",
        ),
        ("@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0", "@v5", "'actions/checkout@v5' is not pinned"),
        ("907a8 # v5.0.0", "907a8", "is not pinned: write OWNER/NAME@COMMIT"),
        ("@08c6903cd8c0", "@", "is not pinned: write OWNER/NAME@COMMIT"),
    ];
    for (from, to, finding) in cases {
        let findings = found(from, to);
        assert!(findings.iter().any(|found| found.contains(finding)), "'{from}' as '{to}': {findings:#?}");
        assert!(findings.iter().all(|found| !found.contains(WORKFLOW) || found.starts_with(WORKFLOW)));
    }
    let line = workflow().lines().position(|line| line == "  hard:").expect("a job") + 1;
    assert!(found("    timeout-minutes: 90\n", "")[0].starts_with(&format!("{WORKFLOW}:{line}: ")));
}

#[test]
fn one_action_has_one_commit() {
    let pin = |commit: &str| format!("      - uses: a/b@{commit} # v1.2.3\n");
    let texts = |second: &str| {
        let of = |path: &str, commit: &str| (path.to_owned(), pin(&commit.repeat(40)));
        BTreeMap::from([of("one.yml", "1"), of("two.yml", second)])
    };
    let mut findings = Vec::new();
    pins::actions(&texts("1"), &mut findings);
    assert!(findings.is_empty(), "{findings:?}");
    pins::actions(&texts("2"), &mut findings);
    assert!(findings[0].starts_with("a/b is pinned differently: 1111"), "{findings:?}");
}

#[test]
fn tools_have_a_version_and_the_same_everywhere() {
    let found = |lines: &[&str]| {
        let mut findings = Vec::new();
        let texts =
            lines.iter().enumerate().map(|(number, line)| (format!("{number}.md"), (*line).to_owned()));
        pins::tools(&texts.collect(), &mut findings);
        findings
    };
    assert!(found(&["cargo install --locked a@1.2.3", "`cargo install --locked a@1.2.3`"]).is_empty());
    assert!(found(&["cargo install --locked --path suites"]).is_empty());
    for wrong in [
        "cargo install --path suites",
        "cargo install --locked a",
        "cargo install a@1.2.3",
        "cargo install --locked a@1.2",
    ] {
        assert!(found(&[wrong])[0].starts_with("0.md:1: a tool without a version or --locked"), "{wrong}");
    }
    let differing = found(&["cargo install --locked a@1.2.3", "(cargo install --locked a@1.2.4)"]);
    assert_eq!(differing, ["a has different versions: 1.2.3 (0.md:1), 1.2.4 (1.md:1)"]);
}

#[test]
fn xtask_does_not_write_the_lock_file() {
    let found = |text: &str| {
        let mut findings = Vec::new();
        pins::alias(text, &mut findings);
        findings
    };
    assert!(found("[alias]\nxtask = \"run --locked --quiet --package xtask --\"\n").is_empty());
    assert_eq!(found("[alias]\nxtask = \"run --quiet --package xtask --\"\n").len(), 1);
    assert_eq!(found("[alias]\n").len(), 1);
}

#[test]
fn dependabot_looks_into_every_folder_that_pins_something() {
    let all = texts(&root(), ".yml").expect("git");
    let text = &all[DEPENDABOT];
    let found = |text: &str| {
        let document: Value = serde_saphyr::from_str(text).expect("YAML");
        let mut findings = Vec::new();
        dependabot::check(&document, &tracked(&root(), "").expect("git"), &mut findings);
        findings
    };
    assert!(found(text).is_empty(), "{:?}", found(text));
    let cases = [
        (
            ", /.github/actions/prepare]",
            "]",
            "'package-ecosystem: github-actions' does not list the folder /.github/actions/prepare",
        ),
        ("[/, /.github", "[/.github", "'package-ecosystem: github-actions' does not list the folder /"),
        (
            "      - /suites/tests/page\n",
            "",
            "'package-ecosystem: pip' does not list the folder /suites/tests/page",
        ),
        ("ecosystem: cargo", "ecosystem: npm", "'package-ecosystem: cargo' does not list the folder /"),
        (
            "ecosystem: rust-toolchain",
            "ecosystem: npm",
            "'package-ecosystem: rust-toolchain' does not list the folder /",
        ),
    ];
    for (from, to, finding) in cases {
        let findings = found(&text.replace(from, to));
        assert_eq!(findings, [format!("{DEPENDABOT}: {finding}")], "'{from}' as '{to}'");
    }
}
