//! The sources of manifests, and what can be wrong with them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walkdir::WalkDir;

/// The name under which standard input is reported.
pub const STDIN: &str = "<stdin>";
/// Maximum size of a file, bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Maximum number of files that are read from one folder.
const MOST_FILES: usize = 10_000;

/// A text and the name it is reported under.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file as the user named it, or [`STDIN`].
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
}

impl Source {
    /// A source for a text in memory.
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: Arc::from(name), text: Arc::from(text) }
    }

    /// Reads files, folders with all their files that end in `.yaml`, `.yml` or `.json`, and standard input for `-`.
    pub fn read(paths: &[PathBuf], stdin: &mut dyn Read) -> (Vec<Source>, Vec<Problem>) {
        let (mut sources, mut problems) = (Vec::new(), Vec::new());
        for path in paths {
            let result = if path.as_os_str() == "-" {
                text_of(STDIN, stdin).map(|source| sources.push(source))
            } else if path.is_dir() {
                folder(path, &mut sources, &mut problems)
            } else {
                file(path).map(|source| sources.push(source))
            };
            problems.extend(result.err());
        }
        (sources, problems)
    }
}

fn folder(path: &Path, sources: &mut Vec<Source>, problems: &mut Vec<Problem>) -> Result<(), Problem> {
    let name = path.display().to_string();
    let mut found = 0;
    for entry in WalkDir::new(path).sort_by_file_name() {
        let entry = entry.map_err(|e| {
            let of_system = e.io_error().map(system_errors::why);
            let why = of_system.unwrap_or_else(|| system_errors::plain(&e.to_string()));
            refused(&name, "cannot be listed", &why)
        })?;
        let manifest = entry.path().extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        // Files that kustomize and helm read themselves are not manifests.
        let tool = ["kustomization.yaml", "kustomization.yml", "Chart.yaml", "values.yaml"];
        let of_tool = entry.file_name().to_str().is_some_and(|file| tool.contains(&file));
        if of_tool && entry.file_name().to_string_lossy().starts_with("kustomization") {
            let folder = entry.path().parent().unwrap_or(path).display().to_string();
            problems.push(Problem {
                place: Place {
                    file: Arc::from(entry.path().display().to_string().as_str()),
                    line: 0,
                    column: 1,
                },
                severity: Severity::Ignored,
                what: String::from("is not built: the files of its folder are read as they are"),
                hint: format!("build it: 'kubectl kustomize {folder} | ccm-conformance bootstrap check -'"),
            });
        }
        if !entry.file_type().is_file() || !manifest || of_tool {
            continue;
        }
        let source = file(entry.path())?;
        if is_of_harness(&source) {
            continue;
        }
        found += 1;
        if found > MOST_FILES {
            let what = format!("contains more than {MOST_FILES} manifests");
            return Err(Problem::of_file(&name, what, "name the files that belong to the CCM"));
        }
        sources.push(source);
    }
    if found == 0 {
        return Err(Problem::of_file(
            &name,
            String::from("contains no file that ends in .yaml, .yml or .json"),
            "name the folder of the rendered manifests",
        ));
    }
    Ok(())
}

/// Whether a file in the folder of a profile is one that only the harness reads: the profile, its schema, a finding.
fn is_of_harness(source: &Source) -> bool {
    let first = || source.text.lines().find(|line| !line.is_empty() && !line.starts_with('#'));
    source.name.ends_with(".schema.json")
        || first().is_some_and(|line| line.starts_with("apiVersion: ccm-conformance/"))
}

fn file(path: &Path) -> Result<Source, Problem> {
    let name = path.display().to_string();
    // Reading a pipe would block, and a device may never end.
    if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        let hint = "name a file, or '-' for standard input";
        return Err(Problem::of_file(&name, String::from("is a pipe or a device, not a regular file"), hint));
    }
    let mut opened = std::fs::File::open(path).map_err(|e| not_opened(&name, &e))?;
    text_of(&name, &mut opened)
}

