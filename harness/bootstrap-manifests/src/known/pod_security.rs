//! The levels of the Pod Security Standards, as the admission plugin enforces them in the namespaces of the manifests.

use crate::cluster::Version;
use crate::manifest::{Entry, Node, Object, Objects};
use crate::workload::{Hindrance, SAFE_SYSCTLS, Stage, Workload, spec_path};

/// The levels of the Pod Security Standards that a namespace of the set enforces.
pub(super) fn apply(objects: &Objects, object: &Object, workload: &mut Workload) {
    let label = "pod-security.kubernetes.io/enforce";
    let namespace = objects.of_kind("Namespace").find(|own| own.name == workload.namespace);
    let Some(enforced) = namespace.and_then(|own| own.node.at(&["metadata", "labels", label])) else {
        return;
    };
    let level = enforced.text().unwrap_or_default();
    if !matches!(level, "baseline" | "restricted") {
        return;
    }
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return };
    let version = namespace.and_then(|own| own.node.at(&["metadata", "labels", VERSION]));
    let minor = version.and_then(Node::text).and_then(minor_of).unwrap_or(Version::DEFAULT.minor);
    let mut broken = beyond_baseline(spec, minor);
    if level == "restricted" {
        broken = broken.or_else(|| beyond_restricted(spec, minor));
    }
    if let Some((node, what)) = broken {
        workload.hindrances.push(Hindrance {
            stage: Stage::Creation,
            words: format!(
                "Namespace/{} enforces Pod security '{level}', which forbids {what}",
                workload.namespace
            ),
            place: object.place(node),
            advice: format!("label Namespace/{} '{label}: privileged'", workload.namespace),
            // The admission plugin is enabled by default since then.
            since: 23,
            edit: None,
        });
    }
}

/// The label with the version of the standards that a namespace enforces.
const VERSION: &str = "pod-security.kubernetes.io/enforce-version";

/// The minor version in `v1.29`; `None` for `latest`.
fn minor_of(version: &str) -> Option<u32> {
    version.strip_prefix("v1.")?.parse().ok()
}

/// Since which minor version of the standards each sysctl is allowed; those before 1.27 always were.
const LATER_SYSCTLS: [(&str, u32); 7] = [
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

/// Capabilities that the baseline level allows a container to add.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kinds of volumes that the restricted level allows.
const RESTRICTED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

fn containers(spec: &Node) -> impl Iterator<Item = &Node> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).map(Node::items).unwrap_or_default())
}

/// The first thing that the baseline level of this version forbids.
fn beyond_baseline(spec: &Node, minor: u32) -> Option<(&Node, &'static str)> {
    let set = |key: &str| spec.get(key).filter(|value| value.bool() == Some(true));
    let host = set("hostNetwork").map(|n| (n, "hostNetwork"));
    let host = host.or_else(|| set("hostPID").map(|n| (n, "hostPID")));
    let host = host.or_else(|| set("hostIPC").map(|n| (n, "hostIPC")));
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let host = host.or_else(|| volumes.iter().find_map(|v| Some((v.get("hostPath")?, "hostPath volumes"))));
    let host = host.or_else(|| profiles(spec, spec, minor)).or_else(|| sysctl(spec, minor));
    host.or_else(|| {
        containers(spec).find_map(|container| {
            let security = container.get("securityContext");
            let privileged = security.and_then(|s| s.get("privileged")).filter(|p| p.bool() == Some(true));
            let added =
                security.and_then(|s| s.at(&["capabilities", "add"])).map(Node::items).unwrap_or_default();
            let beyond =
                |name: &&Node| !name.text().is_some_and(|name| BASELINE_CAPABILITIES.contains(&name));
            let ports = container.get("ports").map(Node::items).unwrap_or_default().iter();
            let mut host_ports =
                ports.filter_map(|port| port.get("hostPort")).filter(|port| port.int() != Some(0));
            privileged
                .map(|node| (node, "privileged containers"))
                .or_else(|| added.iter().find(beyond).map(|node| (node, "that capability")))
                .or_else(|| host_ports.next().map(|node| (node, "hostPort")))
                .or_else(|| profiles(container, spec, minor))
                .or_else(|| host_of_probe(container).filter(|_| minor >= 34))
        })
    })
}

