//! The host and port of the API server in the variables of a container, and what kind of host it is.

use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Hindrance, Stage, Workload, spec_path};

/// The variable with the port of the API server.
pub(super) const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// The first address of the Service network of kubeadm, which is that of the API server's Service.
pub(super) const SERVICE: &str = "10.96.0.1";

/// A host that a variable sets.
pub(super) enum Host {
    Known(String),
    /// The address of the Pod's Node.
    OwnNode,
    /// The manifests do not show the value.
    Hidden,
}

/// The value of `KUBERNETES_SERVICE_HOST`, if the manifests set it.
pub(super) fn host_variable(objects: &Objects, workload: &Workload) -> Option<(Host, Place)> {
    const NAME: &str = "KUBERNETES_SERVICE_HOST";
    for container in workload.containers.iter().filter(|container| !container.init) {
        if let Some((_, value, place)) = container.env.iter().rev().find(|(name, ..)| name == NAME) {
            let host = of_reference(objects, workload, value).unwrap_or_else(|| Host::Known(value.clone()));
            return Some((host, place.clone()));
        }
        if container.env_names.iter().any(|name| name == NAME) {
            return Some(of_field(objects, workload, NAME));
        }
        for (kind, name) in &container.env_from {
            let object = objects.find(kind, &workload.namespace, name);
            let data = object.and_then(|o| o.node.get("data").or_else(|| o.node.get("stringData")));
            if let (Some(object), Some(value)) = (object, data.and_then(|data| data.get(NAME))) {
                let shown = value.scalar().filter(|_| *kind == "ConfigMap").map_or(Host::Hidden, Host::Known);
                return Some((shown, object.place(value)));
            }
        }
    }
    None
}

/// The host in a value that names another variable, which the kubelet replaces although the manifests do not show its
/// value: one that is defined before it by a field, a Secret or a ConfigMap, or one of a Service. `None` if nothing is
/// replaced.
fn of_reference(objects: &Objects, workload: &Workload, value: &str) -> Option<Host> {
    let (_, rest) = value.split_once("$(")?;
    let (variable, _) = rest.split_once(')')?;
    let item = |name: &str| env_item(objects, workload, name);
    let of_service = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"].iter().any(|part| variable.contains(part));
    let (at, _) = item("KUBERNETES_SERVICE_HOST")?;
    let defined = item(variable).filter(|(before, _)| *before < at);
    match defined {
        Some((_, node)) if value == format!("$({variable})") && reads_host_ip(node) => Some(Host::OwnNode),
        Some(_) => Some(Host::Hidden),
        None if of_service || workload.containers.iter().any(|c| !c.env_from.is_empty()) => {
            Some(Host::Hidden)
        }
        None => None,
    }
}

fn reads_host_ip(item: &Node) -> bool {
    item.at(&["valueFrom", "fieldRef", "fieldPath"]).and_then(Node::text) == Some("status.hostIP")
}

/// The last definition of a variable in the containers of a workload, and its place in the list.
fn env_item<'o>(objects: &'o Objects, workload: &Workload, variable: &str) -> Option<(usize, &'o Node)> {
    let object = &objects.all[workload.object?];
    let containers = object.node.at(spec_path(workload.kind))?.get("containers")?.items();
    let items = containers.iter().filter_map(|container| container.get("env")).flat_map(Node::items);
    items.enumerate().filter(|(_, item)| item.text_at("name") == Some(variable)).last()
}

/// A host that a field of the Pod provides, or something that the manifests do not contain.
fn of_field(objects: &Objects, workload: &Workload, variable: &str) -> (Host, Place) {
    let hidden = (Host::Hidden, workload.spec_place.clone());
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return hidden };
    let own = env_item(objects, workload, variable).map(|(_, item)| item);
    let field = own.and_then(|own| own.at(&["valueFrom", "fieldRef", "fieldPath"]));
    match field {
        Some(field) if field.text() == Some("status.hostIP") => (Host::OwnNode, object.place(field)),
        _ => hidden,
    }
}

/// `KUBERNETES_SERVICE_PORT`, if the manifests set it to a value that they show.
pub(super) fn port_variable(workload: &Workload) -> Option<&str> {
    let variables = workload.containers.iter().filter(|c| !c.init).flat_map(|c| &c.env);
    variables.rev().find(|(name, ..)| name == PORT).map(|(_, port, _)| port.as_str())
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host == "::1" || host.starts_with("127.")
}

/// Whether a Service has no address of its own.
pub(super) fn is_headless(service: &Object) -> bool {
    service.node.at(&["spec", "clusterIP"]).and_then(Node::text) == Some("None")
}

/// The variable with the address of a Service, which the kubelet sets for Pods of its namespace.
pub(super) fn variable_of(service: &str) -> String {
    format!("{}_SERVICE_HOST", service.to_uppercase().replace('-', "_"))
}

/// A variable of a Service that the kubelet does not set, because the Service has no address or the Pod wants no variables of
/// Services: its name stays in the text.
pub(super) fn unset_variable(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let object = &objects.all[workload.object?];
    let links = object.node.at(spec_path(workload.kind))?.get("enableServiceLinks").and_then(Node::bool);
    let own = objects.of_kind("Service").filter(|service| service.namespace == workload.namespace);
    own.filter(|service| is_headless(service) || links == Some(false)).find_map(|service| {
        let variable = variable_of(&service.name);
        let containers = workload.containers.iter().filter(|container| !container.init);
        let mut values = containers.filter(|own| !own.env_names.contains(&variable)).flat_map(|own| &own.env);
        let (name, _, place) = values.find(|(_, value, _)| value.contains(&format!("$({variable})")))?;
        let why = match is_headless(service) {
            true => format!("Service/{} has no address", service.name),
            false => "enableServiceLinks is false".to_owned(),
        };
        let words = format!("{why}, so nothing replaces $({variable}) in its variable {name}");
        let advice = format!("write the address or the name of Service/{}", service.name);
        Some(Hindrance::new(Stage::Work, words, place.clone(), advice))
    })
}

/// Whether only cluster DNS knows the name.
pub fn in_cluster(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    host.ends_with(".svc") || host.ends_with(".svc.cluster.local")
}

/// The host of a URL or of `host:port`.
pub(super) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}