/// Why a file cannot be opened.
fn not_opened(name: &str, error: &std::io::Error) -> Problem {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            Problem::of_file(name, "there is no such file or folder".to_owned(), "check the path")
        }
        _ => refused(name, "cannot be opened", &system_errors::why(error)),
    }
}

/// What the system refused, with its reason and the remedy that may follow it after a semicolon.
fn refused(name: &str, what: &str, why: &str) -> Problem {
    let (why, hint) = why.split_once("; ").unwrap_or((why, "check the path"));
    Problem::of_file(name, format!("{what}: {why}"), hint)
}

fn text_of(name: &str, reader: &mut dyn Read) -> Result<Source, Problem> {
    let mut bytes = Vec::new();
    reader
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| refused(name, "cannot be read", &system_errors::why(&e)))?;
    if bytes.len() as u64 > LARGEST {
        let what = format!("is larger than {} MiB", LARGEST / 1024 / 1024);
        return Err(Problem::of_file(name, what, "split it, or name the files that belong to the CCM"));
    }
    match decoded(bytes) {
        Ok(text) => Ok(Source::new(name, &text)),
        Err(error) => {
            let line = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|b| *b == b'\n').count();
            Err(Problem {
                place: Place {
                    file: Arc::from(name),
                    line: u32::try_from(line).unwrap_or(u32::MAX),
                    column: 1,
                },
                severity: Severity::Unreadable,
                what: String::from("is not UTF-8 text"),
                hint: String::from("save it as UTF-8"),
            })
        }
    }
}

/// The text of a file by its byte order mark, as kubectl reads it (`FileVisitor`): UTF-8, or UTF-16 with a mark.
fn decoded(bytes: Vec<u8>) -> Result<String, std::string::FromUtf8Error> {
    let unit: fn([u8; 2]) -> u16 = match bytes.get(..2) {
        Some([0xff, 0xfe]) => u16::from_le_bytes,
        Some([0xfe, 0xff]) => u16::from_be_bytes,
        _ => return String::from_utf8(bytes),
    };
    let units = bytes[2..].chunks(2).map(|pair| unit([pair[0], pair.get(1).copied().unwrap_or_default()]));
    Ok(char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// Line, counted from 1; 0 when the whole file is meant.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// How severe a problem of reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// No verdict is possible: exit code 2.
    Unreadable,
    /// It is not part of the verdict.
    Ignored,
}

/// A problem with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place.
    pub place: Place,
    /// The severity.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
    /// What the user can do about it.
    pub hint: String,
}

impl Problem {
    fn of_file(name: &str, what: String, hint: &str) -> Problem {
        let place = Place { file: Arc::from(name), line: 0, column: 1 };
        Problem { place, severity: Severity::Unreadable, what, hint: hint.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_by_their_mark() {
        let marked = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
            let text = "kind: Pod\r\n".encode_utf16().flat_map(bytes);
            decoded(mark.into_iter().chain(text).collect())
        };
        assert_eq!(marked([0xff, 0xfe], u16::to_le_bytes).as_deref(), Ok("kind: Pod\r\n"));
        assert_eq!(marked([0xfe, 0xff], u16::to_be_bytes).as_deref(), Ok("kind: Pod\r\n"));
        assert!(decoded(b"kind: \xff".to_vec()).is_err());
    }

    #[test]
    fn files_that_only_the_harness_reads_are_not_manifests() {
        let is_its = |name, text| is_of_harness(&Source::new(name, text));
        assert!(is_its(
            "acme/profile.yaml",
            "# a comment\n\napiVersion: ccm-conformance/v1\nkind: Profile\n"
        ));
        assert!(is_its("acme/profile.schema.json", "{}"));
        assert!(!is_its("acme/manifests/ccm.yaml", "---\napiVersion: apps/v1\nkind: Deployment\n"));
    }
}
