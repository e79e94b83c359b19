//! The requirements of kind, one by one, for users who want to see all of them at once.

use super::node_image::{self, JUDGED, WITHOUT_A_REGISTRY};
use super::preflight::{
    DISK_LEAST_BYTES, DOCKER_WAY_OUT, INOTIFY_ADVISED, KIND_WAY_OUT, describe, docker_cli, enough_room,
    inotify_limit, kind_version,
};
use super::published::{Published, published};
use crate::host::free_bytes;
use crate::images::Engine;
use crate::requirement::{Remedy, Requirement, State, cores, loopback, memory};
use crate::version::Version;
use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum};
use harness_core::check::chain;
use std::path::Path;

/// Memory of the machine that a single-node cluster needs, in GiB.
pub(super) const MEMORY_GIB: u64 = 4;

/// Queries the engine, kind and the system.
pub(super) async fn requirements() -> Vec<Requirement> {
    let mut all = Vec::new();
    match Engine::connect().await {
        Ok(engine) => of_engine(&engine, &mut all).await,
        Err(error) => {
            all.push(Requirement::fine("Docker", NODES, chain(&error)).but(
                State::Missing,
                "install and start Docker, or set DOCKER_HOST to the address of an engine",
            ))
        }
    }
    all.push(match docker_cli().await {
        Ok(said) => Requirement::fine("docker", "kind uses it to control Docker", said),
        Err(error) => Requirement::fine("docker", "kind uses it to control Docker", chain(&error))
            .but(State::Missing, DOCKER_WAY_OUT),
    });
    all.push(match kind_version().await {
        Ok(version) => Requirement::fine("kind", "creating clusters", version.to_string()),
        Err(error) => {
            let state = if error.is_missing() { State::Missing } else { State::TooOld };
            Requirement::fine("kind", "creating clusters", error.found()).but(state, KIND_WAY_OUT)
        }
    });
    all.extend([memory(MEMORY_GIB << 10, "a cluster of one node"), cores(2, "a cluster and its checks")]);
    all.push(loopback("the cluster's API server, which kind publishes on one"));
    all.extend(INOTIFY_ADVISED.map(|(name, advised)| inotify(name, advised, inotify_limit(name))));
    all
}

const NODES: &str = "the machines of a cluster are containers";

async fn of_engine(engine: &Engine, all: &mut Vec<Requirement>) {
    let info = match describe(engine).await {
        Ok(info) => info,
        Err(error) => {
            let docker = Requirement::fine("Docker", NODES, chain(&error));
            return all.push(docker.but(State::Missing, "'docker info' shows whether it is alive"));
        }
    };
    all.push(Requirement::fine("Docker", NODES, about(&info, engine.host())));
    if engine.is_local()
        && let Some(folder) = info.docker_root_dir.as_deref().map(Path::new)
    {
        all.push(disk(folder, free_bytes(folder)));
    }
    all.push(match node_image::list_available(engine).await {
        Ok(images) if images.iter().any(|(_, version)| version.minor == JUDGED) => node_images(&images, None),
        // Without one of the newest version that is judged it matters whether that can be pulled.
        Ok(images) => node_images(&images, Some(published(engine, JUDGED).await)),
        Err(error) => Requirement::fine("node image", NODE_IMAGE, chain(&error))
            .but(State::Missing, "'docker images' shows what the engine has"),
    });
}

const NODE_IMAGE: &str = "a cluster of its Kubernetes";

/// What a run on kind can use here: the local images, newest first, and what can be pulled of the newest version that the
/// contract covers if it is not among them.
fn node_images(images: &[(String, Version)], published: Option<Published>) -> Requirement {
    let names: Vec<String> = images.iter().map(|(name, version)| format!("{name} ({version})")).collect();
    let here = if names.is_empty() { "no local one".to_owned() } else { names.join(", ") };
    let found = |more: String| Requirement::fine("node image", NODE_IMAGE, format!("{here}{more}"));
    let why = match published {
        None => return found(String::new()),
        Some(Published::As(name)) => {
            return found(format!("; '--kubernetes 1.{JUDGED}' pulls {name}"));
        }
        Some(Published::Not) => format!("the registry has none of 1.{JUDGED}"),
        Some(Published::Unknown(why)) => format!("none of 1.{JUDGED} can be pulled: {why}"),
    };
    let asked = found(format!("; {why}"));
    match images.first() {
        None => asked.but(State::Missing, WITHOUT_A_REGISTRY),
        Some((_, version)) => asked.advised().but(
            State::TooOld,
            format!("run with '--kubernetes 1.{}', or for 1.{JUDGED}: {WITHOUT_A_REGISTRY}", version.minor),
        ),
    }
}

