//! What a boot depends on that no manifest shows: images, the size of Nodes, what lies on them.

use super::hindrance::{each_container, identity};
use super::kind::WorkloadKind;
use crate::manifest::{Node, Object, Place};
use embedded_objects::billionths;

/// Something outside of the manifests that has to be so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// What goes after `boots if`.
    pub(crate) words: String,
    pub(crate) place: Place,
}

/// What the smallest machine that kubeadm installs on (two processors, 2 GiB) has to spare beside its own Pods, in
/// billionths of a processor and of a byte. Requests below that are taken to fit.
const SPARE: [(&str, i128); 3] = [
    ("cpu", 1_000_000_000),
    ("memory", (1 << 30) * 1_000_000_000),
    ("ephemeral-storage", (1 << 30) * 1_000_000_000),
];

/// Memory that every CCM gets by with, in billionths of a byte.
const LEAST_MEMORY: i128 = (48 << 20) * 1_000_000_000;

/// Kernel settings that a kubelet lets every Pod change (`pkg/kubelet/sysctl/safe_sysctls.go`).
const SAFE_SYSCTLS: [&str; 11] = [
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
];

/// Conditions so far.
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

/// What the object's Pods depend on; `spec` is theirs.
pub(super) fn read(object: &Object, kind: WorkloadKind, spec: &Node) -> Vec<Condition> {
    let mut conditions = Conditions { object, all: Vec::new() };
    owner(&mut conditions, kind);
    for container in each_container(spec) {
        image(&mut conditions, spec, container);
    }
    for init in spec.get("initContainers").map(Node::items).unwrap_or_default() {
        let name = init.text_at("name").unwrap_or_default();
        let words = match init.text_at("restartPolicy") {
            Some("Always") => format!("the sidecar '{name}' starts"),
            _ => format!("the init container '{name}' ends with success"),
        };
        conditions.add(init, words);
    }
    for container in spec.get("containers").map(Node::items).unwrap_or_default() {
        program(&mut conditions, container);
    }
    room(&mut conditions, spec);
    pod(&mut conditions, spec);
    for volume in spec.get("volumes").map(Node::items).unwrap_or_default() {
        one_volume(&mut conditions, volume);
    }
    conditions.all
}

/// What decides whether and when the owner makes Pods.
fn owner(conditions: &mut Conditions, kind: WorkloadKind) {
    let root = &conditions.object.node;
    let owners = root.at(&["metadata", "ownerReferences"]).map(Node::items).unwrap_or_default();
    if let Some(owner) = owners.first() {
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
        conditions.add(by, format!("the controller '{}' makes its Pods", by.text().unwrap_or_default()));
    }
    if let (WorkloadKind::CronJob, Some(schedule)) = (kind, spec.get("schedule")) {
        let words = format!("the schedule '{}' comes round", schedule.text().unwrap_or_default());
        conditions.add(schedule, words);
    }
}

/// Where the image comes from, and as whom it runs.
fn image(conditions: &mut Conditions, spec: &Node, container: &Node) {
    let Some(image) = container.get("image") else { return };
    let shown = image.text().unwrap_or_default();
    let name = shown.rsplit('/').next().unwrap_or_default();
    let latest = !name.contains('@') && (!name.contains(':') || name.ends_with(":latest"));
    let policy = container.get("imagePullPolicy");
    match policy.and_then(Node::text) {
        Some("Always") => {
            let words = format!("a registry hands out '{shown}' at every start (imagePullPolicy: Always)");
            conditions.add(policy.unwrap_or(image), words);
        }
        None if latest && !image.is_placeholder() => {
            let words = format!("a registry hands out '{shown}' at every start, since its tag is latest");
            conditions.add(image, words);
        }
        Some("Never") => {
            let words = format!("'{shown}' is on the Nodes already (imagePullPolicy: Never)");
            conditions.add(policy.unwrap_or(image), words);
        }
        _ => {}
    }
    let (user, not_root) = identity(spec, container);
    if not_root && user.is_none() {
        let own = container.at(&["securityContext", "runAsNonRoot"]);
        let of_pod = spec.at(&["securityContext", "runAsNonRoot"]);
        let words = format!("the image '{shown}' names its user by a number other than 0 (runAsNonRoot)");
        conditions.add(own.or(of_pod).unwrap_or(container), words);
    }
    for (holder, whose) in [(container, "container"), (spec, "Pod")] {
        for kind in ["seccompProfile", "appArmorProfile"] {
            let profile = holder.at(&["securityContext", kind]);
            let Some(profile) = profile.filter(|p| p.text_at("type") == Some("Localhost")) else { continue };
            let named = profile.text_at("localhostProfile").unwrap_or_default();
            conditions.add(profile, format!("the {kind} '{named}' of its {whose} is on the Node"));
        }
    }
    if let Some(mount) =
        container.at(&["securityContext", "procMount"]).filter(|p| p.text() == Some("Unmasked"))
    {
        conditions.add(mount, String::from("the Node gives Pods an unmasked /proc"));
    }
}

