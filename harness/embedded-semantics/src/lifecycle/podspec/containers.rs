//! Validation of a Pod's containers and init containers.
//!
//! Source: `validateContainers`, `validateInitContainers` and `validateContainerCommon` in
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{faulty, one_of, present, supported};
use super::probes::PROBES;
use super::volumes::Volumes;
use super::{environment, is_pod, mounts, probes, resources, security};
use embedded_objects::cause::Cause;
use embedded_objects::rules::{names, net};
use embedded_objects::value::PathAccess as _;

/// How many rules for restarts a container may have, and how many exit codes each of them.
const RULES: usize = 20;
const CODES: usize = 255;

/// Adds the causes for the containers that run as long as the Pod.
pub(super) fn regular(spec: &Value, path: &str, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let path = format!("{path}.containers");
    let containers = spec.list("containers");
    if containers.is_empty() {
        causes.push(Cause::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        let path = format!("{path}[{at}]");
        common(spec, container, &path, volumes, causes);
        if !seen.insert(container.text("name")) {
            causes.push(Cause::duplicate(format!("{path}.name"), container.text("name")));
        }
        probes::validate(container, &path, grace(spec), causes);
        restarts(container, &path, causes);
    }
    host_port_conflicts(containers, &path, causes);
}

/// Adds the causes for the containers that run before, and for those of them that then keep running.
pub(super) fn init(spec: &Value, path: &str, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let path = format!("{path}.initContainers");
    let containers = spec.list("initContainers");
    let mut seen: BTreeSet<&str> =
        spec.list("containers").iter().map(|container| container.text("name")).collect();
    for (at, container) in containers.iter().enumerate() {
        let all = &path;
        let path = format!("{path}[{at}]");
        common(spec, container, &path, volumes, causes);
        restarts(container, &path, causes);
        let name = container.text("name");
        if !seen.insert(name) && !name.is_empty() {
            causes.push(Cause::duplicate(format!("{path}.name"), name));
        }
        // Only one of them runs at a time. The server always reports the first.
        host_port_conflicts(std::slice::from_ref(container), all, causes);
        if container.text("restartPolicy") == "Always" {
            probes::validate(container, &path, grace(spec), causes);
        } else {
            let fields = std::iter::once("lifecycle").chain(PROBES);
            for field in fields.filter(|field| container.has(field)) {
                let why = "may not be set for init containers without restartPolicy=Always";
                causes.push(Cause::forbidden(format!("{path}.{field}"), why));
            }
        }
    }
}

/// The Pod's time to stop, in seconds.
fn grace(spec: &Value) -> Option<i64> {
    spec.at("terminationGracePeriodSeconds").as_i64()
}

/// Checks what all containers have.
fn common(spec: &Value, container: &Value, path: &str, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let name = container.text("name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else {
        faulty(causes, format!("{path}.name"), name, names::label(name));
    }
    present(causes, format!("{path}.image"), container.text("image"));
    one_of(
        causes,
        format!("{path}.terminationMessagePolicy"),
        container.text("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    ports(container, path, causes);
    environment::validate(container, path, causes);
    mounts::validate(container, path, volumes, causes);
    let policies = ["Always", "IfNotPresent", "Never"];
    one_of(causes, format!("{path}.imagePullPolicy"), container.text("imagePullPolicy"), &policies);
    resources::of_container(container, path, causes);
    let host_users = spec.at("hostUsers").as_bool().unwrap_or(true);
    security::of_container(container, path, host_users, causes);
}

/// Checks that images of Pods have no spaces around them. Templates may have them.
pub(super) fn images(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for list in ["containers", "initContainers"].into_iter().filter(|_| is_pod(path)) {
        for (at, container) in spec.list(list).iter().enumerate() {
            let image = container.text("image");
            if image.trim() != image {
                let why = "must not have leading or trailing whitespace";
                causes.push(Cause::invalid(format!("{path}.{list}[{at}].image"), image, why));
            }
        }
    }
}

fn ports(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (at, port) in container.list("ports").iter().enumerate() {
        let path = format!("{path}.ports[{at}]");
        let name = port.text("name");
        if !name.is_empty() {
            let faults = names::port_name(name);
            if faults.is_empty() && !seen.insert(name) {
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

/// Checks whether and when a container is started again.
fn restarts(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let rules = container.list("restartPolicyRules");
    let field = format!("{path}.restartPolicy");
    match container.at("restartPolicy").as_str() {
        None if rules.is_empty() => return,
        None => {
            let why = "must specify restartPolicy when restart rules are used";
            causes.push(Cause::required(field, why));
        }
        Some(policy) => supported(causes, field, policy, &["Always", "Never", "OnFailure"]),
    }
    let path = format!("{path}.restartPolicyRules");
    if rules.len() > RULES {
        causes.push(Cause::too_many(path.clone(), rules.len(), RULES));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let actions = ["Restart", "RestartAllContainers"];
        supported(causes, format!("{path}.action"), rule.text("action"), &actions);
        if !rule.has("exitCodes") {
            causes.push(Cause::required(format!("{path}.exitCodes"), "must be specified"));
            continue;
        }
        let operator = rule.text("exitCodes.operator");
        supported(causes, format!("{path}.exitCodes.operator"), operator, &["In", "NotIn"]);
        let codes = rule.list("exitCodes.values").len();
        if codes > CODES {
            causes.push(Cause::too_many(format!("{path}.exitCodes.values"), codes, CODES));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn container(name: &str, more: Value) -> Value {
        let mut container = json!({"name": name, "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"});
        json_patch::merge(&mut container, &more);
        container
    }

    #[track_caller]
    fn says_at(path: &str, containers: &[Value], inits: &[Value], expected: &[&str]) {
        let spec = json!({"containers": containers, "initContainers": inits});
        let mut causes = Vec::new();
        regular(&spec, path, &Volumes::new(), &mut causes);
        init(&spec, path, &Volumes::new(), &mut causes);
        images(&spec, path, &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn says(containers: &[Value], inits: &[Value], expected: &[&str]) {
        says_at("spec", containers, inits, expected);
    }

    #[test]
    fn names_of_containers_are_unique_in_the_pod() {
        let of = |name: &str| container(name, json!({}));
        says(&[of("a")], &[of("b")], &[]);
        says(&[of("a"), of("a")], &[], &["spec.containers[1].name: Duplicate value: \"a\""]);
        says(&[of("a")], &[of("a")], &["spec.initContainers[0].name: Duplicate value: \"a\""]);
    }

    #[test]
    fn init_containers_that_end_have_no_probes_and_hooks() {
        let exec = json!({"exec": {"command": ["x"]}});
        let more = json!({"lifecycle": {"preStop": exec}, "readinessProbe": exec});
        let mut sidecar = container("b", more.clone());
        sidecar["restartPolicy"] = "Always".into();
        says(&[container("a", json!({}))], &[sidecar], &[]);
        says(
            &[container("a", json!({}))],
            &[container("b", more)],
            &[
                "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
                "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without \
             restartPolicy=Always",
            ],
        );
    }

    #[test]
    fn containers_restart_by_known_rules() {
        let of = |more: Value| container("a", more);
        let rule = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}});
        says(&[of(json!({"restartPolicy": "Never", "restartPolicyRules": [rule]}))], &[], &[]);
        says(&[of(json!({}))], &[container("b", json!({"restartPolicy": "Never"}))], &[]);
        says(
            &[of(json!({"restartPolicyRules": [rule]}))],
            &[],
            &[
                "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            ],
        );
        says(
            &[of(json!({"restartPolicy": "Sometimes"}))],
            &[],
            &[
                "spec.containers[0].restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
             \"Never\", \"OnFailure\"",
            ],
        );
        says(
            &[of(json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Stop"}]}))],
            &[],
            &[
                "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \
             \"Restart\", \"RestartAllContainers\"",
                "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
            ],
        );
    }

    #[test]
    fn host_ports_are_used_once_at_a_time() {
        let of = |name: &str| {
            container(name, json!({"ports": [{"containerPort": 1, "hostPort": 80, "protocol": "TCP"}]}))
        };
        says(&[of("a")], &[of("b"), of("c")], &[]);
        says(
            &[of("a"), of("b")],
            &[],
            &["spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\""],
        );
    }

    #[test]
    fn images_of_pods_have_no_spaces_around_them() {
        let spaced = [container("a", json!({"image": "i "}))];
        says_at("spec.template.spec", &spaced, &[], &[]);
        says(
            &spaced,
            &[],
            &[
                "spec.containers[0].image: Invalid value: \"i \": must not have leading or trailing whitespace",
            ],
        );
    }
}
