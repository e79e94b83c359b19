//! Strategic merge patch: lists of structs merge by their keys, and directives order, replace and delete.
//!
//! Source: `k8s.io/apimachinery/pkg/util/strategicpatch`. Unknown fields merge as in a JSON merge patch.

mod known;
mod lists;

pub(crate) use known::go;

use serde_json::{Map, Value};

use crate::kinds::Kind;
use crate::schema::TypeId;
use crate::status::{self, Status};
use known::{DIRECTIVE, Known, Wrong, without_directives};

const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

/// The object of a kind after a strategic merge patch.
///
/// # Errors
/// A Status when the patch is not a JSON object, or a directive does not fit.
pub fn strategic(kind: &Kind, old: &Value, patch_text: &str) -> Result<Value, Status> {
    let patch: Value = serde_json::from_str(patch_text).map_err(|error| {
        status::bad_request(crate::fields::syntax_error(patch_text).unwrap_or(error.to_string()))
    })?;
    let Value::Object(patch) = patch else {
        return Err(status::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            match patch {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Number(_) => "number",
                Value::Bool(_) => "bool",
                _ => return Ok(old.clone()),
            }
        )));
    };
    let ty = kind.type_id();
    let old = old.as_object().cloned().unwrap_or_default();
    object(ty, old, &patch).map(Value::Object).map_err(Wrong::status)
}

fn object(
    ty: Option<TypeId>,
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, Wrong> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                let mut replaced = patch.clone();
                replaced.remove(DIRECTIVE);
                return Ok(replaced);
            }
            Some("delete") => return Ok(Map::new()),
            Some("merge") => {}
            _ => {
                let whole = Value::Object(patch.clone());
                return Err(Wrong::Other(format!(
                    "unknown patch type: {} in map: {}",
                    go(directive),
                    go(&whole)
                )));
            }
        }
    }
    retain_keys(&mut original, patch)?;
    merge_listed_elsewhere(ty, &mut original, patch)?;
    for (name, value) in patch.iter().filter(|(name, _)| *name != DIRECTIVE && *name != RETAIN_KEYS) {
        if let Some(list) = name.strip_prefix(DELETE_PREFIX) {
            delete_from_list(&mut original, list, value)?;
            continue;
        }
        // A list with a given order was merged together with that order.
        if name.starts_with(ORDER_PREFIX) || patch.contains_key(&format!("{ORDER_PREFIX}{name}")) {
            continue;
        }
        if value.is_null() {
            original.remove(name);
            continue;
        }
        let known = Known::find(ty, name);
        let merged = match (original.remove(name), value) {
            (Some(Value::Object(before)), Value::Object(change)) if !known.has("replace") => {
                Value::Object(object(known.inner(), before, change)?)
            }
            (Some(Value::Array(before)), Value::Array(change)) if known.has("merge") => {
                Value::Array(lists::list(object, &known, before, change)?)
            }
            // A value that is new, or had another type, is taken as it is: nothing in it merges, not even
            // with itself.
            (_, other) => match without_directives(other) {
                Some(taken) => taken,
                None => continue,
            },
        };
        original.insert(name.clone(), merged);
    }
    Ok(original)
}

fn retain_keys(original: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), Wrong> {
    let Some(kept) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(kept) = kept else {
        return Err(Wrong::Form("invalid patch format of retainKeys".to_owned()));
    };
    let listed = |name: &String| kept.iter().any(|key| key == name.as_str());
    let missing =
        patch.iter().any(|(name, value)| !name.starts_with('$') && !value.is_null() && !listed(name));
    if missing {
        // It does not match the keys to keep.
        return Err(Wrong::Fit);
    }
    original.retain(|name, _| listed(name));
    Ok(())
}