fn about(info: &SystemInfo, host: &str) -> String {
    let version = info.server_version.as_deref().unwrap_or("of unknown version");
    let cgroups = match info.cgroup_version {
        Some(SystemInfoCgroupVersionEnum::_2) => "2",
        Some(SystemInfoCgroupVersionEnum::_1) => "1",
        _ => "of unknown version",
    };
    format!("{version} at {host}, control groups {cgroups}")
}

fn disk(folder: &Path, free: Option<u64>) -> Requirement {
    let needed_for = "files of nodes and images";
    match enough_room(folder, free) {
        Ok(()) => {
            let free = free.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
            Requirement::fine("disk", needed_for, format!("{free} free in {}", folder.display()))
        }
        Err(error) => Requirement::fine("disk", needed_for, chain(&error)).but(
            State::TooSmall,
            format!("free {} MiB; 'docker system df' shows what uses the space", DISK_LEAST_BYTES >> 20),
        ),
    }
}

fn inotify(name: &'static str, advised: u64, found: Option<u64>) -> Requirement {
    let what = match name {
        "max_user_watches" => "inotify watches",
        _ => "inotify instances",
    };
    let needed_for = "clusters of several nodes";
    let Some(found) = found else {
        return Requirement::fine(what, needed_for, "this system does not report it").advised();
    };
    let asked = Requirement::fine(what, needed_for, format!("fs.inotify.{name} is {found}")).advised();
    if found >= advised {
        return asked;
    }
    let low = asked.but(State::TooSmall, format!("as root: sysctl fs.inotify.{name}={advised}"));
    let remedy = Remedy::Limit { file: format!("fs/inotify/{name}"), value: advised };
    Requirement { remedy: Some(remedy), ..low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Need;

    #[test]
    fn low_limits_come_with_a_remedy_and_block_nothing() {
        let low = inotify("max_user_instances", 512, Some(128));
        assert_eq!((low.state, low.need), (State::TooSmall, Need::Advised));
        let file = "fs/inotify/max_user_instances".to_owned();
        assert_eq!(low.remedy, Some(Remedy::Limit { file, value: 512 }));
        assert!(!low.hinders());
        for found in [Some(512), None] {
            let fine = inotify("max_user_instances", 512, found);
            assert_eq!((fine.state, fine.remedy), (State::Fine, None));
        }
    }

    #[test]
    fn kind_works_only_where_a_node_image_is_here_or_can_be_pulled() {
        let here =
            |version: &str| vec![(format!("kindest/node:{version}"), version.parse().expect("a version"))];
        let can = || Some(Published::As("kindest/node:v1.36.1".to_owned()));
        let offline = || Some(Published::Unknown("no such host".to_owned()));
        let fine = node_images(&here("v1.36.2"), None);
        assert_eq!((fine.state, fine.found.as_str()), (State::Fine, "kindest/node:v1.36.2 (v1.36.2)"));
        let pulled = node_images(&[], can());
        assert_eq!(pulled.state, State::Fine);
        assert_eq!(pulled.found, "no local one; '--kubernetes 1.36' pulls kindest/node:v1.36.1");
        let older = node_images(&here("v1.20.2"), can());
        assert!(
            older.state == State::Fine
                && older.found.contains("v1.20.2")
                && older.found.contains("pulls kindest/node:v1.36.1")
        );
        let missing = node_images(&[], offline());
        assert!(
            missing.hinders() && missing.found == "no local one; none of 1.36 can be pulled: no such host",
            "{missing:?}"
        );
        for part in ["ci/node-image/build", "--cluster embedded"] {
            assert!(missing.way_out.contains(part), "{}", missing.way_out);
        }
        let old_only = node_images(&here("v1.20.2"), offline());
        assert!(!old_only.hinders() && old_only.state == State::TooOld, "{old_only:?}");
        assert!(
            old_only.way_out.starts_with("run with '--kubernetes 1.20', or for 1.36: "),
            "{}",
            old_only.way_out
        );
    }

    #[test]
    fn a_full_disk_hinders() {
        let folder = Path::new("/var/lib/docker");
        assert!(!disk(folder, None).hinders());
        let full = disk(folder, Some(1 << 30));
        assert!(full.hinders() && full.found.contains("only 1024 MiB are free"), "{full:?}");
    }
}
