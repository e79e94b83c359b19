//! `merge`: one report for the parts of a run that several machines have shared.

use super::arguments::MergeOptions;
use super::explore::{is_exploration, merge_explorations};
use harness_config::{CLUSTERS, Completeness, SEED, SHARD};
use harness_core::check::chain;
use harness_core::events::{
    EVENTS_FILE, Event, Events, Fold, Merging, Part, merge as merged, read, stream_in,
};
use harness_core::files;
use harness_core::ledger::{Entry, Ledger};
use harness_core::output;
use harness_core::progress::Terminal;
use harness_report::{CHECKS_STAGE, exit, exit_code, summary};
use harness_runner::{make_ready, tell_github, with_openable_evidence, write_reports};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// Settings that may differ between machines.
const OF_MACHINES: &[&str] = &[CLUSTERS, SEED, "jobs"];

/// Writes the merged stream, the evidence, report.yaml, junit.xml and report.html, and prints the summary.
/// The exit code is that of the run.
pub(super) fn merge(options: &MergeOptions) -> ExitCode {
    match joined(options) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}

fn joined(options: &MergeOptions) -> Result<u8, String> {
    if options.shards.iter().all(|folder| is_exploration(folder)) {
        return merge_explorations(&options.shards, &options.out);
    }
    let mut parts = Vec::new();
    for folder in &options.shards {
        let (name, stream) = (folder.display().to_string(), stream_of(folder));
        let events = read(&stream).map_err(|error| chain(&error))?;
        parts.push(Part { name, events });
    }
    let command: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("ccm-conformance {}", command.join(" "));
    let merging = Merging {
        checks_stage: CHECKS_STAGE,
        shard_setting: SHARD,
        machine_settings: OF_MACHINES,
        command: &command,
    };
    let events = merged(&parts, merging).map_err(|wrong| format!("not merged:\n  {}", wrong.join("\n  ")))?;
    let out = &options.out;
    let failed =
        |error: std::io::Error| format!("--out {}: {}", out.display(), files::why_not_written(&error));
    files::create_folder(out).map_err(failed)?;
    let inside = |folder: &PathBuf| folder.canonicalize().ok() == out.canonicalize().ok();
    if let Some(part) = options.shards.iter().find(|folder| inside(folder)) {
        return Err(format!("{} is a part; name another folder with '--out'", part.display()));
    }
    let _lock = Events::lock_folder(out).map_err(failed)?;
    make_ready(out).map_err(failed)?;
    let terminal = Terminal::alone();
    let stream = out.join(EVENTS_FILE);
    let text: String = events.iter().map(Event::line).collect();
    output::file(&stream, text).map_err(|error| format!("{}: {}", stream.display(), files::why(&error)))?;
    // What was written is what counts: a redactor may have been at it.
    let ledger = Fold::of(&read(&stream).map_err(|error| chain(&error))?).ledger();
    copy_evidence(&ledger, &parts, &options.shards, out)?;
    let written = write_reports(out, &ledger, &stream, &terminal);
    terminal.say(format!("wrote {} ({} parts)", stream.display(), parts.len()));
    terminal.say(summary(&with_openable_evidence(&ledger, out)));
    tell_github(&ledger, out, &terminal, false);
    let complete = options.require_complete || ledger.subject.certify;
    let need = if complete { Completeness::Required } else { Completeness::Optional };
    Ok(match exit_code(&ledger, need) {
        exit::CONFORMANT if !written => exit::ENVIRONMENT,
        code => code,
    })
}

/// The stream of a part: the one in its folder, or the file itself.
fn stream_of(part: &Path) -> PathBuf {
    if part.is_dir() { stream_in(part) } else { part.to_owned() }
}

/// Copies the evidence of failed checks from the part that the merged report refers to.
fn copy_evidence(ledger: &Ledger, parts: &[Part], folders: &[PathBuf], out: &Path) -> Result<(), String> {
    let parts: Vec<Ledger> = parts.iter().map(|part| Fold::of(&part.events).ledger()).collect();
    for entry in ledger.all() {
        let Some(evidence) = &entry.evidence else { continue };
        // A part may come from others, and its stream can name any folder.
        if !Path::new(evidence).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(format!(
                "evidence '{evidence}' of check {} is not in the folder of its part",
                entry.id
            ));
        }
        let same = |other: &Entry| other.id == entry.id && other.outcome == entry.outcome;
        let Some(at) = parts.iter().position(|part| part.all().any(same)) else { continue };
        let from = folders[at].join(evidence);
        if from.is_dir() {
            copy(&from, &out.join(evidence))
                .map_err(|error| format!("evidence {}: {}", from.display(), files::why(&error)))?;
        }
    }
    Ok(())
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for file in std::fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            std::fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::Outcome;

    #[test]
    fn evidence_is_copied_within_the_folders_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        for evidence in ["../secrets", "/etc", "evidence/../../secrets"] {
            let failed = Entry::sample("A-01", Level::Must, Outcome::Fail { message: "no".to_owned() });
            let entries = vec![Entry { evidence: Some(evidence.to_owned()), ..failed }];
            let ledger = Ledger { entries, ..Ledger::default() };
            let why = copy_evidence(&ledger, &[], &[], folder.path()).expect_err("outside");
            assert!(why.contains(&format!("evidence '{evidence}' of check A-01")), "{why}");
        }
    }
}
