//! Mounts below the folder of another mount: a container runtime has to create the inner folder first.

use super::hindrance::{Hindrance, decisive};
use super::outside::Condition;
use super::refs::Stage;
use crate::manifest::{Node, Object};

/// Folders that a machine of kubeadm has, with those inside them.
const OF_KUBEADM: [(&str, &[&str]); 2] =
    [("/etc/kubernetes", &["manifests", "pki", "pki/etcd"]), ("/etc/kubernetes/pki", &["etcd"])];

/// What mounts below folders of the Node mean, which the container may only read: neither the kubelet nor the container
/// runtime can create a folder there, so that the container does not start unless the Node has it
/// (`MakeNestedMountpoints` is not called for `hostPath`).
pub(super) fn below_read_only(object: &Object, spec: &Node) -> (Vec<Hindrance>, Vec<Condition>) {
    let (mut hindrances, mut conditions) = (Vec::new(), Vec::new());
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    for container in decisive(spec) {
        let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
        for outer in mounts.iter().filter(|mount| mount.get("readOnly").and_then(Node::bool) == Some(true)) {
            let volume = volumes.iter().find(|volume| volume.text_at("name") == outer.text_at("name"));
            let Some(host) = volume.and_then(|volume| volume.get("hostPath")) else { continue };
            let (Some(folder), Some(path)) = (host.text_at("path"), outer.text_at("mountPath")) else {
                continue;
            };
            let parent = format!("{}/", path.trim_end_matches('/'));
            for inner in mounts {
                let below = inner.text_at("mountPath").and_then(|inner| inner.strip_prefix(&parent));
                let Some(below) = below.filter(|below| !below.is_empty()) else { continue };
                let known = OF_KUBEADM.iter().find(|(own, _)| *own == folder.trim_end_matches('/'));
                let name = container.text_at("name").unwrap_or_default();
                match known.map(|(_, inside)| inside.contains(&below)) {
                    Some(true) => {}
                    Some(false) => hindrances.push(Hindrance::new(
                        Stage::Start,
                        format!(
                            "the container '{name}' cannot start: {folder} of the Node, which it may only read, has no \
                             '{below}' to mount a volume on"
                        ),
                        object.place(inner),
                        format!("mount the volume outside of {path}"),
                    )),
                    None => conditions.push(Condition {
                        words: format!(
                            "the Node has {}/{below}, on which a volume is mounted, as the container may only read {folder}",
                            folder.trim_end_matches('/')
                        ),
                        place: object.place(inner),
                    }),
                }
            }
        }
    }
    (hindrances, conditions)
}
