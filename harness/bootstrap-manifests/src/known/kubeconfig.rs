//! The file of `--kubeconfig`: where it comes from, and whether the user of the container may read it.

use super::kubeconfig_text::{acts_as, fault, server_of};
use super::readable::{may_read, user_of};
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Condition, TOKEN_FOLDER, Workload, expanded, spec_path};

/// Kubeconfigs that kubeadm writes on control planes, readable by root only.
const OF_KUBEADM: &[&str] = &[
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/super-admin.conf",
    "/etc/kubernetes/controller-manager.conf",
    "/etc/kubernetes/scheduler.conf",
];

/// The kubeconfig of the kubelet.
const OF_KUBELET: &str = "/etc/kubernetes/kubelet.conf";

/// Kubeconfigs of kubeadm's components, whose users have no permissions for the Leases of others.
const OF_COMPONENTS: [(&str, &str); 2] = [
    ("/etc/kubernetes/controller-manager.conf", "kube-controller-manager"),
    ("/etc/kubernetes/scheduler.conf", "kube-scheduler"),
];

/// Whether the manifests bind a role to the user of a component.
fn is_granted(objects: &Objects, component: &str) -> bool {
    let user = format!("system:{component}");
    let bindings = ["ClusterRoleBinding", "RoleBinding"].into_iter().flat_map(|kind| objects.of_kind(kind));
    let mut subjects =
        bindings.flat_map(|binding| binding.node.get("subjects").map(Node::items).unwrap_or_default());
    subjects.any(|subject| subject.text_at("name") == Some(user.as_str()))
}

/// What is known of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kubeconfig {
    /// Its text is in the manifests.
    Text { text: String, server: Option<String>, place: Place },
    /// A file of kubeadm on control planes.
    OfKubeadm { readable: bool, place: Place },
    /// Another file of the Node.
    OnNode { file: String, place: Place },
    /// The program cannot read it.
    Unreadable { why: String, place: Place, advice: String },
}

/// The file of the flag; `None` if the manifests do not show it.
pub(super) fn find(objects: &Objects, workload: &Workload) -> Option<Kubeconfig> {
    let (path, _) = workload.flag("kubeconfig").filter(|(value, _)| !value.is_empty())?;
    let object = &objects.all[workload.object?];
    let spec = object.node.at(spec_path(workload.kind))?;
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let (at, own) = workload.container_with("kubeconfig")?;
    let container = containers.get(at)?;
    let mounts = container.get("volumeMounts").map(Node::items).unwrap_or_default();
    let below = |mount: &&Node| mount.text_at("mountPath").and_then(|own| inside(&path, own)).is_some();
    // The longest mount path is the one that counts.
    // Without a volume it is a file of the image, which the manifests do not show.
    let mount = mounts.iter().filter(below).max_by_key(|m| m.text_at("mountPath").map_or(0, str::len))?;
    let below = match mount.get("subPathExpr").and_then(Node::text) {
        Some(expression) => expanded(expression, &own.env),
        None => mount.text_at("subPath").unwrap_or_default().to_owned(),
    };
    if below.contains('$') {
        return None;
    }
    let relative = joined(&below, inside(&path, mount.text_at("mountPath")?)?);
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let volume = volumes.iter().find(|volume| volume.text_at("name") == mount.text_at("name"))?;
    let user = user_of(spec, container);
    if let Some(host) = volume.get("hostPath") {
        let on_node = joined(host.text_at("path")?, &relative);
        if on_node == OF_KUBELET {
            return Some(Kubeconfig::Unreadable {
                why: format!(
                    "its kubeconfig {path} is that of the kubelet, which may neither list all Nodes nor remove their \
                     taints (node authorizer, NodeRestriction)"
                ),
                place: object.place(host),
                advice: String::from("use a service account, or a kubeconfig with an identity of its own"),
            });
        }
        let place = object.place(host);
        let of_component = OF_COMPONENTS.iter().find(|(file, _)| *file == on_node);
        let elects = workload.flag("leader-elect").is_none_or(|(value, _)| value != "false");
        if let Some((_, component)) = of_component.filter(|(_, own)| elects && !is_granted(objects, own)) {
            return Some(Kubeconfig::Unreadable {
                why: format!(
                    "its kubeconfig {path} is that of {component}, which may only have its own Lease, and may not update \
                     Nodes"
                ),
                place,
                advice: String::from("use a service account, or a kubeconfig with an identity of its own"),
            });
        }
        return Some(match OF_KUBEADM.contains(&on_node.as_str()) {
            true => Kubeconfig::OfKubeadm { readable: user.is_none_or(|user| user == 0), place },
            false => Kubeconfig::OnNode { file: on_node, place },
        });
    }
    if let Some(empty) = volume.get("emptyDir").filter(|_| spec.get("initContainers").is_none()) {
        return Some(Kubeconfig::Unreadable {
            why: format!("nothing writes its kubeconfig {path} to the empty volume"),
            place: object.place(empty),
            advice: String::from("mount a ConfigMap or a Secret with the kubeconfig"),
        });
    }
    let (source, found) = source_of(objects, object, volume, &relative)?;
    let mode = volume.at(&["projected", "defaultMode"]).or_else(|| source.get("defaultMode"));
    Some(of_object(object, (spec, container), (source, mode), found, &relative, &path))
}

