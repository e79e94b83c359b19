//! What the processes of one run share: a folder, the files in it, and the locks.

use harness_clusters::reaper;
use harness_core::files;
use harness_core::owner::{Liveness, Owner};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, fstat, openat, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Prefix of the names of run folders in the system's folder for temporary files.
pub const FOLDER_PREFIX: &str = "ccm-conformance-";
/// Prefix of the name of a folder that is being created.
const DRAFT_PREFIX: &str = ".ccm-conformance-";
/// Locked as long as a process owns the run. Belongs to the folder even if that is renamed.
const OWNER_LOCK: &str = "owner.lock";
/// Lists what the run has created elsewhere.
const OUTSIDE: &str = "outside.json";
/// How long a folder without a lock may be one that is still being created.
const YOUNG: Duration = Duration::from_secs(60);

/// The run's folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}")]
pub struct StateError {
    /// The failed operation.
    pub operation: &'static str,
    /// The path.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub cause: std::io::Error,
}

fn failing(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StateError + use<> {
    let path = path.to_owned();
    move |cause| StateError { operation, path, cause }
}

/// A file that the run has created outside its folder.
#[derive(Debug, Serialize, Deserialize)]
struct Outside {
    path: PathBuf,
    sha256: String,
}

/// The run's folder. Dropping it keeps the folder: [`RunDir::remove`] is explicit.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held as long as a process owns the run; `clean` leaves runs alone whose lock is held.
    owner: Option<File>,
}

impl RunDir {
    /// Creates a folder that is owned by this process and closed to all other users. It gets its name only after it is
    /// locked.
    ///
    /// # Errors
    /// It cannot be created, or its name is in use.
    pub fn create(run_id: &str) -> Result<RunDir, StateError> {
        let parent = std::env::temp_dir();
        if !parent.is_dir() {
            let why = "it does not exist; set TMPDIR to a folder that does, or remove that variable";
            let cause = std::io::Error::new(std::io::ErrorKind::NotFound, why);
            return Err(failing("using the folder for temporary files", &parent)(cause));
        }
        RunDir::create_in(&parent, run_id)
    }

    fn create_in(parent: &Path, run_id: &str) -> Result<RunDir, StateError> {
        let path = parent.join(format!("{FOLDER_PREFIX}{run_id}"));
        let mut builder = tempfile::Builder::new();
        let closed = builder.prefix(DRAFT_PREFIX).permissions(Permissions::from_mode(0o700));
        let draft = closed.tempdir_in(parent).map_err(failing("creating folder", &path))?;
        let mut owner = open(&draft.path().join(OWNER_LOCK))?;
        writeln!(owner, "{}", Owner::here()).map_err(failing("writing", &path))?;
        owner.lock().map_err(failing("locking", &path))?;
        match renameat_with(CWD, draft.path(), CWD, &path, RenameFlags::NOREPLACE) {
            // A file system without 'only if it does not exist'.
            Err(Errno::INVAL) if std::fs::symlink_metadata(&path).is_err() => {
                std::fs::rename(draft.path(), &path)
            }
            other => other.map_err(Into::into),
        }
        .map_err(failing("creating folder", &path))?;
        // It has been moved by now.
        let _ = draft.keep();
        reaper::has(&path);
        Ok(RunDir { path, owner: Some(owner) })
    }

