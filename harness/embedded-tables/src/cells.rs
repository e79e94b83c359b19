//! The cells of each kind's row.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::age::{age, duration};
use super::pod;
use embedded_objects::kinds::Kind;
use embedded_objects::select::Labels;
use embedded_objects::value::PathAccess as _;

const NONE: &str = "<none>";

/// The cells of an object's row.
pub(super) fn of(kind: &Kind, object: &Value, now: &str) -> Vec<Value> {
    let name = json!(object.text("metadata.name"));
    let old = json!(age(object.text("metadata.creationTimestamp"), now));
    let spec = object.at("spec");
    match kind.kind {
        "Pod" => pod::cells(object, now),
        "Node" => node(object, name, old),
        "Service" => service(object, name, old),
        "Event" => event(kind, object, now),
        "Deployment" => {
            let status = |field: &str| object.int(&format!("status.{field}"));
            let ready = format!("{}/{}", status("readyReplicas"), spec.int("replicas"));
            let mut cells = vec![name, json!(ready)];
            cells.extend([json!(status("updatedReplicas")), json!(status("availableReplicas")), old]);
            cells.extend(template(object));
            cells
        }
        "ReplicaSet" => {
            let status = |field: &str| json!(object.int(&format!("status.{field}")));
            let mut cells =
                vec![name, json!(spec.int("replicas")), status("replicas"), status("readyReplicas"), old];
            cells.extend(template(object));
            cells
        }
        "DaemonSet" => {
            let status = |field: &str| json!(object.int(&format!("status.{field}")));
            let mut cells = vec![
                name,
                status("desiredNumberScheduled"),
                status("currentNumberScheduled"),
                status("numberReady"),
                status("updatedNumberScheduled"),
                status("numberAvailable"),
                json!(labels(object.at("spec.template.spec.nodeSelector"))),
                old,
            ];
            cells.extend(template(object));
            cells
        }
        "Lease" => vec![name, json!(spec.text("holderIdentity")), old],
        "Namespace" => vec![name, json!(object.text("status.phase")), old],
        "Secret" => vec![name, json!(object.text("type")), json!(object.map("data").len()), old],
        "ConfigMap" => {
            vec![name, json!(object.map("data").len() + object.map("binaryData").len()), old]
        }
        "Endpoints" => vec![name, json!(endpoints(object)), old],
        "EndpointSlice" => {
            let kind = json!(object.text("addressType"));
            vec![name, kind, json!(slice_ports(object)), json!(slice_addresses(object)), old]
        }
        "RoleBinding" | "ClusterRoleBinding" => binding(object, name, old),
        "CSINode" => vec![name, json!(spec.list("drivers").len()), old],
        "CertificateSigningRequest" => {
            let seconds = spec.at("expirationSeconds").as_i64().map(duration);
            let signer = or_none(spec.text("signerName"));
            let wanted = json!(seconds.unwrap_or_else(|| NONE.to_owned()));
            vec![name, old, signer, json!(spec.text("username")), wanted, json!(request_status(object))]
        }
        _ => vec![name, old],
    }
}

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { NONE } else { text })
}

/// Labels as `a=b,c=d`.
fn labels(labels: &Value) -> String {
    let listed: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if listed.is_empty() { NONE.to_owned() } else { listed.join(",") }
}

/// The names and images of a template's containers, and the selector.
fn template(object: &Value) -> [Value; 3] {
    let containers = object.list("spec.template.spec.containers");
    let listed = |field: &str| {
        json!(containers.iter().map(|container| container.text(field)).collect::<Vec<_>>().join(","))
    };
    let selector = Labels::of_object(object.at("spec.selector")).text();
    let empty = object.text("kind") != "Deployment" && selector.is_empty();
    [listed("name"), listed("image"), json!(if empty { NONE.to_owned() } else { selector })]
}

fn node(object: &Value, name: Value, old: Value) -> Vec<Value> {
    let ready = object.list("status.conditions").iter().find(|condition| condition.text("type") == "Ready");
    let mut status = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.truth("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (key, value) in object.map("metadata.labels") {
        if let Some(role) = key.strip_prefix("node-role.kubernetes.io/").filter(|role| !role.is_empty()) {
            roles.insert(role);
        } else if key == "kubernetes.io/role"
            && let Some(role) = value.as_str().filter(|role| !role.is_empty())
        {
            roles.insert(role);
        }
    }
    let address = |kind: &str| {
        let found = object.list("status.addresses").iter().find(|address| address.text("type") == kind);
        or_none(found.map(|address| address.text("address")).unwrap_or_default())
    };
    let info = |field: &str| object.text(&format!("status.nodeInfo.{field}"));
    let known = |text: &str| if text.is_empty() { "<unknown>".to_owned() } else { text.to_owned() };
    let mut kernel = known(info("kernelVersion"));
    if !info("architecture").is_empty() {
        kernel.push_str(&format!(" ({})", info("architecture")));
    }
    vec![
        name,
        json!(status),
        or_none(&roles.into_iter().collect::<Vec<_>>().join(",")),
        old,
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(known(info("osImage"))),
        json!(kernel),
        json!(known(info("containerRuntimeVersion"))),
    ]
}

