//! JSON patch as the API server's library applies it.
//!
//! That library (evanphx/json-patch v4) differs from RFC 6902: a replacement of a missing member adds it, an
//! index may count from the end, and a test for null is true for a missing member. This module follows the
//! library, not the RFC.

use serde_json::Value;

use crate::fields;
use crate::status::{self, Status};
use crate::typed;

/// The most operations of one patch. Source: `k8s.io/apiserver/pkg/endpoints/handlers/patch.go`.
const MOST_OPERATIONS: usize = 10_000;
/// The most bytes of JSON that the copies of one patch may add. Source: `JSONPatchMaxCopyBytes` in
/// `k8s.io/apiserver/pkg/server/config.go`.
const MOST_COPIED: usize = 3 << 20;
/// How deep an object may be after a patch: the JSON parsers here accept no deeper one.
const DEEPEST: usize = 120;

/// The object after a JSON patch.
///
/// # Errors
/// A Status: 400 in the words of Go's decoder when the patch is not a list of operations, 413 when it has too
/// many, 422 when an operation does not fit the object.
pub fn json(old: &Value, patch_text: &str) -> Result<Value, Status> {
    let refused = |why: &str| status::bad_request(format!("error decoding patch: {why}"));
    if let Some(why) = fields::syntax_error(patch_text) {
        return Err(refused(&why));
    }
    let patch: Value = serde_json::from_str(patch_text).map_err(|why| refused(&why.to_string()))?;
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => return Ok(old.clone()),
        other => {
            let is = typed::kind_of(&other);
            return Err(refused(&format!(
                "json: cannot unmarshal {is} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    operations.iter().try_for_each(|operation| well_formed(operation).map_err(|why| refused(&why)))?;
    if operations.len() > MOST_OPERATIONS {
        return Err(status::too_many_operations(MOST_OPERATIONS, operations.len()));
    }
    applied(old, &operations).map_err(|_| status::unprocessable())
}

/// The error of Go's decoder for an invalid operation.
fn well_formed(operation: &Value) -> Result<(), String> {
    if !operation.is_object() && !operation.is_null() {
        let is = typed::kind_of(operation);
        return Err(format!("json: cannot unmarshal {is} into Go value of type handlers.jsonPatchOp"));
    }
    let wrong =
        |name: &&&str| operation.get(**name).is_some_and(|value| !value.is_string() && !value.is_null());
    match ["op", "path", "from"].iter().find(wrong) {
        Some(name) => {
            let is = typed::kind_of(&operation[*name]);
            Err(format!("json: cannot unmarshal {is} into Go struct field jsonPatchOp.{name} of type string"))
        }
        None => Ok(()),
    }
}

/// The object after the operations, or the library's error for the first one that does not fit.
fn applied(old: &Value, operations: &[Value]) -> Result<Value, String> {
    let (mut object, mut copied) = (old.clone(), 0);
    for operation in operations {
        apply(&mut object, operation, &mut copied)?;
    }
    Ok(object)
}

/// Applies one operation; `copied` is the number of bytes that earlier operations have added by copying.
fn apply(object: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let value = operation.get("value").cloned().unwrap_or(Value::Null);
    let missing = |what: &str| {
        let detail = if what == "path" && matches!(kind, "add" | "remove" | "copy") {
            String::new()
        } else if what == "path" {
            "operation missing path field: ".to_owned()
        } else {
            "operation, missing from field: ".to_owned()
        };
        format!("{kind} operation failed to decode {what}: {detail}missing value")
    };
    let path = || text("path").ok_or_else(|| missing("path"));
    let from = || text("from").ok_or_else(|| missing("from"));
    match kind {
        "add" => {
            let path = path()?;
            check_depth(path, &value)?;
            let (parent, key) = find(object, path).ok_or_else(|| {
                format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
            })?;
            add(parent, &key, value).map_err(|why| format!("error in add for path: '{path}': {why}"))
        }
        "remove" => {
            let path = path()?;
            let (parent, key) = find(object, path).ok_or_else(|| {
                format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
            })?;
            remove(parent, &key).map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
        }
        "replace" => {
            check_depth(path()?, &value)?;
            replace(object, path()?, value)
        }
        "test" => test(object, path()?, &value),
        "move" => {
            let from = from()?;
            let (parent, key) = find(object, from).ok_or_else(|| {
                format!("move operation does not apply: doc is missing from path: {from}: missing value")
            })?;
            let moved =
                remove(parent, &key).map_err(|why| format!("error in move for path: '{key}': {why}"))?;
            let path = path()?;
            check_depth(path, &moved)?;
            let (parent, key) = find(object, path).ok_or_else(|| {
                format!(
                    "move operation does not apply: doc is missing destination path: {path}: missing value"
                )
            })?;
            add(parent, &key, moved).map_err(|why| format!("error in move for path: '{path}': {why}"))
        }
        "copy" => {
            let from = from()?;
            let (parent, key) = find(object, from).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing from path: {from}: missing value")
            })?;
            let found = get(parent, &key)
                .map_err(|why| format!("error in copy for from: '{from}': {why}"))?
                .unwrap_or(&Value::Null);
            *copied += crate::size::of(found);
            if *copied > MOST_COPIED {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MOST_COPIED}"
                ));
            }
            let found = found.clone();
            let path = path()?;
            check_depth(path, &found)?;
            let (parent, key) = find(object, path).ok_or_else(|| {
                format!(
                    "copy operation does not apply: doc is missing destination path: {path}: missing value"
                )
            })?;
            add(parent, &key, found).map_err(|why| format!("error while adding value during copy: {why}"))
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// Checks that a value does not make the object too deep: objects are walked by recursion.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    let depth = path.matches('/').count() + crate::size::depth(value);
    if depth > DEEPEST {
        return Err(format!("the object would be nested {depth} deep, exceeding the limit {DEEPEST}"));
    }
    Ok(())
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        return if value.is_object() || value.is_array() {
            *object = value;
            Ok(())
        } else {
            Err("replace operation value must be object or array: %!w(<nil>)".to_owned())
        };
    }
    let (parent, key) = find(object, path).ok_or_else(|| {
        format!("replace operation does not apply: doc is missing path: {path}: missing value")
    })?;
    get(parent, &key).map_err(|_| {
        format!("replace operation does not apply: doc is missing key: {path}: missing value")
    })?;
    match parent {
        Value::Object(members) => {
            members.insert(key, value);
        }
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            if let Some(item) = items.get_mut(at) {
                *item = value;
            }
        }
        _ => {}
    }
    Ok(())
}

