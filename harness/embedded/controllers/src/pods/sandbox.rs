//! How mount paths reach a program that has no container.
//!
//! Where the machine allows it, a program gets a user and mount namespace of its own (`unshare`, util-linux): files
//! are bind-mounted where the Pod wants them, and folders that do not exist here are added to a mirror of the nearest
//! one that does. Nothing outside the namespace changes and no privilege is needed. It is the first process of a process
//! namespace, too, as in a container: whatever it starts, however detached, the kernel ends with it. Elsewhere the
//! program's arguments and environment are rewritten to where the files really are; paths it has compiled in stay out of
//! reach, and so does what leaves its process group.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use super::volumes::{make_folder, write_file};
use crate::settings::Mounts;

/// One file or folder and where the program shall see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where it is on this computer.
    pub(crate) source: PathBuf,
    /// The absolute path the program uses.
    pub(crate) target: PathBuf,
}

/// What this machine allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Namespaces.
    Namespace,
    /// Rewriting only.
    Rewritten,
    /// Rewriting, on a machine without `setpriv`: what is started outlives a harness that is killed, until somebody ends it.
    RewrittenAlone,
}

/// Mounts what the table names, goes to the working folder and becomes the program. `$1`: table, `$2`: folder.
const SCRIPT: &str = "mount -a -T \"$1\" || exit 125\ncd \"$2\" 2>/dev/null || cd /\nshift 2\nexec \"$@\"";
/// What is started dies with the harness: the kernel kills it when the thread that started it is gone.
const DIES_TOO: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];
/// Namespaces of its own. `unshare` waits for the program and ends as it does; if it is killed, so is the program, and with
/// the program every process of the namespace.
const NAMESPACES: [&str; 9] = [
    "unshare",
    "--map-root-user",
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--",
];

/// A command line ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) line: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
}

/// What is possible here, tried out once: a namespace with a folder that does not exist outside.
pub(crate) async fn detect(wanted: Mounts, folder: &Path) -> Isolation {
    if wanted == Mounts::Rewritten {
        return rewritten().await;
    }
    let allowed = try_out(folder).await.unwrap_or(false);
    match (allowed, wanted) {
        (true, _) => return Isolation::Namespace,
        (false, Mounts::Namespace) => {
            tracing::warn!(
                "this machine allows no user and mount namespaces: mount paths are rewritten instead"
            );
        }
        (false, _) => tracing::info!("no user and mount namespaces here: mount paths are rewritten"),
    }
    rewritten().await
}

/// Whether `setpriv` is there.
async fn rewritten() -> Isolation {
    let [program, ..] = DIES_TOO;
    let asked = tokio::process::Command::new(program).arg("--version").stdin(Stdio::null()).output();
    if asked.await.is_ok_and(|said| said.status.success()) {
        Isolation::Rewritten
    } else {
        Isolation::RewrittenAlone
    }
}

/// [`DIES_TOO`] with the program where it is. A program that is named by its path is started without a copy of this process'
/// memory map, which takes longer the larger that is: the standard library does so for no other when the environment is new.
fn dies_too() -> Vec<String> {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let [program, ..] = DIES_TOO;
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let there = std::env::split_paths(&folders).map(|folder| folder.join(program));
        let found = there.filter(|path| path.is_absolute()).find(|path| path.is_file());
        found.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| program.to_owned())
    });
    let [_, arguments @ ..] = DIES_TOO;
    std::iter::once(PROGRAM.as_str()).chain(arguments).map(str::to_owned).collect()
}

/// Whether this machine gives programs of Pods namespaces of their own; tried out in this folder.
pub async fn confines_programs(folder: &Path) -> bool {
    try_out(folder).await.unwrap_or(false)
}