    /// The folder of a run that another process owns.
    pub fn join(path: &Path) -> RunDir {
        RunDir { path: path.to_owned(), owner: None }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder in it, closed to all other users and removed with it.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, StateError> {
        let path = self.path.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(failing("creating folder", &path)).map(|()| path)
    }

    /// The lock that holds the run as long as a process has it open, for passing ownership to another process.
    pub fn into_lock(self) -> Option<File> {
        reaper::released(&self.path);
        self.owner
    }

    /// All folders of runs among the system's temporary files, with the run's id and whether its owner is alive.
    pub fn all() -> Vec<(PathBuf, String, Liveness)> {
        let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        let mut all: Vec<(PathBuf, String, Liveness)> = entries
            .filter_map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let run = name.strip_prefix(DRAFT_PREFIX).or_else(|| name.strip_prefix(FOLDER_PREFIX))?;
                let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                folder.then(|| (entry.path(), run.to_owned(), RunDir::liveness(&entry.path())))
            })
            .collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    /// Whether a living process owns the run in `path`. Follows no links and creates nothing: other users with write
    /// access to the system's folder for temporary files may have put anything there.
    pub fn liveness(path: &Path) -> Liveness {
        let unknown = |why: &str| Liveness::Unknown(why.to_owned());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let folder = match openat(CWD, path, flags | OFlags::DIRECTORY, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Liveness::Gone,
            Err(Errno::ACCESS) => return unknown("its folder belongs to another user"),
            Err(error) => {
                return Liveness::Unknown(format!(
                    "its folder cannot be opened: {}",
                    files::why(&error.into())
                ));
            }
        };
        let user = match fstat(&folder) {
            Ok(facts) => facts.st_uid,
            Err(error) => {
                return Liveness::Unknown(format!(
                    "its folder cannot be examined: {}",
                    files::why(&error.into())
                ));
            }
        };
        if user != geteuid().as_raw() {
            return Liveness::Unknown(format!("its folder belongs to user {user}"));
        }
        let folder = File::from(folder);
        let lock = match openat(&folder, OWNER_LOCK, flags, Mode::empty()) {
            Ok(lock) => File::from(lock),
            Err(Errno::NOENT) => {
                let made = folder.metadata().and_then(|facts| facts.modified());
                let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
                let young = age.is_none_or(|age| age < YOUNG);
                return if young { unknown("it is being created or removed") } else { Liveness::Gone };
            }
            Err(Errno::LOOP) => {
                return unknown("its owner.lock is a symbolic link, which a run never creates");
            }
            Err(error) => {
                return Liveness::Unknown(format!(
                    "its owner.lock cannot be opened: {}",
                    files::why(&error.into())
                ));
            }
        };
        if !lock.metadata().is_ok_and(|facts| facts.is_file()) {
            return unknown("its owner.lock is not a regular file");
        }
        match lock.try_lock() {
            Ok(()) => Liveness::Gone,
            Err(TryLockError::Error(error)) => {
                Liveness::Unknown(format!("its owner.lock cannot be locked: {}", files::why(&error)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = lock.take(4096).read_to_string(&mut text);
                let owner = read.ok().and_then(|_| text.parse::<Owner>().ok());
                Liveness::Lives(match owner {
                    Some(owner) => format!("process {} of user {} on {}", owner.pid, owner.user, owner.host),
                    None => "a process holds its owner.lock".to_owned(),
                })
            }
        }
    }

    /// Removes the folder of a run without an owner, and the files that the run has listed elsewhere if they are
    /// unchanged; returns what was removed.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn clear(path: &Path) -> Result<Vec<PathBuf>, StateError> {
        let dir = RunDir::join(path);
        let noted: Vec<Outside> = dir.read(OUTSIDE).ok().flatten().unwrap_or_default();
        let mut removed = Vec::new();
        for outside in noted {
            let file = std::fs::symlink_metadata(&outside.path).is_ok_and(|facts| facts.is_file());
            if file && digest(&outside.path).is_ok_and(|found| found == outside.sha256) {
                std::fs::remove_file(&outside.path).map_err(failing("removing", &outside.path))?;
                removed.push(outside.path);
            }
        }
        dir.remove()?;
        removed.push(path.to_owned());
        Ok(removed)
    }

    /// Records a file that the run has created elsewhere and will remove; if the run is killed, `clean` removes it.
    ///
    /// # Errors
    /// The file cannot be read, or the record cannot be written.
    pub fn note_outside(&self, path: &Path) -> Result<(), StateError> {
        let path = std::path::absolute(path).map_err(failing("naming", path))?;
        let sha256 = digest(&path).map_err(failing("reading", &path))?;
        self.write(OUTSIDE, &[Outside { path, sha256 }])
    }

    /// Writes a JSON file with mode 0600, completely or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), StateError> {
        let path = self.path.join(name);
        let fail = |cause| StateError { operation: "writing", path: path.clone(), cause };
        let text = serde_json::to_vec(value).map_err(|e| fail(e.into()))?;
        let mut file = tempfile::NamedTempFile::new_in(&self.path).map_err(fail)?;
        file.write_all(&text).map_err(fail)?;
        file.persist(&path).map_err(|error| fail(error.error))?;
        Ok(())
    }

