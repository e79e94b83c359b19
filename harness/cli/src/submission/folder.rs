//! The folders of submitted reports: what is in them, and whether they keep the rules.

use crate::report_file::REPORT_FILE;
use crate::verify::{Run, reasons};
use harness_config::yaml;
use harness_core::events::PACKED_EVENTS_FILE;
use harness_core::files;
use harness_core::output;
use harness_report::{ABOUT_FILE, About, broken_rules, exit, shown};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A submission and its faults.
pub(super) fn read(folder: &Path) -> Result<(Run, About, Vec<String>), String> {
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
    broken.extend(shown(&run.findings(None)).lines);
    for file in files::list(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let name = part(Some(&file));
        if ![ABOUT_FILE, REPORT_FILE, PACKED_EVENTS_FILE].contains(&name.as_str()) {
            broken.push(format!("{name} does not belong to a submission"));
        }
    }
    Ok((run, about, broken))
}

/// The folders of submissions among these and two levels below them, sorted.
pub(super) fn submissions_in(folders: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in folders {
        let before = found.len();
        collect(folder, 2, &mut found)
            .map_err(|error| format!("{}: {}", folder.display(), files::why(&error)))?;
        // A folder for submissions may be empty, and is then not a submission with missing files.
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

pub(super) fn refused(what: &Path, broken: &[String]) -> u8 {
    let reasons = reasons(broken.len());
    output::out(&format!("REFUSED: {}, {reasons}:\n  {}\n", what.display(), broken.join("\n  ")));
    exit::NOT_CONFORMANT
}

/// Writes a file and the folders above it.
pub(crate) fn written(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let made = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    made.map_err(|error| format!("{}: {}", path.display(), files::why(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_a_submission_is_refused_by_name() {
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