fn service(object: &Value, name: Value, old: Value) -> Vec<Value> {
    let own: Vec<&str> = object.list("spec.externalIPs").iter().filter_map(Value::as_str).collect();
    let external = match object.text("spec.type") {
        "ClusterIP" | "NodePort" => or_none(&own.join(",")),
        "LoadBalancer" => {
            let ingress = object.list("status.loadBalancer.ingress").iter();
            let shown = ingress.map(|ingress| match ingress.text("ip") {
                "" => ingress.text("hostname"),
                ip => ip,
            });
            let balanced: BTreeSet<&str> = shown.filter(|shown| !shown.is_empty()).collect();
            let all: Vec<&str> = balanced.into_iter().chain(own).collect();
            json!(if all.is_empty() { "<pending>".to_owned() } else { all.join(",") })
        }
        "ExternalName" => json!(object.text("spec.externalName")),
        _ => json!("<unknown>"),
    };
    let ports: Vec<String> = object
        .list("spec.ports")
        .iter()
        .map(|port| match port.int("nodePort") {
            0 => format!("{}/{}", port.int("port"), port.text("protocol")),
            node => format!("{}:{node}/{}", port.int("port"), port.text("protocol")),
        })
        .collect();
    let own = object.list("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or_default();
    vec![
        name,
        json!(object.text("spec.type")),
        or_none(own),
        external,
        or_none(&ports.join(",")),
        old,
        json!(labels(object.at("spec.selector"))),
    ]
}

fn event(kind: &Kind, object: &Value, now: &str) -> Vec<Value> {
    let core;
    let event = if kind.group.is_empty() {
        object
    } else {
        core = embedded_semantics::lifecycle::event_to_core(object);
        &core
    };
    let since = |field: &str| age(event.text(field), now);
    let first = if event.has("firstTimestamp") { since("firstTimestamp") } else { since("eventTime") };
    let mut last = if event.has("lastTimestamp") { since("lastTimestamp") } else { first.clone() };
    let mut count = event.int("count").max(1);
    if event.has("series") {
        last = since("series.lastObservedTime");
        count = event.int("series.count");
    }
    let about = event.text("involvedObject.kind").to_lowercase();
    let target = match event.text("involvedObject.name") {
        "" => about,
        name => format!("{about}/{name}"),
    };
    let first_of = |paths: [&str; 2]| {
        paths.iter().map(|path| event.text(path)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = first_of(["source.component", "reportingComponent"]);
    let source = match first_of(["source.host", "reportingInstance"]) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(last),
        json!(event.text("type")),
        json!(event.text("reason")),
        json!(target),
        json!(event.text("involvedObject.fieldPath")),
        json!(source),
        json!(event.text("message").trim()),
        json!(first),
        json!(count),
        json!(event.text("metadata.name")),
    ]
}

/// The first three of a list, and how many more there are.
fn first_three(list: &[String], none: &str) -> String {
    let shown = list.iter().take(3).cloned().collect::<Vec<_>>().join(",");
    match list.len() {
        0 => none.to_owned(),
        1..=3 => shown,
        count => format!("{shown} + {} more...", count - 3),
    }
}

fn endpoints(object: &Value) -> String {
    if object.list("subsets").is_empty() {
        return NONE.to_owned();
    }
    let mut list = Vec::new();
    for subset in object.list("subsets") {
        let ips: Vec<&str> = subset.list("addresses").iter().map(|address| address.text("ip")).collect();
        if subset.list("ports").is_empty() {
            list.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in subset.list("ports") {
            let joined = |ip: &&str| {
                let host = if ip.contains(':') { format!("[{ip}]") } else { (*ip).to_owned() };
                format!("{host}:{}", port.int("port"))
            };
            list.extend(ips.iter().map(joined));
        }
    }
    first_three(&list, "")
}

fn slice_ports(object: &Value) -> String {
    let port = |port: &Value| match port.at("port").as_i64() {
        Some(number) => number.to_string(),
        None => port.at("name").as_str().unwrap_or("*").to_owned(),
    };
    let list: Vec<String> = object.list("ports").iter().map(port).collect();
    first_three(&list, "<unset>")
}

fn slice_addresses(object: &Value) -> String {
    let addresses = object.list("endpoints").iter().flat_map(|endpoint| endpoint.list("addresses"));
    let list: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    first_three(&list, "<unset>")
}

fn binding(object: &Value, name: Value, old: Value) -> Vec<Value> {
    let role = format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name"));
    let of_kind = |kind: &str| {
        let subjects = object.list("subjects").iter().filter(|subject| subject.text("kind") == kind);
        let listed: Vec<String> = subjects
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
                _ => subject.text("name").to_owned(),
            })
            .collect();
        json!(listed.join(", "))
    };
    vec![name, json!(role), old, of_kind("User"), of_kind("Group"), of_kind("ServiceAccount")]
}

fn request_status(object: &Value) -> String {
    let conditions = object.list("status.conditions");
    let has = |kind: &str| conditions.iter().any(|condition| condition.text("type") == kind);
    let mut status = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !object.text("status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}
