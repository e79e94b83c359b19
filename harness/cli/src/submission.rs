//! `submission`: packs, checks and lists submitted reports.

mod site;

use super::arguments::{PackOptions, SubmissionCommand};
use super::verify::{Run, usage};
use embedded_cluster::KubernetesVersion;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness_config::yaml;
use harness_core::events::{PACKED_EVENTS_FILE, open_stream, stream_in};
use harness_core::files;
use harness_core::output;
use harness_report::{ABOUT_FILE, About, MadeBy, Row, broken_rules, exit, minor_folder, table, verdict_word};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const REPORT_FILE: &str = "report.yaml";
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
    let run = Run::read(&options.report, None)?;
    let about = About {
        vendor: options.vendor.clone(),
        product: options.product.clone(),
        version: options.product_version.clone(),
        url: options.url.clone(),
        made_by: if options.by_project { MadeBy::Project } else { MadeBy::Vendor },
    };
    let minor = minor_folder(run.report()).ok_or_else(|| {
        let said = &run.report().subject.kubernetes_version;
        format!("{}: kubernetesVersion: '{said}' is not a version of Kubernetes", options.report.display())
    })?;
    let mut broken = broken_rules(&about, run.report(), (&minor, &about.vendor));
    broken.extend(run.findings(None).iter().map(ToString::to_string));
    if !broken.is_empty() {
        return Ok(refused(&options.report, &broken));
    }
    let folder = options.to.join(&minor).join(&about.vendor);
    let failed = |error: io::Error| format!("{}: {}", folder.display(), files::why(&error));
    if folder.exists() {
        return Err(format!("{} exists already; remove it to submit again", folder.display()));
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    let written = write_into(&folder, &about, &options.report);
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
            output::out(&format!(
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
    fs::write(document, made).map_err(|error| format!("{}: {}", document.display(), files::why(&error)))?;
    output::err(&format!("{}: the table was out of date and has been rewritten", document.display()));
    Ok(exit::NOT_CONFORMANT)
}

/// The document with this table between its marks; `None` if it has none.
fn with_table(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some(format!("{before}{}\n\n{table}\n{}{after}", MARKS[0], MARKS[1]))
}

/// A submission and its faults.
fn read(folder: &Path) -> Result<(Run, About, Vec<String>), String> {
    let file = folder.join(ABOUT_FILE);
    let text = files::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let about: About = yaml::from_str(&text, &file).map_err(|error| error.to_string())?;
    let run = Run::read(&folder.join(REPORT_FILE), Some(&folder.join(PACKED_EVENTS_FILE)))?;
    let path =
        fs::canonicalize(folder).map_err(|error| format!("{}: {}", folder.display(), files::why(&error)))?;
    let part = |path: Option<&Path>| {
        path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let (minor, vendor) = (part(path.parent()), part(Some(&path)));
    let mut broken = broken_rules(&about, run.report(), (&minor, &vendor));
    broken.extend(run.findings(None).iter().map(ToString::to_string));
    for file in files::list(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let name = part(Some(&file));
        if ![ABOUT_FILE, REPORT_FILE, PACKED_EVENTS_FILE].contains(&name.as_str()) {
            broken.push(format!("{name} does not belong to a submission"));
        }
    }
    Ok((run, about, broken))
}

/// The folders of submissions among these and two levels below them, sorted.
fn submissions_in(folders: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in folders {
        let before = found.len();
        collect(folder, 2, &mut found)
            .map_err(|error| format!("{}: {}", folder.display(), files::why(&error)))?;
        // A folder for submissions may have none yet, but it is no submission that lacks its files.
        let is_home = folder.join("README.md").is_file();
        if found.len() == before && !is_home {
            return Err(format!(
                "{} holds no {ABOUT_FILE}: it is not a submission, nor a folder of them",
                folder.display()
            ));
        }
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, levels: u32, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if folder.join(ABOUT_FILE).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if levels > 0 && path.is_dir() {
            collect(&path, levels - 1, found)?;
        }
    }
    Ok(())
}

fn refused(what: &Path, broken: &[String]) -> u8 {
    let reasons = if broken.len() == 1 { "1 reason".to_owned() } else { format!("{} reasons", broken.len()) };
    output::out(&format!("REFUSED: {}, {reasons}:\n  {}\n", what.display(), broken.join("\n  ")));
    exit::NOT_CONFORMANT
}

/// Writes a file and the folders above it.
pub(super) fn written(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let made = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    made.map_err(|error| format!("{}: {error}", path.display()))
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

    #[test]
    fn a_folder_that_is_no_submission_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = submissions_in(&[folder.path().to_owned()]).expect_err("nothing is in it");
        assert!(none.contains("submission.yaml"), "{none}");
        fs::write(folder.path().join("README.md"), "").expect("writable");
        assert_eq!(submissions_in(&[folder.path().to_owned()]), Ok(Vec::new()));
        let one = folder.path().join("1.36").join("acme");
        fs::create_dir_all(&one).expect("writable");
        fs::write(one.join(ABOUT_FILE), "vendor: acme\n").expect("writable");
        assert_eq!(submissions_in(&[folder.path().to_owned()]), Ok(vec![one.clone()]));
        let why = read(&one).map(drop).expect_err("most is missing");
        assert!(why.contains(ABOUT_FILE) && why.contains("product"), "{why}");
    }
}
