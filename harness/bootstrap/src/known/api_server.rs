//! How a program finds the API server: the Service address, an address of its own, or a kubeconfig, and whether it can read
//! that file.

use super::kubeconfig::{Kubeconfig, find as kubeconfig};
use crate::manifest::{Objects, Place};
use crate::workload::{Condition, Hindrance, Stage, TOKEN_FOLDER, Workload};

/// The variable with the port of the API server.
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// How a workload reaches the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiServer {
    /// By the Service address.
    Service,
    /// By its name in cluster DNS.
    ClusterName(Place),
    /// By an address that needs nothing of the cluster.
    Named,
    /// By the loopback address of its Node.
    Loopback(Place),
    /// By a kubeconfig that only control planes have.
    FileOfKubeadm(Place),
}

/// How the workload reaches the API server.
pub(crate) fn api_server(objects: &Objects, workload: &Workload) -> ApiServer {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    if let Some((url, place)) = flag("master") {
        return by_url(&url, place);
    }
    if flag("kubeconfig").is_some() {
        return match kubeconfig(objects, workload) {
            Some(Kubeconfig::Text { server: Some(server), place, .. }) => by_url(&server, place),
            Some(Kubeconfig::OfKubeadm { place, .. }) => ApiServer::FileOfKubeadm(place),
            _ => ApiServer::Named,
        };
    }
    match host_variable(objects, workload) {
        Some((Some(host), _)) if is_loopback(&host) && other_port(port_variable(workload)) => {
            ApiServer::Named
        }
        Some((Some(host), place)) => by_host(&host, place),
        Some((None, _)) => ApiServer::Named,
        None => ApiServer::Service,
    }
}

/// The value of `KUBERNETES_SERVICE_HOST`, if the manifests set it; the value is `None` if they do not show it.
fn host_variable(objects: &Objects, workload: &Workload) -> Option<(Option<String>, Place)> {
    const NAME: &str = "KUBERNETES_SERVICE_HOST";
    for container in workload.containers.iter().filter(|container| !container.init) {
        if let Some((_, value, place)) = container.env.iter().rev().find(|(name, ..)| name == NAME) {
            return Some((Some(value.clone()), place.clone()));
        }
        if container.env_names.iter().any(|name| name == NAME) {
            return Some((None, workload.spec_place.clone()));
        }
        for (kind, name) in &container.env_from {
            let object = objects.find(kind, &workload.namespace, name);
            let data = object.and_then(|o| o.node.get("data").or_else(|| o.node.get("stringData")));
            if let (Some(object), Some(value)) = (object, data.and_then(|data| data.get(NAME))) {
                let shown = value.scalar().filter(|_| *kind == "ConfigMap");
                return Some((shown, object.place(value)));
            }
        }
    }
    None
}

/// `KUBERNETES_SERVICE_PORT`, if the manifests set it to a value that they show.
fn port_variable(workload: &Workload) -> Option<&str> {
    let mut variables = workload.containers.iter().filter(|c| !c.init).flat_map(|c| &c.env);
    variables.find(|(name, ..)| name == PORT).map(|(_, port, _)| port.as_str())
}

/// Whether a port of the loopback address is not that of kubeadm's API server: then a proxy may listen there.
fn other_port(port: Option<&str>) -> bool {
    port.is_some_and(|port| port != "6443")
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host == "::1" || host.starts_with("127.")
}

fn by_url(url: &str, place: Place) -> ApiServer {
    match loopback_port(url) {
        Some(port) if other_port(Some(port)) => ApiServer::Named,
        _ => by_host(host_of(url), place),
    }
}

/// The port of a URL with a loopback address.
fn loopback_port(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    is_loopback(host_of(url)).then(|| authority.rsplit_once(':').map_or("443", |(_, port)| port))
}

fn by_host(host: &str, place: Place) -> ApiServer {
    if is_loopback(host) {
        ApiServer::Loopback(place)
    } else if host == "kubernetes" || host == "kubernetes.default" || in_cluster(host) {
        ApiServer::ClusterName(place)
    } else if host == "10.96.0.1" {
        ApiServer::Service
    } else {
        ApiServer::Named
    }
}

