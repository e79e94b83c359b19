//! How a program finds the API server: the Service address, an address of its own, or a kubeconfig, and whether it can read
//! that file.

use super::host::{Host, PORT, SERVICE, host_of, host_variable, in_cluster, is_loopback, port_variable};
use super::kubeconfig::{Kubeconfig, find as kubeconfig};
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Condition, Hindrance, Stage, TOKEN_FOLDER, Workload, spec_path};

/// How a workload reaches the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiServer {
    /// By the Service address.
    Service,
    /// By its name in cluster DNS.
    ClusterName(Place),
    /// By an address that needs nothing of the cluster.
    Named,
    /// By the loopback address of its Node.
    Loopback(Place),
    /// By the address of its Node (`status.hostIP`).
    OwnNode(Place),
    /// By a kubeconfig that only control planes have.
    FileOfKubeadm(Place),
}

/// How the workload reaches the API server.
pub fn api_server(objects: &Objects, workload: &Workload) -> ApiServer {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    if let Some((url, place)) = flag("master") {
        return by_url(objects, workload, &url, place);
    }
    if flag("kubeconfig").is_some() {
        return match kubeconfig(objects, workload) {
            Some(Kubeconfig::Text { server: Some(server), place, .. }) => {
                by_url(objects, workload, &server, place)
            }
            Some(Kubeconfig::OfKubeadm { place, .. }) => ApiServer::FileOfKubeadm(place),
            _ => ApiServer::Named,
        };
    }
    match host_variable(objects, workload) {
        Some((Host::Known(host), _)) if is_loopback(&host) && other_port(port_variable(workload)) => {
            ApiServer::Named
        }
        Some((Host::Known(host), place)) => by_alias(objects, workload, &host, place),
        Some((Host::OwnNode, place)) => ApiServer::OwnNode(place),
        Some((Host::Hidden, _)) => ApiServer::Named,
        None => match of_another_service(objects, workload) {
            Some(_) => ApiServer::Named,
            None => ApiServer::Service,
        },
    }
}

/// A Service `kubernetes` next to the workload: its variables replace those of the API server's Service
/// (`getServiceEnvVarMap`).
fn of_another_service<'o>(objects: &'o Objects, workload: &Workload) -> Option<&'o Object> {
    let object = &objects.all[workload.object?];
    let links = object.node.at(spec_path(workload.kind))?.get("enableServiceLinks").and_then(Node::bool);
    let service = objects.find("Service", &workload.namespace, "kubernetes")?;
    let headless = service.node.at(&["spec", "clusterIP"]).and_then(Node::text) == Some("None");
    (workload.namespace != "default" && links != Some(false) && !headless).then_some(service)
}

/// Whether a port of the loopback address is not that of kubeadm's API server: then a proxy may listen there.
fn other_port(port: Option<&str>) -> bool {
    port.is_some_and(|port| port != "6443")
}

fn by_url(objects: &Objects, workload: &Workload, url: &str, place: Place) -> ApiServer {
    match loopback_port(url) {
        Some(port) if other_port(Some(port)) => ApiServer::Named,
        _ => by_alias(objects, workload, host_of(url), place),
    }
}

/// The port of a URL with a loopback address.
fn loopback_port(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    is_loopback(host_of(url)).then(|| authority.rsplit_once(':').map_or("443", |(_, port)| port))
}

/// The same for a host that the Pod's `hostAliases` may know.
fn by_alias(objects: &Objects, workload: &Workload, host: &str, place: Place) -> ApiServer {
    let aliases = crate::aliases::aliases(objects, workload);
    match aliases.iter().find(|(name, _)| name == host) {
        Some((_, address)) => by_host(address, place),
        None => by_host(host, place),
    }
}

fn by_host(host: &str, place: Place) -> ApiServer {
    if is_loopback(host) {
        ApiServer::Loopback(place)
    } else if host == "kubernetes" || host == "kubernetes.default" || in_cluster(host) {
        ApiServer::ClusterName(place)
    } else if host == SERVICE {
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
        let (Host::Known(host), place) = host_variable(objects, workload)? else { return None };
        is_loopback(&host).then_some(())?;
        (port_variable(workload)?.to_owned(), place)
    };
    let words =
        format!("a proxy of the API server listens on port {port} of the loopback address of the Nodes");
    other_port(Some(&port)).then_some(Condition { words, place })
}

/// Whether the program uses an identity other than its service account.
pub fn own_identity(objects: &Objects, workload: &Workload) -> bool {
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
    if let (Some((Host::Known(host), place)), None) = (host_variable(objects, workload), flag("kubeconfig"))
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
    if let (None, None, Some(service)) =
        (host_variable(objects, workload), flag("kubeconfig"), of_another_service(objects, workload))
    {
        return Some(Hindrance::new(
            Stage::Work,
            format!(
                "Service/kubernetes in the namespace {} replaces the address of the API server in its variables",
                workload.namespace
            ),
            service.at(),
            String::from("rename the Service, or set 'enableServiceLinks: false'"),
        ));
    }
    if let Some(fault) = super::address::fault(objects, workload) {
        return Some(fault);
    }
    if let Some((port, place)) = wrong_port(objects, workload) {
        return Some(Hindrance::new(
            Stage::Work,
            format!(
                "the API server of a control plane listens on port 6443, and the kubelet sets port {port}"
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

/// The port of the Service, which the kubelet sets, next to the address of a Node: nothing listens there.
fn wrong_port(objects: &Objects, workload: &Workload) -> Option<(&'static str, Place)> {
    let (host, place) = host_variable(objects, workload)?;
    let of_node = match host {
        Host::Known(host) => is_loopback(&host),
        Host::OwnNode => true,
        Host::Hidden => false,
    };
    let mut containers = workload.containers.iter().filter(|container| !container.init);
    let set = containers.any(|c| c.env_names.iter().any(|name| name == PORT) || !c.env_from.is_empty());
    (of_node && workload.flag("kubeconfig").is_none() && !set).then_some(("443", place))
}
