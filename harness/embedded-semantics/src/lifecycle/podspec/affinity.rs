//! Validation of a Pod's affinity to Nodes and to other Pods.
//!
//! Source: `validateAffinity` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::checks::faulty;
use crate::lifecycle::workload::label_selector;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::value::PathAccess as _;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Adds the causes for the affinities of a Pod spec at a path.
pub(super) fn validate(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let affinity = spec.at("affinity");
    of_nodes(affinity.at("nodeAffinity"), &format!("{path}.affinity.nodeAffinity"), causes);
    for kind in ["podAffinity", "podAntiAffinity"] {
        of_pods(affinity.at(kind), &format!("{path}.affinity.{kind}"), causes);
    }
}

fn of_nodes(affinity: &Value, path: &str, causes: &mut Vec<Cause>) {
    if affinity.has(REQUIRED) {
        let terms = affinity.at(REQUIRED).list("nodeSelectorTerms");
        let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        if terms.is_empty() {
            causes.push(Cause::required(path.clone(), "must have at least one node selector term"));
        }
        for (at, term) in terms.iter().enumerate() {
            node_term(term, true, &format!("{path}[{at}]"), causes);
        }
    }
    for (at, item) in affinity.list(PREFERRED).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{at}]");
        weight(item, &path, causes);
        node_term(item.at("preference"), false, &format!("{path}.preference"), causes);
    }
}

/// Checks a term. Only the values of required terms must be those of labels.
fn node_term(term: &Value, required: bool, path: &str, causes: &mut Vec<Cause>) {
    for (at, requirement) in term.list("matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let (operator, values) = (requirement.text("operator"), requirement.list("values"));
        let field = format!("{path}.values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(field.clone(), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(field.clone(), why));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                causes.push(Cause::required(field.clone(), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{path}.operator"), other, why));
            }
        }
        let key = requirement.text("key");
        faulty(causes, format!("{path}.key"), key, names::qualified(key));
        for (at, value) in values.iter().enumerate().filter(|_| required) {
            let value = value.as_str().unwrap_or_default();
            faulty(causes, format!("{field}[{at}]"), value, names::label_value(value));
        }
    }
    for (at, requirement) in term.list("matchFields").iter().enumerate() {
        node_field(requirement, &format!("{path}.matchFields[{at}]"), causes);
    }
}

fn node_field(requirement: &Value, path: &str, causes: &mut Vec<Cause>) {
    let values = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.push(Cause::required(format!("{path}.values"), why));
        }
        other => {
            causes.push(Cause::invalid(format!("{path}.operator"), other, "not a valid selector operator"))
        }
    }
    let key = requirement.text("key");
    if key != "metadata.name" {
        causes.push(Cause::invalid(format!("{path}.key"), key, "not a valid field selector key"));
        return;
    }
    for (at, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        faulty(causes, format!("{path}.values[{at}]"), value, names::subdomain(value));
    }
}

fn of_pods(affinity: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, term) in affinity.list(REQUIRED).iter().enumerate() {
        pod_term(term, &format!("{path}.{REQUIRED}[{at}]"), causes);
    }
    for (at, item) in affinity.list(PREFERRED).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{at}]");
        weight(item, &path, causes);
        pod_term(item.at("podAffinityTerm"), &format!("{path}.podAffinityTerm"), causes);
    }
}

fn weight(item: &Value, path: &str, causes: &mut Vec<Cause>) {
    let weight = item.int("weight");
    if !(1..=100).contains(&weight) {
        causes.push(Cause::invalid(format!("{path}.weight"), weight, "must be in the range 1-100"));
    }
}

fn pod_term(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    for selector in ["labelSelector", "namespaceSelector"] {
        causes.extend(label_selector(term.at(selector), &format!("{path}.{selector}")));
    }
    for name in term.list("namespaces").iter().filter_map(Value::as_str) {
        faulty(causes, format!("{path}.namespace"), name, names::label(name));
    }
    label_keys(term, path, causes);
    let key = term.text("topologyKey");
    let field = format!("{path}.topologyKey");
    if key.is_empty() {
        causes.push(Cause::required(field.clone(), "can not be empty"));
    }
    faulty(causes, field, key, names::qualified(key));
}

