//! What a boot depends on that manifests do not show: images, the size of Nodes, files on them.

use super::duration::seconds;
use super::hindrance::{each_container, has_flag, identity, sysctl};
use super::host_files::{has_known_folder, machines_with};
use super::kind::WorkloadKind;
use super::schedule::never_comes;
use crate::accept::orphan;
use crate::manifest::{Node, Object, Place};
use embedded_objects::billionths;

/// A condition outside of the manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The text that follows `boots if`.
    pub words: String,
    /// Where its cause is.
    pub place: Place,
}

/// What the smallest machine that kubeadm supports (two processors, 2 GiB) has left after its own Pods, in billionths of
/// a processor and of a byte. Requests below that are assumed to fit.
pub const SPARE: [(&str, i128); 3] = [
    ("cpu", 1_000_000_000),
    ("memory", (1 << 30) * 1_000_000_000),
    ("ephemeral-storage", (1 << 30) * 1_000_000_000),
];

/// Memory that is enough for every CCM, in billionths of a byte.
const LEAST_MEMORY: i128 = (48 << 20) * 1_000_000_000;

/// Kernel settings that a kubelet allows every Pod to change (`pkg/kubelet/sysctl/safe_sysctls.go`).
pub const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// The conditions found so far.
struct Conditions<'a> {
    object: &'a Object,
    all: Vec<Condition>,
}

impl Conditions<'_> {
    fn add(&mut self, at: &Node, words: String) {
        let place = self.object.place(at);
        self.all.push(Condition { words, place });
    }
}

/// The conditions of the object's Pods; `spec` is theirs.
pub(super) fn read(object: &Object, kind: WorkloadKind, spec: &Node) -> Vec<Condition> {
    let mut conditions = Conditions { object, all: Vec::new() };
    owner(&mut conditions, kind);
    let main = spec.get("containers").map(Node::items).unwrap_or_default();
    // One container that cannot start does not keep the others from starting (`SyncPod`), but it is waited for while its
    // postStart hook runs.
    let has_provider = main.iter().any(|own| has_flag(own, "--cloud-provider"));
    let runs_it =
        |own: &Node| has_flag(own, if has_provider { "--cloud-provider" } else { "--leader-elect" });
    let first = main.iter().position(runs_it);
    let matters = |container: &Node| first.is_none() || runs_it(container);
    let is_main = |container: &Node| main.iter().any(|own| std::ptr::eq(own, container));
    for container in each_container(spec).filter(|container| !is_main(container) || matters(container)) {
        image(&mut conditions, spec, container);
    }
    for (at, container) in main.iter().enumerate() {
        if matters(container) {
            program(&mut conditions, container);
        }
        if matters(container) || first.is_some_and(|first| at < first) {
            hook(&mut conditions, container);
        }
    }
    devices(&mut conditions, spec);
    pod(&mut conditions, spec);
    for volume in mounted_volumes(spec) {
        one_volume(&mut conditions, volume);
    }
    conditions.all
}

/// A pause between two Jobs that is short enough for a boot, in seconds.
const SOON: f64 = 180.0;