fn test(object: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let failed = || format!("testing value {path} failed: test failed");
    if path.is_empty() {
        return if object == value { Ok(()) } else { Err(failed()) };
    }
    let (parent, key) = find(object, path)
        .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: missing value"))?;
    let found = get(parent, &key).map_err(|why| format!("error in test for path: '{path}': {why}"))?;
    if found.unwrap_or(&Value::Null) == value { Ok(()) } else { Err(failed()) }
}

/// The container for the last part of a pointer, and that part.
fn find<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut parts: Vec<String> =
        path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let key = parts.pop()?;
    let mut here = object;
    for part in parts {
        here = match here {
            Value::Object(members) => members.get_mut(&part)?,
            Value::Array(items) => {
                let at = index(&part, items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    (here.is_object() || here.is_array()).then_some((here, key))
}

fn get<'a>(parent: &'a Value, key: &str) -> Result<Option<&'a Value>, String> {
    match parent {
        Value::Object(members) => Ok(members.get(key)),
        Value::Array(items) => index(key, items.len()).map(|at| items.get(at)),
        _ => Ok(None),
    }
}

fn add(parent: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(members) => {
            members.insert(key.to_owned(), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(key, items.len() + 1).map_err(|why| {
                if why.starts_with("strconv") {
                    format!("value was not a proper array index: '{key}': {why}")
                } else {
                    why
                }
            })?;
            items.insert(at, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(members) => members
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => {
            let at = index(key, items.len())?;
            Ok(items.remove(at))
        }
        _ => Ok(Value::Null),
    }
}

/// The position of an index in a list with this many items; a negative one counts from the end.
fn index(key: &str, count: usize) -> Result<usize, String> {
    let number: i64 = key.parse().map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let at = if number < 0 { number + count } else { number };
    match usize::try_from(at) {
        Ok(at) if number < count => Ok(at),
        _ => Err(format!("Unable to access invalid index: {number}: invalid index referenced")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(old: Value, patch: Value, expected: Value) {
        assert_eq!(json(&old, &patch.to_string()), Ok(expected));
    }

    #[track_caller]
    fn wrong(old: Value, patch: Value, why: &str) {
        let operations = patch.as_array().expect("operations");
        assert_eq!(applied(&old, operations), Err(why.to_owned()));
        let status = json(&old, &patch.to_string()).expect_err("the patch does not fit");
        let expected = "the server rejected our request due to an error in our request";
        assert_eq!((status.code, status.message.as_str()), (422, expected));
    }

    #[test]
    fn invalid_lists_of_operations_are_refused_in_the_words_of_go() {
        let refusal_of = |text: &str| {
            let status = json(&json!({}), text).expect_err("it is not a patch");
            (status.code, status.message)
        };
        let decoding = |why: &str| (400, format!("error decoding patch: {why}"));
        let value =
            |is: &str, of: &str| decoding(&format!("json: cannot unmarshal {is} into Go value of type {of}"));
        assert_eq!(refusal_of("{}"), value("object", "[]handlers.jsonPatchOp"));
        assert_eq!(refusal_of("[1]"), value("number", "handlers.jsonPatchOp"));
        assert_eq!(
            refusal_of("[{]"),
            decoding("invalid character ']' looking for beginning of object key string")
        );
        let field = "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string";
        assert_eq!(refusal_of(r#"[{"op": "add", "path": 1}]"#), decoding(field));
    }

    #[test]
    fn operations_apply_in_order() {
        check(
            json!({"a": [1, 2, 3], "b": {"c": 1}}),
            json!([{"op": "add", "path": "/a/-", "value": 4}, {"op": "remove", "path": "/a/0"},
                {"op": "replace", "path": "/b/d", "value": 5}, {"op": "move", "from": "/b/c", "path": "/e"},
                {"op": "copy", "from": "/a/-1", "path": "/f"}, {"op": "test", "path": "/nope", "value": null},
                {"op": "add", "path": "/g~1h", "value": {}}]),
            json!({"a": [2, 3, 4], "b": {"d": 5}, "e": 1, "f": 4, "g/h": {}}),
        );
    }

    #[test]
    fn copies_are_limited_in_size_and_depth() {
        let copy = json!({"op": "copy", "from": "", "path": "/x"});
        let doubled: Vec<Value> =
            (0..30).map(|at| json!({"op": "copy", "from": "/a", "path": format!("/a/{at}")})).collect();
        let why = applied(&json!({"a": {"b": "x".repeat(1000)}}), &doubled).expect_err("too much");
        assert!(why.starts_with("Unable to complete the copy, the accumulated size"), "{why}");
        assert!(why.ends_with("exceeding the limit 3145728"), "{why}");
        assert!(
            json(&json!({}), &json!([copy]).to_string()).is_err(),
            "a pointer to the whole names no member"
        );
        let nested: Vec<Value> =
            (1..2000).map(|at| json!({"op": "add", "path": "/a".repeat(at), "value": {}})).collect();
        let why = applied(&json!({}), &nested).expect_err("too deep");
        assert_eq!(why, "the object would be nested 121 deep, exceeding the limit 120");
    }

    #[test]
    fn misfits_have_the_words_of_the_library() {
        wrong(
            json!({}),
            json!([{"op": "remove", "path": "/a"}]),
            "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
        );
        wrong(
            json!({}),
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
            "add operation does not apply: doc is missing path: \"/a/b\": missing value",
        );
        wrong(
            json!({"a": 1}),
            json!([{"op": "test", "path": "/a", "value": 2}]),
            "testing value /a failed: test failed",
        );
        wrong(json!({}), json!([{"op": "x"}]), "Unexpected kind: x");
        wrong(
            json!({"a": [1]}),
            json!([{"op": "replace", "path": "/a/7", "value": 2}]),
            "replace operation does not apply: doc is missing key: /a/7: missing value",
        );
    }
}
