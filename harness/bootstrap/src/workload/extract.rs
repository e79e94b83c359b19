//! From objects to workloads, with what the API server would refuse.

use super::container::object_ref;
use super::kind::{DnsPolicy, Role, WorkloadKind};
use super::placement::{node_affinity, preferred_terms, required_terms};
use super::pods::Workload;
use super::refs::{Ref, Stage};
use super::selector::{Labels, labels};
use super::taint::{Effect, Toleration};
use super::{Container, role};
use crate::manifest::{Node, Object, Objects, Place};

/// Every workload of the set.
pub(crate) fn workloads(objects: &Objects) -> Vec<Workload> {
    let pairs = objects.all.iter().enumerate();
    let mut all: Vec<Workload> = pairs.filter_map(|(index, object)| workload(index, object)).collect();
    for workload in &mut all {
        workload.priority = priority(objects, workload);
        workload.role = role::of(workload);
    }
    all
}

/// Where the Pod's specification is below an object of this kind.
pub(crate) fn spec_path(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::Pod => &["spec"],
        WorkloadKind::CronJob => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => &["spec", "template", "spec"],
    }
}

fn workload(index: usize, object: &Object) -> Option<Workload> {
    let kind = WorkloadKind::parse(&object.api_version, &object.kind)?;
    let root = &object.node;
    let absent = Node { value: crate::manifest::Value::Map(Vec::new()), ..root.clone() };
    let spec = root.at(spec_path(kind)).unwrap_or(&absent);
    let top = root.get("spec").unwrap_or(&absent);
    let mut refs = Vec::new();
    let mut refused = Vec::new();
    let containers = containers(object, spec, &mut refs);
    if containers.iter().all(|container| container.init) {
        refused.push((object.at(), String::from("it has no container"), String::from("add spec.containers")));
    }
    if ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"].contains(&object.api_version.as_str()) {
        let what = format!("{} is not served since Kubernetes 1.16", object.api_version);
        refused.push((object.place_of(root, "apiVersion"), what, String::from("write apiVersion: apps/v1")));
    }
    let pod_labels = pod_labels(kind, root);
    let selector = super::Selector::read(top.get("selector"));
    let selected = match kind {
        WorkloadKind::Deployment | WorkloadKind::DaemonSet | WorkloadKind::StatefulSet => {
            selector.is_some_and(|selector| selector.chooses(&pod_labels))
        }
        _ => true,
    };
    if !selected {
        let what = String::from("its selector does not choose the labels of its own Pods");
        refused.push((
            object.place_of(top, "selector"),
            what,
            String::from("make selector and labels agree"),
        ));
    }
    let tolerations = tolerations(object, spec, &mut refused);
    let service_account = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|key| Some((spec.text_at(key)?, object.place_of(spec, key))))
        .filter(|(name, _)| !name.is_empty());
    let (service_account, service_account_place) = match service_account {
        Some((name, place)) => (name.to_owned(), place),
        None => (String::from("default"), object.place(spec)),
    };
    let own = |kind, name: &str, place: &Place| Ref {
        kind,
        namespace: object.namespace.clone(),
        name: name.to_owned(),
        key: None,
        stage: Stage::Creation,
        place: place.clone(),
    };
    refs.push(own("ServiceAccount", &service_account, &service_account_place));
    let namespace_place = object.place_of(root.get("metadata").unwrap_or(root), "namespace");
    refs.push(Ref { namespace: String::new(), ..own("Namespace", &object.namespace, &namespace_place) });
    let priority_class = spec
        .text_at("priorityClassName")
        .filter(|name| !name.is_empty())
        .map(|name| (name.to_owned(), object.place_of(spec, "priorityClassName")));
    if let Some((name, place)) = &priority_class {
        refs.push(Ref { namespace: String::new(), ..own("PriorityClass", name, place) });
    }
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
        labels: pod_labels,
        tolerations,
        tolerations_place: object.place_of(spec, "tolerations"),
        node_selector: node_selector(object, spec),
        node_affinity: node_affinity(object, spec),
        affinity_place: object.place_of(spec, "affinity"),
        near: required_terms(object, spec, "podAffinity"),
        apart: required_terms(object, spec, "podAntiAffinity"),
        rather_apart: preferred_terms(object, spec),
        host_network: spec.get("hostNetwork").and_then(Node::bool) == Some(true),
        host_network_place: object.place_of(spec, "hostNetwork"),
        dns: match spec.text_at("dnsPolicy") {
            Some("ClusterFirstWithHostNet") => DnsPolicy::ClusterFirstWithHostNet,
            Some("Default") => DnsPolicy::Default,
            Some("None") => DnsPolicy::None,
            _ => DnsPolicy::ClusterFirst,
        },
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
        node_name: spec
            .text_at("nodeName")
            .filter(|name| !name.is_empty())
            .map(|name| (name.to_owned(), object.place_of(spec, "nodeName"))),
        refused,
    };
    workload.host_ports = host_ports(object, spec, workload.host_network);
    field_refs(object, spec, &mut workload);
    volumes(object, spec, &mut workload);
    Some(workload)
}

