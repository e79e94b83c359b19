//! The server's warnings about Pods and the templates of workloads.
//!
//! Source: `pkg/api/pod/warnings.go`, `pkg/api/node/util.go`, and the strategies of the workloads.

use std::collections::BTreeMap;

use serde_json::Value;

use super::parts::{containers, ip};
use embedded_objects::kinds::Kind;
use embedded_objects::rules::{names, quantity};
use embedded_objects::value::PathAccess as _;

/// Labels of Nodes that selectors should not use any more, and their replacements.
const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Annotations that have no effect any more.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Sources of volumes that were removed, or soon will be.
const OLD_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// The path of a workload's template, and whether its name becomes part of its Pods' names.
pub(super) fn template_of(kind: &Kind) -> Option<(&'static str, bool)> {
    Some(match (kind.group, kind.kind) {
        ("apps", "Deployment" | "ReplicaSet") | ("", "ReplicationController") => ("spec.template", true),
        ("apps", "DaemonSet" | "StatefulSet") => ("spec.template", false),
        ("batch", "Job") => ("spec.template", true),
        ("batch", "CronJob") => ("spec.jobTemplate.spec.template", true),
        ("", "PodTemplate") => ("template", false),
        _ => return None,
    })
}

/// The warnings about a Pod or workload that was created, or about a workload whose spec was changed.
pub(super) fn warnings(kind: &Kind, old: Option<&Value>, object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let mut name = |what: &str| {
        let faults = names::label(object.text("metadata.name"));
        if !faults.is_empty() {
            out.push(format!(
                "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is \
                 recommended: [{}]",
                faults.join(" ")
            ));
        }
    };
    if kind.is("", "Pod") {
        if old.is_none() {
            name("the Pod's hostname");
            of_pod(object, "", &mut out);
        }
    } else if let Some((path, named)) = template_of(kind) {
        match old {
            None if named => name("Pod names and hostnames"),
            None => {}
            Some(old) if old.int("metadata.generation") == object.int("metadata.generation") => return out,
            Some(_) => {}
        }
        of_pod(object.at(path), &format!("{path}."), &mut out);
    }
    out
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(label, _)| *label == key).map(|(_, what)| *what)
}

