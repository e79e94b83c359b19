//! The address at which a program looks for the API server: whether one can be there.

use super::host::{Host, PORT, SERVICE, host_of, host_variable, in_cluster, is_loopback, port_variable};
use super::kubeconfig::{Kubeconfig, find as kubeconfig};
use crate::manifest::{Node, Objects, Place};
use crate::workload::{Condition, Hindrance, Stage, Workload};

/// The parts of an address, as far as the manifests show them.
struct Address {
    host: String,
    port: String,
    /// Whether the manifests state the port; otherwise it is that of the Service, which the kubelet sets, or of the scheme.
    states_port: bool,
    is_encrypted: bool,
    place: Place,
}

/// The address of the workload; `None` if it is the usual one, or the manifests do not show it.
fn address(objects: &Objects, workload: &Workload) -> Option<Address> {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty());
    if let Some((url, place)) = flag("master") {
        return Some(of_url(&url, place));
    }
    if flag("kubeconfig").is_some() {
        return match kubeconfig(objects, workload)? {
            Kubeconfig::Text { server: Some(server), place, .. } => Some(of_url(&server, place)),
            _ => None,
        };
    }
    let Some(host) = host_variable(objects, workload) else {
        // The kubelet sets the host unless an object outside of the manifests does, and a port of the manifests replaces the
        // one that it sets.
        let mut sources = workload.containers.iter().flat_map(|container| &container.env_from);
        if !sources.all(|(kind, name)| objects.find(kind, &workload.namespace, name).is_some()) {
            return None;
        }
        let variables =
            workload.containers.iter().filter(|container| !container.init).flat_map(|own| &own.env);
        let (_, port, place) = variables.rev().find(|(name, ..)| name == PORT)?;
        let (host, port, place) = (SERVICE.to_owned(), port.clone(), place.clone());
        return Some(Address { host, port, states_port: true, is_encrypted: true, place });
    };
    let (Host::Known(host), place) = host else { return None };
    let port = port_variable(workload);
    let is_set = port.is_some() || sets_port(workload);
    // A port that a Secret contains is not known.
    let port = match (port, is_set) {
        (Some(port), _) => port.to_owned(),
        (None, true) => return None,
        (None, false) => "443".to_owned(),
    };
    Some(Address { host, port, states_port: is_set, is_encrypted: true, place })
}

/// Whether a container sets the variable of the port, to a value that may be unknown.
fn sets_port(workload: &Workload) -> bool {
    let mut containers = workload.containers.iter().filter(|container| !container.init);
    containers.any(|c| c.env_names.iter().any(|name| name == PORT) || !c.env_from.is_empty())
}

/// An address without a scheme is one without TLS (client-go, `DefaultServerUrlFor`): the authority of a kubeconfig is taken
/// into account only afterwards.
fn of_url(url: &str, place: Place) -> Address {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or_default();
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, after)| after);
    let stated = after_host.rsplit_once(':').map(|(_, port)| port);
    let is_encrypted = scheme != "http";
    let usual = if is_encrypted { "443" } else { "80" };
    Address {
        host: host_of(url).to_owned(),
        port: stated.unwrap_or(usual).to_owned(),
        states_port: stated.is_some(),
        is_encrypted,
        place,
    }
}

