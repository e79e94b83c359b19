//! JSON values in the form in which the server's typed structs would hold and write them.
//!
//! Decoding removes unknown fields, rejects wrong types in Go's words, and writes times and quantities in
//! canonical form. The result has exactly the members of the server's answer.

use base64::Engine as _;
use serde_json::{Map, Value};

use crate::rules::{quantity, time};
use crate::schema::{self, Field, Shape, TypeId};

/// The normal form of a value of a struct type.
///
/// # Errors
/// The message of Go's JSON decoder about the first value that does not fit.
pub fn decode(ty: TypeId, value: &Value) -> Result<Value, String> {
    let mut decoder = Decoder { fields: Vec::new(), inside: "", first: None };
    let decoded = decoder.structure(ty, value, true)?;
    match decoder.first {
        Some(error) => Err(error),
        None => Ok(decoded),
    }
}

/// The normal form of an object that has apiVersion and kind; an object of unknown type stays as it is.
///
/// # Errors
/// As for [`decode`].
pub fn decode_object(object: &Value) -> Result<Value, String> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    match schema::of_object(text("apiVersion"), text("kind")) {
        Some(ty) => decode(ty, object),
        None => Ok(object.clone()),
    }
}

/// The zero value that Go would write for a missing field; `None` if it omits the field.
pub(crate) fn zero(field: &Field) -> Option<Value> {
    match &field.shape {
        Shape::Time | Shape::MicroTime => (!field.omit_zero).then_some(Value::Null),
        Shape::Struct(ty) => (!field.omit_zero).then(|| zero_struct(*ty)),
        Shape::Quantity => Some("0".into()),
        Shape::IntOrString => Some(0.into()),
        Shape::Raw | Shape::JsonSchema(_) => (!field.omit_empty).then_some(Value::Null),
        _ if field.omit_empty => None,
        Shape::Text(_) => Some("".into()),
        Shape::Int(..) => Some(0.into()),
        Shape::Float => Some(0.into()),
        Shape::Bool => Some(false.into()),
        Shape::Bytes | Shape::FieldsV1 | Shape::List(_) | Shape::Map(_) | Shape::Pointer(_) => {
            Some(Value::Null)
        }
    }
}

fn zero_struct(ty: TypeId) -> Value {
    let members = schema::get(ty).flat.iter();
    Value::Object(
        members.filter_map(|field| zero(field).map(|value| (field.json.to_owned(), value))).collect(),
    )
}

struct Decoder {
    /// The JSON names from the root, as Go's errors join them.
    fields: Vec<&'static str>,
    /// The Go struct whose field is being read.
    inside: &'static str,
    first: Option<String>,
}

impl Decoder {
    fn structure(&mut self, ty: TypeId, value: &Value, root: bool) -> Result<Value, String> {
        let known = schema::get(ty);
        let members = match value {
            Value::Object(members) => members,
            Value::Null => return Ok(zero_struct(ty)),
            other => {
                self.misfit(other, &go_type(&Shape::Struct(ty)));
                return Ok(zero_struct(ty));
            }
        };
        let mut out = Map::new();
        if known.typed {
            for name in ["apiVersion", "kind"] {
                match members.get(name) {
                    Some(Value::String(text)) if !text.is_empty() && (root || known.typed) => {
                        out.insert(name.to_owned(), text.as_str().into());
                    }
                    Some(Value::Null | Value::String(_)) | None => {}
                    Some(other) => {
                        self.fields.push(if name == "kind" { "kind" } else { "apiVersion" });
                        self.inside = known.go_name();
                        self.misfit(other, "string");
                        self.fields.pop();
                    }
                }
            }
        }
        let outer = self.inside;
        for field in &known.flat {
            let raw = members.get(field.json).filter(|raw| !raw.is_null());
            let decoded = match raw {
                None => zero(field),
                Some(raw) => {
                    self.fields.push(field.json);
                    self.inside = known.go_name();
                    let value = self.value(&field.shape, raw)?;
                    self.fields.pop();
                    if kept(field, &value) { Some(value) } else { zero(field) }
                }
            };
            if let Some(decoded) = decoded {
                let items = known.typed && field.json == "items" && decoded.is_null();
                let decoded = if items { Value::Array(Vec::new()) } else { decoded };
                out.insert(field.json.to_owned(), decoded);
            }
        }
        self.inside = outer;
        Ok(Value::Object(out))
    }