fn containers(object: &Object, spec: &Node, refs: &mut Vec<Ref>) -> Vec<Container> {
    let mut all = Vec::new();
    for (key, init) in [("initContainers", true), ("containers", false)] {
        for node in spec.get(key).map(Node::items).unwrap_or_default() {
            // A sidecar keeps running beside the others (`restartPolicy: Always`).
            let ends = init && node.text_at("restartPolicy") != Some("Always");
            all.push(Container::read(object, node, ends, refs));
        }
    }
    all
}

fn pod_labels(kind: WorkloadKind, root: &Node) -> Labels {
    let path = spec_path(kind);
    let template = path.split_last().map_or(&[][..], |(_, template)| template);
    labels(root.at(template).and_then(|template| template.at(&["metadata", "labels"])))
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

/// Deployments surge by 25 %, rounded up, unless told otherwise; DaemonSets only when told.
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

fn node_selector(object: &Object, spec: &Node) -> Vec<(String, String, Place)> {
    let map = spec.get("nodeSelector");
    let entries = map.map(Node::entries).unwrap_or_default();
    let place = |line, column| Place { file: object.file.clone(), line, column };
    entries
        .iter()
        .map(|entry| {
            let value = entry.value.scalar().unwrap_or_default();
            (entry.key.clone(), value, place(entry.line, entry.column))
        })
        .collect()
}

/// Tolerations; those that the API server refuses (`ValidateTolerations`) are said and left out.
fn tolerations(object: &Object, spec: &Node, refused: &mut Vec<(Place, String, String)>) -> Vec<Toleration> {
    let mut all = Vec::new();
    for item in spec.get("tolerations").map(Node::items).unwrap_or_default() {
        let place = object.place(item);
        let mut refuse = |what: String, hint: &str| refused.push((place.clone(), what, hint.to_owned()));
        let text = |key: &str| item.get(key).and_then(Node::scalar).unwrap_or_default();
        let (key, value, operator, effect) = (text("key"), text("value"), text("operator"), text("effect"));
        let seconds = item.get("tolerationSeconds").and_then(Node::int);
        let exists = match operator.as_str() {
            "" | "Equal" => false,
            "Exists" => true,
            other => {
                refuse(format!("the toleration's operator '{other}' is unknown"), "write Exists or Equal");
                continue;
            }
        };
        let parsed = Effect::parse(&effect);
        if !effect.is_empty() && parsed.is_none() {
            let hint = "write NoSchedule, PreferNoSchedule or NoExecute, or leave it out for all of them";
            refuse(format!("the toleration's effect '{effect}' is unknown"), hint);
        } else if exists && !value.is_empty() {
            refuse(String::from("a toleration with operator Exists has a value"), "leave the value out");
        } else if key.is_empty() && !exists {
            refuse(String::from("a toleration without key needs operator Exists"), "add 'operator: Exists'");
        } else if seconds.is_some() && parsed != Some(Effect::NoExecute) {
            let what = String::from("tolerationSeconds without effect NoExecute");
            refuse(what, "add 'effect: NoExecute' or leave the seconds out");
        } else if item.get("value").is_some_and(|value| value.text().is_none() && !value.is_null()) {
            let what = format!("the toleration's value {value} is not text");
            refuse(what, "put it in quotes");
        } else {
            all.push(Toleration { key, exists, value, effect: parsed, seconds, place: Some(place) });
        }
    }
    all
}

fn host_ports(object: &Object, spec: &Node, host_network: bool) -> Vec<(i64, String, Place)> {
    let mut all = Vec::new();
    for container in spec.get("containers").map(Node::items).unwrap_or_default() {
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

fn volumes(object: &Object, spec: &Node, workload: &mut Workload) {
    for volume in spec.get("volumes").map(Node::items).unwrap_or_default() {
        let mut sources = vec![volume];
        sources.extend(volume.at(&["projected", "sources"]).map(Node::items).unwrap_or_default());
        for source in sources {
            if let Some(secret) = source.get("secret") {
                // In a projection the field is called name, in a volume secretName.
                for field in ["secretName", "name"] {
                    workload.refs.extend(object_ref(object, secret, "Secret", field, None));
                }
            }
            if let Some(map) = source.get("configMap") {
                workload.refs.extend(object_ref(object, map, "ConfigMap", "name", None));
            }
        }
        if let Some(claim) = volume.get("persistentVolumeClaim") {
            workload.storage.push(object.place(volume));
            if let Some(reference) = object_ref(object, claim, "PersistentVolumeClaim", "claimName", None) {
                workload.refs.push(Ref { stage: Stage::Scheduling, ..reference });
            }
        }
        if volume.get("csi").is_some() || volume.get("ephemeral").is_some() {
            workload.storage.push(object.place(volume));
        }
        let path = volume.at(&["hostPath", "path"]).and_then(Node::text).unwrap_or_default();
        workload.mounts_cni |= path.starts_with("/etc/cni") || path.starts_with("/opt/cni");
    }
}

fn priority(objects: &Objects, workload: &Workload) -> i64 {
    match workload.priority_class.as_ref().map(|(name, _)| name.as_str()) {
        Some("system-node-critical") => 2_000_001_000,
        Some("system-cluster-critical") => 2_000_000_000,
        Some(name) => {
            let class = objects.of_kind("PriorityClass").find(|object| object.name == name);
            class.and_then(|class| class.node.get("value")).and_then(Node::int).unwrap_or(0)
        }
        None => 0,
    }
}
