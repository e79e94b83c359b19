//! What a program of a Pod can reach on this machine.
//!
//! If the machine allows it, a program is confined, much like in a container. It has a root folder of its own
//! ([`Root`]), a process namespace with its own `/proc`, no capabilities, and no way to get any. It is the
//! first process of its namespace, as in a container: the kernel ends everything that it starts, however
//! detached, together with it. A signal that it does not handle is ignored, unless the signal comes from
//! outside and cannot be ignored. The network is this machine's.
//!
//! Otherwise, the program's arguments and environment are rewritten to the real paths of the files. Paths
//! that are compiled into the program do not work, and it can do what this user can.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use super::mount::Mount;
use super::obstacle::Obstacle;
use super::rewriting::rewrite;
use super::root::Root;
use super::tools::{Tools, tool};
use super::volumes::write_file;
use embedded_runtime::settings::Mounts;

/// The isolation that this machine allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Programs are confined.
    Confined(Way),
    /// Paths are only rewritten.
    Rewritten,
    /// Paths are only rewritten, on a machine without `setpriv`: if the harness is killed, the programs keep
    /// running until they are stopped by hand.
    RewrittenAlone,
}

impl Isolation {
    /// Whether programs are confined, so that they see files where their Pods mount them.
    pub(crate) fn confines(self) -> bool {
        matches!(self, Isolation::Confined(_))
    }
}

/// The way in which programs are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// In a user namespace. Root does not need one.
    user: bool,
    /// With a `/proc` of its own. Where a container covers parts of `/proc`, the kernel refuses another one:
    /// the program then sees the list of this machine's processes, but cannot do anything to them.
    own_proc: bool,
}

/// From best to worst. Without a user namespace, a program must not see the `/proc` of others: it could open
/// their files there.
const WAYS: [Way; 3] = [
    Way { user: true, own_proc: true },
    Way { user: false, own_proc: true },
    Way { user: true, own_proc: false },
];

/// Mounts the table, and then runs the program. `$1`: `mount`, `$2`: the table.
const OUTSIDE: &str = "\"$1\" -a -T \"$2\" || exit 125\nshift 2\nexec \"$@\"";
/// Changes to the working folder in the program's root folder, and then runs the program. `$1`: the folder.
const INSIDE: &str = "cd \"$1\" 2>/dev/null || cd /\nshift\nexec \"$@\"";
/// Creates namespaces. `unshare` waits for the program and ends in the same way; if it is killed, so is the
/// program, and with the program every process of the namespace.
const NAMESPACES: [&str; 7] =
    ["--mount", "--propagation", "private", "--pid", "--ipc", "--fork", "--kill-child=KILL"];
/// Makes the program end with the harness: the kernel kills it when the thread that started it is gone.
const DIES_TOO: [&str; 3] = ["--pdeathsig", "KILL", "--"];
/// Removes all capabilities, also for all programs that it starts.
const POWERLESS: [&str; 4] = ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--"];
/// Variables that make `setpriv`, `unshare`, `mount` and the shell load or run code from elsewhere. These
/// tools run outside the sandbox, so such variables are set only inside.
const FOR_INSIDE: [&str; 8] =
    ["GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH"];
/// The prefixes of more such variables.
const FOR_INSIDE_BEGIN: [&str; 3] = ["LD_", "LIBMOUNT_", "BASH_"];

/// A program to start.
pub(crate) struct Wanted<'a> {
    /// A separate folder for the files of the sandbox. The program never sees it.
    pub(crate) scratch: &'a Path,
    /// Files and folders of this machine that it sees in addition to those of the system, at the same paths.
    pub(crate) shown: &'a [Mount],
    /// The Pod's mounts. Their sources are folders and files that only the harness and the Pod write to.
    pub(crate) mounts: &'a [Mount],
    /// The program and its arguments.
    pub(crate) line: Vec<String>,
    /// Its environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// The working folder; `/` if there is no such folder.
    pub(crate) folder: &'a Path,
}

/// A command line that is ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) line: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
}

/// How programs of Pods are confined on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Programs see their own files and processes only.
    Full,
    /// Programs also see the list of this machine's processes, for this reason.
    ProcessesShown(Obstacle),
    /// Programs are not confined and can do everything that this user can, for this reason.
    None(Obstacle),
}

/// Finds out how programs of Pods are confined on this machine. `folder` is used for the test.
pub async fn confinement(folder: &Path) -> Confinement {
    match found(folder).await {
        Ok(Way { own_proc: true, .. }) => Confinement::Full,
        Ok(_) => Confinement::ProcessesShown(Obstacle::of_own_proc()),
        Err(said) => Confinement::None(Obstacle::here(&said)),
    }
}