    fn value(&mut self, shape: &Shape, raw: &Value) -> Result<Value, String> {
        Ok(match (shape, raw) {
            (Shape::Pointer(inner), _) => return self.value(inner, raw),
            (Shape::Struct(ty), _) => return self.structure(*ty, raw, false),
            (Shape::Raw | Shape::JsonSchema(_) | Shape::FieldsV1, _) => raw.clone(),
            (Shape::Text(_), Value::String(_)) | (Shape::Bool, Value::Bool(_)) => raw.clone(),
            (Shape::Int(bits, go), Value::Number(number)) => match number.as_i64() {
                Some(whole) if *bits == 64 || i32::try_from(whole).is_ok() => whole.into(),
                _ => {
                    self.note("number ", &number.to_string(), go);
                    0.into()
                }
            },
            (Shape::Float, Value::Number(_)) => raw.clone(),
            (Shape::Bytes, Value::String(text)) => {
                let engine = base64::engine::general_purpose::STANDARD;
                let clean: String = text.chars().filter(|ch| *ch != '\n' && *ch != '\r').collect();
                match engine.decode(&clean) {
                    Ok(bytes) => engine.encode(bytes).into(),
                    Err(_) => {
                        let at = misplaced_base64(text);
                        let error = format!("illegal base64 data at input byte {at}");
                        self.first.get_or_insert(error);
                        Value::Null
                    }
                }
            }
            (Shape::Time | Shape::MicroTime, Value::String(text)) => {
                let read = if *shape == Shape::Time { time::seconds(text) } else { time::micros(text) };
                return read.map(Value::from);
            }
            (Shape::Time | Shape::MicroTime, other) => return Err(self.misfit_text(kind_of(other), "string")),
            (Shape::Quantity, Value::String(text)) => {
                return quantity::canonicalized(text).map(Value::from).map_err(str::to_owned);
            }
            (Shape::Quantity, other) => {
                return quantity::canonicalized(&other.to_string()).map(Value::from).map_err(str::to_owned);
            }
            (Shape::IntOrString, Value::String(_)) => raw.clone(),
            (Shape::IntOrString, Value::Number(number)) => {
                match number.as_i64().filter(|whole| i32::try_from(*whole).is_ok()) {
                    Some(whole) => whole.into(),
                    None => return Err(self.misfit_text(&format!("number {number}"), "int32")),
                }
            }
            (Shape::IntOrString, other) => return Err(self.misfit_text(kind_of(other), "int32")),
            (Shape::List(inner), Value::Array(items)) => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    out.push(self.element(inner, item)?);
                }
                Value::Array(out)
            }
            (Shape::Map(inner), Value::Object(members)) => {
                let mut out = Map::new();
                for (key, member) in members {
                    out.insert(key.clone(), self.element(inner, member)?);
                }
                Value::Object(out)
            }
            (shape, other) => {
                self.misfit(other, &go_type(shape));
                Value::Null
            }
        })
    }

    /// An item of a list or map: null becomes the zero value of its shape.
    fn element(&mut self, shape: &Shape, raw: &Value) -> Result<Value, String> {
        if raw.is_null() {
            return Ok(match shape {
                Shape::Text(_) => "".into(),
                Shape::Int(..) | Shape::Float | Shape::IntOrString => 0.into(),
                Shape::Bool => false.into(),
                Shape::Quantity => "0".into(),
                Shape::Struct(ty) => zero_struct(*ty),
                _ => Value::Null,
            });
        }
        let value = self.value(shape, raw)?;
        Ok(if value.is_null() && !matches!(shape, Shape::Raw) { default_element(shape) } else { value })
    }

    fn misfit(&mut self, value: &Value, go: &str) {
        self.note(kind_of(value), "", go);
    }

    fn note(&mut self, what: &str, detail: &str, go: &str) {
        let error = self.misfit_text(&format!("{what}{detail}"), go);
        self.first.get_or_insert(error);
    }

    fn misfit_text(&self, what: &str, go: &str) -> String {
        if self.fields.is_empty() {
            format!("json: cannot unmarshal {what} into Go value of type {go}")
        } else {
            let path = self.fields.join(".");
            format!("json: cannot unmarshal {what} into Go struct field {}.{path} of type {go}", self.inside)
        }
    }
}

