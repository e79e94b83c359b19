//! The names that the file /etc/hosts of a Pod contains.

use crate::manifest::{Node, Objects};
use crate::workload::{Workload, spec_path};

/// The names in the `hostAliases` of a workload, with their addresses. If its program mounts the file /etc/hosts of the Node, it
/// does not get that of the kubelet (`makeMounts`).
pub(crate) fn aliases(objects: &Objects, workload: &Workload) -> Vec<(String, String)> {
    let spec = workload.object.and_then(|index| objects.all[index].node.at(spec_path(workload.kind)));
    if spec.is_some_and(|spec| mounts_hosts_of_the_node(spec, workload)) {
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

fn mounts_hosts_of_the_node(spec: &Node, workload: &Workload) -> bool {
    let Some((position, _)) = workload.program() else { return false };
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let mounts = containers.get(position).and_then(|own| own.get("volumeMounts")).map(Node::items);
    let mount =
        mounts.unwrap_or_default().iter().find(|mount| mount.text_at("mountPath") == Some("/etc/hosts"));
    let name = mount.and_then(|mount| mount.text_at("name"));
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    volumes
        .iter()
        .any(|volume| name.is_some() && volume.text_at("name") == name && volume.get("hostPath").is_some())
}
