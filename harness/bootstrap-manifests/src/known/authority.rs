//! The certificate authority that a program finds next to its token.

use super::readable::{may_read, mode_of};
use crate::manifest::{Node, Objects};
use crate::workload::{Hindrance, Stage, TOKEN_FOLDER, Workload, spec_path};

/// The authority in the folder of the token, if the container's user may not read it: then the program does not trust the
/// API server (client-go, `InClusterConfig`). The token itself belongs to the user.
pub(super) fn unreadable(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    if super::own_identity(objects, workload) {
        return None;
    }
    let object = &objects.all[workload.object?];
    let spec = object.node.at(spec_path(workload.kind))?;
    let path = format!("{TOKEN_FOLDER}/ca.crt");
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    containers.iter().find_map(|container| {
        let (node, bits) = mode_of(spec, container, &path)?;
        (!may_read(spec, container, bits)).then(|| {
            Hindrance::new(
                Stage::Work,
                format!("its user may not read {path}, which has the mode {bits:04o}, so it does not trust the API server"),
                object.place(node),
                String::from("set defaultMode to 0444, or set fsGroup"),
            )
        })
    })
}
