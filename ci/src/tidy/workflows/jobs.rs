//! The required parts of each job in a workflow, and the jobs that must pass before one that publishes.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The composite action with toolchain, cache and user namespaces.
const PREPARE: &str = "./.github/actions/prepare";
/// The Action of this repository, which compiles if no program is given.
const ACTION: &str = "./";
/// The longest time that a job may take, in minutes.
const LONGEST: u64 = 120;
/// Commands of Cargo that read the lock file.
const LOCKED: &[&str] = &["bench", "build", "check", "clippy", "doc", "install", "nextest", "run", "test"];
/// The permissions of a job that publishes results of the project.
const PUBLISHING: &[&str] = &["attestations", "contents", "packages"];

/// Checks a workflow.
pub(super) fn check(path: &str, text: &str, workflow: &Value, findings: &mut Vec<String>) {
    let mut found = |line: usize, what: String| findings.push(format!("{path}:{line}: {what}"));
    concurrency(&workflow["concurrency"], &mut |what| found(1, what));
    match workflow["permissions"].as_object() {
        Some(rights) if rights.values().all(|right| right == "read" || right == "none") => {}
        _ => {
            found(1, "'permissions' of all jobs are not read alone; a job that writes has its own".to_owned())
        }
    }
    let Some(jobs) = workflow["jobs"].as_object() else {
        found(1, "no jobs".to_owned());
        return;
    };
    for (name, job) in jobs {
        let mut found = |what: &str| found(line_of(text, name), format!("job '{name}': {what}"));
        if !job["timeout-minutes"].as_u64().is_some_and(|minutes| (1..=LONGEST).contains(&minutes)) {
            found(&format!("no 'timeout-minutes' from 1 to {LONGEST}"));
        }
        steps(job, &mut found);
        if publishes(job) {
            published(name, job, jobs, &mut found);
        }
    }
}

/// Checks that a newer run of a pull request ends the older one, and that no other run is ended.
fn concurrency(concurrency: &Value, found: &mut dyn FnMut(String)) {
    if concurrency["cancel-in-progress"] != "${{ github.event_name == 'pull_request' }}" {
        found(
            "'cancel-in-progress' is not '${{ github.event_name == 'pull_request' }}': runs of main or of a tag \
             could be cancelled"
                .to_owned(),
        );
    }
    if !concurrency["group"].as_str().is_some_and(|group| group.contains("|| github.run_id }}")) {
        found(
            "'group' of 'concurrency' does not end with '|| github.run_id }}': of three pushes to main the one that \
             waits would be cancelled"
                .to_owned(),
        );
    }
}

fn steps(job: &Value, found: &mut dyn FnMut(&str)) {
    let mut prepared = false;
    for step in job["steps"].as_array().into_iter().flatten() {
        let (uses, run) =
            (step["uses"].as_str().unwrap_or_default(), step["run"].as_str().unwrap_or_default());
        prepared |= uses == PREPARE;
        if uses.starts_with("actions/checkout@") && step["with"]["persist-credentials"] != Value::Bool(false)
        {
            found("a checkout without 'persist-credentials: false'");
        }
        let lines = run.replace("\\\n", " ");
        let commands: Vec<Vec<&str>> = lines.lines().flat_map(cargo).collect();
        if (!commands.is_empty() || uses == ACTION) && !prepared {
            found(&format!("compiles before it uses {PREPARE}, which has the toolchain and the cache"));
        }
        for command in commands {
            let (subcommand, shown) = (command.get(1).copied().unwrap_or_default(), command.join(" "));
            if LOCKED.contains(&subcommand) && !command.contains(&"--locked") {
                found(&format!("'{shown}' lacks --locked"));
            }
        }
        if run.contains("${{ github.") || run.contains("${{ inputs.") {
            found("'run' has an expression of 'github' or 'inputs', which becomes code; use 'env'");
        }
    }
}

/// The calls of Cargo in a line of a script, each with its arguments.
fn cargo(line: &str) -> Vec<Vec<&str>> {
    let commands = line.split(['|', ';', '&', '(', ')']).map(|command| command.split_whitespace());
    let words = commands.map(|words| words.skip_while(|word| *word != "cargo").collect::<Vec<_>>());
    words.filter(|words| !words.is_empty()).collect()
}

fn publishes(job: &Value) -> bool {
    PUBLISHING.iter().any(|right| job["permissions"][right] == "write") || job["permissions"] == "write-all"
}

/// Checks that a job that publishes runs only for tags, and after all others have passed.
fn published(name: &str, job: &Value, jobs: &Map<String, Value>, found: &mut dyn FnMut(&str)) {
    if job["if"] != "startsWith(github.ref, 'refs/tags/v')" {
        found("publishes, and its 'if' is not \"startsWith(github.ref, 'refs/tags/v')\"");
    }
    let needed = all_needs(name, jobs);
    // A conditional job is skipped for a tag, and so would be every job that needs it.
    let runs =
        |other: &&String| *other != name && jobs[*other]["if"].is_null() && !needed.contains(other.as_str());
    let missing: Vec<&str> = jobs.keys().filter(runs).map(String::as_str).collect();
    if !missing.is_empty() {
        found(&format!("publishes, and does not need: {}", missing.join(", ")));
    }
}

/// The jobs that have to pass before this one begins.
fn all_needs<'a>(name: &str, jobs: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    let mut needed = BTreeSet::new();
    let mut open = jobs.get(name).map(needs).unwrap_or_default();
    while let Some(next) = open.pop() {
        if needed.insert(next) {
            open.extend(jobs.get(next).map(needs).unwrap_or_default());
        }
    }
    needed
}

fn needs(job: &Value) -> Vec<&str> {
    match &job["needs"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The number of the line on which a job begins, from 1.
fn line_of(text: &str, job: &str) -> usize {
    let begins = format!("  {job}:");
    text.lines().position(|line| line.trim_end() == begins).map_or(1, |at| at + 1)
}
