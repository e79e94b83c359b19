//! The root folder of a confined program: what the system has installed, a few devices, the Pod's mounts, and
//! explicitly shown files of this machine. It contains nothing else of this machine: no home folder, no
//! temporary file, no socket.
//!
//! It is a folder of the harness, mounted read-only, with mounts in it. If a Pod mounts something in a
//! missing folder below a shown folder, room is made for it: the shown folder is then replaced by a folder of
//! the harness in which its entries are mounted. An overlay would be shorter, but the kernel refuses one in a
//! namespace as soon as anything is mounted below.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use super::mount::Mount;
use super::points;
use super::volumes::make_folder;

/// Folders with programs and libraries; none of them belongs to a user.
pub(super) const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"];
/// The entries of `/etc` that programs read. Keys, passwords and settings of this machine's services are not
/// included.
const SETTINGS: [&str; 31] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "gai.conf",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "ld-musl-x86_64.path",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/ct_log_list.cnf",
    "ssl/openssl.cnf",
    "static",
    "timezone",
];
/// Devices that are harmless.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];
/// Links that programs expect.
const LINKS: [(&str, &str); 7] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/etc/mtab", "/proc/self/mounts"),
    ("/var/run", "/run"),
    ("/var/tmp", "/tmp"),
];
/// Folders that programs expect.
const FOLDERS: [&str; 5] = ["/dev/shm", "/proc", "/run", "/tmp", "/var"];

/// A root folder that is ready to be mounted.
#[derive(Debug)]
pub(super) struct Root {
    /// The path of the folder.
    pub(super) folder: PathBuf,
    /// The mounts, as `mount -a -T` reads them: <https://man7.org/linux/man-pages/man5/fstab.5.html>.
    pub(super) table: String,
}

impl Root {
    /// Creates the folder, with a place for every mount.
    pub(super) fn make(folder: &Path, shown: &[Mount], mounts: &[Mount], own_proc: bool) -> io::Result<Root> {
        let links = links();
        let settled = |mount: &Mount| Mount { target: settle(&mount.target, &links), ..mount.clone() };
        let mut mounts: Vec<Mount> = mounts.iter().map(settled).collect();
        mounts.sort_by_key(depth);
        let mut plan = Plan { mounts, ..Plan::default() };
        plan.folders.extend(FOLDERS.map(PathBuf::from));
        for mount in system().chain(shown.iter().map(settled)) {
            plan.show(&mount)?;
        }
        plan.mount()?;
        plan.links.extend(links);
        plan.made(folder, own_proc)
    }
}

/// The depth of a mount, so that outer mounts come before those in them.
fn depth(mount: &Mount) -> usize {
    mount.target.components().count()
}

/// The files of this machine that every program sees.
fn system() -> impl Iterator<Item = Mount> {
    let folders = SYSTEM.iter().map(PathBuf::from).filter(|path| !path.is_symlink());
    let settings = SETTINGS.iter().map(|name| Path::new("/etc").join(name));
    // A link may lead to a path that the program does not see.
    let there = |path: PathBuf| Some(Mount::read_only(path.canonicalize().ok()?, path));
    folders.chain(settings).filter_map(there)
}

/// The links of a root folder: those that programs expect, and those of this machine, such as `/bin`.
fn links() -> BTreeMap<PathBuf, PathBuf> {
    let own = SYSTEM.iter().filter_map(|path| Some((PathBuf::from(path), std::fs::read_link(path).ok()?)));
    LINKS.iter().map(|(path, to)| (PathBuf::from(path), PathBuf::from(to))).chain(own).collect()
}

/// The path without links of the root folder: nothing can be mounted through an absolute link before the
/// folder is the root.
fn settle(path: &Path, links: &BTreeMap<PathBuf, PathBuf>) -> PathBuf {
    let found = links.iter().find_map(|(link, to)| {
        let rest = path.strip_prefix(link).ok()?;
        let to = link.parent()?.join(to);
        Some(if rest == Path::new("") { to } else { to.join(rest) })
    });
    found.unwrap_or_else(|| path.to_owned())
}

/// The content of the root folder, by the program's paths.
#[derive(Debug, Default)]
struct Plan {
    /// The Pod's mounts, outer ones first.
    mounts: Vec<Mount>,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
    binds: Vec<Mount>,
}

impl Plan {
    /// Shows a file or folder of this machine: as a whole, or entry by entry if something has to be mounted
    /// below it.
    fn show(&mut self, mount: &Mount) -> io::Result<()> {
        let Mount { source, target, read_only } = mount;
        if let Some((outer, rest)) = outer(&self.mounts, target) {
            self.binds.push(mount.clone());
            return points::make(outer, rest, !source.is_dir());
        }
        if !source.is_dir() {
            self.files.insert(target.clone());
            self.binds.push(mount.clone());
            return Ok(());
        }
        self.folders.insert(target.clone());
        let needs_room = self.mounts.iter().any(|one| {
            one.target.strip_prefix(target).is_ok_and(|rest| {
                rest != Path::new("") && std::fs::symlink_metadata(source.join(rest)).is_err()
            })
        });
        if !needs_room {
            self.binds.push(mount.clone());
            return Ok(());
        }
        for entry in std::fs::read_dir(source)? {
            let entry = entry?;
            let (source, target) = (entry.path(), target.join(entry.file_name()));
            match std::fs::read_link(&source) {
                Ok(to) => {
                    self.links.insert(target, to);
                }
                Err(_) => self.show(&Mount { source, target, read_only: *read_only })?,
            }
        }
        Ok(())
    }

