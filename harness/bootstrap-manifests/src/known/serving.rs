//! The certificate with which a program of the framework serves its port.

use crate::manifest::{Node, Objects};
use crate::workload::{Hindrance, Stage, Workload, spec_path};

/// `--cert-dir` in a folder to which the program cannot write. It then exits, as it makes a certificate there before it
/// serves (`MaybeDefaultWithSelfSignedCerts`). Without the flag the certificate stays in memory.
pub(super) fn unwritable(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    let (folder, place) = flag("cert-dir")?;
    let unused = flag("tls-cert-file").is_some() || flag("secure-port").is_some_and(|(port, _)| port == "0");
    let object = &objects.all[workload.object?];
    let spec = object.node.at(spec_path(workload.kind))?;
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let (at, _) = workload.container_with("cert-dir")?;
    let container = containers.get(at)?;
    let sealed = container.at(&["securityContext", "readOnlyRootFilesystem"])?.bool() == Some(true);
    let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
    let above = |mount: &Node| {
        let own = mount.text_at("mountPath").unwrap_or_default().trim_end_matches('/');
        folder.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    (sealed && !unused && !mounts.iter().any(above)).then(|| {
        Hindrance::new(
            Stage::Work,
            format!(
                "it cannot write its certificate to {folder}, as its root file system is read-only, and exits"
            ),
            place,
            format!("mount an emptyDir at {folder}, or remove --cert-dir"),
        )
    })
}