/// Conditions on whether and when the owner creates Pods.
fn owner(conditions: &mut Conditions, kind: WorkloadKind) {
    let root = &conditions.object.node;
    let owners = root.at(&["metadata", "ownerReferences"]).map(Node::items).unwrap_or_default();
    // Others are deleted for certain.
    if let Some(owner) = owners.first().filter(|_| orphan(conditions.object).is_none()) {
        let text = |key: &str| owner.text_at(key).unwrap_or_default();
        let words = format!(
            "its owner {}/{} exists with the uid '{}': an object without its owners is deleted",
            text("kind"),
            text("name"),
            text("uid")
        );
        conditions.add(owner, words);
    }
    let Some(spec) = root.get("spec") else { return };
    if let Some(by) = spec.get("managedBy").filter(|by| by.text() != Some("kubernetes.io/job-controller")) {
        conditions.add(by, format!("the controller '{}' creates its Pods", by.text().unwrap_or_default()));
    }
    let often = |schedule: &&Node| {
        let text = schedule.text().unwrap_or_default();
        if let Some(pause) = text.strip_prefix("@every ").and_then(|pause| seconds(pause.trim())) {
            return pause <= SOON;
        }
        let mut fields = text.split_whitespace();
        let minute = fields.next().unwrap_or_default();
        (minute == "*" || minute.starts_with("*/")) && fields.all(|field| field == "*")
    };
    // One that is due within the hour starts soon enough.
    let never = |schedule: &&Node| never_comes(schedule.text().unwrap_or_default());
    let schedule = spec.get("schedule").filter(|schedule| !often(schedule) && !never(schedule));
    if let (WorkloadKind::CronJob, Some(schedule)) = (kind, schedule) {
        let words = format!("the schedule '{}' creates a Job", schedule.text().unwrap_or_default());
        conditions.add(schedule, words);
    }
}

/// Conditions on the image, and on the user it runs as.
fn image(conditions: &mut Conditions, spec: &Node, container: &Node) {
    let Some(image) = container.get("image") else { return };
    let shown = image.text().unwrap_or_default();
    let name = shown.rsplit('/').next().unwrap_or_default();
    let latest = !name.contains('@') && (!name.contains(':') || name.ends_with(":latest"));
    let policy = container.get("imagePullPolicy");
    match policy.and_then(Node::text) {
        Some("Always") => {
            let words = format!("'{shown}' can be pulled at every start (imagePullPolicy: Always)");
            conditions.add(policy.unwrap_or(image), words);
        }
        None if latest && !image.is_placeholder() => {
            let words = format!("'{shown}' can be pulled at every start, since its tag is latest");
            conditions.add(image, words);
        }
        Some("Never") => {
            let words = format!("'{shown}' is already on the Nodes (imagePullPolicy: Never)");
            conditions.add(policy.unwrap_or(image), words);
        }
        _ => {}
    }
    let (user, not_root) = identity(spec, container);
    if not_root && user.is_none() {
        let own = container.at(&["securityContext", "runAsNonRoot"]);
        let of_pod = spec.at(&["securityContext", "runAsNonRoot"]);
        let words = format!("the image '{shown}' sets a numeric user other than 0 (runAsNonRoot)");
        conditions.add(own.or(of_pod).unwrap_or(container), words);
    }
    for holder in [container, spec] {
        let armor = holder.at(&["securityContext", "appArmorProfile"]);
        if let Some(armor) = armor.filter(|armor| armor.text_at("type") == Some("RuntimeDefault")) {
            let words =
                "the Nodes have AppArmor, since a kubelet without it refuses the profile RuntimeDefault";
            conditions.add(armor, words.to_owned());
        }
    }
    for (holder, whose) in [(container, "container"), (spec, "Pod")] {
        for kind in ["seccompProfile", "appArmorProfile"] {
            let own = container.at(&["securityContext", kind]);
            // The profile of a container replaces that of its Pod.
            let profile =
                if whose == "Pod" && own.is_some() { None } else { holder.at(&["securityContext", kind]) };
            let Some(profile) = profile.filter(|p| p.text_at("type") == Some("Localhost")) else { continue };
            let named = profile.text_at("localhostProfile").unwrap_or_default();
            conditions.add(profile, format!("the {kind} '{named}' of its {whose} is on the Node"));
        }
    }
    if let Some(mount) =
        container.at(&["securityContext", "procMount"]).filter(|p| p.text() == Some("Unmasked"))
    {
        conditions.add(mount, String::from("the Node allows Pods an unmasked /proc"));
    }
}

