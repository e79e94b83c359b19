//! What the embedded cluster needs of this machine: next to nothing.

use crate::cluster::requirement::{Requirement, State, cores, loopback, memory, temporary_files};

/// What a run takes of memory at most, GiB, with room to spare.
pub(super) const MEMORY_GIB: u64 = 1;
/// The same of the disk, MiB.
const DISK_MIB: u64 = 512;

/// Asks the system.
pub(super) async fn requirements() -> Vec<Requirement> {
    let confined = Requirement::fine(
        "namespaces",
        "a CCM finds its files and its service account where its Pod mounts them, and what it starts ends with it",
        "programs get a mount and process namespace of their own",
    );
    let folder = tempfile::tempdir();
    let here = match &folder {
        Ok(folder) => embedded_cluster::confines_programs(folder.path()).await,
        Err(_) => false,
    };
    vec![
        temporary_files(DISK_MIB, "the run's folder: kubeconfig, files of Pods, logs"),
        memory(MEMORY_GIB << 10, "clusters side by side in this process"),
        cores(2, "clusters beside their checks"),
        loopback("API servers, clouds and the CCM's replicas listen there"),
        match here {
            true => confined.advised(),
            false => Requirement { found: "this machine gives programs none".to_owned(), ..confined }
                .advised()
                .but(
                    State::Missing,
                    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 or user.max_user_namespaces; in a \
                     container, start that with --security-opt seccomp=unconfined), and install util-linux (unshare, \
                     setpriv, mount) and a shell; without, mount paths are rewritten in arguments and environment, and \
                     a CCM works that is told all its paths there, as the reference CCM is, but none that looks for its \
                     service account where Pods have it",
                ),
        },
    ]
}
