//! Changes of files, and the command that builds the CCM.

use super::event::Event;
use harness_config::{RunPlan, WantedCluster};
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

/// The command that builds the program of the CCM from its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Build {
    /// A command line of the shell.
    pub(super) command: String,
    /// The folder of the sources.
    pub(super) source: PathBuf,
}

impl Build {
    /// Builds; the output of the command is shown as it comes.
    pub(super) fn succeeds(&self) -> bool {
        output::err(&format!("building: {}", self.command));
        let status = Command::new("sh").arg("-c").arg(&self.command).stdin(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => true,
            Ok(status) => {
                output::err(&format!(
                    "error: the build failed ({}); nothing was judged",
                    files::ended(status)
                ));
                false
            }
            Err(error) => {
                output::err(&format!("error: sh: {}", files::why_not_started(&error)));
                false
            }
        }
    }
}

/// Which changes count.
struct Relevant {
    /// Files and folders whose changes count.
    roots: Vec<PathBuf>,
    /// Folders and files whose changes do not: what a run or a build writes.
    not: Vec<PathBuf>,
    ignored: Gitignore,
}

impl Relevant {
    fn is(&self, path: &Path) -> bool {
        let hidden = |root: &Path| {
            let below = path.strip_prefix(root).unwrap_or(path).components();
            below.into_iter().any(|part| {
                let name = part.as_os_str().to_string_lossy();
                // Editors write hidden files, and copies that end in a tilde.
                name.starts_with('.') || name.ends_with('~')
            })
        };
        let is_ignored = || {
            path.starts_with(self.ignored.path())
                && self.ignored.matched_path_or_any_parents(path, path.is_dir()).is_ignore()
        };
        let Some(root) = self.roots.iter().find(|root| path.starts_with(root)) else { return false };
        let counts_not = self.not.iter().any(|not| path.starts_with(not)) || path != root && hidden(root);
        !counts_not && !is_ignored()
    }
}

/// Sends each relevant change until it is dropped.
///
/// # Errors
/// There is nothing to watch, or it cannot be watched: the exit code, and the reason as text.
pub(super) fn watched(
    plan: &RunPlan<WantedCluster>,
    build: Option<&Build>,
    sender: Sender<Event>,
) -> Result<RecommendedWatcher, (u8, String)> {
    let environment = |why: String| (exit::ENVIRONMENT, why);
    let absolute = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let absolute =
        |path: &Path| absolute(path).map_err(|error| environment(named(path, &files::why(&error))));
    // What it writes, and what it prints if that goes into files.
    let printed =
        ["/dev/stdout", "/dev/stderr"].into_iter().filter_map(|stream| Path::new(stream).canonicalize().ok());
    let (mut roots, mut not) = (Vec::new(), vec![absolute(&plan.output)?]);
    not.extend(printed);
    let program = plan.binary.as_deref().map(absolute).transpose()?;
    match (&program, build) {
        // The build writes it.
        (Some(program), Some(_)) => not.push(program.clone()),
        (Some(program), None) => roots.push(program.clone()),
        (None, _) => {}
    }
    if !files::is_built_in(&plan.profile.file) {
        roots.push(absolute(plan.profile.folder())?);
    }
    let mut ignored = GitignoreBuilder::new("/");
    if let Some(build) = build {
        let source = absolute(&build.source)?;
        ignored = GitignoreBuilder::new(&source);
        // A file that cannot be read ignores nothing.
        let _ = ignored.add(source.join(".gitignore"));
        roots.push(source);
    }
    if roots.is_empty() {
        let why = "there is nothing to wait for: the profile is built in, and no program is given; pass '--binary PATH' or a \
                   profile of yours";
        return Err((exit::USAGE, why.to_owned()));
    }
    let ignored = ignored.build().map_err(|error| environment(format!(".gitignore: {error}")))?;
    let relevant = Relevant { roots: roots.clone(), not, ignored };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let is_change = match event.kind {
            EventKind::Create(_) | EventKind::Remove(_) => true,
            EventKind::Modify(kind) => !matches!(kind, ModifyKind::Metadata(_)),
            EventKind::Any | EventKind::Access(_) | EventKind::Other => false,
        };
        if let Some(path) = event.paths.into_iter().find(|path| is_change && relevant.is(path)) {
            // Without a receiver the session has ended.
            let _ = sender.send(Event::Changed(path));
        }
    })
    .map_err(|error| environment(format!("files cannot be watched: {error}")))?;
    for root in &roots {
        // A compiler may replace the program, so its folder is watched.
        let is_program = program.as_ref() == Some(root);
        let (place, mode) = match root.parent().filter(|_| is_program) {
            Some(folder) => (folder, RecursiveMode::NonRecursive),
            None => (root.as_path(), RecursiveMode::Recursive),
        };
        watcher.watch(place, mode).map_err(|error| environment(named(place, &error.to_string())))?;
    }
    Ok(watcher)
}

fn named(path: &Path, why: &str) -> String {
    format!("{} cannot be watched: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_hidden_files_and_what_git_ignores_do_not_count() {
        let mut ignored = GitignoreBuilder::new("/src/acme");
        ignored.add_line(None, "target/").expect("a pattern");
        let relevant = Relevant {
            roots: vec!["/src/acme".into(), "/bin/acme-ccm".into()],
            not: vec!["/src/acme/conformance-results".into()],
            ignored: ignored.build().expect("patterns"),
        };
        for path in ["/src/acme/main.go", "/src/acme/pkg/a.go", "/bin/acme-ccm"] {
            assert!(relevant.is(Path::new(path)), "{path}");
        }
        for path in [
            "/src/acme/conformance-results/report.yaml",
            "/src/acme/.git/index",
            "/src/acme/pkg/.a.go.swp",
            "/src/acme/pkg/a.go~",
            "/src/acme/target/debug/acme",
            "/bin/other",
        ] {
            assert!(!relevant.is(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_build_that_fails_is_no_success() {
        let build = |command: &str| Build { command: command.to_owned(), source: PathBuf::from(".") };
        assert!(build("true").succeeds() && !build("exit 3").succeeds());
    }
}
