//! The names that the file /etc/hosts of a Pod contains.

use crate::manifest::{Node, Objects};
use crate::workload::{Workload, spec_path};

/// The names in the `hostAliases` of a workload, with their addresses. A container that mounts a file of its own there does not
/// get the kubelet's (`makeMounts`).
pub(crate) fn aliases(objects: &Objects, workload: &Workload) -> Vec<(String, String)> {
    let spec = workload.object.and_then(|index| objects.all[index].node.at(spec_path(workload.kind)));
    let containers = spec.and_then(|spec| spec.get("containers")).map(Node::items).unwrap_or_default();
    let mounts =
        containers.iter().filter_map(|container| container.get("volumeMounts")).flat_map(Node::items);
    if mounts.into_iter().any(|mount| mount.text_at("mountPath") == Some("/etc/hosts")) {
        return Vec::new();
    }
    let items = spec.and_then(|spec| spec.get("hostAliases")).map(Node::items).unwrap_or_default();
    let of_item = |item: &Node| {
        let address = item.text_at("ip").unwrap_or_default().to_owned();
        let names = item.get("hostnames").map(Node::texts).unwrap_or_default();
        names.into_iter().map(|name| (name, address.clone())).collect::<Vec<_>>()
    };
    items.iter().flat_map(of_item).collect()
}