/// What keeps the API server from being at the address.
pub(super) fn fault(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let Address { host, port, is_encrypted, place, .. } = address(objects, workload)?;
    let never = |words: String, advice: &str| {
        Some(Hindrance::new(Stage::Work, words, place.clone(), advice.to_owned()))
    };
    let right = "set the address of the API server, without a scheme, and its port";
    if port.is_empty() {
        // `InClusterConfig` refuses an empty port like an empty host.
        let words = format!("{PORT} is empty, so it does not find the API server and exits");
        return never(words, "remove the variable, or set it to the port of the API server");
    }
    if host.contains(char::is_whitespace) {
        let words =
            "KUBERNETES_SERVICE_HOST contains a blank or a line break, so it is not a host".to_owned();
        return never(words, "write it on one line, without '|' before it");
    }
    if host.contains("://") || host.contains('/') {
        return never(format!("KUBERNETES_SERVICE_HOST is '{host}', which is not a host"), right);
    }
    if host.contains(':') && host.parse::<std::net::Ipv6Addr>().is_err() {
        return never(format!("KUBERNETES_SERVICE_HOST is '{host}', which has a port"), right);
    }
    if !port.contains("$(") && port.parse::<u16>().is_err() {
        return never(format!("'{port}' is not the number of a port"), right);
    }
    if host.contains("$(") {
        let words = format!("no variable before it replaces '{host}', so it does not find the API server");
        return never(words, "define the variable first, or set the address of the API server");
    }
    if host == SERVICE && port != "443" {
        let words = format!("the Service of the API server has port 443, and it uses port {port}");
        return never(words, "use port 443 with the address of the Service");
    }
    if !is_encrypted && !is_loopback(&host) {
        let words = format!("it connects to the API server at {host} without TLS, which that refuses");
        return never(words, "write https:// before the address of the API server");
    }
    None
}

/// What a name that only `hostAliases` know, or the address of another Service, depends on: kubeadm's certificate has the
/// names and the address of the Service `kubernetes`, and those of the machine.
pub(super) fn certificate(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let Address { host, place, is_encrypted, .. } = address(objects, workload)?;
    let aliased = crate::aliases::aliases(objects, workload).iter().any(|(name, _)| *name == host);
    let mut services = objects.of_kind("Service");
    let of_another =
        services.any(|one| one.node.at(&["spec", "clusterIP"]).and_then(Node::text) == Some(&host));
    let of_service = host == "kubernetes" || host.starts_with("kubernetes.default");
    // Another address on the command line replaces the name in the kubeconfig as well (`DirectClientConfig.getCluster`).
    let by_another_name = |text: &str| text.contains("tls-server-name") && workload.flag("master").is_none();
    let unchecked = matches!(kubeconfig(objects, workload), Some(Kubeconfig::Text { text, .. })
        if text.contains("insecure-skip-tls-verify: true") || by_another_name(&text));
    let what = if aliased { "name" } else { "address" };
    let words = format!("the certificate of the API server is also for the {what} {host}");
    let depends = (aliased || of_another) && is_encrypted && !of_service && !unchecked;
    depends.then_some(Condition { words, place })
}

/// What a program with a kubeconfig depends on if the variables of its service account name another address: with those it
/// looks up how to authenticate its own clients (`DelegatingAuthenticationOptions.ApplyTo`), and many programs exit if that
/// fails.
pub(super) fn looked_up_elsewhere(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let flag = |name: &str| workload.flag(name).filter(|(value, _)| !value.is_empty() && value != "false");
    let spared =
        ["authentication-skip-lookup", "authentication-tolerate-lookup-failure", "authentication-kubeconfig"];
    flag("kubeconfig")?;
    if spared.iter().any(|name| flag(name).is_some()) {
        return None;
    }
    let (Host::Known(host), place) = host_variable(objects, workload)? else { return None };
    let is_service = host == SERVICE || is_loopback(&host) || host.parse::<std::net::IpAddr>().is_err();
    let words = format!(
        "it also starts if no API server answers at {host}:443, from which it reads its authentication settings"
    );
    (port_variable(workload) == Some("443") && !is_service).then_some(Condition { words, place })
}

/// What an address with the port of the Service depends on: kubeadm's API servers listen on port 6443.
pub(super) fn usual_port(objects: &Objects, workload: &Workload) -> Option<Condition> {
    let Address { host, port, states_port, place, .. } = address(objects, workload)?;
    let by_name = host.parse::<std::net::IpAddr>().is_err();
    // A name may be that of a load balancer.
    if port != "443" || host == SERVICE || is_loopback(&host) || (by_name && states_port) {
        return None;
    }
    if host == "kubernetes" || host == "kubernetes.default" || in_cluster(&host) {
        return None;
    }
    let why = if states_port { "" } else { ", since no port is set" };
    Some(Condition { words: format!("the API server listens on port 443 of {host}{why}"), place })
}