/// A probe or hook that asks another host than the Pod.
fn host_of_probe(container: &Node) -> Option<(&Node, &'static str)> {
    let probes =
        ["livenessProbe", "readinessProbe", "startupProbe"].iter().filter_map(|one| container.get(one));
    let hooks = ["postStart", "preStop"].iter().filter_map(|hook| container.at(&["lifecycle", hook]));
    let hosts =
        probes.chain(hooks).flat_map(|one| ["httpGet", "tcpSocket"].map(|way| one.at(&[way, "host"])));
    let other = hosts.flatten().find(|host| host.text().is_some_and(|host| !host.is_empty()));
    other.map(|host| (host, "probes and hooks with a host"))
}

/// Profiles and labels of a Pod or a container that the baseline level forbids.
fn profiles<'n>(holder: &'n Node, spec: &Node, minor: u32) -> Option<(&'n Node, &'static str)> {
    let own = |key: &str| holder.at(&["securityContext", key]);
    let unconfined = |key: &str| own(key).filter(|profile| profile.text_at("type") == Some("Unconfined"));
    let mount = own("procMount").filter(|mount| mount.text().is_some_and(|kind| kind != "Default"));
    // With a user namespace of its own a Pod may have an unmasked /proc.
    let mount = mount.filter(|_| spec.get("hostUsers").and_then(Node::bool) != Some(false));
    let types = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let linux = own("seLinuxOptions").filter(|options| {
        let text = |key: &str| options.text_at(key).unwrap_or_default();
        !types.contains(&text("type")) || !text("user").is_empty() || !text("role").is_empty()
    });
    // Before that, the standards were about annotations.
    unconfined("seccompProfile")
        .filter(|_| minor >= 19)
        .map(|node| (node, "an unconfined seccompProfile"))
        .or_else(|| unconfined("appArmorProfile").map(|node| (node, "an unconfined appArmorProfile")))
        .or_else(|| mount.map(|node| (node, "that procMount")))
        .or_else(|| linux.map(|node| (node, "those seLinuxOptions")))
}

/// The first sysctl that the baseline level forbids.
fn sysctl(spec: &Node, minor: u32) -> Option<(&Node, &'static str)> {
    let all = spec.at(&["securityContext", "sysctls"]).map(Node::items).unwrap_or_default();
    let is_allowed = |name: &str| {
        let since = LATER_SYSCTLS.iter().find(|(later, _)| *later == name).map_or(0, |(_, since)| *since);
        SAFE_SYSCTLS.contains(&name) && minor >= since
    };
    let unsafe_one = all.iter().find(|own| !own.text_at("name").is_some_and(is_allowed));
    unsafe_one.map(|node| (node, "that sysctl"))
}

/// The first additional requirement of the restricted level that is not met.
fn beyond_restricted(spec: &Node, minor: u32) -> Option<(&Node, &'static str)> {
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let allowed = |entry: &Entry| entry.key == "name" || RESTRICTED_VOLUMES.contains(&entry.key.as_str());
    if let Some(volume) = volumes.iter().find(|volume| !volume.entries().iter().all(allowed)) {
        return Some((volume, "volumes of that kind"));
    }
    containers(spec).find_map(|container| {
        let own = |key: &str| container.at(&["securityContext", key]);
        let of_pod = |key: &str| spec.at(&["securityContext", key]);
        let word = |key: &str| own(key).or_else(|| of_pod(key));
        if minor >= 8 && own("allowPrivilegeEscalation").and_then(Node::bool) != Some(false) {
            return Some((container, "containers without 'allowPrivilegeEscalation: false'"));
        }
        if word("runAsNonRoot").and_then(Node::bool) != Some(true) {
            return Some((container, "containers without 'runAsNonRoot: true'"));
        }
        if let Some(user) = word("runAsUser").filter(|user| minor >= 23 && user.int() == Some(0)) {
            return Some((user, "runAsUser: 0"));
        }
        let added = own("capabilities").and_then(|c| c.get("add")).map(Node::items).unwrap_or_default();
        let beyond = |name: &&Node| minor >= 22 && name.text() != Some("NET_BIND_SERVICE");
        if let Some(name) = added.iter().find(beyond) {
            return Some((name, "that capability"));
        }
        let profile = word("seccompProfile").and_then(|profile| profile.text_at("type"));
        if minor >= 19 && !matches!(profile, Some("RuntimeDefault" | "Localhost")) {
            return Some((container, "containers without a seccompProfile"));
        }
        let dropped = own("capabilities").and_then(|c| c.get("drop")).map(Node::texts).unwrap_or_default();
        (minor >= 22 && !dropped.iter().any(|name| name == "ALL"))
            .then_some((container, "containers that do not drop all capabilities"))
    })
}