fn default_element(shape: &Shape) -> Value {
    match shape {
        Shape::Text(_) => "".into(),
        Shape::Int(..) | Shape::Float => 0.into(),
        Shape::Bool => false.into(),
        _ => Value::Null,
    }
}

/// Whether Go writes the value: omitted fields and fields that storage drops are not kept.
fn kept(field: &Field, value: &Value) -> bool {
    match &field.shape {
        Shape::Pointer(inner) => match inner.as_ref() {
            Shape::List(_) | Shape::Map(_) => !is_empty(value),
            _ => !value.is_null(),
        },
        Shape::Bytes | Shape::List(_) | Shape::Map(_) => !is_empty(value),
        Shape::Text(_) | Shape::Int(..) | Shape::Float | Shape::Bool if field.omit_empty => {
            !crate::value::is_zero(value)
        }
        Shape::Struct(ty) if field.omit_zero => *value != zero_struct(*ty),
        _ => !value.is_null(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// The kind of a value in the words of Go's JSON decoder.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go name of a type, as errors write it.
fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::Text(go) | Shape::Int(_, go) => (*go).to_owned(),
        Shape::Float => "float64".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Time => "v1.Time".to_owned(),
        Shape::MicroTime => "v1.MicroTime".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::Raw => "runtime.RawExtension".to_owned(),
        Shape::JsonSchema(_) => "v1.JSONSchemaProps".to_owned(),
        Shape::FieldsV1 => "v1.FieldsV1".to_owned(),
        Shape::Struct(ty) => {
            let name = schema::get(*ty).name;
            name.rsplit('/').next().unwrap_or(name).to_owned()
        }
        Shape::List(inner) => format!("[]{}", go_type(inner)),
        Shape::Map(inner) if **inner == Shape::Quantity => "v1.ResourceList".to_owned(),
        Shape::Map(inner) => format!("map[string]{}", go_type(inner)),
        Shape::Pointer(inner) => go_type(inner),
    }
}

/// The position of the first byte that is not valid in base64.
fn misplaced_base64(text: &str) -> usize {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let body = text.trim_end_matches('=');
    match body.bytes().position(|byte| !plain(byte)) {
        Some(at) => at,
        None if text.len().is_multiple_of(4) => body.len(),
        None => text.len() - text.len() % 4 + usize::from(body.len() < text.len()) * (body.len() % 4),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(ty: &str, value: Value, expected: Value) {
        let ty = schema::find(ty).expect("a type of the schema");
        assert_eq!(decode(ty, &value), Ok(expected));
    }

    #[track_caller]
    fn wrong(ty: &str, value: Value, expected: &str) {
        let ty = schema::find(ty).expect("a type of the schema");
        assert_eq!(decode(ty, &value).expect_err("it does not fit"), expected);
    }

    #[test]
    fn zero_members_stand_where_go_writes_them() {
        check(
            "core/v1.Node",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {}, "bogus": 1}}),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": {}, "status": {
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                    "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
                    "operatingSystem": "", "architecture": ""}}}),
        );
        check("rbac/v1.Role", json!({"rules": []}), json!({"metadata": {}, "rules": null}));
    }

    #[test]
    fn quantities_and_times_become_canonical() {
        check(
            "core/v1.NodeStatus",
            json!({"capacity": {"cpu": 2, "memory": "1024Mi"}, "daemonEndpoints": null, "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T01:00:00+01:00"}]}),
            json!({"capacity": {"cpu": "2", "memory": "1Gi"}, "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                 "lastTransitionTime": null}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                    "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
                    "operatingSystem": "", "architecture": ""}}),
        );
    }

    #[test]
    fn misfits_are_reported_as_go_does() {
        wrong(
            "core/v1.Service",
            json!({"spec": {"ports": [{"port": "80"}]}}),
            "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32",
        );
        wrong(
            "core/v1.Service",
            json!({"spec": {"ports": {}}}),
            "json: cannot unmarshal object into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
        );
        wrong(
            "core/v1.Service",
            json!({"spec": {"ports": [{"port": 80, "targetPort": true}]}}),
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
        );
        wrong(
            "core/v1.Node",
            json!({"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        );
        wrong("core/v1.Node", json!([]), "json: cannot unmarshal array into Go value of type v1.Node");
        wrong("core/v1.NodeStatus", json!({"capacity": {"cpu": "x"}}), quantity::FORM);
    }
}
