//! Validation of a Pod spec.
//!
//! Source: `ValidatePodSpec` in `pkg/apis/core/validation/validation.go`. It checks containers with names,
//! images, ports, environment, mounts, probes' handlers and resources; names of volumes; policies; node
//! selectors; tolerations; references; and the fields that [`placement`] and [`parts`] add. Of security
//! contexts only contradictions are found, and the sources of volumes are not checked.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::meta;
use super::{parts, placement};
use embedded_objects::cause::Cause;
use embedded_objects::rules::names::{self, Faults};
use embedded_objects::rules::net;
use embedded_objects::rules::quantity::Quantity;
use embedded_objects::value::PathAccess as _;

/// Adds the faults of a name at a path.
fn faulty(causes: &mut Vec<Cause>, path: String, value: &str, faults: Faults) {
    causes.extend(faults.into_iter().map(|fault| Cause::invalid(path.clone(), value, fault)));
}

/// Checks a value of a fixed set; the empty one counts as missing.
fn one_of(causes: &mut Vec<Cause>, path: String, value: &str, possible: &[&str]) {
    if value.is_empty() {
        causes.push(Cause::required(path, ""));
    } else if !possible.contains(&value) {
        causes.push(Cause::not_supported(path, value, possible));
    }
}

/// The causes for a Pod spec at a path.
pub(crate) fn validate(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let volumes = volumes(spec, path, &mut causes);
    containers(spec, "containers", path, &volumes, &mut causes);
    if !spec.list("initContainers").is_empty() {
        containers(spec, "initContainers", path, &volumes, &mut causes);
    }
    host_network_ports(spec, path, &mut causes);
    let policies = ["Always", "OnFailure", "Never"];
    one_of(&mut causes, format!("{path}.restartPolicy"), spec.text("restartPolicy"), &policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(&mut causes, format!("{path}.dnsPolicy"), spec.text("dnsPolicy"), &policies);
    causes.extend(meta::labels(spec.at("nodeSelector"), &format!("{path}.nodeSelector")));
    for name in ["serviceAccountName", "nodeName"] {
        let value = spec.text(name);
        if !value.is_empty() {
            faulty(&mut causes, format!("{path}.{name}"), value, names::subdomain(value));
        }
    }
    if let Some(seconds) = spec.at("activeDeadlineSeconds").as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(format!("{path}.activeDeadlineSeconds"), seconds, why));
    }
    for name in ["hostname", "subdomain"] {
        let value = spec.text(name);
        if !value.is_empty() {
            faulty(&mut causes, format!("{path}.{name}"), value, names::label(value));
        }
    }
    tolerations(spec, &format!("{path}.tolerations"), &mut causes);
    let class = spec.text("priorityClassName");
    if !class.is_empty() {
        faulty(&mut causes, format!("{path}.priorityClassName"), class, names::subdomain(class));
    }
    causes.extend(placement::validate(spec, path));
    causes.extend(parts::validate(spec, path));
    causes
}

fn volumes(spec: &Value, path: &str, causes: &mut Vec<Cause>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{at}].name");
        let name = volume.text("name");
        if name.is_empty() {
            causes.push(Cause::required(path, ""));
            continue;
        }
        let faults = names::label(name);
        if faults.is_empty() && !seen.insert(name.to_owned()) {
            causes.push(Cause::duplicate(path, name));
        } else {
            faulty(causes, path, name, faults);
        }
    }
    seen
}

fn containers(spec: &Value, list: &str, path: &str, volumes: &BTreeSet<String>, causes: &mut Vec<Cause>) {
    let path = format!("{path}.{list}");
    let containers = spec.list(list);
    if containers.is_empty() {
        causes.push(Cause::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        let path = format!("{path}[{at}]");
        one_container(container, &path, volumes, causes);
        if !seen.insert(container.text("name").to_owned()) {
            causes.push(Cause::duplicate(format!("{path}.name"), container.text("name")));
        }
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(probe) {
                handler(container.at(probe), &format!("{path}.{probe}"), causes);
            }
        }
    }
    host_port_conflicts(containers, &path, causes);
}

fn one_container(container: &Value, path: &str, volumes: &BTreeSet<String>, causes: &mut Vec<Cause>) {
    let name = container.text("name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else {
        faulty(causes, format!("{path}.name"), name, names::label(name));
    }
    let image = container.text("image");
    if image.is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    }
    one_of(
        causes,
        format!("{path}.terminationMessagePolicy"),
        container.text("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    ports(container, path, causes);
    for (at, variable) in container.list("env").iter().enumerate() {
        let path = format!("{path}.env[{at}]");
        let name = variable.text("name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else {
            faulty(causes, format!("{path}.name"), name, names::env_name(name));
        }
        let sources = variable.map("valueFrom").len();
        let why = match (variable.has("valueFrom"), sources, variable.text("value")) {
            (false, ..) => continue,
            (true, 0, _) => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            (true, 1, "") => continue,
            (true, _, "") => "may not have more than one field specified at a time",
            (true, ..) => "may not be specified when `value` is not empty",
        };
        causes.push(Cause::invalid(format!("{path}.valueFrom"), "", why));
    }
    mounts(container, path, volumes, causes);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(causes, format!("{path}.imagePullPolicy"), container.text("imagePullPolicy"), &policies);
    resources(container, path, causes);
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{path}.image"), image, why));
    }
}