async fn try_out(folder: &Path) -> io::Result<bool> {
    let source = folder.join("probe/source");
    write_file(&source.join("file"), b"here")?;
    let mounts = [Mount { source, target: PathBuf::from("/run/embedded-controllers-probe/deep") }];
    let line = ["cat", "/run/embedded-controllers-probe/deep/file"].map(str::to_owned).to_vec();
    let scratch = folder.join("probe/scratch");
    let prepared = prepare(Isolation::Namespace, &scratch, &mounts, line, BTreeMap::new(), Path::new("/"))?;
    let Some((program, arguments)) = prepared.line.split_first() else { return Ok(false) };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    Ok(output.status.success() && output.stdout == b"here")
}

/// Makes the command line that runs `line` with these mounts; `scratch` is a folder of its own for what that needs.
pub(crate) fn prepare(
    isolation: Isolation,
    scratch: &Path,
    mounts: &[Mount],
    line: Vec<String>,
    environment: BTreeMap<String, String>,
    working_folder: &Path,
) -> io::Result<Prepared> {
    if isolation != Isolation::Namespace {
        let dies_too = if isolation == Isolation::Rewritten { dies_too() } else { Vec::new() };
        let line = line.iter().map(|part| rewrite(part, mounts));
        let environment =
            environment.iter().map(|(name, value)| (name.clone(), rewrite(value, mounts))).collect();
        return Ok(Prepared { line: dies_too.into_iter().chain(line).collect(), environment });
    }
    // An absolute link such as /var/run would lead out of a root folder of the program's own.
    let mounts: Vec<Mount> = mounts
        .iter()
        .map(|mount| Mount { source: mount.source.clone(), target: without_links(&mount.target) })
        .collect();
    let mounts = mounts.as_slice();
    let plan = Plan::of(mounts, &|path| std::fs::symlink_metadata(path).is_ok());
    let root = scratch.join("root");
    let mut table = String::new();
    if plan.own_root {
        make_folder(&root)?;
        for entry in std::fs::read_dir("/")? {
            let entry = entry?;
            let target = root.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                if std::fs::symlink_metadata(&target).is_err() {
                    std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, &target)?;
                }
            } else if kind.is_dir() {
                make_folder(&target)?;
                table.push_str(&format!("{} {} none rbind 0 0\n", escape(&entry.path()), escape(&target)));
            }
        }
    }
    let seen = |path: &Path| {
        if plan.own_root { root.join(path.strip_prefix("/").unwrap_or(path)) } else { path.to_owned() }
    };
    for (index, ancestor) in plan.mirrors.iter().enumerate() {
        let skeleton = scratch.join(format!("skeleton-{index}"));
        make_folder(&skeleton)?;
        for mount in mounts {
            if let Ok(rest) = mount.target.strip_prefix(ancestor)
                && plan.nearest(&mount.target) == Some(ancestor)
            {
                make_mount_point(&skeleton.join(rest), &mount.source)?;
            }
        }
        mirror(ancestor, &skeleton, &mut table)?;
        table.push_str(&format!("{} {} none rbind 0 0\n", escape(&skeleton), escape(&seen(ancestor))));
    }
    let mut sorted: Vec<_> = mounts.iter().collect();
    sorted.sort_by_key(|mount| mount.target.components().count());
    for mount in sorted {
        let target = seen(&mount.target);
        if plan.own_root && !mount.target.parent().is_some_and(|parent| plan.exists_here(parent)) {
            make_mount_point(&target, &mount.source)?;
        }
        table.push_str(&format!("{} {} none rbind 0 0\n", escape(&mount.source), escape(&target)));
    }
    let table_path = scratch.join("mounts");
    write_file(&table_path, table.as_bytes())?;
    let mut full = dies_too();
    full.extend(NAMESPACES.iter().chain(&["sh", "-c", SCRIPT, "sh"]).map(|part| (*part).to_owned()));
    full.push(table_path.to_string_lossy().into_owned());
    full.push(working_folder.to_string_lossy().into_owned());
    if plan.own_root {
        full.extend(["chroot".to_owned(), root.to_string_lossy().into_owned()]);
    }
    full.extend(line);
    Ok(Prepared { line: full, environment })
}

