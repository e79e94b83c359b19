//! Whether a patched object still fits its type, and the result of field validation for the patch.
//!
//! Source: `k8s.io/apiserver/pkg/endpoints/handlers/patch.go`, and
//! `k8s.io/apimachinery/pkg/runtime/converter.go` for the messages about a strategic merge patch, which
//! differ from those of the JSON decoder.

use serde_json::Value;

use super::strategic::go;
use crate::cause::Cause;
use crate::fields::{self, Mode};
use crate::kinds::Kind;
use crate::schema::{self, Shape, TypeId};
use crate::status::{self, Status};
use crate::{rules, typed};

/// How an object was patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With a JSON patch.
    Json,
    /// With a merge patch.
    Merge,
    /// With a strategic merge patch.
    Strategic,
}

/// The texts for Warning headers about a patch and the resulting object. Call it between the patch and the
/// update: an update treats an unfit object like a submitted body and reports the fault in other words.
///
/// # Errors
/// The Status for an object that no longer fits its type, or, in strict mode, for unknown and duplicate fields.
pub fn fit(
    kind: &Kind,
    form: Form,
    patch_text: &str,
    new: &Value,
    mode: Mode,
) -> Result<Vec<String>, Status> {
    let Some(ty) = kind.type_id() else { return Ok(Vec::new()) };
    let shown = || match form {
        Form::Strategic => go(&serde_json::from_str(patch_text).unwrap_or(Value::Null)),
        Form::Json | Form::Merge => new.to_string(),
    };
    let refused = |why: String| status::invalid_of("", "", "", &[Cause::invalid("patch", shown(), why)]);
    // Violations of a custom resource's schema are reported field by field when the object is validated.
    match form {
        _ if kind.custom.is_some() => {}
        Form::Strategic => converted(&Shape::Struct(ty), new).map_err(refused)?,
        Form::Json | Form::Merge => drop(typed::decode(ty, new).map_err(refused)?),
    }
    if mode == Mode::Ignore {
        return Ok(Vec::new());
    }
    let mut warnings = match form {
        Form::Json => Vec::new(),
        Form::Merge | Form::Strategic => fields::problems(None, patch_text).unwrap_or_default(),
    };
    warnings.extend(unknown(ty, new));
    if mode == Mode::Strict && !warnings.is_empty() {
        return Err(refused(format!("strict decoding error: {}", warnings.join(", "))));
    }
    Ok(warnings)
}

fn unknown(ty: TypeId, new: &Value) -> Vec<String> {
    fields::problems(Some(ty), &new.to_string()).unwrap_or_default()
}

/// The kind of a value as Go's reflection names it.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() || number.is_u64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Checks that a value converts to a shape; the error has the converter's words.
fn converted(shape: &Shape, value: &Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let is = kind_of(value);
    match (shape.bare(), value) {
        (Shape::Raw | Shape::JsonSchema(_) | Shape::FieldsV1, _)
        | (Shape::Text(_), Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Float, Value::Number(_)) => Ok(()),
        (Shape::Text(go), Value::Number(_)) if is == "int64" => Err(format!("cannot convert int64 to {go}")),
        (Shape::Text(_), _) => Err("unrecognized type: string".to_owned()),
        (Shape::Bool, _) => Err("unrecognized type: bool".to_owned()),
        (Shape::Float, _) => Err("unrecognized type: float64".to_owned()),
        (Shape::Int(_, go), Value::Number(number)) => match number.as_f64() {
            Some(float) if is == "float64" && float.fract() != 0.0 => {
                Err(format!("cannot convert float64 to {go}"))
            }
            _ => Ok(()),
        },
        (Shape::Int(bits, _), _) => Err(format!("unrecognized type: int{bits}")),
        (Shape::Time, Value::String(text)) => rules::time::seconds(text).map(drop),
        (Shape::MicroTime, Value::String(text)) => rules::time::micros(text).map(drop),
        (Shape::Time | Shape::MicroTime, _) => Err(unmarshalled(value, "string")),
        (Shape::Quantity, other) => {
            let text = other.as_str().map(str::to_owned).unwrap_or_else(|| other.to_string());
            rules::quantity::canonicalized(&text).map(drop).map_err(str::to_owned)
        }
        (Shape::IntOrString, Value::String(_)) => Ok(()),
        (Shape::IntOrString, Value::Number(number)) => match number.as_i64().map(i32::try_from) {
            Some(Ok(_)) => Ok(()),
            _ => Err(format!("json: cannot unmarshal number {number} into Go value of type int32")),
        },
        (Shape::IntOrString, _) => Err(unmarshalled(value, "int32")),
        (Shape::Bytes, Value::String(_)) => Ok(()),
        (Shape::List(inner), Value::Array(items)) => items.iter().try_for_each(|item| converted(inner, item)),
        (Shape::Bytes | Shape::List(_), _) => Err(format!("cannot restore slice from {is}")),
        (Shape::Map(inner), Value::Object(members)) => {
            members.values().try_for_each(|member| converted(inner, member))
        }
        (Shape::Map(_), _) => Err(format!("cannot restore map from {is}")),
        (Shape::Struct(ty), Value::Object(members)) => {
            let known = schema::get(*ty);
            for name in ["kind", "apiVersion"].iter().filter(|_| known.typed) {
                converted(&Shape::Text("string"), members.get(*name).unwrap_or(&Value::Null))?;
            }
            known.flat.iter().try_for_each(|field| match members.get(field.json) {
                Some(member) => converted(&field.shape, member),
                None => Ok(()),
            })
        }
        (Shape::Struct(_), _) => Err(format!("cannot restore struct from: {is}")),
        (Shape::Pointer(inner), _) => converted(inner, value),
    }
}

