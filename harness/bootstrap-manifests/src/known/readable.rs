//! Whether the user of a container may read a file that a kubelet writes from a ConfigMap or a Secret.

use crate::manifest::{Node, Objects};
use crate::workload::{Hindrance, Stage, Workload, spec_path};

/// The bits of a mode that let the group and others read.
const GROUP: i64 = 0o040;
const OTHERS: i64 = 0o004;

/// Whether a container's user may read a file of root with these bits. With `fsGroup` the files belong to that group, which
/// may read them. The user of the image is taken to be one that may.
pub(super) fn may_read(spec: &Node, container: &Node, bits: i64) -> bool {
    let groups = spec.at(&["securityContext", "supplementalGroups"]).map(Node::items).unwrap_or_default();
    // A user without a group has that of root.
    let of_root = number(spec, container, "runAsGroup").is_none_or(|group| group == 0)
        || groups.iter().any(|group| group.int() == Some(0));
    user_of(spec, container).is_none_or(|user| user == 0)
        || spec.at(&["securityContext", "fsGroup"]).is_some()
        || bits & OTHERS != 0
        || (bits & GROUP != 0 && of_root)
}

/// The user of a container, if the manifests set it.
pub(super) fn user_of(spec: &Node, container: &Node) -> Option<i64> {
    number(spec, container, "runAsUser")
}

/// A setting of the container, or of its Pod.
fn number(spec: &Node, container: &Node, key: &str) -> Option<i64> {
    let own = container.at(&["securityContext", key]);
    own.or_else(|| spec.at(&["securityContext", key])).and_then(Node::int)
}

/// The file of `--cloud-config`, if the container's user may not read it.
pub(super) fn cloud_config(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let object = &objects.all[workload.object?];
    let spec = object.node.at(spec_path(workload.kind))?;
    let (path, _) = workload.flag("cloud-config").filter(|(value, _)| !value.is_empty())?;
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let (at, _) = workload.container_with("cloud-config")?;
    let container = containers.get(at)?;
    let (node, bits) = mode_of(spec, container, &path)?;
    if may_read(spec, container, bits) {
        return None;
    }
    let place = object.place(node);
    let words = format!("its user may not read {path}, which has the mode {bits:04o}");
    Some(Hindrance::new(Stage::Work, words, place, String::from("set defaultMode to 0444, or set fsGroup")))
}

/// The mode of a file in a volume that a kubelet writes, and where it is written.
pub(super) fn mode_of<'n>(spec: &'n Node, container: &'n Node, path: &str) -> Option<(&'n Node, i64)> {
    let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
    let below = |mount: &&Node| {
        let folder = mount.text_at("mountPath").unwrap_or_default().trim_end_matches('/');
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mount =
        mounts.iter().filter(below).max_by_key(|mount| mount.text_at("mountPath").map_or(0, str::len))?;
    let folder = mount.text_at("mountPath")?.trim_end_matches('/');
    let rest = path.strip_prefix(folder)?.trim_start_matches('/');
    let file = mount.text_at("subPath").unwrap_or(rest);
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let volume = volumes.iter().find(|volume| volume.text_at("name") == mount.text_at("name"))?;
    let source = ["configMap", "secret", "projected"].iter().find_map(|kind| volume.get(kind))?;
    let parts = source.get("sources").map(Node::items).unwrap_or_default();
    let inner = parts.iter().filter_map(|part| part.get("configMap").or_else(|| part.get("secret")));
    let items = inner.chain([source]).filter_map(|own| own.get("items")).flat_map(Node::items);
    let item = items.into_iter().find(|item| item.text_at("path") == Some(file));
    let node = item.and_then(|item| item.get("mode")).or_else(|| source.get("defaultMode"))?;
    Some((node, node.int()?))
}
