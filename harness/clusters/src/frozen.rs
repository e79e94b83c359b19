//! Processes of a container that cannot be killed: with Linux control groups v1 a frozen process does not die, and a
//! machine that is killed while it starts a Pod may just have frozen one.

use std::io;
use std::path::Path;

/// The folder of the v1 control groups that freeze processes.
const FREEZER: &str = "/sys/fs/cgroup/freezer";
/// Maximum depth of the groups of a Pod's containers below it.
const DEPTH: u32 = 12;
/// The contents of the group's state file while its processes are frozen, and the value that thaws them.
const STATE: &str = "freezer.state";
const THAWED: &str = "THAWED";

/// Thaws everything that is frozen in the container with this id, on this machine; returns the number of groups. None
/// with control groups v2, whose frozen processes can be killed, or without permission.
pub(super) fn thaw(container: &str) -> usize {
    thaw_in(Path::new(FREEZER), container)
}

fn thaw_in(freezer: &Path, container: &str) -> usize {
    if container.is_empty() { 0 } else { descend(freezer, DEPTH, &|name| name.contains(container)) }
}

/// Thaws all groups below this one, starting where a name matches.
fn descend(group: &Path, deeper: u32, is_meant: &dyn Fn(&str) -> bool) -> usize {
    let Ok(inner) = std::fs::read_dir(group) else { return 0 };
    let folders = inner.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut count = 0;
    for folder in folders {
        let here = folder.file_name().to_str().is_some_and(is_meant);
        if here {
            count += usize::from(thaw_one(&folder.path()).unwrap_or(false));
        }
        if deeper > 0 {
            count += match here {
                true => descend(&folder.path(), deeper - 1, &|_| true),
                false => descend(&folder.path(), deeper - 1, is_meant),
            };
        }
    }
    count
}

/// Whether this group was frozen and is now thawed.
fn thaw_one(group: &Path) -> io::Result<bool> {
    let state = group.join(STATE);
    if std::fs::read_to_string(&state)?.trim() == THAWED {
        return Ok(false);
    }
    std::fs::write(&state, THAWED)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_the_container_are_thawed() {
        let freezer = tempfile::tempdir().expect("a folder");
        let group = |path: &str, state: &str| {
            let folder = freezer.path().join(path);
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join(STATE), format!("{state}\n")).expect("written");
        };
        group("docker/0123", THAWED);
        group("docker/0123/kubepods/pod/one", "FROZEN");
        group("docker/0123/kubepods/pod/other", "FREEZING");
        group("docker/4567/kubepods/pod/one", "FROZEN");
        assert_eq!(thaw_in(freezer.path(), "0123"), 2);
        let state =
            |path: &str| std::fs::read_to_string(freezer.path().join(path).join(STATE)).expect("read");
        assert_eq!(state("docker/0123/kubepods/pod/one"), THAWED);
        assert_eq!(state("docker/0123/kubepods/pod/other"), THAWED);
        assert_eq!(state("docker/4567/kubepods/pod/one"), "FROZEN\n", "another's");
        assert_eq!(thaw_in(freezer.path(), "0123"), 0);
        assert_eq!(thaw_in(&freezer.path().join("none"), "0123"), 0);
    }
}
