//! Whether this machine can run a cluster, checked before anything is created.

use crate::host::free_bytes;
use crate::images::{Engine, EngineError};
use crate::version::Version;
use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use harness_core::bounded;
use harness_core::check::chain;
use harness_core::files;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// The oldest kind whose options and configuration the harness supports.
const KIND_LEAST: Version = Version::release(0, 20, 0);
/// Minimum free space in Docker's folder: a node writes 1.5 to 2 GiB, and a full disk fails late and with unclear
/// messages.
pub(super) const DISK_LEAST_BYTES: u64 = 4 << 30;
/// What kind's documentation advises: <https://kind.sigs.k8s.io/docs/user/known-issues/>.
pub(super) const INOTIFY_ADVISED: [(&str, u64); 2] =
    [("max_user_instances", 512), ("max_user_watches", 524_288)];
/// How to get kind.
pub(super) const KIND_WAY_OUT: &str =
    "install kind 0.20 or newer (https://kind.sigs.k8s.io; on Debian, ci/docker/setup does)";
/// How to get Docker's command line.
pub(super) const DOCKER_WAY_OUT: &str =
    "kind needs Docker's command line; install it (Debian: docker.io or docker-cli)";
/// Time limit for a query.
const LIMIT: Duration = Duration::from_secs(20);

/// Why this machine cannot run a cluster.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The engine does not answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A program is missing or cannot be run.
    #[error("cannot run '{program}': {}; {way_out}", files::why_not_started(cause))]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// How to get it.
        way_out: &'static str,
        /// Why it cannot be run.
        cause: std::io::Error,
    },
    /// kind is too old, or the program is not kind.
    #[error(
        "kind {KIND_LEAST} or newer is needed, but 'kind version' reports '{found}'; see https://kind.sigs.k8s.io for \
         a newer one"
    )]
    OldKind {
        /// Its output.
        found: String,
    },
    /// The disk is nearly full.
    #[error(
        "only {} MiB are free in Docker's folder {}, but a cluster needs {} MiB; free some space ('docker system df' \
         shows what uses it)", free_bytes >> 20, folder.display(), DISK_LEAST_BYTES >> 20
    )]
    DiskFull {
        /// Docker's folder.
        folder: PathBuf,
        /// The free space in it.
        free_bytes: u64,
    },
}

impl PreflightError {
    /// Whether something is missing, not just too old or too small.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, PreflightError::NoProgram { .. } | PreflightError::Engine(_))
    }

    /// What was found, without the remedy.
    pub(super) fn found(&self) -> String {
        match self {
            PreflightError::NoProgram { program, cause, .. } => {
                format!("cannot run '{program}': {}", files::why_not_started(cause))
            }
            PreflightError::OldKind { found } => format!("'kind version' reports '{found}'"),
            PreflightError::Engine(_) | PreflightError::DiskFull { .. } => chain(self),
        }
    }
}

/// The version of control groups on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cgroups {
    /// The old hierarchies, one per controller.
    V1,
    /// The unified hierarchy.
    V2,
}

/// The properties of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Preflight {
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// Version of kind.
    pub(crate) kind: Version,
    /// Control groups of the machine Docker runs on.
    pub(crate) cgroups: Cgroups,
}

/// Queries the engine, kind and the system.
///
/// # Errors
/// What is missing, and how to get it.
pub(crate) async fn preflight(engine: &Engine) -> Result<Preflight, PreflightError> {
    let info = async { Ok(describe(engine).await?) };
    let (kind, _, info) = tokio::try_join!(kind_version(), docker_cli(), info)?;
    let mut warnings = Vec::new();
    if engine.is_local() {
        if let Some(folder) = info.docker_root_dir.as_deref().map(Path::new) {
            enough_room(folder, free_bytes(folder))?;
        }
        warnings.extend(inotify_warnings(inotify_limit));
    }
    if !engine.is_local() {
        warnings.push(format!(
            "the Docker engine is at {}; ports that it publishes on 127.0.0.1 must be reachable on 127.0.0.1 of this \
             machine",
            engine.host()
        ));
    }
    let cgroups = match info.cgroup_version {
        Some(SystemInfoCgroupVersionEnum::_2) => Cgroups::V2,
        _ => Cgroups::V1,
    };
    Ok(Preflight { warnings, kind, cgroups })
}