/// The condition that a proxy of the API server, such as that of Talos, listens at the loopback address of the Nodes.
pub(super) fn local_proxy(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    let (port, place) = if let Some((url, place)) = flag("master") {
        (loopback_port(&url)?.to_owned(), place)
    } else if flag("kubeconfig").is_some() {
        let Some(Kubeconfig::Text { server: Some(server), place, .. }) = kubeconfig(objects, workload) else {
            return None;
        };
        (loopback_port(&server)?.to_owned(), place)
    } else {
        let (host, place) = host_variable(objects, workload)?;
        is_loopback(&host?).then_some(())?;
        (port_variable(workload)?.to_owned(), place)
    };
    let words =
        format!("a proxy of the API server listens on port {port} of the loopback address of the Nodes");
    other_port(Some(&port)).then_some(Condition { words, place })
}

/// Whether only cluster DNS knows the name.
pub(crate) fn in_cluster(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    host.ends_with(".svc") || host.ends_with(".svc.cluster.local")
}

/// The host of a URL or of `host:port`.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Whether the program uses an identity other than its service account.
pub(crate) fn own_identity(objects: &Objects, workload: &Workload) -> bool {
    if workload.flag("kubeconfig").is_none_or(|(value, _)| value.is_empty()) {
        return false;
    }
    match kubeconfig(objects, workload) {
        Some(Kubeconfig::Text { text, .. }) => !text.contains(TOKEN_FOLDER),
        _ => true,
    }
}

/// What keeps the program from using its connection to the API server on every Node.
pub(super) fn without_connection(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    if let (Some((url, place)), None) = (flag("master"), flag("kubeconfig")) {
        // With an address but no kubeconfig, client-go takes neither token nor certificate from the service account
        // (`BuildConfigFromFlags`).
        return Some(Hindrance::new(
            Stage::Work,
            format!(
                "--master={url} without --kubeconfig gives it no credentials, so its requests are refused"
            ),
            place,
            String::from("set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT instead of --master"),
        ));
    }
    if let ApiServer::ClusterName(place) = api_server(objects, workload)
        && !workload.needs_cluster_dns()
    {
        return Some(Hindrance::new(
            Stage::Work,
            String::from(
                "it looks up the API server by a name that only cluster DNS knows, but asks the Node's DNS",
            ),
            place,
            String::from("use the address of the API server"),
        ));
    }
    if let (Some((Some(host), place)), None) = (host_variable(objects, workload), flag("kubeconfig"))
        && host.is_empty()
    {
        // `InClusterConfig` refuses an empty host.
        return Some(Hindrance::new(
            Stage::Work,
            String::from("KUBERNETES_SERVICE_HOST is empty, so it does not find the API server and exits"),
            place,
            String::from("remove KUBERNETES_SERVICE_HOST, or set it to the address of the API server"),
        ));
    }
    if let Some((port, place)) = wrong_port(objects, workload) {
        return Some(Hindrance::new(
            Stage::Work,
            format!(
                "the API server of a control plane does not listen on port {port} of the loopback address"
            ),
            place,
            String::from("set KUBERNETES_SERVICE_PORT to 6443"),
        ));
    }
    match kubeconfig(objects, workload)? {
        Kubeconfig::Unreadable { why, place, advice } => {
            Some(Hindrance::new(Stage::Work, why, place, advice))
        }
        Kubeconfig::OfKubeadm { readable: false, place } => Some(Hindrance::new(
            Stage::Work,
            String::from("only root may read the kubeconfig of kubeadm, and it runs as another user"),
            place,
            String::from("mount a kubeconfig that its user may read, or run as root"),
        )),
        _ => None,
    }
}

/// The port of the Service, which the kubelet sets, next to a loopback address: nothing listens there.
fn wrong_port(objects: &Objects, workload: &Workload) -> Option<(&'static str, Place)> {
    let (host, place) = host_variable(objects, workload)?;
    let loopback = is_loopback(&host?) && workload.flag("kubeconfig").is_none();
    let mut containers = workload.containers.iter().filter(|container| !container.init);
    let set = containers.any(|c| c.env_names.iter().any(|name| name == PORT) || !c.env_from.is_empty());
    (loopback && !set).then_some(("443", place))
}
