//! Validation of how a Pod is spread over Nodes.
//!
//! Source: `validateTopologySpreadConstraints` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::affinity::label_keys;
use super::checks::supported;
use crate::lifecycle::workload::label_selector;
use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

/// Adds the causes for the constraints of a Pod spec at a path.
pub(super) fn validate(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let constraints = spec.list("topologySpreadConstraints");
    for (at, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{at}]");
        positive(constraint.int("maxSkew"), format!("{path}.maxSkew"), causes);
        let (key, action) = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"));
        if key.is_empty() {
            causes.push(Cause::required(format!("{path}.topologyKey"), "can not be empty"));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        supported(causes, format!("{path}.whenUnsatisfiable"), action, &actions);
        let same =
            |other: &Value| other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action;
        if constraints[at + 1..].iter().any(same) {
            let field = format!("{path}.{{topologyKey, whenUnsatisfiable}}");
            causes.push(Cause::duplicate(field, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = constraint.at("minDomains").as_i64() {
            let field = format!("{path}.minDomains");
            positive(domains, field.clone(), causes);
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                causes.push(Cause::invalid(field, domains, why));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint.at(field).as_str() {
                supported(causes, format!("{path}.{field}"), policy, &["Honor", "Ignore"]);
            }
        }
        label_keys(constraint, &path, causes);
        causes.extend(label_selector(constraint.at("labelSelector"), &format!("{path}.labelSelector")));
    }
}

fn positive(number: i64, field: String, causes: &mut Vec<Cause>) {
    if number <= 0 {
        causes.push(Cause::invalid(field, number, "must be greater than zero"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(constraints: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        validate(&json!({"topologySpreadConstraints": constraints}), "s", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        let expected: Vec<String> =
            expected.iter().map(|text| format!("s.topologySpreadConstraints[0].{text}")).collect();
        assert_eq!(texts, expected);
    }

    fn constraint(more: Value) -> Value {
        let mut constraint = json!({"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"});
        json_patch::merge(&mut constraint, &more);
        constraint
    }

    #[test]
    fn constraints_have_what_they_need() {
        says(json!([constraint(json!({"topologyKey": "a b"}))]), &[]);
        says(
            json!([{"maxSkew": 0, "whenUnsatisfiable": "Never"}]),
            &[
                "maxSkew: Invalid value: 0: must be greater than zero",
                "topologyKey: Required value: can not be empty",
                "whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            ],
        );
    }

    #[test]
    fn constraints_are_not_repeated() {
        let other = constraint(json!({"whenUnsatisfiable": "DoNotSchedule"}));
        says(json!([constraint(json!({})), other]), &[]);
        says(
            json!([constraint(json!({})), constraint(json!({}))]),
            &["{topologyKey, whenUnsatisfiable}: Duplicate value: \"{a, ScheduleAnyway}\""],
        );
    }

    #[test]
    fn domains_count_where_pods_wait() {
        says(json!([constraint(json!({"whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}))]), &[]);
        says(
            json!([constraint(json!({"minDomains": 2}))]),
            &[
                "minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
            ],
        );
        says(
            json!([constraint(json!({"whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}))]),
            &["minDomains: Invalid value: 0: must be greater than zero"],
        );
    }

    #[test]
    fn nodes_and_pods_are_chosen_in_known_ways() {
        let selector = json!({"matchLabels": {"a": "b"}});
        let right = json!({"nodeTaintsPolicy": "Honor", "labelSelector": selector, "matchLabelKeys": ["k"]});
        says(json!([constraint(right)]), &[]);
        says(
            json!([constraint(json!({"nodeAffinityPolicy": "Maybe", "matchLabelKeys": ["k"]}))]),
            &[
                "nodeAffinityPolicy: Unsupported value: \"Maybe\": supported values: \"Honor\", \"Ignore\"",
                "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
            ],
        );
        says(
            json!([constraint(
                json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})
            )]),
            &[
                "labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or \
             'NotIn'",
            ],
        );
    }
}