/// The engine's description of itself.
pub(super) async fn describe(engine: &Engine) -> Result<SystemInfo, EngineError> {
    engine.call("describe", "itself", LIMIT, engine.docker().info()).await
}

/// kind's version, which the harness must support.
pub(super) async fn kind_version() -> Result<Version, PreflightError> {
    parse_kind_version(&say("kind", &["version"], KIND_WAY_OUT).await?)
}

/// The version of Docker's command line, which kind uses to control Docker.
pub(super) async fn docker_cli() -> Result<String, PreflightError> {
    let said = say("docker", &["--version"], DOCKER_WAY_OUT).await?;
    Ok(said.trim().to_owned())
}

/// A limit of the kernel, if it reports it.
pub(super) fn inotify_limit(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?.trim().parse().ok()
}

async fn say(
    program: &'static str,
    arguments: &[&str],
    way_out: &'static str,
) -> Result<String, PreflightError> {
    let mut command = Command::new(program);
    let asked = bounded::output(command.args(arguments).stdin(std::process::Stdio::null()));
    let failed = |cause| PreflightError::NoProgram { program, way_out, cause };
    match timeout(LIMIT, asked).await {
        Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Err(source)) => Err(failed(source)),
        Err(_) => Err(failed(std::io::ErrorKind::TimedOut.into())),
    }
}

/// Parses `kind v0.33.0 go1.27.2 linux/amd64`.
fn parse_kind_version(said: &str) -> Result<Version, PreflightError> {
    let version = said.split_whitespace().nth(1).and_then(|word| word.parse::<Version>().ok());
    match version {
        Some(version) if version >= KIND_LEAST => Ok(version),
        _ => Err(PreflightError::OldKind { found: said.trim().to_owned() }),
    }
}

pub(super) fn enough_room(folder: &Path, free_bytes: Option<u64>) -> Result<(), PreflightError> {
    match free_bytes {
        Some(free_bytes) if free_bytes < DISK_LEAST_BYTES => {
            Err(PreflightError::DiskFull { folder: folder.to_owned(), free_bytes })
        }
        _ => Ok(()),
    }
}

fn inotify_warnings(read: impl Fn(&str) -> Option<u64>) -> Vec<String> {
    INOTIFY_ADVISED
        .iter()
        .filter_map(|(name, advised)| {
            let found = read(name).filter(|found| found < advised)?;
            Some(format!(
                "fs.inotify.{name} is {found}; with several nodes that can cause 'too many open files'. As root: \
                 sysctl fs.inotify.{name}={advised}"
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_or_strange_kind_is_refused_with_its_own_words() {
        assert_eq!(
            parse_kind_version("kind v0.33.0 go1.27.2 linux/amd64\n").ok(),
            Some(Version::release(0, 33, 0))
        );
        for said in ["kind v0.19.0 go1.20 linux/amd64", "kinda", ""] {
            let text = parse_kind_version(said).expect_err("refused").to_string();
            assert!(
                text.contains(&format!("v0.20.0 or newer is needed, but 'kind version' reports '{said}'")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_full_disk_is_seen_before_anything_is_made() {
        let folder = Path::new("/var/lib/docker");
        assert!(enough_room(folder, None).is_ok());
        assert!(enough_room(folder, Some(DISK_LEAST_BYTES)).is_ok());
        let text = enough_room(folder, Some(1 << 30)).expect_err("full").to_string();
        assert!(text.starts_with(
            "only 1024 MiB are free in Docker's folder /var/lib/docker, but a cluster needs 4096 MiB"
        ));
    }

    #[test]
    fn low_inotify_limits_are_a_warning_with_the_remedy() {
        assert!(inotify_warnings(|_| Some(1_000_000)).is_empty());
        assert!(inotify_warnings(|_| None).is_empty());
        let warnings = inotify_warnings(|name| (name == "max_user_instances").then_some(128));
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].ends_with("As root: sysctl fs.inotify.max_user_instances=512"),
            "{}",
            warnings[0]
        );
    }
}
