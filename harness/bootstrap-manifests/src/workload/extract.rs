//! Turns objects into workloads, with what the API server would refuse.

use super::container::object_ref;
use super::host_files::{Machines, machines_with};
use super::kind::{DnsPolicy, Role, WorkloadKind, spec_path};
use super::placement::{
    node_affinity, node_selector, preferred_nodes, preferred_terms, required_terms, tolerations,
};
use super::pods::Workload;
use super::refs::{Ref, Stage};
use super::selector::{Labels, labels};
use super::spread::spread;
use super::{
    Container, adoption, claims, fields, flag_values, flags, hindrance, inits, mounts, needed_variables,
    outside, role, runtime_class, sub_path, token, variables,
};
use crate::dns;
use crate::manifest::{Node, Object, Objects, Place};

/// Every workload of the set. Of one that comes several times, the last counts that is not refused: it updates the others.
pub fn workloads(objects: &Objects, refused: &[usize]) -> Vec<Workload> {
    let counts = |(index, object): &(usize, &Object)| {
        if WorkloadKind::parse(&object.api_version, &object.kind).is_none() {
            return false;
        }
        let others =
            objects.all.iter().enumerate().filter(|(other, one)| other != index && one.is_same(object));
        let mut others = others.filter(|(other, _)| !refused.contains(other));
        object.name.is_empty() || others.all(|(other, _)| other < *index && !refused.contains(index))
    };
    let pairs = objects.all.iter().enumerate().filter(counts);
    let extract = |(index, object): (usize, &Object)| {
        let own = workload(index, object)?;
        Some(if dns::is_patch(object) { dns::patched(own, object) } else { own })
    };
    let mut all: Vec<Workload> = pairs.filter_map(extract).collect();
    for workload in all.iter_mut().filter(|workload| workload.role != Role::Dns) {
        workload.priority = priority(objects, workload);
        workload.preempts &= preempts(objects, workload);
        runtime_class::apply(objects, workload);
        variables::fill(objects, workload);
        workload.role = if is_test(objects, workload) { Role::Other } else { role::of(workload) };
        workload.judge_controllers();
        workload.hindrances.extend(without_token(objects, workload));
        workload.hindrances.extend(sub_path::undefined(objects, workload));
        workload.hindrances.extend(flags::separate_values(workload));
        workload.hindrances.extend(flags::refused_arguments(objects, workload));
        workload.hindrances.extend(flag_values::refused(workload));
        workload.hindrances.extend(adoption::adopted(objects, workload));
        claims::bound_by_hand(objects, workload);
        needed_variables::judge(objects, workload);
    }
    all
}

/// Whether it is a test of a Helm chart, and not a part of what the chart installs.
fn is_test(objects: &Objects, workload: &Workload) -> bool {
    let annotations =
        workload.object.and_then(|index| objects.all[index].node.at(&["metadata", "annotations"]));
    let hook = annotations.and_then(|annotations| annotations.text_at("helm.sh/hook"));
    hook.is_some_and(|hook| hook.split(',').any(|one| one.trim().starts_with("test")))
}

