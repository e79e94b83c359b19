//! Validation of a Pod's tolerations.
//!
//! Source: `ValidateTolerations` in `pkg/apis/core/validation/validation.go`. Comparisons of numbers are behind a
//! feature gate that is off by default.

use serde_json::Value;

use super::checks::faulty;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::value::PathAccess as _;

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
