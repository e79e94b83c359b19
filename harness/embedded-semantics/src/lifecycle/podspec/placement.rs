//! Validation of a Pod spec's placement and host settings.
//!
//! Source: `ValidatePodSpec` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::value::PathAccess as _;

/// The causes for placement and host settings in a Pod spec at a path.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    node_affinity(spec, path, &mut causes);
    for kind in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(spec, &format!("affinity.{kind}"), path, &mut causes);
    }
    for (at, constraint) in spec.list("topologySpreadConstraints").iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{at}]");
        let skew = constraint.int("maxSkew");
        if skew <= 0 {
            causes.push(Cause::invalid(format!("{path}.maxSkew"), skew, "must be greater than zero"));
        }
        topology_key(constraint, &path, &mut causes);
        let action = constraint.text("whenUnsatisfiable");
        let possible = ["DoNotSchedule", "ScheduleAnyway"];
        if !possible.contains(&action) {
            causes.push(Cause::not_supported(format!("{path}.whenUnsatisfiable"), action, &possible));
        }
    }
    host(spec, path, &mut causes);
    dns(spec, path, &mut causes);
    causes
}

fn node_affinity(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let required = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    if spec.has(required) {
        let terms = spec.list(&format!("{required}.nodeSelectorTerms"));
        let path = format!("{path}.{required}.nodeSelectorTerms");
        if terms.is_empty() {
            causes.push(Cause::required(path.clone(), "must have at least one node selector term"));
        }
        for (at, term) in terms.iter().enumerate() {
            node_term(term, &format!("{path}[{at}]"), causes);
        }
    }
    let preferred = "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";
    for (at, item) in spec.list(preferred).iter().enumerate() {
        node_term(item.at("preference"), &format!("{path}.{preferred}[{at}].preference"), causes);
    }
}

fn node_term(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, requirement) in term.list("matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let (operator, values) = (requirement.text("operator"), requirement.list("values"));
        let field = format!("{path}.values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                causes.push(Cause::required(field, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(field, why));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                causes.push(Cause::required(field, why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{path}.operator"), other, why));
            }
        }
        let key = requirement.text("key");
        causes.extend(
            names::qualified(key).into_iter().map(|fault| Cause::invalid(format!("{path}.key"), key, fault)),
        );
    }
}

fn pod_affinity(spec: &Value, kind: &str, path: &str, causes: &mut Vec<Cause>) {
    let required = format!("{kind}.requiredDuringSchedulingIgnoredDuringExecution");
    for (at, term) in spec.list(&required).iter().enumerate() {
        topology_key(term, &format!("{path}.{required}[{at}]"), causes);
    }
    let preferred = format!("{kind}.preferredDuringSchedulingIgnoredDuringExecution");
    for (at, item) in spec.list(&preferred).iter().enumerate() {
        let path = format!("{path}.{preferred}[{at}]");
        let weight = item.int("weight");
        if !(1..=100).contains(&weight) {
            causes.push(Cause::invalid(format!("{path}.weight"), weight, "must be in the range 1-100"));
        }
        topology_key(item.at("podAffinityTerm"), &format!("{path}.podAffinityTerm"), causes);
    }
}

fn topology_key(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    let key = term.text("topologyKey");
    let field = format!("{path}.topologyKey");
    if key.is_empty() {
        causes.push(Cause::required(field, "can not be empty"));
    } else {
        causes
            .extend(names::qualified(key).into_iter().map(|fault| Cause::invalid(field.clone(), key, fault)));
    }
}

/// Checks the namespaces of the host, and its operating system.
fn host(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if spec.at("hostUsers") == &Value::Bool(false) {
        for name in ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|name| spec.truth(name)) {
            causes.push(Cause::forbidden(format!("{path}.{name}"), "when `hostUsers` is false"));
        }
    }
    if !spec.has("os") {
        return;
    }
    let name = spec.text("os.name");
    let possible = ["linux", "windows"];
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.os.name"), ""));
    } else if !possible.contains(&name) {
        causes.push(Cause::not_supported(format!("{path}.os.name"), name, &possible));
    }
    if name == "windows" {
        for list in ["initContainers", "containers"] {
            for (at, container) in spec.list(list).iter().enumerate() {
                for field in
                    NOT_ON_WINDOWS.iter().filter(|field| container.has(&format!("securityContext.{field}")))
                {
                    let field = format!("{path}.{list}[{at}].securityContext.{field}");
                    causes.push(Cause::forbidden(field, "cannot be set for a windows pod"));
                }
            }
        }
    }
}

/// Fields that a container of a Windows Pod may not set.
const NOT_ON_WINDOWS: [&str; 10] = [
    "appArmorProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "seccompProfile",
    "seLinuxOptions",
    "runAsUser",
    "runAsGroup",
];

fn dns(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if spec.text("dnsPolicy") != "None" {
        return;
    }
    if !spec.has("dnsConfig") {
        let why = "must provide `dnsConfig` when `dnsPolicy` is None";
        causes.push(Cause::required(format!("{path}.dnsConfig"), why));
    } else if spec.list("dnsConfig.nameservers").is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        causes.push(Cause::required(format!("{path}.dnsConfig.nameservers"), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(spec: Value, expected: &[&str]) {
        let texts: Vec<String> = validate(&spec, "spec").iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn placement_fields_are_validated() {
        says(json!({}), &[]);
        says(
            json!({"topologySpreadConstraints": [{"maxSkew": 0, "whenUnsatisfiable": "Never"}]}),
            &[
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": supported \
                 values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            ],
        );
        let term = |operator: &str| {
            let terms = json!([{"matchExpressions": [{"key": "a", "operator": operator}]}]);
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms}}}})
        };
        let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                    .matchExpressions[0]";
        says(term("Exists"), &[]);
        says(
            term("In"),
            &[&format!(
                "{path}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            )],
        );
        says(
            term("Is"),
            &[&format!("{path}.operator: Invalid value: \"Is\": not a valid selector operator")],
        );
    }

    #[test]
    fn host_and_names_agree_with_the_rest() {
        says(
            json!({"hostUsers": false, "hostNetwork": true}),
            &["spec.hostNetwork: Forbidden: when `hostUsers` is false"],
        );
        says(
            json!({"os": {"name": "windows"}, "containers": [{"securityContext": {"runAsUser": 1}}]}),
            &["spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod"],
        );
        says(
            json!({"dnsPolicy": "None"}),
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        );
    }
}