    /// Reads a JSON file; `None` if it does not exist.
    ///
    /// # Errors
    /// It exists but cannot be read.
    pub fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.path.join(name);
        let fail = |cause| StateError { operation: "reading", path: path.clone(), cause };
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| fail(e.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fail(error)),
        }
    }

    /// Holds the cluster for one check until dropped: exclusively, or shared with others. Works between threads and
    /// processes.
    ///
    /// # Errors
    /// The lock file cannot be opened.
    pub fn hold_cluster(&self, alone: bool) -> Result<File, StateError> {
        let path = self.path.join("cluster.lock");
        let file = open(&path)?;
        let locked = if alone { file.lock() } else { file.lock_shared() };
        locked.map_err(failing("locking", &path))?;
        Ok(file)
    }

    /// Holds the right to change how the CCM is deployed, until dropped.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn hold_ccm(&self) -> Result<File, StateError> {
        let path = self.path.join("ccm.lock");
        let file = open(&path)?;
        file.lock().map_err(failing("locking", &path))?;
        Ok(file)
    }

    /// Keeps the folder when the run ends, for the user to look at.
    pub fn leave(self) {
        reaper::released(&self.path);
    }

    /// Removes the folder with all of its contents.
    ///
    /// # Errors
    /// When something in it cannot be removed.
    pub fn remove(self) -> Result<(), StateError> {
        std::fs::remove_dir_all(&self.path).map_err(failing("removing", &self.path))?;
        reaper::released(&self.path);
        Ok(())
    }
}

/// Opens a file of a run's folder, which is closed to other users; creates it if it does not exist.
fn open(path: &Path) -> Result<File, StateError> {
    let opened =
        OpenOptions::new().create(true).truncate(false).write(true).read(true).mode(0o600).open(path);
    opened.map_err(failing("opening", path))
}

/// SHA-256 of a small file.
fn digest(path: &Path) -> std::io::Result<String> {
    let hash = Sha256::digest(std::fs::read(path)?);
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, symlink};

    fn age(folder: &Path) {
        let then = SystemTime::now() - 2 * YOUNG;
        File::open(folder).and_then(|folder| folder.set_modified(then)).expect("an older folder");
    }

    #[test]
    fn a_folder_is_closed_and_its_owner_known_wherever_it_is_moved_to() {
        let parent = tempfile::tempdir().expect("a folder");
        let dir = RunDir::create_in(parent.path(), "abcdefgh").expect("a folder");
        let mode = dir.path().metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let moved = parent.path().join("moved");
        std::fs::rename(dir.path(), &moved).expect("renamed");
        assert!(matches!(RunDir::liveness(&moved), Liveness::Lives(who) if who.contains("process ")));
        assert!(matches!(RunDir::liveness(dir.path()), Liveness::Gone));
        drop(dir);
        assert_eq!(RunDir::liveness(&moved), Liveness::Gone);
        assert_eq!(RunDir::clear(&moved).expect("it can go"), std::slice::from_ref(&moved));
        assert!(!moved.exists());
    }

    #[test]
    fn a_folder_of_that_name_is_never_taken_over() {
        let parent = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(parent.path().join("ccm-conformance-abcdefgh")).expect("a foreign folder");
        let error = RunDir::create_in(parent.path(), "abcdefgh").expect_err("it is there");
        assert_eq!(error.operation, "creating folder");
        assert_eq!(std::fs::read_dir(parent.path()).expect("a folder").count(), 1, "no draft stays");
    }

    #[test]
    fn no_link_is_followed_and_nothing_is_made() {
        let parent = tempfile::tempdir().expect("a folder");
        let (folder, target) = (parent.path().join("ccm-conformance-x"), parent.path().join("made-by-root"));
        DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
        symlink(&target, folder.join(OWNER_LOCK)).expect("a link");
        age(&folder);
        assert!(matches!(RunDir::liveness(&folder), Liveness::Unknown(why) if why.contains("symbolic link")));
        assert!(!target.exists(), "a link chose what was made");
        let link = parent.path().join("ccm-conformance-y");
        symlink(&folder, &link).expect("a link");
        assert!(matches!(RunDir::liveness(&link), Liveness::Unknown(_)));
        let bare = parent.path().join("ccm-conformance-z");
        std::fs::create_dir(&bare).expect("a folder");
        assert!(matches!(RunDir::liveness(&bare), Liveness::Unknown(why) if why.contains("being created")));
        age(&bare);
        assert_eq!(RunDir::liveness(&bare), Liveness::Gone);
        assert!(!bare.join(OWNER_LOCK).exists());
    }

    #[test]
    fn files_outside_are_removed_with_the_folder_unless_changed() {
        let parent = tempfile::tempdir().expect("a folder");
        for (run, changed) in [("abcdefgh", false), ("bcdefghi", true)] {
            let dir = RunDir::create_in(parent.path(), run).expect("a folder");
            let file = parent.path().join(run);
            std::fs::write(&file, "a key").expect("a file");
            dir.note_outside(&file).expect("noted");
            if changed {
                std::fs::write(&file, "the user's").expect("a file");
            }
            let path = dir.path().to_owned();
            drop(dir);
            RunDir::clear(&path).expect("it can go");
            assert_eq!(file.exists(), changed);
        }
    }
}