/// Conditions on the container's program and its limits.
fn program(conditions: &mut Conditions, container: &Node) {
    let image = container.get("image");
    let shown = image.and_then(Node::text).unwrap_or_default();
    let image = if image.is_some_and(Node::is_placeholder) {
        "its image".to_owned()
    } else {
        format!("the image '{shown}'")
    };
    if let Some(program) = container.get("command").and_then(|command| command.items().first()) {
        let named = program.scalar().unwrap_or_default();
        conditions.add(program, format!("{image} contains the program '{named}'"));
    }
    let limit = container.at(&["resources", "limits", "memory"]);
    if let Some(limit) = limit.filter(|limit| amount(limit).is_some_and(|bytes| bytes < LEAST_MEMORY)) {
        let shown = limit.scalar().unwrap_or_default();
        conditions.add(limit, format!("the program needs at most {shown} of memory"));
    }
    for variable in container.get("env").map(Node::items).unwrap_or_default() {
        let of_file = variable.at(&["valueFrom", "fileKeyRef"]);
        if let Some(file) = of_file.filter(|file| file.get("optional").and_then(Node::bool) != Some(true)) {
            let key = file.text_at("key").unwrap_or_default();
            conditions.add(
                file,
                format!("an init container writes the key '{key}' to the file of an environment variable"),
            );
        }
    }
    if let Some(rules) = container.get("restartPolicyRules") {
        conditions.add(rules, String::from("no rule of restartPolicyRules stops it for good"));
    }
}

/// The condition that a hook ends: the containers after it are not started before that.
fn hook(conditions: &mut Conditions, container: &Node) {
    // The kubelet itself carries out a sleep.
    let hook = container.at(&["lifecycle", "postStart"]).filter(|hook| hook.get("sleep").is_none());
    if let Some(hook) = hook {
        let name = container.text_at("name").unwrap_or_default();
        let words = format!(
            "the postStart hook of container '{name}' succeeds, as the container is killed otherwise"
        );
        conditions.add(hook, words);
    }
}

/// Whether a container runs a program of the framework.
pub(super) fn is_of_framework(container: &Node) -> bool {
    ["--cloud-provider", "--leader-elect"].iter().any(|flag| has_flag(container, flag))
}

fn amount(node: &Node) -> Option<i128> {
    billionths(&node.scalar()?)
}

/// Conditions on devices of a Node.
fn devices(conditions: &mut Conditions, spec: &Node) {
    for claim in spec.get("resourceClaims").map(Node::items).unwrap_or_default() {
        let name = claim.text_at("name").unwrap_or_default();
        conditions.add(claim, format!("a driver satisfies the resource claim '{name}'"));
    }
}

