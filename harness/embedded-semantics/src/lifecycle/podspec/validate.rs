//! Validation of a Pod spec.
//!
//! Source: `ValidatePodSpec` in `pkg/apis/core/validation/validation.go`. Not looked into are resource claims,
//! resources of the whole Pod, resize policies, ephemeral containers, host processes on Windows, and what is behind
//! feature gates that are off by default.

use serde_json::{Map, Value};

use super::super::meta;
use super::checks::{faulty, one_of};
use super::{
    affinity, containers, dns, environment, host, resources, security, spread, tolerations, volumes,
};
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::value::PathAccess as _;

/// The causes for a Pod spec at a path.
pub(crate) fn validate(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let volumes = volumes::validate(spec, path, &mut causes);
    containers::regular(spec, path, &volumes, &mut causes);
    containers::init(spec, path, &volumes, &mut causes);
    host::ports(spec, path, &mut causes);
    let policies = ["Always", "OnFailure", "Never"];
    one_of(&mut causes, format!("{path}.restartPolicy"), spec.text("restartPolicy"), &policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(&mut causes, format!("{path}.dnsPolicy"), spec.text("dnsPolicy"), &policies);
    causes.extend(meta::labels(spec.at("nodeSelector"), &format!("{path}.nodeSelector")));
    security::of_pod(spec, path, &mut causes);
    affinity::validate(spec, path, &mut causes);
    dns::config(spec, path, &mut causes);
    gates(spec, path, &mut causes);
    spread::validate(spec, path, &mut causes);
    host::users(spec, path, &mut causes);
    host::name(spec, path, &mut causes);
    identity(spec, path, &mut causes);
    tolerations(spec, &format!("{path}.tolerations"), &mut causes);
    dns::aliases(spec, path, &mut causes);
    classes(spec, path, &mut causes);
    host::system(spec, path, &mut causes);
    environment::files(spec, path, &mut causes);
    containers::images(spec, path, &mut causes);
    causes
}

/// Checks the conditions for readiness and for scheduling.
fn gates(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, gate) in spec.list("readinessGates").iter().enumerate() {
        let kind = gate.text("conditionType");
        faulty(causes, format!("{path}.readinessGates[{at}].conditionType"), kind, names::qualified(kind));
    }
    let gates = spec.list("schedulingGates");
    for (at, gate) in gates.iter().enumerate() {
        let (name, field) = (gate.text("name"), format!("{path}.schedulingGates[{at}]"));
        faulty(causes, field.clone(), name, names::qualified(name));
        if gates[..at].iter().any(|other| other.text("name") == name) {
            causes.push(Cause::duplicate(field, name));
        }
    }
}

/// Checks the Pod's account, Node, deadline and names.
fn identity(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for name in ["serviceAccountName", "nodeName"] {
        let value = spec.text(name);
        if !value.is_empty() {
            faulty(causes, format!("{path}.{name}"), value, names::subdomain(value));
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
            faulty(causes, format!("{path}.{name}"), value, names::label(value));
        }
    }
}

/// Checks the Pod's priority, and the class and overhead of its runtime.
fn classes(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let class = spec.text("priorityClassName");
    if !class.is_empty() {
        faulty(causes, format!("{path}.priorityClassName"), class, names::subdomain(class));
    }
    if let Some(class) = spec.at("runtimeClassName").as_str() {
        faulty(causes, format!("{path}.runtimeClassName"), class, names::subdomain(class));
    }
    if let Some(policy) = spec.at("preemptionPolicy").as_str() {
        let policies = ["PreemptLowerPriority", "Never"];
        one_of(causes, format!("{path}.preemptionPolicy"), policy, &policies);
    }
    resources::validate(spec.map("overhead"), &Map::new(), &format!("{path}.overhead"), causes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(more: Value, expected: &[&str]) {
        let mut spec = json!({"restartPolicy": "Always", "dnsPolicy": "Default", "containers": [{"name": "c",
            "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}]});
        json_patch::merge(&mut spec, &more);
        let texts: Vec<String> = validate(&spec, "spec").iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn gates_have_names_once() {
        says(
            json!({"readinessGates": [{"conditionType": "a/b"}], "schedulingGates": [{"name": "a/b"}]}),
            &[],
        );
        says(
            json!({"schedulingGates": [{"name": "a"}, {"name": "a"}]}),
            &["spec.schedulingGates[1]: Duplicate value: \"a\""],
        );
        says(
            json!({"readinessGates": [{"conditionType": "/b"}]}),
            &["spec.readinessGates[0].conditionType: Invalid value: \"/b\": prefix part must be non-empty"],
        );
    }

    #[test]
    fn classes_have_names_and_overhead_has_amounts() {
        says(
            json!({"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}, "preemptionPolicy": "Never"}),
            &[],
        );
        says(
            json!({"preemptionPolicy": "Always", "overhead": {"cpu": "-1"}}),
            &[
                "spec.preemptionPolicy: Unsupported value: \"Always\": supported values: \"PreemptLowerPriority\", \"Never\"",
                "spec.overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ],
        );
        says(
            json!({"runtimeClassName": "A"}),
            &[
                "spec.runtimeClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case \
             alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        );
    }

    #[test]
    fn a_spec_with_several_faults_reports_them_in_order() {
        says(
            json!({"hostPID": true, "shareProcessNamespace": true, "hostAliases": [{"ip": "x"}],
                "dnsConfig": {"options": [{}]}, "volumes": [{"name": "v", "hostPath": {"path": ""}}]}),
            &[
                "spec.volumes[0].hostPath.path: Required value",
                "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID \
                 cannot both be enabled",
                "spec.dnsConfig.options[0]: Required value: must not be empty",
                "spec.hostAliases[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
                 2001:db8::ffff)",
            ],
        );
    }
}
