//! The paths of the programs that confine others.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::root;

/// Folders that are not in every user's `PATH`.
const MORE: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

/// The programs that create a sandbox, by absolute path.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) setpriv: String,
    pub(super) unshare: String,
    pub(super) mount: String,
    pub(super) chroot: String,
    pub(super) sh: String,
    pub(super) env: String,
}

impl Tools {
    /// The programs of this machine, or the first that is missing.
    pub(super) fn here() -> Result<&'static Tools, &'static str> {
        static HERE: LazyLock<Result<Tools, &'static str>> = LazyLock::new(|| {
            let find = |name: &'static str| tool(name).ok_or(name);
            Ok(Tools {
                setpriv: find("setpriv")?,
                unshare: find("unshare")?,
                mount: find("mount")?,
                chroot: find("chroot")?,
                sh: find("sh")?,
                env: find("env")?,
            })
        });
        HERE.as_ref().map_err(|missing| *missing)
    }
}

/// The absolute path of a program of the system that programs in a sandbox can see as well.
pub(super) fn tool(name: &str) -> Option<String> {
    let mut folders = std::env::var_os("PATH").unwrap_or_default();
    folders.push(":");
    folders.push(MORE);
    let paths = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let mut found = paths.filter(|path| path.is_absolute() && path.is_file()).filter_map(seen_in_a_sandbox);
    found.next()?.into_os_string().into_string().ok()
}

/// The path itself, or the target that it links to.
fn seen_in_a_sandbox(path: PathBuf) -> Option<PathBuf> {
    if is_shown(&path) {
        return Some(path);
    }
    path.canonicalize().ok().filter(|real| is_shown(real))
}

fn is_shown(path: &Path) -> bool {
    root::SYSTEM.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_their_path_and_missing_ones_named() {
        assert!(tool("sh").is_some_and(|path| path.starts_with('/') && path.ends_with("/sh")));
        assert_eq!(tool("no-such-program-anywhere"), None);
    }
}