fn workload(index: usize, object: &Object) -> Option<Workload> {
    let kind = WorkloadKind::parse(&object.api_version, &object.kind)?;
    let root = &object.node;
    let absent = Node { value: crate::manifest::Value::Map(Vec::new()), ..root.clone() };
    let spec = root.at(spec_path(kind)).unwrap_or(&absent);
    let top = root.get("spec").unwrap_or(&absent);
    let mut refs = Vec::new();
    let containers = containers(object, spec, &mut refs);
    let pod_labels = pod_labels(kind, root);
    let tolerations = tolerations(object, spec);
    let service_account = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|key| Some((spec.text_at(key)?, object.place_of(spec, key))))
        .filter(|(name, _)| !name.is_empty());
    let (service_account, service_account_place) = match service_account {
        Some((name, place)) => (name.to_owned(), place),
        None => (String::from("default"), object.place(spec)),
    };
    let priority_class = named(object, spec, "priorityClassName");
    let account = (service_account.as_str(), &service_account_place);
    refs.extend(needs_at_creation(object, spec, account, priority_class.as_ref()));
    let mut workload = Workload {
        kind,
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        role: Role::Other,
        object: Some(index),
        place: object.at(),
        spec_place: object.place(spec),
        replicas: replicas(kind, top),
        replicas_place: object.place_of(top, "replicas"),
        surges: surges(kind, top),
        labels: pod_labels.clone(),
        tolerations,
        tolerations_place: object.place_of(spec, "tolerations"),
        node_selector: node_selector(object, spec),
        node_affinity: node_affinity(object, spec),
        preferred_nodes: preferred_nodes(object, spec),
        affinity_place: object.place_of(spec, "affinity"),
        near: required_terms(object, spec, "podAffinity", &pod_labels),
        apart: required_terms(object, spec, "podAntiAffinity", &pod_labels),
        rather_apart: preferred_terms(object, spec, &pod_labels),
        host_network: spec.get("hostNetwork").and_then(Node::bool) == Some(true),
        host_network_place: object.place_of(spec, "hostNetwork"),
        dns: dns_policy(spec),
        dns_place: object.place_of(spec, "dnsPolicy"),
        service_account,
        service_account_place,
        priority_class,
        priority: 0,
        host_ports: Vec::new(),
        containers,
        refs,
        host_ip: Vec::new(),
        pod_ip: Vec::new(),
        storage: Vec::new(),
        mounts_cni: false,
        files_of_control_planes: Vec::new(),
        node_name: named(object, spec, "nodeName"),
        spread: spread(object, spec),
        scheduler: named(object, spec, "schedulerName").filter(|(name, _)| name != "default-scheduler"),
        preempts: spec.text_at("preemptionPolicy") != Some("Never"),
        hindrances: hindrance::read(object, kind, spec),
        conditions: outside::read(object, kind, spec),
        refused: Vec::new(),
    };
    let inits = inits::read(object, spec);
    workload.hindrances.extend(inits.hindrances);
    workload.conditions.extend(inits.conditions);
    let (hindrances, conditions) = mounts::below_read_only(object, spec);
    workload.hindrances.extend(hindrances);
    workload.conditions.extend(conditions);
    workload.conditions.extend(fields::without_opinion(object, kind, spec));
    workload.host_ports = host_ports(object, spec, workload.host_network);
    field_refs(object, spec, &mut workload);
    volumes(object, spec, &mut workload);
    Some(workload)
}

fn dns_policy(spec: &Node) -> DnsPolicy {
    match spec.text_at("dnsPolicy") {
        Some("ClusterFirstWithHostNet") => DnsPolicy::ClusterFirstWithHostNet,
        Some("Default") => DnsPolicy::Default,
        // The Pod's own servers may all be cluster DNS.
        Some("None") if only_cluster_dns(spec) => DnsPolicy::ClusterFirstWithHostNet,
        Some("None") => DnsPolicy::None,
        _ => DnsPolicy::ClusterFirst,
    }
}

/// The address of cluster DNS in a kubeadm cluster with the usual Service network.
const CLUSTER_DNS: &str = "10.96.0.10";

fn only_cluster_dns(spec: &Node) -> bool {
    let servers = spec.at(&["dnsConfig", "nameservers"]).map(Node::texts).unwrap_or_default();
    !servers.is_empty() && servers.iter().all(|server| server == CLUSTER_DNS)
}

/// A name in the Pods' spec and its place, if there is one.
fn named(object: &Object, spec: &Node, key: &str) -> Option<(String, Place)> {
    let name = spec.text_at(key).filter(|name| !name.is_empty())?;
    Some((name.to_owned(), object.place_of(spec, key)))
}

/// What must exist before the API server creates a Pod: its account, its namespace, and the classes that it names.
fn needs_at_creation(
    object: &Object,
    spec: &Node,
    (account, account_place): (&str, &Place),
    priority_class: Option<&(String, Place)>,
) -> Vec<Ref> {
    let root = &object.node;
    let own = |kind, name: &str, place: &Place| Ref {
        kind,
        namespace: object.namespace.clone(),
        name: name.to_owned(),
        key: None,
        of_variable: false,
        stage: Stage::Creation,
        place: place.clone(),
    };
    let of_cluster =
        |kind, name: &str, place: &Place| Ref { namespace: String::new(), ..own(kind, name, place) };
    let namespace_place = object.place_of(root.get("metadata").unwrap_or(root), "namespace");
    let mut refs = vec![
        own("ServiceAccount", account, account_place),
        of_cluster("Namespace", &object.namespace, &namespace_place),
    ];
    refs.extend(priority_class.map(|(name, place)| of_cluster("PriorityClass", name, place)));
    let runtime_class = named(object, spec, "runtimeClassName");
    refs.extend(runtime_class.map(|(name, place)| of_cluster("RuntimeClass", &name, &place)));
    refs
}