/// Conditions of the Pod as a whole on its Node.
fn pod(conditions: &mut Conditions, spec: &Node) {
    if let Some(node) = spec.get("nodeName").filter(|node| node.text().is_some_and(|name| !name.is_empty())) {
        let name = node.text().unwrap_or_default();
        conditions.add(
            node,
            format!("there is a Node called '{name}', since it is never scheduled to another one"),
        );
    }
    if let Some(seconds) = spec.get("activeDeadlineSeconds").filter(|seconds| !seconds.is_null()) {
        let shown = seconds.scalar().unwrap_or_default();
        conditions
            .add(seconds, format!("the boot takes less than {shown} s, after which the Pod is terminated"));
    }
    if let Some(class) =
        spec.get("runtimeClassName").filter(|class| class.text().is_some_and(|c| !c.is_empty()))
    {
        let name = class.text().unwrap_or_default();
        conditions.add(class, handler_of(name));
    }
    // On the host's network a Pod has no name of its own, and without a subdomain its full name is its name.
    let has_full_name =
        spec.get("subdomain").is_some_and(|own| own.text().is_some_and(|text| !text.is_empty()))
            && spec.get("hostNetwork").and_then(Node::bool) != Some(true);
    let full = spec.get("setHostnameAsFQDN").filter(|full| full.bool() == Some(true));
    if let Some(full) = full.filter(|_| has_full_name) {
        conditions.add(full, String::from("the full names of its Pods have at most 64 characters"));
    }
    if let Some(users) = spec.get("hostUsers").filter(|users| users.bool() == Some(false)) {
        conditions.add(users, String::from("the Nodes support user namespaces for Pods (hostUsers: false)"));
    }
    if let Some(group) = spec.get("schedulingGroup").filter(|group| !group.is_null()) {
        conditions.add(group, String::from("its scheduling group is complete"));
    }
    let settings = spec.at(&["securityContext", "sysctls"]).map(Node::items).unwrap_or_default();
    for setting in settings {
        let name = sysctl(setting);
        if !SAFE_SYSCTLS.contains(&name.as_str()) {
            conditions.add(setting, format!("the kubelets allow the sysctl '{name}'"));
        }
    }
    let never = |container: &Node| container.text_at("imagePullPolicy") == Some("Never");
    let pulled = !each_container(spec).all(never);
    let secrets = spec.get("imagePullSecrets").map(Node::items).unwrap_or_default();
    for secret in secrets.iter().filter(|_| pulled) {
        let name = secret.text_at("name").unwrap_or_default();
        conditions.add(
            secret,
            format!("its images can be pulled with the Secret '{name}', or without credentials"),
        );
    }
}

/// The condition that the Nodes have the handler of a class.
pub(super) fn handler_of(class: &str) -> String {
    format!("the Nodes' runtime has the handler of the RuntimeClass '{class}'")
}

/// Volumes of storage systems that Kubernetes' own drivers do not cover.
const NETWORK_VOLUMES: [&str; 21] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
    "image",
];

/// The volumes that a container mounts. A kubelet ignores the others (`desired_state_of_world_populator.go`).
pub(super) fn mounted_volumes(spec: &Node) -> impl Iterator<Item = &Node> {
    let all = spec.get("volumes").map(Node::items).unwrap_or_default();
    all.iter().filter(|volume| {
        let name = volume.text_at("name");
        let lists = each_container(spec).flat_map(|own| [own.get("volumeMounts"), own.get("volumeDevices")]);
        lists.flatten().flat_map(Node::items).any(|mount| mount.text_at("name") == name)
    })
}

fn one_volume(conditions: &mut Conditions, volume: &Node) {
    if let Some(host) = volume.get("hostPath") {
        let path = host.text_at("path").unwrap_or_default();
        match host.text_at("type").unwrap_or_default() {
            // A missing folder is created, and without a type there is no check.
            "" | "DirectoryOrCreate" => {}
            // The file is created, but not its folder (`pkg/volume/hostpath`).
            "FileOrCreate" if has_known_folder(path) => {}
            "FileOrCreate" => conditions.add(host, format!("the folder of '{path}' exists on the Node")),
            kind if machines_with(path, kind).is_some() => {}
            kind => conditions.add(host, format!("'{path}' is a {kind} on the Node")),
        }
    }
    for kind in NETWORK_VOLUMES {
        if let Some(source) = volume.get(kind) {
            let name = volume.text_at("name").unwrap_or_default();
            conditions.add(source, format!("the Nodes can mount the {kind} volume '{name}'"));
        }
    }
    if let Some(medium) =
        volume.at(&["emptyDir", "medium"]).filter(|m| m.text().is_some_and(|m| m.starts_with("Huge")))
    {
        conditions.add(medium, String::from("the Nodes have huge pages"));
    }
    for source in volume.at(&["projected", "sources"]).map(Node::items).unwrap_or_default() {
        for kind in ["clusterTrustBundle", "podCertificate"] {
            if let Some(source) =
                source.get(kind).filter(|s| s.get("optional").and_then(Node::bool) != Some(true))
            {
                conditions.add(source, format!("the cluster provides the {kind} of its volume"));
            }
        }
    }
}