fn ports(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (at, port) in container.list("ports").iter().enumerate() {
        let path = format!("{path}.ports[{at}]");
        let name = port.text("name");
        if !name.is_empty() {
            let faults = names::port_name(name);
            if faults.is_empty() && !seen.insert(name.to_owned()) {
                causes.push(Cause::duplicate(format!("{path}.name"), name));
            } else {
                faulty(causes, format!("{path}.name"), name, faults);
            }
        }
        let number = port.int("containerPort");
        if number == 0 {
            causes.push(Cause::required(format!("{path}.containerPort"), ""));
        }
        for (field, number) in [("containerPort", number), ("hostPort", port.int("hostPort"))] {
            if number != 0 {
                let fault = net::port_fault(number);
                causes.extend(fault.map(|why| Cause::invalid(format!("{path}.{field}"), number, why)));
            }
        }
        one_of(causes, format!("{path}.protocol"), port.text("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn mounts(container: &Value, path: &str, volumes: &BTreeSet<String>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (at, mount) in container.list("volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        let (name, target) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        if !volumes.contains(name) {
            causes.push(Cause::not_found(format!("{path}.name"), name));
        }
        if target.is_empty() {
            causes.push(Cause::required(format!("{path}.mountPath"), ""));
        }
        if !seen.insert(target.to_owned()) {
            causes.push(Cause::invalid(format!("{path}.mountPath"), target, "must be unique"));
        }
    }
}

fn resources(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let limits = container.map("resources.limits");
    let parsed = |value: &Value| Quantity::parse(value.as_str().unwrap_or_default()).ok();
    for list in ["limits", "requests"] {
        for (name, value) in container.map(&format!("resources.{list}")) {
            let field = format!("{path}.resources.{list}[{name}]");
            faulty(causes, field.clone(), name, names::qualified(name));
            let negative = parsed(value).is_some_and(|amount| amount.is_negative());
            if negative {
                causes.push(Cause::invalid(
                    field.clone(),
                    value.clone(),
                    "must be greater than or equal to 0",
                ));
            }
            if list == "requests"
                && let (Some(limit), Some(asked)) = (limits.get(name), parsed(value))
                && let Some(most) = parsed(limit)
                && asked.compare(&most).is_gt()
            {
                let why = format!(
                    "must be less than or equal to {name} limit of {}",
                    limit.as_str().unwrap_or_default()
                );
                causes.push(Cause::invalid(format!("{path}.resources.requests"), value.clone(), why));
            }
        }
    }
}

/// Checks that a probe has exactly one action.
fn handler(probe: &Value, path: &str, causes: &mut Vec<Cause>) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc"];
    let said: Vec<&&str> = kinds.iter().filter(|kind| probe.has(kind)).collect();
    for kind in said.iter().skip(1) {
        let why = "may not specify more than 1 handler type";
        causes.push(Cause::forbidden(format!("{path}.{kind}"), why));
    }
    match said.first() {
        None => causes.push(Cause::required(path, "must specify a handler type")),
        Some(&&"exec") if probe.list("exec.command").is_empty() => {
            causes.push(Cause::required(format!("{path}.exec.command"), ""));
        }
        Some(&&kind @ ("httpGet" | "tcpSocket")) => match probe.at(&format!("{kind}.port")) {
            Value::String(name) => {
                faulty(causes, format!("{path}.{kind}.port"), name, names::port_name(name));
            }
            number => {
                let number = number.as_i64().unwrap_or_default();
                let fault = net::port_fault(number);
                causes.extend(fault.map(|why| Cause::invalid(format!("{path}.{kind}.port"), number, why)));
            }
        },
        Some(_) => {}
    }
    for name in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        let number = probe.int(name);
        if number < 0 {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(format!("{path}.{name}"), number, why));
        }
    }
    if !path.ends_with("readinessProbe") && probe.int("successThreshold") != 1 {
        let field = format!("{path}.successThreshold");
        causes.push(Cause::invalid(field, probe.int("successThreshold"), "must be 1"));
    }
}

fn host_port_conflicts(containers: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        for (index, port) in container.list("ports").iter().enumerate() {
            let number = port.int("hostPort");
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if !seen.insert(key.clone()) {
                let field = format!("{path}[{at}].ports[{index}].hostPort");
                causes.push(Cause::duplicate(field, key));
            }
        }
    }
}

fn host_network_ports(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !spec.truth("hostNetwork") {
        return;
    }
    for (at, container) in spec.list("containers").iter().enumerate() {
        for (index, port) in container.list("ports").iter().enumerate() {
            // A template may omit host ports; its Pods get them.
            let checked = path == "spec" || port.int("hostPort") != 0;
            if checked && port.int("hostPort") != port.int("containerPort") {
                let field = format!("{path}.containers[{at}].ports[{index}].hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.push(Cause::invalid(field, port.int("hostPort"), why));
            }
        }
    }
}

/// Adds the causes for tolerations at a path.
pub(crate) fn tolerations(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, toleration) in spec.list("tolerations").iter().enumerate() {
        let path = format!("{path}[{at}]");
        let text = |name: &str| toleration.text(name);
        let (key, operator, value, effect) = (text("key"), text("operator"), text("value"), text("effect"));
        if !key.is_empty() {
            faulty(causes, format!("{path}.key"), key, names::qualified(key));
        } else if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Cause::invalid(format!("{path}.operator"), operator, why));
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid(format!("{path}.effect"), effect, why));
        }
        let field = format!("{path}.operator");
        match operator {
            "" | "Equal" => {
                let faults = names::label_value(value);
                if !faults.is_empty() {
                    causes.push(Cause::invalid(field, value, faults.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                causes.push(Cause::invalid(field, value, "value must be empty when `operator` is 'Exists'"));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                causes.push(Cause::not_supported(field, operator, &["Equal", "Exists", "Lt", "Gt"]));
            }
            _ => causes.push(Cause::not_supported(field, operator, &["Equal", "Exists"])),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            causes.push(Cause::not_supported(format!("{path}.effect"), effect, &effects));
        }
    }
}
