//! The files of this machine that a confined program sees in addition to those of the system: its own folder,
//! and those that it is given.

use std::path::{Path, PathBuf};

use super::mount::Mount;
use embedded_runtime::settings::{Program, Share};

/// The file by which a folder with the results of a run is recognised.
const STREAM: &str = "events.jsonl";

/// The files and folders; `run` is a folder of the harness, which no program sees.
pub(super) fn of(program: &Program, run: &Path) -> Vec<Mount> {
    let closed = closed(run, &std::env::temp_dir(), std::env::home_dir().as_deref());
    let own = program.entry_point.iter().map(Path::new).filter(|path| path.is_absolute() && path.is_file());
    let mut shown: Vec<Mount> = own.flat_map(|path| with_its_folder(path, &closed)).collect();
    shown.extend(over_results(&shown, run));
    shown.extend(program.shares.iter().filter_map(|Share { path, writable }| {
        Some(Mount { source: path.canonicalize().ok()?, target: path.clone(), read_only: !writable })
    }));
    shown
}

/// Folders that are not shown, apart from explicitly named parts.
fn closed(run: &Path, temporary: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let all =
        [run, temporary, Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/run"), Path::new("/etc")];
    let all = all.into_iter().chain(home);
    all.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned())).collect()
}

/// An empty folder over each folder with results of a run in the folder of a program: what is judged must not read how.
fn over_results(shown: &[Mount], run: &Path) -> Vec<Mount> {
    let results = |mount: &Mount| {
        let entries = std::fs::read_dir(&mount.source).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().join(STREAM).exists());
        folders.map(|entry| mount.target.join(entry.file_name())).collect::<Vec<_>>()
    };
    let covered: Vec<PathBuf> = shown.iter().flat_map(results).collect();
    let nothing = run.join("nothing");
    if covered.is_empty() || std::fs::create_dir_all(&nothing).is_err() {
        return Vec::new();
    }
    covered.into_iter().map(|target| Mount::read_only(&nothing, target)).collect()
}

/// The program and its folder, which may contain files that belong to it; only the program if that would show
/// a closed folder. A link is shown with its target.
fn with_its_folder(program: &Path, closed: &[PathBuf]) -> Vec<Mount> {
    let Ok(real) = program.canonicalize() else { return Vec::new() };
    let mut shown: Vec<Mount> = Vec::new();
    for path in [program, &real] {
        let folder = path.parent().and_then(|folder| Some((folder, folder.canonicalize().ok()?)));
        let Some((folder, source)) = folder else { continue };
        let mount = match closed.iter().any(|one| one.starts_with(&source)) {
            true => Mount::read_only(&real, path),
            false => Mount::read_only(source, folder),
        };
        if !shown.contains(&mount) {
            shown.push(mount);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_shown_with_its_folder_unless_that_contains_private_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        let (bin, home, run) = (root.join("home/bin"), root.join("home"), root.join("tmp/run"));
        for folder in [&bin, &run] {
            std::fs::create_dir_all(folder).expect("made");
        }
        for program in [bin.join("ccm"), home.join("ccm"), root.join("tmp/ccm")] {
            std::fs::write(program, "").expect("written");
        }
        std::os::unix::fs::symlink("home/bin/ccm", root.join("link")).expect("a link");
        let closed = closed(&run, &root.join("tmp"), Some(&home));
        let shown = |program: PathBuf| {
            let shown = with_its_folder(&program, &closed);
            assert!(shown.iter().all(|mount| mount.read_only));
            shown.into_iter().map(|mount| mount.target).collect::<Vec<_>>()
        };
        assert_eq!(shown(bin.join("ccm")), std::slice::from_ref(&bin));
        assert_eq!(shown(home.join("ccm")), [home.join("ccm")]);
        assert_eq!(shown(root.join("tmp/ccm")), [root.join("tmp/ccm")]);
        assert_eq!(shown(root.join("link")), [root.join("link"), bin], "both ends of it");
    }

    #[test]
    fn a_program_does_not_see_the_results_of_runs_in_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        for name in ["bin/results", "bin/data", "run"] {
            std::fs::create_dir_all(root.join(name)).expect("made");
        }
        std::fs::write(root.join("bin/results").join(STREAM), "{}").expect("written");
        let own = Mount::read_only(root.join("bin"), root.join("bin"));
        let covered = over_results(&[own], &root.join("run"));
        let targets: Vec<&Path> = covered.iter().map(|mount| mount.target.as_path()).collect();
        assert_eq!(targets, [root.join("bin/results")]);
        let shown = std::fs::read_dir(&covered[0].source).expect("there").count();
        assert_eq!((shown, covered[0].read_only), (0, true));
    }

    #[test]
    fn shares_are_shown_as_they_are_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let share = Share { path: folder.path().to_owned(), writable: true };
        let program = Program { shares: vec![share], ..Program::new("image", ["sh"]) };
        let shown = of(&program, Path::new("/nowhere"));
        assert_eq!(
            shown.iter().map(|one| (one.target.as_path(), one.read_only)).collect::<Vec<_>>(),
            [(folder.path(), false)]
        );
    }
}
