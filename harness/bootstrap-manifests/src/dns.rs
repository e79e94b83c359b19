//! Cluster DNS as kubeadm installs it, and whether a CCM needs it: does it reach its cloud by name or by address?

use crate::aliases::aliases;
use crate::cloud_urls::{cloud_texts, hosts_in};
use crate::manifest::{Node, Object, Objects, Place, Value};
use crate::workload::{CONTROL_PLANE, DnsPolicy, Effect, Labels, Role, Toleration, Workload, WorkloadKind};
use std::net::IpAddr;
use std::sync::Arc;

/// CoreDNS of kubeadm (`cmd/kubeadm/app/phases/addons/dns/manifests.go`): it tolerates `CriticalAddonsOnly` and the
/// control plane's taint without a value, nothing else, and has no host network.
pub fn coredns() -> Workload {
    let place = Place { file: Arc::from("kubeadm"), line: 0, column: 1 };
    let control_plane =
        Toleration { exists: false, ..Toleration::of(CONTROL_PLANE, Some(Effect::NoSchedule), None) };
    let master = Toleration { key: crate::workload::MASTER.to_owned(), ..control_plane.clone() };
    Workload {
        kind: WorkloadKind::Deployment,
        namespace: String::from("kube-system"),
        name: String::from("coredns"),
        role: Role::Dns,
        object: None,
        place: place.clone(),
        spec_place: place.clone(),
        replicas: 2,
        replicas_place: place.clone(),
        surges: true,
        labels: Labels::from([(String::from("k8s-app"), String::from("kube-dns"))]),
        tolerations: vec![Toleration::of("CriticalAddonsOnly", None, None), control_plane, master],
        tolerations_place: place.clone(),
        node_selector: vec![(String::from("kubernetes.io/os"), String::from("linux"), place.clone())],
        node_affinity: None,
        preferred_nodes: Vec::new(),
        affinity_place: place.clone(),
        near: Vec::new(),
        apart: Vec::new(),
        rather_apart: Vec::new(),
        host_network: false,
        host_network_place: place.clone(),
        dns: DnsPolicy::Default,
        dns_place: place.clone(),
        service_account: String::from("coredns"),
        service_account_place: place.clone(),
        priority_class: None,
        priority: 2_000_000_000,
        host_ports: Vec::new(),
        containers: Vec::new(),
        refs: Vec::new(),
        host_ip: Vec::new(),
        pod_ip: Vec::new(),
        storage: Vec::new(),
        mounts_cni: false,
        files_of_control_planes: Vec::new(),
        node_name: None,
        spread: Vec::new(),
        scheduler: None,
        preempts: true,
        hindrances: Vec::new(),
        conditions: Vec::new(),
        refused: Vec::new(),
    }
}

/// Whether an object is a part of kubeadm's CoreDNS, which kubectl adds to what is there.
pub fn is_patch(object: &Object) -> bool {
    let containers = object.node.at(&["spec", "template", "spec", "containers"]);
    object.kind == "Deployment"
        && (object.namespace.as_str(), object.name.as_str()) == ("kube-system", "coredns")
        && object.api_version == "apps/v1"
        && containers.is_none()
}

/// CoreDNS with the fields of a patch: lists replace those of kubeadm, maps are added to them.
pub(crate) fn patched(patch: Workload, object: &Object) -> Workload {
    let spec = object.node.at(&["spec", "template", "spec"]);
    let has = |field: &str| spec.is_some_and(|spec| spec.get(field).is_some());
    let mut dns =
        Workload { object: patch.object, place: patch.place, spec_place: patch.spec_place, ..coredns() };
    if object.node.at(&["spec", "replicas"]).is_some() {
        (dns.replicas, dns.replicas_place) = (patch.replicas, patch.replicas_place);
    }
    if has("tolerations") {
        (dns.tolerations, dns.tolerations_place) = (patch.tolerations, patch.tolerations_place);
    }
    if has("affinity") {
        (dns.node_affinity, dns.affinity_place) = (patch.node_affinity, patch.affinity_place);
        (dns.near, dns.apart) = (patch.near, patch.apart);
    }
    if has("hostNetwork") {
        (dns.host_network, dns.host_network_place) = (patch.host_network, patch.host_network_place);
    }
    dns.node_selector.retain(|(key, ..)| patch.node_selector.iter().all(|(own, ..)| own != key));
    dns.node_selector.extend(patch.node_selector);
    dns
}

/// Whether the CCMs reach their cloud by a DNS name: yes if any of their URLs has one, no if all have addresses, `None`
/// if the manifests show no URL.
pub fn cloud_by_name(objects: &Objects, workloads: &[Workload]) -> Option<bool> {
    let mut hosts = Vec::new();
    for workload in workloads.iter().filter(|workload| workload.role == Role::Ccm) {
        let before = hosts.len();
        hosts.extend(cloud_texts(workload).iter().flat_map(|(text, _)| hosts_in(text)));
        for reference in &workload.refs {
            for object in objects.of_kind(reference.kind) {
                let own = object.name == reference.name && object.namespace == reference.namespace;
                for field in ["data", "stringData"].iter().filter(|_| own) {
                    texts(object.node.get(field), &mut |text| hosts.extend(hosts_in(text)));
                }
            }
        }
        // `hostAliases` are in the file /etc/hosts, which counts before any name server.
        let aliases = aliases(objects, workload);
        for host in &mut hosts[before..] {
            if let Some((_, address)) = aliases.iter().find(|(name, _)| name == host) {
                host.clone_from(address);
            }
        }
    }
    let address = |host: &String| host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if hosts.is_empty() { None } else { Some(!hosts.iter().all(address)) }
}

/// A name of the cloud that only cluster DNS knows, although the CCM asks the Node's DNS.
pub fn unknown_to_the_node(objects: &Objects, workload: &Workload) -> Option<(String, Place)> {
    if workload.role != Role::Ccm || workload.needs_cluster_dns() || workload.dns == DnsPolicy::None {
        return None;
    }
    let aliases = aliases(objects, workload);
    cloud_texts(workload).into_iter().find_map(|(text, place)| {
        let host = hosts_in(&text).into_iter().find(|host| crate::known::in_cluster(host))?;
        aliases.iter().all(|(name, _)| *name != host).then_some((host, place))
    })
}

fn texts(node: Option<&Node>, found: &mut impl FnMut(&str)) {
    for entry in node.map(Node::entries).unwrap_or_default() {
        if let Value::Text(text) = &entry.value.value {
            found(text);
        }
    }
}