    /// Adds the Pod's mounts.
    fn mount(&mut self) -> io::Result<()> {
        for (index, mount) in self.mounts.iter().enumerate() {
            let file = mount.source.is_file();
            match outer(&self.mounts[..index], &mount.target) {
                Some((outer, rest)) => points::make(outer, rest, file)?,
                None if file => {
                    self.files.insert(mount.target.clone());
                }
                None => {
                    self.folders.insert(mount.target.clone());
                }
            }
            self.binds.push(mount.clone());
        }
        self.binds.sort_by_key(depth);
        Ok(())
    }

    /// Creates everything in that folder.
    fn made(self, folder: &Path, own_proc: bool) -> io::Result<Root> {
        let devices =
            || DEVICES.map(|name| Path::new("/dev").join(name)).into_iter().filter(|one| one.exists());
        let here = |path: &Path| folder.join(path.strip_prefix("/").unwrap_or(path));
        make_folder(folder)?;
        for path in &self.folders {
            make_folder(&here(path))?;
        }
        for path in self.files.iter().cloned().chain(devices()) {
            let path = here(&path);
            path.parent().map_or(Ok(()), make_folder)?;
            if !path.exists() {
                std::fs::File::create(&path)?;
            }
        }
        for (path, to) in &self.links {
            let path = here(path);
            path.parent().map_or(Ok(()), make_folder)?;
            if !path.is_symlink() {
                std::os::unix::fs::symlink(to, &path)?;
            }
        }
        let mut table = line(folder, folder, "bind,ro", flags(folder));
        for device in devices() {
            table.push_str(&line(&device, &here(&device), "bind", ""));
        }
        table.push_str(&format!(
            "tmpfs {} tmpfs size=16m,mode=1777,nosuid,nodev 0 0\n",
            escape(&here(Path::new("/dev/shm")))
        ));
        let proc = here(Path::new("/proc"));
        table.push_str(&match own_proc {
            true => format!("proc {} proc ro,nosuid,nodev,noexec 0 0\n", escape(&proc)),
            false => line(Path::new("/proc"), &proc, "rbind,ro", ",nosuid,nodev,noexec"),
        });
        for mount in &self.binds {
            let how = if mount.read_only { "rbind,ro" } else { "rbind" };
            table.push_str(&line(&mount.source, &here(&mount.target), how, flags(&mount.source)));
        }
        Ok(Root { folder: folder.to_owned(), table })
    }
}

/// The Pod's folder in which a path is mounted, if it is below another mount, and the path in that folder.
fn outer<'a>(mounts: &'a [Mount], target: &'a Path) -> Option<(&'a Path, &'a Path)> {
    mounts.iter().rev().find_map(|outer| {
        let rest = target.strip_prefix(&outer.target).ok()?;
        (rest != Path::new("") && outer.source.is_dir()).then_some((outer.source.as_path(), rest))
    })
}

/// A line of the table.
fn line(source: &Path, target: &Path, how: &str, flags: &str) -> String {
    format!("{} {} none {how}{flags} 0 0\n", escape(source), escape(target))
}

/// The flags of a mount: a namespace cannot remove a flag that the file system has on this machine.
fn flags(source: &Path) -> &'static str {
    match statvfs(source) {
        Ok(there) if there.f_flag.contains(StatVfsMountFlags::NOEXEC) => ",nosuid,nodev,noexec",
        Ok(_) | Err(_) => ",nosuid,nodev",
    }
}

/// Escapes a path for a table of mounts.
fn escape(path: &Path) -> String {
    let mut escaped = String::new();
    for sign in path.to_string_lossy().chars() {
        match sign {
            '\\' | ' ' | '\t' | '\n' | '#' => escaped.push_str(&format!("\\{:03o}", u32::from(sign))),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_finds_room_below_what_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let shown = folder.path().join("shown");
        std::fs::create_dir_all(shown.join("there/deep")).expect("made");
        std::fs::write(shown.join("file"), "").expect("written");
        let volume = folder.path().join("volume");
        std::fs::create_dir(&volume).expect("made");
        let paths = |mounts: &[(&str, &Path)]| {
            let mut plan = Plan {
                mounts: mounts.iter().map(|(target, source)| Mount::new(*source, *target)).collect(),
                ..Plan::default()
            };
            plan.show(&Mount::read_only(&shown, "/acme")).expect("shown");
            plan.mount().expect("mounted");
            plan.binds.iter().map(|one| one.target.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(paths(&[]), ["/acme"]);
        assert_eq!(paths(&[("/acme/there", &volume)]), ["/acme", "/acme/there"]);
        let mut room = paths(&[("/acme/there/new", &volume)]);
        room.sort();
        assert_eq!(room, ["/acme/file", "/acme/there/deep", "/acme/there/new"]);
        assert_eq!(paths(&[("/own", &volume), ("/own/deep", &volume)]), ["/acme", "/own", "/own/deep"]);
        assert!(volume.join("deep").is_dir(), "one in another has a place there");
    }

    #[test]
    fn links_are_not_mounted_through_and_odd_names_stay_one_word() {
        assert_eq!(settle(Path::new("/var/run/secrets/x"), &links()), Path::new("/run/secrets/x"));
        assert_eq!(settle(Path::new("/varied"), &links()), Path::new("/varied"));
        assert_eq!(escape(Path::new("/a b\n#c\\")), "/a\\040b\\012\\043c\\134");
    }
}
