//! `submission`: packs, checks and lists submitted reports.

pub(super) mod folder;
mod site;

use super::arguments::{PackOptions, SubmissionCommand};
use super::report_file::{REPORT_FILE, report_at};
use super::verify::{Run, usage};
use embedded_cluster::KubernetesVersion;
use flate2::Compression;
use flate2::write::GzEncoder;
use folder::{read, refused, submissions_in};
use harness_config::yaml;
use harness_core::events::{PACKED_EVENTS_FILE, open_stream, stream_in};
use harness_core::files;
use harness_core::output;
use harness_report::{
    ABOUT_FILE, About, MadeBy, Row, broken_rules, exit, minor_folder, shown, table, verdict_word,
};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The lines of a document that enclose the table.
const MARKS: [&str; 2] = ["<!-- reports: begin -->", "<!-- reports: end -->"];

/// `ccm-conformance submission ..`.
pub(super) fn submission(command: &SubmissionCommand) -> ExitCode {
    let done = match command {
        SubmissionCommand::Pack(options) => pack(options),
        SubmissionCommand::Check { folders } => check(folders),
        SubmissionCommand::List { folder, write } => list(folder, write.as_deref()),
        SubmissionCommand::Site { folder, out } => site::site(folder, out),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(why) => usage(&why),
    }
}

fn pack(options: &PackOptions) -> Result<u8, String> {
    let report = &report_at(&options.report);
    let run = Run::read(report, None)?;
    let about = About {
        vendor: options.vendor.clone(),
        product: options.product.clone(),
        version: options.product_version.clone(),
        url: options.url.clone(),
        made_by: if options.by_project { MadeBy::Project } else { MadeBy::Vendor },
    };
    let minor = minor_folder(run.report()).ok_or_else(|| {
        let said = &run.report().subject.kubernetes_version;
        format!("{}: kubernetesVersion: '{said}' is not a version of Kubernetes", report.display())
    })?;
    let mut broken = broken_rules(&about, run.report(), (&minor, &about.vendor));
    broken.extend(shown(&run.findings(None)).lines);
    if !broken.is_empty() {
        return Ok(refused(report, &broken));
    }
    let folder = options.to.join(&minor).join(&about.vendor);
    let failed = |error: io::Error| format!("{}: {}", folder.display(), files::why(&error));
    if folder.exists() {
        return Err(format!("{} exists already; remove it to submit again", folder.display()));
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    let written = write_into(&folder, &about, report);
    if let Err(error) = written {
        // This process has just created it.
        let _ = fs::remove_dir_all(&folder);
        return Err(failed(error));
    }
    output::out(&format!("{}\n", folder.display()));
    Ok(exit::CONFORMANT)
}

fn write_into(folder: &Path, about: &About, report: &Path) -> io::Result<()> {
    let text = yaml::to_string(about).map_err(io::Error::other)?;
    fs::write(folder.join(ABOUT_FILE), text)?;
    fs::copy(report, folder.join(REPORT_FILE))?;
    let stream = stream_in(report.parent().unwrap_or(Path::new("")));
    let packed = BufWriter::new(File::create(folder.join(PACKED_EVENTS_FILE))?);
    // Without name and time: the same stream packs to the same bytes.
    let mut packed = GzEncoder::new(packed, Compression::best());
    io::copy(&mut open_stream(&stream)?, &mut packed)?;
    packed.finish()?.flush()
}

fn check(folders: &[PathBuf]) -> Result<u8, String> {
    let mut code = exit::CONFORMANT;
    for folder in submissions_in(folders)? {
        let (run, about, broken) = read(&folder)?;
        if broken.is_empty() {
            let verdict = verdict_word(run.report().conformance());
            let About { vendor, product, version, .. } = about;
            output::out_wrapped(&format!(
                "VERIFIED: {}: {vendor}, {product} {version}: {verdict}\n",
                folder.display()
            ));
        } else {
            code = refused(&folder, &broken);
        }
    }
    Ok(code)
}

fn list(folder: &Path, document: Option<&Path>) -> Result<u8, String> {
    let mut rows = Vec::new();
    for folder in submissions_in(&[folder.to_owned()])? {
        let (run, about, broken) = read(&folder)?;
        if !broken.is_empty() {
            return Ok(refused(&folder, &broken));
        }
        rows.extend(Row::of(about, run.report()));
    }
    let table = table(&rows, KubernetesVersion::default().minor());
    let Some(document) = document else {
        output::out(&table);
        return Ok(exit::CONFORMANT);
    };
    let text = files::read(document).map_err(|error| format!("{}: {error}", document.display()))?;
    let made = with_table(&text, &table).ok_or_else(|| {
        format!("{}: the lines '{}' and '{}' are expected", document.display(), MARKS[0], MARKS[1])
    })?;
    if made == text {
        return Ok(exit::CONFORMANT);
    }
    fs::write(document, made)
        .map_err(|error| format!("{}: {}", document.display(), files::why_not_written(&error)))?;
    output::err(&format!("{}: the table was out of date and has been rewritten", document.display()));
    Ok(exit::NOT_CONFORMANT)
}

/// The document with this table between its marks; `None` if it has none.
fn with_table(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some(format!("{before}{}\n\n{table}\n{}{after}", MARKS[0], MARKS[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_between_its_marks_and_nothing_else_changes() {
        let text = format!("a\n{}\nold\n{}\nb\n", MARKS[0], MARKS[1]);
        let made = with_table(&text, "| new |\n").expect("marks");
        assert_eq!(made, format!("a\n{}\n\n| new |\n\n{}\nb\n", MARKS[0], MARKS[1]));
        assert_eq!(with_table(&made, "| new |\n"), Some(made.clone()));
        assert_eq!(with_table("no marks", ""), None);
    }
}