/// Applies an order for a list that the patch itself does not change.
fn merge_listed_elsewhere(
    ty: Option<TypeId>,
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), Wrong> {
    for (name, order) in patch {
        let Some(list_name) = name.strip_prefix(ORDER_PREFIX) else { continue };
        let Value::Array(order) = order else {
            return Err(Wrong::Form("invalid patch format of setElementOrder list".to_owned()));
        };
        let known = Known::find(ty, list_name);
        let change = match patch.get(list_name) {
            Some(Value::Array(change)) => change.clone(),
            Some(_) | None => Vec::new(),
        };
        let before = match original.get(list_name) {
            Some(Value::Array(before)) => before.clone(),
            _ => Vec::new(),
        };
        if before.is_empty() && change.is_empty() {
            continue;
        }
        let merged = if before.is_empty() {
            change.iter().filter_map(without_directives).collect()
        } else {
            lists::list(object, &known, before.clone(), &change)?
        };
        let ordered = lists::in_order(merged, &before, order, known.merge_key());
        original.insert(list_name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn delete_from_list(original: &mut Map<String, Value>, name: &str, deleted: &Value) -> Result<(), Wrong> {
    let Value::Array(deleted) = deleted else {
        return Err(Wrong::Form("invalid patch format of primitive list".to_owned()));
    };
    if let Some(Value::Array(items)) = original.get_mut(name) {
        items.retain(|item| !deleted.contains(item));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[track_caller]
    fn check(plural: &str, old: Value, patch: Value, expected: Value) {
        let kind = kinds::find("", "v1", plural).expect("a kind of the core group");
        assert_eq!(strategic(kind, &old, &patch.to_string()), Ok(expected));
    }

    #[test]
    fn lists_of_structs_merge_by_their_key() {
        check(
            "nodes",
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "a"}, {"type": "Hostname", "address": "h"}]}}),
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "b"}, {"type": "ExternalIP", "address": "e"}]}}),
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "b"}, {"type": "ExternalIP", "address": "e"},
                {"type": "Hostname", "address": "h"}]}}),
        );
        check(
            "nodes",
            json!({"spec": {"taints": [{"key": "a"}]}}),
            json!({"spec": {"taints": [{"key": "b"}]}}),
            json!({"spec": {"taints": [{"key": "b"}]}}),
        );
    }

    #[test]
    fn a_new_list_is_taken_as_it_is() {
        let addresses =
            json!([{"type": "InternalIP", "address": "a"}, {"type": "InternalIP", "address": "b"}]);
        let status = json!({"status": {"addresses": addresses}});
        check("nodes", json!({"status": {}}), status.clone(), status);
    }

    #[test]
    fn directives_replace_delete_and_retain() {
        check(
            "nodes",
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "a"}]}}),
            json!({"status": {"addresses": [{"$patch": "replace"}, {"type": "Hostname", "address": "h"}]}}),
            json!({"status": {"addresses": [{"type": "Hostname", "address": "h"}]}}),
        );
        check(
            "services",
            json!({"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}),
            json!({"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}),
            json!({"spec": {"ports": [{"port": 81, "name": "b"}]}}),
        );
        check(
            "services",
            json!({"metadata": {"finalizers": ["a", "b"], "labels": {"x": "y", "z": "1"}}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"],
                "labels": {"$patch": "replace", "n": "m"}}}),
            json!({"metadata": {"finalizers": ["c", "b"], "labels": {"n": "m"}}}),
        );
        check(
            "pods",
            json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}),
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}),
        );
    }

    #[test]
    fn the_order_of_elements_is_set() {
        check(
            "services",
            json!({"spec": {"ports": [{"port": 1}, {"port": 2}, {"port": 3}]}}),
            json!({"spec": {"$setElementOrder/ports": [{"port": 3}, {"port": 1}], "ports": [{"port": 1, "name": "n"}]}}),
            json!({"spec": {"ports": [{"port": 2}, {"port": 3}, {"port": 1, "name": "n"}]}}),
        );
    }

    #[test]
    fn misfits_are_refused() {
        let kind = kinds::find("", "v1", "services").expect("services are served");
        let refused = |patch: &str| {
            strategic(kind, &json!({"metadata": {}, "spec": {"ports": []}}), patch).expect_err("it is wrong")
        };
        assert_eq!(refused("[]").code, 400);
        assert_eq!(refused("{").code, 400);
        let missing = refused(r#"{"spec": {"ports": [{"name": "x"}]}}"#);
        assert_eq!(missing.message, "map: map[name:x] does not contain declared merge key: port");
        assert_eq!(refused(r#"{"metadata": {"$retainKeys": ["name"], "labels": {}}}"#).code, 422);
    }
}
