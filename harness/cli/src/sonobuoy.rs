//! `run --sonobuoy-results DIR`: the run as a plugin of Sonobuoy.
//!
//! Sonobuoy waits until the file `done` in the folder names an archive of results. So the run is a child of
//! this process, which writes that file however the run ends.

use super::compare::read;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness_clusters::images::own_program;
use harness_core::bounded::Lines;
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::{SONOBUOY_RESULTS, exit, to_sonobuoy};
use harness_runner::Signals;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;

/// The option, as it is typed.
const OPTION: &str = "--sonobuoy-results";
/// The folder of the run's results in Sonobuoy's folder, and the name of the archive.
const RESULTS: &str = "ccm-conformance";
/// The file that Sonobuoy waits for.
const DONE: &str = "done";
/// How many of the run's last lines are shown if it has no report.
const LINES: usize = 20;

/// Runs the given command line, without the option, as a child; returns its exit code.
pub(super) fn run(folder: &Path) -> ExitCode {
    ExitCode::from(plugin(folder, |plugin| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| format!("cannot start the async runtime: {}", files::why(&error)))?;
        runtime.block_on(plugin.supervise())
    }))
}

/// Reports to Sonobuoy that the command line is wrong, if it is one of `run` and names Sonobuoy's folder.
pub(super) fn refuse(typed: &[OsString], why: &str) {
    if let Some(folder) = folder_of(typed).filter(|_| typed.iter().any(|word| word == "run")) {
        plugin(&folder, |_| Ok((exit::USAGE, why.to_owned())));
    }
}

/// The folder in the command line.
fn folder_of(typed: &[OsString]) -> Option<PathBuf> {
    let at = typed.iter().position(|one| one == OPTION);
    let apart = at.and_then(|at| typed.get(at + 1)).map(PathBuf::from);
    let joined = || {
        typed.iter().find_map(|one| one.to_str()?.strip_prefix(OPTION)?.strip_prefix('=').map(PathBuf::from))
    };
    apart.or_else(joined).filter(|folder| !folder.as_os_str().is_empty())
}

/// The arguments after the program's name, without the option.
fn without_option(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut rest, mut value) = (Vec::new(), false);
    for one in typed {
        let joined = one
            .to_str()
            .is_some_and(|one| one.strip_prefix(OPTION).is_some_and(|rest| rest.starts_with('=')));
        if value || joined {
            value = false;
        } else if one == OPTION {
            value = true;
        } else {
            rest.push(one);
        }
    }
    rest
}

/// A plugin's folder.
struct Plugin {
    folder: PathBuf,
}

/// Prepares the folder, runs `work`, which returns the exit code and the last lines, and hands the results over.
fn plugin(folder: &Path, work: impl FnOnce(&Plugin) -> Result<(u8, String), String>) -> u8 {
    let made = std::path::absolute(folder).and_then(|folder| Plugin { folder }.made_ready());
    let plugin = match made {
        Ok(plugin) => plugin,
        Err(error) => {
            output::err(&format!("error: {OPTION} {}: {}", folder.display(), files::why(&error)));
            return exit::USAGE;
        }
    };
    let (code, said) = work(&plugin).unwrap_or_else(|why| {
        output::err(&format!("error: {why}"));
        (exit::ENVIRONMENT, why)
    });
    match plugin.hand_over(code, &said) {
        Ok(()) => code,
        Err(why) => {
            output::err(&format!("error: {why}"));
            if code == exit::CONFORMANT { exit::ENVIRONMENT } else { code }
        }
    }
}

impl Plugin {
    /// Removes the leftovers of an earlier container in the same Pod: its results are not those of this run.
    fn made_ready(self) -> std::io::Result<Plugin> {
        std::fs::create_dir_all(self.results())?;
        for old in [self.done(), self.archive(), self.report()] {
            match std::fs::remove_file(&old) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(self)
    }

    fn results(&self) -> PathBuf {
        self.folder.join(RESULTS)
    }

    fn report(&self) -> PathBuf {
        self.results().join("report.yaml")
    }

    fn archive(&self) -> PathBuf {
        self.folder.join(format!("{RESULTS}.tar.gz"))
    }

    fn done(&self) -> PathBuf {
        self.folder.join(DONE)
    }

    /// Runs the child to its end, passing on signals: its exit code and its last lines.
    async fn supervise(&self) -> Result<(u8, String), String> {
        let mut signals = Signals::heard();
        let program = own_program()
            .map_err(|error| format!("cannot find this program's own file: {}", files::why(&error)))?;
        let mut child = Command::new(program)
            .args(without_option(std::env::args_os().skip(1)))
            .arg("--out")
            .arg(self.results())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            // Signals from a terminal are for this process, which passes them on.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("the run cannot be started: {}", files::why(&error)))?;
        let said = child.stderr.take().map(passed_on);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(|error| format!("the run's end is not known: {}", files::why(&error)))?,
                () = signals.next() => end(&child),
            }
        };
        let said = match said {
            Some(said) => said.await.unwrap_or_default(),
            None => String::new(),
        };
        Ok((code_of(status), said))
    }

    /// Writes the results in Sonobuoy's form and their archive, and tells Sonobuoy its path.
    fn hand_over(&self, code: u8, said: &str) -> Result<(), String> {
        let failed = |what: &Path, why: String| format!("{}: {why}", what.display());
        let ledger = read(&self.report());
        let why = format!("the run has no report; it ended with exit code {code}, its last lines:\n{said}");
        let results = to_sonobuoy(ledger.as_ref().map_err(|_| why.as_str()), code);
        let file = self.results().join(SONOBUOY_RESULTS);
        let written = results
            .map_err(|error| chain(&error))
            .and_then(|text| output::file(&file, text).map_err(|error| failed(&file, files::why(&error))));
        let archive = self.archive();
        let packed = packed(&self.results(), &archive).map_err(|error| failed(&archive, files::why(&error)));
        // Sonobuoy also accepts a folder, which it packs itself.
        let results = if packed.is_ok() { archive } else { self.results() };
        let done = output::file(&self.done(), results.display().to_string());
        written.and(packed).and(done.map_err(|error| failed(&self.done(), files::why(&error))))
    }
}