/// Checks the keys of labels with whose values in the Pod itself a selector is extended.
pub(super) fn label_keys(term: &Value, path: &str, causes: &mut Vec<Cause>) {
    let selector = term.at("labelSelector");
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let (keys, path) = (term.list(list), format!("{path}.{list}"));
        if !keys.is_empty() && selector.is_null() {
            causes.push(Cause::forbidden(path, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (at, key) in keys.iter().filter_map(Value::as_str).enumerate() {
            faulty(causes, format!("{path}[{at}]"), key, names::qualified(key));
        }
    }
    for (at, key) in term.list("matchLabelKeys").iter().enumerate() {
        if term.list("mismatchLabelKeys").contains(key) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            causes.push(Cause::invalid(format!("{path}.matchLabelKeys[{at}]"), key.clone(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(affinity: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        validate(&json!({"affinity": affinity}), "s", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    fn required(terms: Value) -> Value {
        json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    }

    #[track_caller]
    fn expression(requirement: Value, expected: &[&str]) {
        let path = format!("s.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]");
        let expected: Vec<String> = expected.iter().map(|text| format!("{path}.{text}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        says(required(json!([{"matchExpressions": [requirement]}])), &expected);
    }

    #[test]
    fn required_nodes_are_described_by_labels() {
        says(json!({}), &[]);
        expression(json!({"key": "a", "operator": "Exists"}), &[]);
        expression(json!({"key": "a", "operator": "In", "values": ["b"]}), &[]);
        expression(
            json!({"key": "a", "operator": "In"}),
            &["values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
        );
        expression(
            json!({"key": "a", "operator": "Exists", "values": ["b"]}),
            &["values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"],
        );
        expression(
            json!({"key": "a", "operator": "Gt", "values": ["1", "2"]}),
            &["values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"],
        );
        expression(
            json!({"key": "a", "operator": "Is"}),
            &["operator: Invalid value: \"Is\": not a valid selector operator"],
        );
        let long = "b".repeat(64);
        expression(
            json!({"key": "a", "operator": "In", "values": [long]}),
            &[&format!("values[0]: Invalid value: \"{long}\": must be no more than 63 bytes")],
        );
        says(
            required(json!([])),
            &[&format!(
                "s.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector \
             term"
            )],
        );
    }

    #[test]
    fn nodes_are_chosen_by_one_field() {
        let of = |operator: &str, values: &[&str], key: &str| {
            required(json!([{"matchFields": [{"key": key, "operator": operator, "values": values}]}]))
        };
        let path = format!("s.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0]");
        says(of("In", &["n"], "metadata.name"), &[]);
        says(
            of("In", &["n", "m"], "metadata.name"),
            &[&format!(
                "{path}.values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field \
             selector"
            )],
        );
        says(
            of("Exists", &[], "metadata.namespace"),
            &[
                &format!("{path}.operator: Invalid value: \"Exists\": not a valid selector operator"),
                &format!("{path}.key: Invalid value: \"metadata.namespace\": not a valid field selector key"),
            ],
        );
    }

    #[test]
    fn preferences_have_weights() {
        let of = |weight: i64| {
            let long = json!([{"key": "a", "operator": "In", "values": ["-"]}]);
            json!({"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": {"matchExpressions": long}}]}})
        };
        says(of(1), &[]);
        says(
            of(0),
            &[&format!(
                "s.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"
            )],
        );
        let term = json!({"topologyKey": "a"});
        says(
            json!({"podAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": term}]}}),
            &[&format!(
                "s.affinity.podAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100"
            )],
        );
    }

    #[test]
    fn other_pods_are_described_by_labels() {
        let of = |more: Value| {
            let mut term = json!({"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "b"}}});
            json_patch::merge(&mut term, &more);
            json!({"podAntiAffinity": {REQUIRED: [term]}})
        };
        let path = format!("s.affinity.podAntiAffinity.{REQUIRED}[0]");
        says(of(json!({"namespaces": ["n"], "matchLabelKeys": ["k"], "namespaceSelector": {}})), &[]);
        says(
            of(json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}})),
            &[&format!(
                "{path}.labelSelector.matchExpressions[0].operator: Invalid value: \"Gt\": not a valid selector operator"
            )],
        );
        says(
            of(json!({"namespaces": ["a.b"]})),
            &[&format!("{path}.namespace: Invalid value: \"a.b\": must not contain dots")],
        );
        says(
            of(json!({"matchLabelKeys": ["k"], "mismatchLabelKeys": ["k"]})),
            &[&format!(
                "{path}.matchLabelKeys[0]: Invalid value: \"k\": exists in both matchLabelKeys and mismatchLabelKeys"
            )],
        );
        says(
            of(json!({"labelSelector": null, "matchLabelKeys": ["k"]})),
            &[&format!(
                "{path}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"
            )],
        );
        says(
            of(json!({"topologyKey": "/a"})),
            &[&format!("{path}.topologyKey: Invalid value: \"/a\": prefix part must be non-empty")],
        );
    }
}
