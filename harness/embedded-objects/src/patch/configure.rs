//! The changes of MutatingAdmissionPolicies with an apply configuration: merged as by server-side apply, but without an
//! owner, and never into something that has one owner as a whole.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go`.

use serde_json::Value;

use super::apply::{check, merge};
use super::owned;
use crate::kinds::Kind;
use crate::schema::{self, Field, ListType, Shape};

/// The object with a configuration merged into it.
///
/// # Errors
/// Why the configuration does not fit the kind: unknown fields, wrong types, lists and structs that are replaced as a
/// whole.
pub fn configure(kind: &Kind, object: &Value, configuration: &Value) -> Result<Value, String> {
    let ty = kind.type_id().ok_or_else(|| format!("no type for {}", kind.resource()))?;
    let shape = Shape::Struct(ty);
    let mut faults = Vec::new();
    check(&shape, None, configuration, &mut String::new(), &mut faults);
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    let mut whole = Vec::new();
    find_atomic(&shape, None, configuration, "", &mut whole);
    if !whole.is_empty() {
        return Err(format!("may not mutate atomic arrays, maps or structs: {}", whole.join(", ")));
    }
    Ok(merge(&shape, None, object, configuration))
}

/// The paths of everything in a value that has one owner as a whole.
fn find_atomic(shape: &Shape, field: Option<&Field>, of: &Value, path: &str, found: &mut Vec<String>) {
    match (shape.bare(), of) {
        (bare, Value::Object(members)) => {
            if owned::is_atomic(bare, field) {
                found.push(path.to_owned());
            }
            // As in the source, nothing below the keys of a map is examined.
            let Shape::Struct(ty) = bare else { return };
            for (name, member) in members {
                if let Some(known) = schema::get(*ty).field(name) {
                    find_atomic(&known.shape, Some(known), member, &format!("{path}.{name}"), found);
                }
            }
        }
        (Shape::List(inner), Value::Array(items)) => {
            if field.is_none_or(|field| field.list_type == ListType::Atomic) {
                found.push(path.to_owned());
            }
            for (at, item) in items.iter().enumerate() {
                find_atomic(inner, None, item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn pod(change: Value) -> Result<Value, String> {
        let kind = kinds::by_kind("v1", "Pod").expect("Kubernetes has Pods");
        let own = json!({"spec": {"containers": [{"name": "a", "env": [{"name": "A", "value": "1"}]}, {"name": "b"}]}});
        configure(kind, &own, &change)
    }

    #[test]
    fn items_with_the_same_key_are_merged() {
        let change = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": true, "containers": [
            {"name": "a", "env": [{"name": "B", "value": "2"}]},
        ]}});
        let expected = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": true, "containers": [
            {"name": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, {"name": "b"},
        ]}});
        assert_eq!(pod(change), Ok(expected));
    }

    #[test]
    fn what_has_one_owner_is_not_changed() {
        for (change, path) in [
            (json!({"spec": {"tolerations": [{"operator": "Exists"}]}}), ".spec.tolerations"),
            (json!({"spec": {"nodeSelector": {"a": "b"}}}), ".spec.nodeSelector"),
            (json!({"spec": {"containers": [{"name": "a", "args": ["x"]}]}}), ".spec.containers[0].args"),
        ] {
            assert_eq!(pod(change), Err(format!("may not mutate atomic arrays, maps or structs: {path}")));
        }
    }

    #[test]
    fn a_change_has_to_fit_the_kind() {
        let of = |change: Value| pod(change).expect_err("it does not fit");
        assert_eq!(
            of(json!({"spec": {"hostnetwork": true}})),
            ".spec.hostnetwork: field not declared in schema"
        );
        assert!(of(json!({"spec": {"hostNetwork": "yes"}})).contains("expected boolean"));
    }
}