/// Passes on the child's output; returns its last lines.
fn passed_on(from: ChildStderr) -> JoinHandle<String> {
    tokio::spawn(async move {
        let (mut lines, mut last) = (Lines::of(from), VecDeque::new());
        while let Ok(Some(line)) = lines.next().await {
            output::err(&line);
            last.push_back(line);
            if last.len() > LINES {
                last.pop_front();
            }
        }
        Vec::from(last).join("\n")
    })
}

/// Asks the child to end, so that it cleans up. Ignores that it has already ended.
fn end(child: &Child) {
    let process = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let _ = process.map(|process| kill_process(process, Signal::TERM));
}

/// The exit code of a run that ended in this way. A run that was killed has none of its own.
fn code_of(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::ENVIRONMENT)
}

/// Packs a folder into an archive, completely or not at all, readable for the other container of the Pod.
fn packed(folder: &Path, archive: &Path) -> std::io::Result<()> {
    let place = archive.parent().unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().permissions(Permissions::from_mode(0o644)).tempfile_in(place)?;
    let mut content = tar::Builder::new(GzEncoder::new(made, Compression::default()));
    content.mode(tar::HeaderMode::Deterministic);
    content.follow_symlinks(false);
    content.append_dir_all(".", folder)?;
    let made = content.into_inner()?.finish()?;
    made.persist(archive).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;

    fn typed(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_run_gets_everything_but_the_option() {
        let kept = typed("run --suite x --watch");
        for line in
            ["run --sonobuoy-results /r --suite x --watch", "run --suite x --sonobuoy-results=/r --watch"]
        {
            assert_eq!(without_option(typed(line).into_iter()), kept);
            assert_eq!(folder_of(&typed(line)), Some(PathBuf::from("/r")));
        }
        for line in ["run", "run --sonobuoy-results", "run --sonobuoy-results="] {
            assert_eq!(folder_of(&typed(line)), None, "{line}");
        }
    }

    /// The files in the archive that `done` names, by name.
    fn handed_over(folder: &Path) -> Vec<(String, String)> {
        let done = std::fs::read_to_string(folder.join(DONE)).expect("it is done");
        let archive = std::fs::File::open(&done).expect("the archive is there");
        let mut archive = tar::Archive::new(GzDecoder::new(archive));
        let files = archive.entries().expect("an archive").map(|file| {
            let mut file = file.expect("a file");
            let name = file.path().expect("a name").display().to_string();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut file, &mut text).expect("text");
            (name, text)
        });
        files.filter(|(_, text)| !text.is_empty()).collect()
    }

    #[test]
    fn however_it_ends_sonobuoy_gets_an_archive_and_nothing_of_an_earlier_run() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("results");
        std::fs::create_dir_all(folder.join(RESULTS)).expect("a folder");
        for old in [DONE, "ccm-conformance/report.yaml"] {
            std::fs::write(folder.join(old), "of an earlier run").expect("a file");
        }
        let code = plugin(&folder, |plugin| {
            assert!(!plugin.done().exists() && !plugin.report().exists());
            std::fs::write(plugin.results().join("events.jsonl"), "one line").expect("a file");
            Err("no way".to_owned())
        });
        assert_eq!(code, exit::ENVIRONMENT);
        let files = handed_over(&folder);
        assert!(files.contains(&("events.jsonl".to_owned(), "one line".to_owned())), "{files:?}");
        let results = files.iter().find(|(name, _)| name == SONOBUOY_RESULTS).expect("results");
        assert!(results.1.contains("status: failed") && results.1.contains("no way"), "{}", results.1);
        let mode = std::fs::metadata(folder.join(DONE)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "another user reads it");
    }

    #[test]
    fn an_invalid_command_line_is_reported_in_a_valid_results_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut line = typed("run --bogus --sonobuoy-results");
        line.push(folder.path().as_os_str().to_owned());
        refuse(&line, "no option --bogus");
        assert!(handed_over(folder.path()).iter().any(|(_, text)| text.contains("no option --bogus")));
        refuse(&typed("run --bogus"), "without a results folder");
        let other = tempfile::tempdir().expect("a folder");
        let mut line = typed("list --sonobuoy-results");
        line.push(other.path().join("new").as_os_str().to_owned());
        refuse(&line, "no option --sonobuoy-results");
        assert!(!other.path().join("new").exists(), "only 'run' writes there");
    }
}
