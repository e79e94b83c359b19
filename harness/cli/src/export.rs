//! `export`: the results of a run in the format of another tool.

use super::arguments::{ExportFormat, ExportOptions};
use super::report_file::report_at;
use super::submission::folder::written;
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::{exit, parse, to_otlp, to_prow, to_sarif};
use harness_runner::demands;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the report in the format that was asked for. Exit codes: 0 written, 2 the report cannot be read or the result cannot
/// be written.
pub(super) fn export(options: &ExportOptions) -> ExitCode {
    match exported(options) {
        Ok(()) => ExitCode::from(exit::CONFORMANT),
        Err(why) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}

fn exported(options: &ExportOptions) -> Result<(), String> {
    let path = &report_at(&options.report);
    let in_report = |why: String| format!("{}: {why}", path.display());
    let text = files::read(path).map_err(|error| in_report(error.to_string()))?;
    let ledger = parse(&text, path).map_err(|error| chain(&error))?;
    let made = match options.format {
        ExportFormat::Sarif => {
            let demands = demands(&[&ledger])?;
            let made = to_sarif(&ledger, &demands, &path.display().to_string(), &text);
            made.map_err(|error| chain(&error))?
        }
        ExportFormat::Otlp => to_otlp(&ledger).map_err(in_report)?,
        ExportFormat::Prow => {
            let Some(out) = &options.out else {
                return Err("--out: name the folder to write".to_owned());
            };
            let files = to_prow(&ledger).map_err(in_report)?;
            let all = files.iter().map(|file| (PathBuf::from(file.path), file.text.as_str()));
            if out.exists() {
                return Err(format!(
                    "--out {}: it exists already; name a folder that does not",
                    out.display()
                ));
            }
            return folder(out, all).map_err(|why| format!("--out: {why}"));
        }
    };
    match &options.out {
        None => output::out(&made),
        Some(out) => {
            output::file(out, made)
                .map_err(|error| format!("--out {}: {}", out.display(), files::why_not_written(&error)))?;
            output::err(&format!("wrote {}", out.display()));
        }
    }
    Ok(())
}

/// Writes files into a new folder, which is removed if one of them cannot be written.
fn folder<'a>(folder: &Path, mut all: impl Iterator<Item = (PathBuf, &'a str)>) -> Result<(), String> {
    let result = all.try_for_each(|(path, text)| written(&folder.join(path), text.as_bytes()));
    if result.is_err() {
        // Ours since a moment ago.
        let _ = fs::remove_dir_all(folder);
    }
    result?;
    output::err(&format!("wrote {}", folder.display()));
    Ok(())
}