/// The warnings about a Pod or template; the path ends with its dot.
fn of_pod(pod: &Value, path: &str, out: &mut Vec<String>) {
    let (spec, annotations) = (pod.at("spec"), pod.map("metadata.annotations"));
    placement(spec, &format!("{path}spec"), out);
    let annotated = |key: &str| format!("{path}metadata.annotations[{key}]");
    for (key, what) in OLD_ANNOTATIONS.iter().filter(|(key, _)| annotations.contains_key(*key)) {
        out.push(format!("{}: {what}", annotated(key)));
    }
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        for (source, what) in OLD_VOLUMES.iter().filter(|(source, _)| volume.has(source)) {
            out.push(format!("{path}spec.volumes[{at}].{source}: {what}"));
        }
    }
    repeated(spec.list("hostAliases"), "ip", &format!("{path}spec.hostAliases"), out);
    repeated(spec.list("imagePullSecrets"), "name", &format!("{path}spec.imagePullSecrets"), out);
    for (at, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        if secret.text("name").is_empty() {
            out.push(format!("{path}spec.imagePullSecrets[{at}].name: invalid empty name \"\""));
        }
    }
    whole_bytes(spec.at("overhead"), &format!("{path}spec.overhead"), out);
    if !spec.has("securityContext.seccompProfile") && annotations.contains_key(SECCOMP) {
        out.push(format!(
            "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
            annotated(SECCOMP)
        ));
    }
    let all = containers(spec, &format!("{path}spec"));
    for (container, place) in &all {
        let key = format!("{SECCOMP_OF_CONTAINER}{}", container.text("name"));
        if !container.has("securityContext.seccompProfile") && annotations.contains_key(&key) {
            out.push(format!(
                "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
                annotated(&key)
            ));
        }
        if !path.is_empty() {
            super::apparmor::of_template(pod, container, &annotated, out);
        }
        for part in ["limits", "requests"] {
            let part = format!("resources.{part}");
            whole_bytes(container.at(&part), &format!("{place}.{part}"), out);
        }
        hidden_variables(container, place, out);
    }
    ports(&all, out);
    if spec.int("terminationGracePeriodSeconds") < 0 {
        out.push(format!(
            "{path}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    neighbours(spec, &format!("{path}spec.affinity"), out);
    for (at, server) in spec.list("dnsConfig.nameservers").iter().filter_map(Value::as_str).enumerate() {
        out.extend(ip(&format!("{path}spec.dnsConfig.nameservers[{at}]"), server));
    }
    for (at, alias) in spec.list("hostAliases").iter().enumerate() {
        out.extend(ip(&format!("{path}spec.hostAliases[{at}].ip"), alias.text("ip")));
    }
}

fn placement(spec: &Value, path: &str, out: &mut Vec<String>) {
    for key in spec.map("nodeSelector").keys() {
        out.extend(old_label(key).map(|what| format!("{path}.nodeSelector[{key}]: {what}")));
    }
    let affinity = format!("{path}.affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let mut terms: Vec<(&Value, String)> = Vec::new();
    for (at, term) in spec.list(&format!("affinity.nodeAffinity.{required}")).iter().enumerate() {
        terms.push((term, format!("{affinity}.{required}[{at}]")));
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (at, term) in spec.list(&format!("affinity.nodeAffinity.{preferred}")).iter().enumerate() {
        terms.push((term.at("preference"), format!("{affinity}.{preferred}[{at}].preference")));
    }
    for (term, path) in terms {
        for (at, expression) in term.list("matchExpressions").iter().enumerate() {
            let key = expression.text("key");
            let warning = |what| format!("{path}.matchExpressions[{at}].key: {key} is {what}");
            out.extend(old_label(key).map(warning));
        }
    }
    for (at, constraint) in spec.list("topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{at}]");
        let key = constraint.text("topologyKey");
        out.extend(old_label(key).map(|what| format!("{path}.topologyKey: {key} is {what}")));
        if !constraint.has("labelSelector") {
            out.push(format!("{path}.labelSelector: {NO_SELECTOR}"));
        }
    }
}

/// The warnings about items of a list with the same name as an earlier one.
fn repeated(items: &[Value], field: &str, path: &str, out: &mut Vec<String>) {
    for (at, item) in items.iter().enumerate() {
        let text = item.text(field);
        if items[..at].iter().any(|before| before.text(field) == text) {
            out.push(format!("{path}[{at}].{field}: duplicate {field} {text:?}"));
        }
    }
}

/// The warnings about memory and storage in fractions of a byte.
fn whole_bytes(quantities: &Value, path: &str, out: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        let text = quantities.text(name);
        if quantity::billionths(text).is_some_and(|billionths| billionths % 1_000_000_000 != 0) {
            out.push(format!(
                "{path}[{name}]: fractional byte value {text:?} is invalid, must be an integer"
            ));
        }
    }
}

/// The warnings about variables that are defined twice, unless the second uses the first.
fn hidden_variables(container: &Value, path: &str, out: &mut Vec<String>) {
    let variables = container.list("env");
    for (at, variable) in variables.iter().enumerate() {
        let (name, value) = (variable.text("name"), variable.text("value"));
        let again = variables[..at].iter().any(|before| before.text("name") == name);
        let reference = format!("$({name})");
        let builds = !variable.has("valueFrom") && value != reference && value.contains(&reference);
        if again && !builds {
            out.push(format!(
                "{path}.env[{at}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn ports(containers: &[(&Value, String)], out: &mut Vec<String>) {
    let all = || {
        containers.iter().flat_map(|(container, path)| {
            let ports = container.list("ports").iter().enumerate();
            ports.map(move |(at, port)| (port, format!("{path}.ports[{at}]")))
        })
    };
    let mut seen: BTreeMap<(i64, &str), Vec<(&Value, String)>> = BTreeMap::new();
    for (port, path) in all() {
        let (host, ip) = (port.int("hostPort"), port.text("hostIP"));
        if !ip.is_empty() && host == 0 {
            out.push(format!(
                "{path}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{ip}}}",
                port.text("name"),
                port.int("containerPort"),
                port.text("protocol")
            ));
        }
        let others = seen.entry((port.int("containerPort"), port.text("protocol"))).or_default();
        for (other, place) in &*others {
            let (other_host, other_ip) = (other.int("hostPort"), other.text("hostIP"));
            if ip == other_ip && host == other_host {
                out.push(format!("{path}: duplicate port definition with {place}"));
            } else if host == 0 || other_host == 0 {
                out.push(format!("{path}: overlapping port definition with {place}"));
            } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
                out.push(format!("{path}: dangerously ambiguous port definition with {place}"));
            }
        }
        others.push((port, path));
    }
    let mut named: BTreeMap<&str, String> = BTreeMap::new();
    for (port, path) in all().filter(|(port, _)| !port.text("name").is_empty()) {
        let name = port.text("name");
        match named.get(name) {
            Some(first) => out.push(format!(
                "{path}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use \
                 {first}"
            )),
            None => drop(named.insert(name, path)),
        }
    }
}

fn neighbours(spec: &Value, path: &str, out: &mut Vec<String>) {
    for affinity in ["podAffinity", "podAntiAffinity"] {
        for (list, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm."),
        ] {
            for (at, term) in spec.list(&format!("affinity.{affinity}.{list}")).iter().enumerate() {
                if !term.has(&format!("{inner}labelSelector")) {
                    out.push(format!("{path}.{affinity}.{list}[{at}].{inner}labelSelector: {NO_SELECTOR}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use embedded_objects::kinds;

    fn warnings_of(group: &str, plural: &str, old: Option<&Value>, object: &Value) -> Vec<String> {
        warnings(kinds::find(group, "v1", plural).expect("it is served"), old, object)
    }

    #[test]
    fn oddities_of_a_pod_are_reported_when_it_is_created() {
        let pod = json!({"metadata": {"name": "a.b", "annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
            "spec": {"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}, "terminationGracePeriodSeconds": -1,
                "imagePullSecrets": [{"name": "s"}, {"name": "s"}], "containers": [{"name": "c",
                "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 80, "protocol": "TCP", "name": "web"}],
                "resources": {"limits": {"memory": "128m"}},
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}]}]}});
        let first = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [";
        let expected = [
            "spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use \"kubernetes.io/arch\" instead",
            "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the \"priorityClassName\" field instead",
            "spec.imagePullSecrets[1].name: duplicate name \"s\"",
            "spec.containers[0].resources.limits[memory]: fractional byte value \"128m\" is invalid, must be an integer",
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            "spec.containers[0].ports[1]: duplicate port name \"web\" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]",
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ];
        let pod_warnings = warnings_of("", "pods", None, &pod);
        assert!(pod_warnings[0].starts_with(first), "{pod_warnings:?}");
        assert_eq!(pod_warnings[1..], expected);
        assert_eq!(
            warnings_of("", "pods", Some(&pod), &pod),
            Vec::<String>::new(),
            "Pods are changed by programs"
        );
    }

    #[test]
    fn oddities_of_a_template_are_reported_with_each_change_of_the_spec() {
        let deployment = json!({"metadata": {"name": "a", "generation": 2}, "spec": {"template": {"spec": {
            "topologySpreadConstraints": [{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}]}}}});
        let expected = [
            "spec.template.spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
            "spec.template.spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ];
        assert_eq!(warnings_of("apps", "deployments", None, &deployment), expected);
        let before = json!({"metadata": {"name": "a", "generation": 1}});
        assert_eq!(warnings_of("apps", "deployments", Some(&before), &deployment), expected);
        assert_eq!(warnings_of("apps", "deployments", Some(&deployment), &deployment), Vec::<String>::new());
    }
}
