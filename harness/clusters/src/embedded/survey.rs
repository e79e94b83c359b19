//! The few requirements of the embedded cluster.

use crate::requirement::{Requirement, State, cores, loopback, memory, temporary_files};
use embedded_cluster::{Confinement, Obstacle, confinement};
use harness_core::files;

/// Maximum memory of a run in GiB, with a margin.
pub(super) const MEMORY_GIB: u64 = 1;
/// Maximum disk space of a run in MiB, with a margin.
const DISK_MIB: u64 = 512;

/// Queries the system.
pub(super) async fn requirements() -> Vec<Requirement> {
    let found = match tempfile::tempdir() {
        Ok(folder) => confinement(folder.path()).await,
        Err(error) => Confinement::None(Obstacle::here(&files::why(&error))),
    };
    vec![
        temporary_files(DISK_MIB, "the run's folder: kubeconfig, files of Pods, logs"),
        memory(MEMORY_GIB << 10, "several clusters in this process"),
        cores(2, "clusters and their checks"),
        loopback("API servers, clouds and the CCM's replicas listen on them"),
        namespaces(found),
    ]
}

fn namespaces(found: Confinement) -> Requirement {
    let confined = Requirement::fine(
        "namespaces",
        "a CCM runs in a sandbox: it finds its files where its Pod mounts them, and has no access to other files or \
         processes",
        "programs get their own root folder, process namespace and /proc",
    )
    .advised();
    match found {
        Confinement::Full => confined,
        Confinement::ProcessesShown(Obstacle { cause, way_out }) => Requirement {
            found: format!("programs are sandboxed, but see the list of this machine's processes: {cause}"),
            ..confined
        }
        .but(State::TooSmall, way_out),
        Confinement::None(Obstacle { cause, way_out }) => {
            Requirement { found: format!("programs are not sandboxed: {cause}"), ..confined }.but(
                State::Missing,
                format!(
                    "{way_out}. Until then a CCM on the embedded cluster can read the files and signal the processes \
                     that you can, and does not find files of its Pod at fixed paths, such as the token of its service \
                     account"
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obstacles_are_named_with_a_remedy_and_do_not_stop_a_run() {
        let obstacle = || Obstacle { cause: "the cause".to_owned(), way_out: "do this".to_owned() };
        assert_eq!(namespaces(Confinement::Full).state, State::Fine);
        let none = namespaces(Confinement::None(obstacle()));
        assert!(none.found.ends_with("not sandboxed: the cause"), "{}", none.found);
        assert!(none.way_out.starts_with("do this. Until then a CCM"), "{}", none.way_out);
        assert_eq!((none.state, none.hinders()), (State::Missing, false));
        let shown = namespaces(Confinement::ProcessesShown(obstacle()));
        assert_eq!(
            (shown.state, shown.way_out.as_str(), shown.hinders()),
            (State::TooSmall, "do this", false)
        );
    }
}