fn unmarshalled(value: &Value, go: &str) -> String {
    let is = match value {
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        _ => "number",
    };
    format!("json: cannot unmarshal {is} into Go value of type {go}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;
    use crate::patch::{merge, strategic};

    #[track_caller]
    fn strategic_message(patch: Value, mode: Mode) -> String {
        let kind = kinds::find("", "v1", "services").expect("services are served");
        let old = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
        let text = patch.to_string();
        let new = strategic(kind, &old, &text).expect("it merges");
        fit(kind, Form::Strategic, &text, &new, mode).expect_err("it does not fit").message
    }

    #[test]
    fn misfits_of_a_strategic_patch_have_the_words_of_the_converter() {
        let refusal_of = |patch: Value| {
            let message = strategic_message(patch, Mode::Warn);
            message.rsplit("\": ").next().unwrap_or_default().to_owned()
        };
        assert_eq!(refusal_of(json!({"spec": {"ports": {}}})), "cannot restore slice from map");
        assert_eq!(refusal_of(json!({"spec": {"type": 1}})), "cannot convert int64 to v1.ServiceType");
        assert_eq!(refusal_of(json!({"spec": {"healthCheckNodePort": "x"}})), "unrecognized type: int32");
        assert_eq!(refusal_of(json!({"spec": []})), "cannot restore struct from: slice");
        assert_eq!(refusal_of(json!({"metadata": {"labels": "x"}})), "cannot restore map from string");
        assert_eq!(
            strategic_message(json!({"spec": {"publishNotReadyAddresses": 1}}), Mode::Ignore),
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[publishNotReadyAddresses:1]]\": unrecognized type: bool"
        );
    }

    #[test]
    fn unknown_fields_are_reported_or_refused() {
        assert_eq!(
            strategic_message(json!({"spec": {"bogus": 1}}), Mode::Strict),
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[bogus:1]]\": strict decoding error: unknown field \"spec.bogus\""
        );
        let kind = kinds::find("", "v1", "nodes").expect("nodes are served");
        let text = r#"{"spec":{"a":1,"podCIDR":"","podCIDR":""}}"#;
        let new = merge(&json!({"metadata": {"name": "a"}}), text).expect("it is JSON");
        assert_eq!(
            fit(kind, Form::Merge, text, &new, Mode::Warn),
            Ok(vec!["duplicate field \"spec.podCIDR\"".to_owned(), "unknown field \"spec.a\"".to_owned()])
        );
        let new = merge(&json!({}), r#"{"spec":7}"#).expect("it is JSON");
        let refused = fit(kind, Form::Merge, "{}", &new, Mode::Warn).expect_err("a number is not a spec");
        assert_eq!(
            refused.message,
            " \"\" is invalid: patch: Invalid value: \"{\\\"spec\\\":7}\": json: cannot unmarshal number into Go struct field Node.spec of type v1.NodeSpec"
        );
    }
}