/// The ConfigMap or Secret of a volume that contains a file, and the part of the volume that refers to it. A volume without
/// sources has only one.
fn source_of<'a>(
    objects: &'a Objects,
    object: &Object,
    volume: &'a Node,
    file: &str,
) -> Option<(&'a Node, &'a Object)> {
    let named = |holder: &'a Node| {
        let kinds = [("configMap", "ConfigMap"), ("secret", "Secret")];
        kinds.iter().find_map(|(field, kind)| {
            let source = holder.get(field)?;
            // A volume calls the field of a Secret secretName, a source name.
            let name = source.text_at("secretName").or_else(|| source.text_at("name"))?;
            Some((source, objects.find(kind, &object.namespace, name)?))
        })
    };
    let Some(projected) = volume.get("projected") else { return named(volume) };
    let contains = |(source, found): &(&Node, &Object)| {
        let items = source.get("items").map(Node::items).unwrap_or_default();
        let has = |map: &&str| found.node.at(&[*map, file]).is_some();
        items.iter().any(|item| item.text_at("path") == Some(file))
            || (items.is_empty() && ["data", "stringData"].iter().any(has))
    };
    let sources = projected.get("sources").map(Node::items).unwrap_or_default();
    sources.iter().filter_map(named).find(contains)
}

/// The condition that a kubeconfig from a folder of the Node, which is not one of kubeadm's, is there.
pub(super) fn on_the_node(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let Kubeconfig::OnNode { file, place } = find(objects, workload)? else { return None };
    Some(Condition { words: format!("the Node has the kubeconfig {file}"), place })
}

/// The condition on the user as whom the program acts.
pub(super) fn impersonates(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let Kubeconfig::Text { text, place, .. } = find(objects, workload)? else { return None };
    let user = acts_as(&text)?;
    let words = format!(
        "its identity may impersonate {user}, as whom its kubeconfig acts, and {user} has the permissions of a CCM"
    );
    Some(Condition { words, place })
}

/// The file in a volume of a ConfigMap or a Secret of the manifests.
fn of_object(
    object: &Object,
    (spec, container): (&Node, &Node),
    (source, default_mode): (&Node, Option<&Node>),
    found: &Object,
    relative: &str,
    path: &str,
) -> Kubeconfig {
    let items = source.get("items").map(Node::items).unwrap_or_default();
    let item = items.iter().find(|item| item.text_at("path") == Some(relative));
    let key = match item {
        Some(item) => item.text_at("key").unwrap_or_default(),
        None if items.is_empty() => relative,
        None => "",
    };
    let text = ["data", "stringData"].iter().find_map(|map| found.node.at(&[*map, key])?.scalar());
    let encoded = found.kind == "Secret" && found.node.at(&["data", key]).is_some();
    let title = format!("{}/{}", found.kind, found.name);
    let Some(text) = text else {
        return Kubeconfig::Unreadable {
            why: format!(
                "its kubeconfig {path} does not exist: {title} does not provide the file '{relative}'"
            ),
            place: object.place(source),
            advice: format!("add the key to {title}, or correct --kubeconfig"),
        };
    };
    let mode = item.and_then(|item| item.get("mode")).or(default_mode);
    let bits = mode.and_then(Node::int).unwrap_or(0o644);
    if !may_read(spec, container, bits) {
        return Kubeconfig::Unreadable {
            why: format!(
                "it runs as user {} and may not read its kubeconfig {path}, which has the mode {bits:04o}",
                user_of(spec, container).unwrap_or_default()
            ),
            place: object.place(mode.unwrap_or(source)),
            advice: String::from("set defaultMode to 0444, or set fsGroup"),
        };
    }
    let is_there = |file: &str| {
        // A relative path begins at the folder of the kubeconfig, whose other files are not examined.
        if !file.starts_with('/') {
            return true;
        }
        let containers = spec.get("containers").map(Node::items).unwrap_or_default();
        let mounts = containers.iter().filter_map(|own| own.get("volumeMounts")).flat_map(Node::items);
        let mut paths = mounts.into_iter().filter_map(|mount| mount.text_at("mountPath"));
        inside(file, TOKEN_FOLDER).is_some() || paths.any(|path| inside(file, path).is_some())
    };
    if let Some((what, advice)) = (!encoded).then(|| fault(&text, &is_there)).flatten() {
        return Kubeconfig::Unreadable {
            why: format!("its kubeconfig {path} {what}"),
            place: found.at(),
            advice,
        };
    }
    let server = (!encoded).then(|| server_of(&text)).flatten();
    Kubeconfig::Text { text, server, place: found.at() }
}

/// The rest of a path below a folder.
fn inside<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn joined(folder: &str, rest: &str) -> String {
    match (folder, rest) {
        ("", rest) => rest.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, rest) => format!("{}/{rest}", folder.trim_end_matches('/')),
    }
}