/// Makes a folder show everything another has, by mounts of its entries. An overlay would be shorter, but the kernel
/// refuses one in a namespace as soon as anything is mounted below, as is usual in `/run`.
fn mirror(folder: &Path, into: &Path, table: &mut String) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let target = into.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            if std::fs::symlink_metadata(&target).is_err() {
                std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, &target)?;
            }
            continue;
        }
        if kind.is_dir() {
            make_folder(&target)?;
        } else {
            write_file(&target, b"")?;
        }
        // What goes away meanwhile is not missed.
        table.push_str(&format!("{} {} none rbind,nofail 0 0\n", escape(&entry.path()), escape(&target)));
    }
    Ok(())
}

/// The path with the links of its existing part followed.
fn without_links(path: &Path) -> PathBuf {
    let followed = path.ancestors().find_map(|ancestor| {
        let real = ancestor.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(ancestor).ok()?))
    });
    followed.unwrap_or_else(|| path.to_owned())
}

/// A folder or an empty file, as the source is.
fn make_mount_point(path: &Path, source: &Path) -> io::Result<()> {
    if source.is_file() { write_file(path, b"") } else { make_folder(path) }
}

/// What has to be done so that every target exists.
struct Plan {
    /// Existing folders that are mirrored, because something below them does not exist; outer ones first.
    mirrors: Vec<PathBuf>,
    /// Whether something directly below `/` does not exist: then the program gets a root folder of its own.
    own_root: bool,
    existing: BTreeSet<PathBuf>,
}

impl Plan {
    fn of(mounts: &[Mount], exists: &dyn Fn(&Path) -> bool) -> Plan {
        let mut plan = Plan { mirrors: Vec::new(), own_root: false, existing: BTreeSet::new() };
        for mount in mounts {
            for ancestor in mount.target.ancestors() {
                if exists(ancestor) {
                    plan.existing.insert(ancestor.to_owned());
                }
            }
        }
        let mut mirrors = BTreeSet::new();
        for mount in mounts.iter().filter(|mount| !exists(&mount.target)) {
            match mount.target.ancestors().find(|ancestor| exists(ancestor)) {
                Some(ancestor) if ancestor != Path::new("/") => {
                    mirrors.insert(ancestor.to_owned());
                }
                _ => plan.own_root = true,
            }
        }
        plan.mirrors = mirrors.into_iter().collect();
        plan.mirrors.sort_by_key(|path| path.components().count());
        plan
    }

    /// The mirror that holds this target, if it needs one.
    fn nearest(&self, target: &Path) -> Option<&PathBuf> {
        let existing = target.ancestors().find(|ancestor| self.existing.contains(*ancestor))?;
        self.mirrors.iter().find(|mirror| mirror.as_path() == existing && existing != target)
    }

    fn exists_here(&self, path: &Path) -> bool {
        path != Path::new("/")
            && path.ancestors().any(|one| one != Path::new("/") && self.existing.contains(one))
    }
}

/// A path as a table of mounts writes it.
fn escape(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011")
}

/// Replaces each mount path by where its files are, where it stands for itself or begins a longer path.
pub(crate) fn rewrite(text: &str, mounts: &[Mount]) -> String {
    let mut longest_first: Vec<_> = mounts.iter().collect();
    longest_first.sort_by_key(|mount| std::cmp::Reverse(mount.target.as_os_str().len()));
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let starts_path =
            before.is_none_or(|before: char| !(before.is_alphanumeric() || "/._-".contains(before)));
        let hit = longest_first.iter().filter(|_| starts_path && first == '/').find_map(|mount| {
            let target = mount.target.to_str()?;
            let after = rest.strip_prefix(target)?;
            let ends = after
                .chars()
                .next()
                .is_none_or(|next| next == '/' || !(next.is_alphanumeric() || "._-".contains(next)));
            ends.then(|| (mount.source.to_string_lossy().into_owned(), after))
        });
        match hit {
            Some((source, after)) => {
                result.push_str(&source);
                before = Some('/');
                rest = after;
            }
            None => {
                result.push(first);
                before = Some(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    result
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
