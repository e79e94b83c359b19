//! Pod specs: defaults and validation, shared by Pods and the templates of workloads.
//!
//! Source: `pkg/apis/core/v1/defaults.go` and `pkg/apis/core/helper/qos`.

mod affinity;
mod annotations;
mod checks;
mod containers;
mod dns;
mod environment;
mod host;
mod mounts;
mod probes;
mod projected;
mod references;
mod resources;
mod security;
mod spread;
mod sysctls;
mod template;
#[cfg(test)]
mod testing;
mod tolerations;
mod validate;
mod volumes;

use serde_json::{Value, json};

use embedded_objects::rules::quantity::Quantity;
use embedded_objects::value::{Edit as _, PathAccess as _, is_zero};

pub(super) use annotations::{seccomp_contradictions, validate as annotations};
pub(super) use template::validate as template;
pub(super) use tolerations::tolerations;
pub(super) use validate::validate;

/// Whether the spec at a path is that of a Pod itself. The other specs are those of templates, and some rules do not
/// apply to them.
fn is_pod(path: &str) -> bool {
    path == "spec"
}

/// Fills in the defaults that every Pod spec gets.
pub(super) fn default(spec: &mut Value) {
    spec.put_default("dnsPolicy", "ClusterFirst");
    spec.put_default("restartPolicy", "Always");
    if !spec.has("securityContext") {
        spec.put("securityContext", json!({}));
    }
    if !spec.has("terminationGracePeriodSeconds") {
        spec.put("terminationGracePeriodSeconds", 30);
    }
    spec.put_default("schedulerName", "default-scheduler");
    for volume in spec.items("volumes") {
        default_volume(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.items(list) {
            default_container(container);
        }
    }
}

/// Sets the host ports of containers on the node's network. Templates are not changed.
pub(super) fn default_host_ports(spec: &mut Value) {
    let host_network = spec.truth("hostNetwork");
    for list in ["containers", "initContainers"].into_iter().filter(|_| host_network) {
        for container in spec.items(list) {
            for port in container.items("ports") {
                let number = port.at("containerPort").clone();
                port.put_default("hostPort", number);
            }
        }
    }
}

fn default_volume(volume: &mut Value) {
    let sources = volume.as_object().map(|members| members.len()).unwrap_or_default();
    if sources <= 1 {
        volume.put("emptyDir", json!({}));
    }
    for (source, mode) in
        [("secret", 0o644), ("configMap", 0o644), ("downwardAPI", 0o644), ("projected", 0o644)]
    {
        if volume.has(source) && !volume.has(&format!("{source}.defaultMode")) {
            volume.put(&format!("{source}.defaultMode"), mode);
        }
    }
    if volume.has("hostPath") && !volume.has("hostPath.type") {
        volume.put("hostPath.type", "");
    }
    for source in volume.items("projected.sources") {
        if source.has("serviceAccountToken") && !source.has("serviceAccountToken.expirationSeconds") {
            source.put("serviceAccountToken.expirationSeconds", 3600);
        }
        default_field_refs(source, "downwardAPI.items", "fieldRef");
    }
    default_field_refs(volume, "downwardAPI.items", "fieldRef");
}

fn default_field_refs(holder: &mut Value, list: &str, path: &str) {
    for item in holder.items(list) {
        if item.has(path) {
            item.put_default(&format!("{path}.apiVersion"), "v1");
        }
    }
}

fn default_container(container: &mut Value) {
    let policy = if tag_of(container.text("image")) == "latest" { "Always" } else { "IfNotPresent" };
    container.put_default("imagePullPolicy", policy);
    container.put_default("terminationMessagePath", "/dev/termination-log");
    container.put_default("terminationMessagePolicy", "File");
    for port in container.items("ports") {
        port.put_default("protocol", "TCP");
    }
    default_field_refs(container, "env", "valueFrom.fieldRef");
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container.has(probe) {
            continue;
        }
        for (name, value) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            container.put_default(&format!("{probe}.{name}"), value);
        }
        default_http(container, probe);
        if container.has(&format!("{probe}.grpc")) && !container.has(&format!("{probe}.grpc.service")) {
            container.put(&format!("{probe}.grpc.service"), "");
        }
    }
    default_http(container, "lifecycle.postStart");
    default_http(container, "lifecycle.preStop");
}

fn default_http(container: &mut Value, handler: &str) {
    if container.has(&format!("{handler}.httpGet")) {
        container.put_default(&format!("{handler}.httpGet.path"), "/");
        container.put_default(&format!("{handler}.httpGet.scheme"), "HTTP");
    }
}

/// The tag of an image: `latest` if it has neither tag nor digest.
fn tag_of(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    if let Some((before, _)) = name.split_once('@') {
        return before.split_once(':').map(|(_, tag)| tag).unwrap_or_default();
    }
    name.split_once(':').map(|(_, tag)| tag).unwrap_or("latest")
}

/// The quality of service class according to a Pod's resources.
pub(super) fn quality_of_service(spec: &Value) -> &'static str {
    let containers = || spec.list("containers").iter().chain(spec.list("initContainers"));
    let counted = ["cpu", "memory"];
    let positive = |container: &Value, list: &str, name: &str| {
        let text = container.at("resources").at(list).get(name).and_then(Value::as_str).unwrap_or_default();
        Quantity::parse(text).ok().filter(|amount| !is_zero(&json!(text)) && amount.text() != "0")
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers() {
        for name in counted {
            let (limit, request) =
                (positive(container, "limits", name), positive(container, "requests", name));
            any |= limit.is_some() || request.is_some();
            guaranteed &= match (limit, request) {
                (Some(limit), Some(request)) => limit.compare(&request).is_eq(),
                (Some(_), None) => true,
                _ => false,
            };
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