/// The isolation that is possible here.
pub(crate) async fn detect(wanted: Mounts, folder: &Path) -> Isolation {
    if wanted != Mounts::Rewritten {
        match found(folder).await {
            Ok(way) => return Isolation::Confined(way),
            Err(said) => {
                let Obstacle { cause, way_out } = Obstacle::here(&said);
                tracing::info!(cause, way_out, "programs are not confined: mount paths are rewritten");
            }
        }
    }
    match tool("setpriv") {
        Some(_) => Isolation::Rewritten,
        None => Isolation::RewrittenAlone,
    }
}

/// The best way on this machine, or the tools' message if there is none. The ways are tried until one works.
async fn found(folder: &Path) -> Result<Way, String> {
    static FOUND: OnceLock<Way> = OnceLock::new();
    if let Some(way) = FOUND.get() {
        return Ok(*way);
    }
    let mut said = String::new();
    for way in WAYS.into_iter().filter(|way| way.user || rustix::process::geteuid().is_root()) {
        match try_out(folder, way).await {
            Ok(()) => return Ok(*FOUND.get_or_init(|| way)),
            Err(error) if said.is_empty() => said = error.to_string(),
            Err(_) => {}
        }
    }
    Err(said)
}

async fn try_out(folder: &Path, way: Way) -> io::Result<()> {
    let probe = folder.join("probe");
    let source = probe.join("source");
    write_file(&source.join("file"), b"here")?;
    let mounts = [Mount::read_only(source, "/run/embedded-controllers-probe/deep")];
    let wanted = Wanted {
        scratch: &probe.join("scratch"),
        shown: &[],
        mounts: &mounts,
        line: ["cat", "/run/embedded-controllers-probe/deep/file"].map(str::to_owned).to_vec(),
        environment: BTreeMap::new(),
        folder: Path::new("/"),
    };
    let prepared = prepare(Isolation::Confined(way), wanted)?;
    let Some((program, arguments)) = prepared.line.split_first() else {
        return Err(io::Error::other("no command"));
    };
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    match output.status.success() && output.stdout == b"here" {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Makes the command line that runs a program.
pub(crate) fn prepare(isolation: Isolation, wanted: Wanted<'_>) -> io::Result<Prepared> {
    let Isolation::Confined(way) = isolation else { return Ok(rewritten(isolation, wanted)) };
    let Wanted { scratch, shown, mounts, line, environment, folder } = wanted;
    let tools = Tools::here().map_err(|missing| io::Error::other(format!("there is no {missing}")))?;
    let root = Root::make(&scratch.join("root"), shown, mounts, way.own_proc)?;
    let table = scratch.join("mounts");
    write_file(&table, root.table.as_bytes())?;
    let (inside, environment): (BTreeMap<_, _>, BTreeMap<_, _>) =
        environment.into_iter().partition(|(name, _)| is_for_inside(name));
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut full = vec![tools.setpriv.clone()];
    full.extend(DIES_TOO.map(str::to_owned));
    full.push(tools.unshare.clone());
    full.extend(way.user.then(|| "--map-root-user".to_owned()));
    full.extend(NAMESPACES.map(str::to_owned));
    let outside = ["--", &tools.sh, "-c", OUTSIDE, "sh", &tools.mount, &text(&table), &tools.chroot];
    full.extend(outside.map(str::to_owned));
    full.push(text(&root.folder));
    full.extend([&tools.sh, "-c", INSIDE, "sh", &text(folder), &tools.setpriv].map(str::to_owned));
    full.extend(POWERLESS.map(str::to_owned));
    if !inside.is_empty() {
        full.push(tools.env.clone());
        full.extend(inside.iter().map(|(name, value)| format!("{name}={value}")));
    }
    full.extend(line);
    Ok(Prepared { line: full, environment })
}

fn is_for_inside(variable: &str) -> bool {
    FOR_INSIDE.contains(&variable) || FOR_INSIDE_BEGIN.iter().any(|begin| variable.starts_with(begin))
}

fn rewritten(isolation: Isolation, wanted: Wanted<'_>) -> Prepared {
    let Wanted { mounts, line, environment, .. } = wanted;
    // A program that is named by its path is started without a copy of this process' memory map, which takes
    // longer the larger the map is: with a new environment, the standard library does that for no other
    // program.
    let dies_too = tool("setpriv").filter(|_| isolation == Isolation::Rewritten);
    let dies_too: Vec<String> = dies_too
        .into_iter()
        .flat_map(|path| std::iter::once(path).chain(DIES_TOO.map(str::to_owned)))
        .collect();
    // The program itself stays at its path, even if its Pod mounts something above it.
    let stays = |index: usize, part: &str| index == 0 && Path::new(part).is_file();
    let line = line.iter().enumerate().map(|(index, part)| match stays(index, part) {
        true => part.clone(),
        false => rewrite(part, mounts),
    });
    let environment =
        environment.iter().map(|(name, value)| (name.clone(), rewrite(value, mounts))).collect();
    Prepared { line: dies_too.into_iter().chain(line).collect(), environment }
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
