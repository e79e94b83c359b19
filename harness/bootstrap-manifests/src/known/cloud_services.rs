//! Services of the manifests through which a CCM reaches its cloud, such as a proxy: what is behind them has to run first.

use super::host::is_headless;
use crate::aliases::aliases;
use crate::cloud_urls::{cloud_texts, hosts_in};
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Role, Workload, is_added_label};
use std::net::IpAddr;

/// A Service through which a CCM reaches its cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudService {
    /// The index of the CCM.
    pub ccm: usize,
    /// Its namespace.
    pub namespace: String,
    /// `Service/name`.
    pub title: String,
    /// Where the CCM names it.
    pub place: Place,
    /// What is behind it.
    pub behind: Behind,
    /// Whether only what runs on the CCM's own Node answers (`internalTrafficPolicy: Local`).
    pub local: bool,
    /// Whether it has no address of its own (`clusterIP: None`), so that no proxy of Service addresses is needed.
    pub direct: bool,
}

impl CloudService {
    /// The workloads behind it.
    pub fn pods(&self) -> &[usize] {
        match &self.behind {
            Behind::Pods(pods) => pods,
            Behind::Addresses | Behind::Nothing(_) => &[],
        }
    }
}

/// What answers at the address of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Pods of these workloads.
    Pods(Vec<usize>),
    /// Addresses that the manifests list.
    Addresses,
    /// Nothing, for this reason.
    Nothing(String),
}

/// The Services of all CCMs.
pub fn cloud_services(objects: &Objects, workloads: &[Workload]) -> Vec<CloudService> {
    let mut all: Vec<CloudService> = Vec::new();
    for (ccm, workload) in workloads.iter().enumerate().filter(|(_, workload)| workload.role == Role::Ccm) {
        for (text, place) in cloud_texts(workload) {
            for service in named(objects, workload, &text) {
                let (namespace, title) = (service.namespace.clone(), format!("Service/{}", service.name));
                let is_it = |known: &CloudService| {
                    known.ccm == ccm && (&known.namespace, &known.title) == (&namespace, &title)
                };
                if all.iter().any(is_it) {
                    continue;
                }
                // Without an address of its own, its name leads to the Pods themselves.
                let direct = is_headless(service);
                let policy = service.node.at(&["spec", "internalTrafficPolicy"]).and_then(Node::text);
                let local = policy == Some("Local") && !direct;
                let behind = behind(objects, workloads, service, (local, direct));
                all.push(CloudService { ccm, namespace, title, place: place.clone(), behind, local, direct });
            }
        }
    }
    all
}

/// The Services that a text names: by an address, a name of cluster DNS, or a variable that the kubelet sets.
fn named<'o>(objects: &'o Objects, workload: &Workload, text: &str) -> Vec<&'o Object> {
    let aliases = aliases(objects, workload);
    let by_host = hosts_in(text).into_iter().filter_map(|host| {
        let address = aliases.iter().find(|(name, _)| *name == host).map(|(_, address)| address.clone());
        of_host(objects, workload, &address.unwrap_or(host))
    });
    let own = objects.of_kind("Service").filter(|service| service.namespace == workload.namespace);
    let by_variable = own.filter(|service| {
        !is_headless(service) && text.contains(&format!("$({})", super::host::variable_of(&service.name)))
    });
    let is_api_server =
        |service: &Object| (service.namespace.as_str(), service.name.as_str()) == ("default", "kubernetes");
    let is_alias =
        |service: &Object| service.node.at(&["spec", "type"]).and_then(Node::text) == Some("ExternalName");
    by_host.chain(by_variable).filter(|service| !is_api_server(service) && !is_alias(service)).collect()
}

fn of_host<'o>(objects: &'o Objects, workload: &Workload, host: &str) -> Option<&'o Object> {
    if host.parse::<IpAddr>().is_ok() {
        let mut services = objects.of_kind("Service");
        return services.find(|one| one.node.at(&["spec", "clusterIP"]).and_then(Node::text) == Some(host));
    }
    let host = host.trim_end_matches('.');
    let in_cluster = host.strip_suffix(".cluster.local").unwrap_or(host).strip_suffix(".svc");
    let (name, namespace) = match in_cluster {
        Some(name) => name.split_once('.')?,
        // Short names need the search list of cluster DNS.
        None if !workload.needs_cluster_dns() => return None,
        None => host.split_once('.').unwrap_or((host, workload.namespace.as_str())),
    };
    objects.find("Service", namespace, name)
}

fn behind(
    objects: &Objects,
    workloads: &[Workload],
    service: &Object,
    (local, direct): (bool, bool),
) -> Behind {
    let selector = service.node.at(&["spec", "selector"]).map(Node::entries).unwrap_or_default();
    if !selector.is_empty() {
        // Labels that controllers add are not known.
        let has = |workload: &Workload, key: &String, value: Option<String>| {
            is_added_label(key) || workload.labels.get(key) == value.as_ref()
        };
        let fits = |workload: &Workload| {
            workload.namespace == service.namespace
                && selector.iter().all(|entry| has(workload, &entry.key, entry.value.scalar()))
        };
        let pods: Vec<usize> =
            workloads.iter().enumerate().filter(|(_, own)| fits(own)).map(|(index, _)| index).collect();
        return match pods.is_empty() {
            true => Behind::Nothing("no workload of the manifests has the labels of its selector".to_owned()),
            false => Behind::Pods(pods),
        };
    }
    const OF_SERVICE: &str = "kubernetes.io/service-name";
    let here = |object: &&Object| object.namespace == service.namespace;
    let of_it = |slice: &&Object| {
        slice.node.at(&["metadata", "labels", OF_SERVICE]).and_then(Node::text) == Some(service.name.as_str())
    };
    let slices: Vec<&Object> = objects.of_kind("EndpointSlice").filter(here).filter(of_it).collect();
    if slices.is_empty() {
        // The older form, of which the cluster makes EndpointSlices.
        return match objects.find("Endpoints", &service.namespace, &service.name) {
            Some(own) if own.node.get("subsets").map(Node::items).unwrap_or_default().is_empty() => {
                Behind::Nothing("its Endpoints have no addresses".to_owned())
            }
            Some(_) => Behind::Addresses,
            None => Behind::Nothing(
                "it has no selector, and the manifests contain no EndpointSlice for it".to_owned(),
            ),
        };
    }
    let name = |port: &Node| port.text_at("name").unwrap_or_default().to_owned();
    let names = |object: &Object, path: &[&str]| -> Vec<String> {
        object.node.at(path).map(Node::items).unwrap_or_default().iter().map(name).collect()
    };
    let offered: Vec<String> = slices.iter().flat_map(|slice| names(slice, &["ports"])).collect();
    let ports = names(service, &["spec", "ports"]);
    // kube-proxy joins them by the name of the port (`endpointslicecache.go`).
    let common = ports.iter().any(|port| offered.contains(port));
    if let Some(port) = ports.first().filter(|_| !common && !direct && !offered.is_empty()) {
        return Behind::Nothing(format!("no port of its EndpointSlice has the name '{port}'"));
    }
    let endpoints =
        || slices.iter().flat_map(|slice| slice.node.get("endpoints").map(Node::items).unwrap_or_default());
    if endpoints().next().is_none() {
        return Behind::Nothing("its EndpointSlice is empty".to_owned());
    }
    if local && endpoints().all(|endpoint| endpoint.get("nodeName").is_none()) {
        let why = "its internalTrafficPolicy is Local, and its endpoints belong to no Node";
        return Behind::Nothing(why.to_owned());
    }
    Behind::Addresses
}