fn containers(object: &Object, spec: &Node, refs: &mut Vec<Ref>) -> Vec<Container> {
    let mut all = Vec::new();
    for (key, init) in [("initContainers", true), ("containers", false)] {
        for (at, node) in spec.get(key).map(Node::items).unwrap_or_default().iter().enumerate() {
            // The others keep running.
            let ends = init && !inits::is_sidecar(node) && !inits::is_the_program(spec, node);
            let position = (!init).then_some(at);
            all.push(Container { position, ..Container::read(object, node, ends, refs) });
        }
    }
    all
}

fn pod_labels(kind: WorkloadKind, root: &Node) -> Labels {
    let path = spec_path(kind);
    let template = path.split_last().map_or(&[][..], |(_, template)| template);
    let mut all = labels(root.at(template).and_then(|template| template.at(&["metadata", "labels"])));
    // Its controller adds a label with a value that no other Pod has.
    let added = match kind {
        WorkloadKind::Deployment => "pod-template-hash",
        WorkloadKind::DaemonSet | WorkloadKind::StatefulSet => "controller-revision-hash",
        WorkloadKind::ReplicaSet | WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::Pod => {
            return all;
        }
    };
    let name = root.at(&["metadata", "name"]).and_then(Node::scalar).unwrap_or_default();
    all.insert(added.to_owned(), format!("hash-of-{name}"));
    all
}

fn replicas(kind: WorkloadKind, spec: &Node) -> u32 {
    match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::ReplicaSet => {
            let written = spec.get("replicas").and_then(Node::int).unwrap_or(1);
            u32::try_from(written.clamp(0, i64::from(u32::MAX))).unwrap_or(1)
        }
        _ => 1,
    }
}

/// Deployments surge by 25 % by default, rounded up; DaemonSets do not surge by default.
fn surges(kind: WorkloadKind, spec: &Node) -> bool {
    let surge = |strategy: Option<&Node>| {
        strategy.and_then(|s| s.at(&["rollingUpdate", "maxSurge"])).and_then(Node::scalar)
    };
    let zero = |surge: String| surge == "0" || surge == "0%";
    match kind {
        WorkloadKind::Deployment => {
            let strategy = spec.get("strategy");
            let recreate = strategy.and_then(|s| s.text_at("type")) == Some("Recreate");
            !recreate && !surge(strategy).is_some_and(zero)
        }
        WorkloadKind::DaemonSet => surge(spec.get("updateStrategy")).is_some_and(|surge| !zero(surge)),
        _ => false,
    }
}

fn host_ports(object: &Object, spec: &Node, host_network: bool) -> Vec<(i64, String, Place)> {
    let mut all = Vec::new();
    let list = |name: &str| spec.get(name).map(Node::items).unwrap_or_default();
    let sidecars = list("initContainers").iter().filter(|init| inits::is_sidecar(init));
    // The scheduler ignores the ports of other init containers (`GetHostPorts`).
    for container in sidecars.chain(list("containers")) {
        for port in container.get("ports").map(Node::items).unwrap_or_default() {
            // On the host's network every declared port is the host's (API defaulting).
            let own = port.get("hostPort").and_then(Node::int).filter(|port| *port != 0);
            let declared = port.get("containerPort").and_then(Node::int).filter(|_| host_network);
            let protocol = port.text_at("protocol").unwrap_or("TCP").to_owned();
            all.extend(own.or(declared).map(|number| (number, protocol, object.place(port))));
        }
    }
    all
}

fn field_refs(object: &Object, spec: &Node, workload: &mut Workload) {
    for key in ["initContainers", "containers"] {
        for container in spec.get(key).map(Node::items).unwrap_or_default() {
            for item in container.get("env").map(Node::items).unwrap_or_default() {
                let path = item.at(&["valueFrom", "fieldRef"]).and_then(|field| field.text_at("fieldPath"));
                match path {
                    Some("status.hostIP" | "status.hostIPs") => workload.host_ip.push(object.place(item)),
                    Some("status.podIP" | "status.podIPs") => workload.pod_ip.push(object.place(item)),
                    _ => {}
                }
            }
        }
    }
}