/// What the container runs, and what is done to it.
fn program(conditions: &mut Conditions, container: &Node) {
    let image = container.text_at("image").unwrap_or_default();
    if let Some(program) = container.get("command").and_then(|command| command.items().first()) {
        let named = program.scalar().unwrap_or_default();
        conditions.add(program, format!("the image '{image}' holds the program '{named}'"));
    }
    if let Some(hook) = container.at(&["lifecycle", "postStart"]) {
        let name = container.text_at("name").unwrap_or_default();
        conditions.add(hook, format!("the postStart hook of container '{name}' succeeds, else it is ended"));
    }
    let limit = container.at(&["resources", "limits", "memory"]);
    if let Some(limit) = limit.filter(|limit| amount(limit).is_some_and(|bytes| bytes < LEAST_MEMORY)) {
        let shown = limit.scalar().unwrap_or_default();
        conditions.add(limit, format!("the program gets by with {shown} of memory"));
    }
    for variable in container.get("env").map(Node::items).unwrap_or_default() {
        let of_file = variable.at(&["valueFrom", "fileKeyRef"]);
        if let Some(file) = of_file.filter(|file| file.get("optional").and_then(Node::bool) != Some(true)) {
            let key = file.text_at("key").unwrap_or_default();
            conditions
                .add(file, format!("an init container leaves the key '{key}' in the file of a variable"));
        }
    }
    if let Some(rules) = container.get("restartPolicyRules") {
        conditions.add(rules, String::from("no rule of restartPolicyRules ends it for good"));
    }
}

fn amount(node: &Node) -> Option<i128> {
    billionths(&node.scalar()?)
}

/// What its requests take of a Node.
fn room(conditions: &mut Conditions, spec: &Node) {
    let mut wanted: Vec<(String, i128, &Node)> = Vec::new();
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let of_pod = spec.get("resources").into_iter();
    let lists = containers.iter().filter_map(|container| container.get("resources")).chain(of_pod);
    for resources in lists {
        // A limit without a request is the request (API defaulting).
        let requests = resources.get("requests").map(Node::entries).unwrap_or_default();
        let limits = resources.get("limits").map(Node::entries).unwrap_or_default();
        let only_limited = limits.iter().filter(|limit| requests.iter().all(|own| own.key != limit.key));
        for entry in requests.iter().chain(only_limited) {
            let Some(amount) = amount(&entry.value) else { continue };
            match wanted.iter_mut().find(|(name, ..)| *name == entry.key) {
                Some((_, sum, _)) => *sum = sum.saturating_add(amount),
                None => wanted.push((entry.key.clone(), amount, &entry.value)),
            }
        }
    }
    for (name, sum, at) in wanted {
        let spare = SPARE.iter().find(|(known, _)| *known == name).map_or(0, |(_, spare)| *spare);
        if sum > spare {
            let shown = at.scalar().unwrap_or_default();
            conditions.add(at, format!("a Node has room for its requests ({name}: {shown})"));
        }
    }
    for claim in spec.get("resourceClaims").map(Node::items).unwrap_or_default() {
        let name = claim.text_at("name").unwrap_or_default();
        conditions.add(claim, format!("a driver satisfies the resource claim '{name}'"));
    }
}

/// What the Pod as a whole asks of a Node.
fn pod(conditions: &mut Conditions, spec: &Node) {
    if let Some(node) = spec.get("nodeName").filter(|node| node.text().is_some_and(|name| !name.is_empty())) {
        let name = node.text().unwrap_or_default();
        conditions.add(node, format!("there is a Node called '{name}', since nobody schedules it elsewhere"));
    }
    if let Some(seconds) = spec.get("activeDeadlineSeconds").filter(|seconds| !seconds.is_null()) {
        let shown = seconds.scalar().unwrap_or_default();
        conditions.add(seconds, format!("the boot takes less than {shown} s, after which the Pod is ended"));
    }
    if let Some(class) =
        spec.get("runtimeClassName").filter(|class| class.text().is_some_and(|c| !c.is_empty()))
    {
        let name = class.text().unwrap_or_default();
        conditions.add(class, format!("the Nodes' runtime has the handler of the RuntimeClass '{name}'"));
    }
    if let Some(users) = spec.get("hostUsers").filter(|users| users.bool() == Some(false)) {
        conditions.add(users, String::from("the Nodes give Pods user namespaces (hostUsers: false)"));
    }
    if let Some(group) = spec.get("schedulingGroup").filter(|group| !group.is_null()) {
        conditions.add(group, String::from("its scheduling group is complete"));
    }
    let settings = spec.at(&["securityContext", "sysctls"]).map(Node::items).unwrap_or_default();
    for setting in settings {
        let name = setting.text_at("name").unwrap_or_default();
        if !SAFE_SYSCTLS.contains(&name) {
            conditions.add(setting, format!("the kubelets allow the sysctl '{name}'"));
        }
    }
    for secret in spec.get("imagePullSecrets").map(Node::items).unwrap_or_default() {
        let name = secret.text_at("name").unwrap_or_default();
        conditions.add(secret, format!("its images can be pulled with the Secret '{name}', or without"));
    }
}

/// Volumes of storage systems that are no part of Kubernetes' own drivers.
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

fn one_volume(conditions: &mut Conditions, volume: &Node) {
    if let Some(host) = volume.get("hostPath") {
        let path = host.text_at("path").unwrap_or_default();
        match host.text_at("type").unwrap_or_default() {
            // The first two are made where they are missing, and so is what nobody asks about.
            "" | "DirectoryOrCreate" | "FileOrCreate" => {}
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
                conditions.add(source, format!("the cluster hands out the {kind} of its volume"));
            }
        }
    }
}