/// A reference to an object of a volume, and one to each key that the volume selects.
fn with_keys(object: &Object, node: &Node, kind: &'static str, field: &str) -> Vec<Ref> {
    let items = node.get("items").map(Node::items).unwrap_or_default();
    let keys = items.iter().filter_map(|item| item.text_at("key")).map(|key| Some(key.to_owned()));
    let picked: Vec<Option<String>> = if items.is_empty() { vec![None] } else { keys.collect() };
    picked.into_iter().filter_map(|key| object_ref(object, node, kind, field, key)).collect()
}

fn volumes(object: &Object, spec: &Node, workload: &mut Workload) {
    let claims =
        object.node.at(&["spec", "volumeClaimTemplates"]).filter(|claims| !claims.items().is_empty());
    if let Some(claims) = claims.filter(|_| workload.kind == WorkloadKind::StatefulSet) {
        workload.storage.push(object.place(claims));
    }
    let all = spec.get("volumes").map(Node::items).unwrap_or_default();
    // The scheduler waits for every claim, whether or not it is mounted.
    for volume in all {
        let Some(claim) = volume.get("persistentVolumeClaim") else { continue };
        workload.storage.push(object.place(volume));
        if let Some(reference) = object_ref(object, claim, "PersistentVolumeClaim", "claimName", None) {
            workload.refs.push(Ref { stage: Stage::Scheduling, ..reference });
        }
    }
    let made_for_it = all.iter().filter(|volume| volume.get("ephemeral").is_some());
    workload.storage.extend(made_for_it.map(|volume| object.place(volume)));
    for volume in outside::mounted_volumes(spec) {
        let mut sources = vec![volume];
        sources.extend(volume.at(&["projected", "sources"]).map(Node::items).unwrap_or_default());
        for source in sources {
            if let Some(secret) = source.get("secret") {
                // A projection calls the field name, a volume secretName.
                for field in ["secretName", "name"] {
                    workload.refs.extend(with_keys(object, secret, "Secret", field));
                }
            }
            if let Some(map) = source.get("configMap") {
                workload.refs.extend(with_keys(object, map, "ConfigMap", "name"));
            }
        }
        if volume.get("csi").is_some() {
            workload.storage.push(object.place(volume));
        }
        let of_host = |field: &str| volume.at(&["hostPath", field]).and_then(Node::text).unwrap_or_default();
        let path = of_host("path");
        if machines_with(path, of_host("type")) == Some(Machines::ControlPlanes) {
            workload.files_of_control_planes.push((path.to_owned(), object.place(volume)));
        }
        workload.mounts_cni |= path.starts_with("/etc/cni") || path.starts_with("/opt/cni");
    }
}

/// Whether a program that uses its service account token cannot reach the API server.
fn without_token(objects: &Objects, workload: &Workload) -> Option<hindrance::Hindrance> {
    let of_client = matches!(workload.role, Role::Ccm | Role::NodeManager);
    let own_identity = crate::known::own_identity(objects, workload);
    let object = workload.object.filter(|_| of_client && !own_identity).map(|index| &objects.all[index])?;
    let account = objects.find("ServiceAccount", &workload.namespace, &workload.service_account);
    let account = account.and_then(|account| {
        let field = "automountServiceAccountToken";
        let mounts = account.node.get(field).and_then(Node::bool)?;
        Some((mounts, account.place_of(&account.node, field)))
    });
    token::without_token(objects, object, object.node.at(spec_path(workload.kind))?, account)
}

/// Whether the priority class allows its Pods to preempt others.
pub fn preempts(objects: &Objects, workload: &Workload) -> bool {
    let class = class_of(objects, workload);
    class.and_then(|class| class.node.text_at("preemptionPolicy")) != Some("Never")
}

fn priority(objects: &Objects, workload: &Workload) -> i64 {
    match workload.priority_class.as_ref().map(|(name, _)| name.as_str()) {
        Some("system-node-critical") => 2_000_001_000,
        Some("system-cluster-critical") => 2_000_000_000,
        _ => {
            let class = class_of(objects, workload);
            class.and_then(|class| class.node.get("value")).and_then(Node::int).unwrap_or(0)
        }
    }
}

/// The class of the workload's Pods, if the manifests have it: the one that they name, or the default of those that name
/// none (`plugin/pkg/admission/priority`).
pub fn class_of<'o>(objects: &'o Objects, workload: &Workload) -> Option<&'o Object> {
    let is_it = |class: &&Object| match &workload.priority_class {
        Some((name, _)) => class.name == *name,
        None => class.node.get("globalDefault").and_then(Node::bool) == Some(true),
    };
    objects.of_kind("PriorityClass").find(is_it)
}
