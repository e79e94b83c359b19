//! Faults that can be found in a body's text alone: syntax errors in Go's words, unknown fields, duplicate fields.
//!
//! Source: `sigs.k8s.io/json`, which parses strictly and names fields in the order of the text.

mod scan;

use serde_json::Value;

use crate::kinds::Kind;
use crate::schema::{self, TypeId};
use crate::status::{self, Status};

/// How a request wants unknown and duplicate fields to be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// They are not reported.
    Ignore,
    /// Each is reported in a Warning header. The server's default.
    #[default]
    Warn,
    /// The request is rejected.
    Strict,
}

impl Mode {
    /// The mode of a `fieldValidation` parameter; an empty one is the default.
    pub fn parse(text: &str) -> Option<Mode> {
        Some(match text {
            "" | "Warn" => Mode::Warn,
            "Ignore" => Mode::Ignore,
            "Strict" => Mode::Strict,
            _ => return None,
        })
    }
}

/// The error of Go's decoder for a text that is not JSON.
pub fn syntax_error(text: &str) -> Option<String> {
    scan::scan(None, text).err()
}

/// The unknown and duplicate fields of a text, such as `unknown field "spec.bogus"`, in the order of the
/// text. At most a hundred are reported.
///
/// # Errors
/// The error of Go's decoder for a text that is not JSON.
pub fn problems(ty: Option<TypeId>, text: &str) -> Result<Vec<String>, String> {
    scan::scan(ty, text)
}

/// A parsed body.
#[derive(Debug, PartialEq)]
pub struct Body {
    /// The object as it was sent.
    pub object: Value,
    /// Texts for Warning headers.
    pub warnings: Vec<String>,
}

/// Parses a JSON body that must be of a kind, for a creation or an update; its apiVersion and kind may be missing.
///
/// # Errors
/// The Status for a body that is not JSON, has another kind, or has unknown fields in strict mode.
pub fn read(kind: &Kind, text: &str, mode: Mode) -> Result<Body, Status> {
    read_typed((kind.group, kind.version, kind.kind), kind.type_id(), text, mode)
}

/// Parses a JSON body that must be of a kind that is not served itself, such as `autoscaling/v1` `Scale`.
///
/// # Errors
/// As for [`read`].
pub fn read_as(group: &str, version: &str, kind: &str, text: &str, mode: Mode) -> Result<Body, Status> {
    read_typed((group, version, kind), schema::of_object(&joined(group, version), kind), text, mode)
}

fn read_typed(
    (group, version, kind): (&str, &str, &str),
    ty: Option<TypeId>,
    text: &str,
    mode: Mode,
) -> Result<Body, Status> {
    let unrecognized = |why: String| {
        let shown = summary(text.as_bytes());
        status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
        ))
    };
    let no_type = |why: String| unrecognized(format!("couldn't get version/kind; json parse error: {why}"));
    if let Some(why) = syntax_error(text) {
        return Err(no_type(why));
    }
    let object: Value = serde_json::from_str(text).map_err(|error| no_type(error.to_string()))?;
    let member = |name: &str, go: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => {
            let is = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::Array(_) => "array",
                _ => "object",
            };
            Err(no_type(format!("json: cannot unmarshal {is} into Go struct field .{go} of type string")))
        }
    };
    if !object.is_object() && !object.is_null() {
        let is = match object {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "bool",
        };
        let go = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        return Err(no_type(format!("json: cannot unmarshal {is} into Go value of type {go}")));
    }
    let (api_version, sent_kind) = (member("apiVersion", "apiVersion")?, member("kind", "kind")?);
    let sent_kind = if sent_kind.is_empty() { kind.to_owned() } else { sent_kind };
    let (sent_group, sent_version) = match api_version.rsplit_once('/') {
        _ if api_version.is_empty() => (group, version),
        Some((group, version)) if !group.contains('/') => (group, version),
        Some(_) => return Err(unrecognized(format!("unexpected GroupVersion string: {api_version}"))),
        None => ("", api_version.as_str()),
    };
    let cannot = |why: String| {
        status::bad_request(format!(
            "{sent_kind} in version {sent_version:?} cannot be handled as a {kind}: {why}"
        ))
    };
    if sent_kind != kind || sent_group != group {
        let known = schema::of_object(&joined(sent_group, sent_version), &sent_kind).is_some();
        return Err(if known {
            unknown_conversion(&sent_kind, sent_version, group, kind)
        } else {
            cannot(no_kind(sent_group, sent_version, &sent_kind))
        });
    }
    if sent_version != version {
        return Err(cannot(no_kind(sent_group, sent_version, &sent_kind)));
    }
    let found = if mode == Mode::Ignore { Vec::new() } else { problems(ty, text).unwrap_or_default() };
    if mode == Mode::Strict && !found.is_empty() {
        return Err(cannot(format!("strict decoding error: {}", found.join(", "))));
    }
    Ok(Body { object, warnings: found })
}

/// Parses JSON options such as `DeleteOptions`, which clients send in the API version of the object.
///
/// # Errors
/// As for [`read`].
pub fn read_options(kind: &str, text: &str, mode: Mode) -> Result<Body, Status> {
    let sent: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let version = sent.get("apiVersion").and_then(Value::as_str).filter(|version| !version.is_empty());
    let (group, version) =
        version.map(|text| text.rsplit_once('/').unwrap_or(("", text))).unwrap_or(("", "v1"));
    read_as(group, version, kind, text, mode)
}

/// The answer to a body of the wrong kind.
pub(crate) fn unknown_conversion(sent_kind: &str, sent_version: &str, group: &str, kind: &str) -> Status {
    status::bad_request(format!(
        "{sent_kind} in version {sent_version:?} cannot be handled as a {kind}: converting ({sent_version}.{sent_kind}) to ({}.{kind}): unknown conversion",
        internal_group(group)
    ))
}

fn no_kind(group: &str, version: &str, kind: &str) -> String {
    format!(
        "no kind {kind:?} is registered for version {:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        joined(group, version)
    )
}

pub(crate) fn joined(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The Go package of a group's internal types.
fn internal_group(group: &str) -> &str {
    match group {
        "" => "core",
        "rbac.authorization.k8s.io" => "rbac",
        other => other.split('.').next().unwrap_or(other),
    }
}

/// The beginning of a body as an error shows it: as text if it looks like JSON, otherwise as hexadecimal digits.
pub(crate) fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let more = if body.len() > SHOWN { " ..." } else { "" };
    let head = &body[..body.len().min(SHOWN)];
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => {
            let digits: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", digits.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn node(text: &str, mode: Mode) -> Result<Body, Status> {
        let kind = kinds::find("", "v1", "nodes").expect("nodes are served");
        read(kind, text, mode)
    }

    #[test]
    fn unknown_and_duplicate_fields_are_named_in_the_order_of_the_text() {
        let text = r#"{"spec": {"z": 1, "taints": [{"kex": 1}], "podCIDR": "", "podCIDR": ""}, "a": {}, "metadata": {"labels": {"x": "1", "x": "2"}}}"#;
        let warnings = [
            "unknown field \"spec.z\"",
            "unknown field \"spec.taints[0].kex\"",
            "duplicate field \"spec.podCIDR\"",
            "unknown field \"a\"",
            "duplicate field \"metadata.labels.x\"",
        ];
        assert_eq!(
            node(text, Mode::Warn).map(|body| body.warnings),
            Ok(warnings.map(str::to_owned).to_vec())
        );
        assert_eq!(
            node(text, Mode::Strict).expect_err("strict").message,
            format!(
                "Node in version \"v1\" cannot be handled as a Node: strict decoding error: {}",
                warnings.join(", ")
            )
        );
        assert_eq!(node(text, Mode::Ignore).map(|body| body.warnings), Ok(Vec::new()));
    }

    #[test]
    fn invalid_node_bodies_are_refused_in_the_words_of_the_real_server() {
        let message = |text: &str| node(text, Mode::Warn).expect_err("it is refused").message;
        assert_eq!(
            message("{not json"),
            "the object provided is unrecognized (must be of type Node): couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of object key string ({not json)"
        );
        assert_eq!(
            message(r#"{"apiVersion":"v1","kind":"Pod"}"#),
            "Pod in version \"v1\" cannot be handled as a Node: converting (v1.Pod) to (core.Node): unknown conversion"
        );
        assert!(message("").ends_with("unexpected end of JSON input (<empty>)"));
        assert!(message("abc").ends_with("(616263)"));
        assert!(message(r#"{"apiVersion":"v1","kind":"Bogus"}"#).contains("no kind \"Bogus\" is registered"));
    }

    #[test]
    fn options_come_in_any_version() {
        let read = |text: &str| read_options("DeleteOptions", text, Mode::Strict);
        assert!(read(r#"{"kind":"DeleteOptions","apiVersion":"apps/v1","gracePeriodSeconds":0}"#).is_ok());
        assert!(read("{}").is_ok());
        let wrong = read(r#"{"kind":"Pod","apiVersion":"v1"}"#).expect_err("a Pod is not an option");
        assert!(wrong.message.starts_with("Pod in version \"v1\" cannot be handled as a DeleteOptions"));
    }

    #[test]
    fn syntax_errors_are_gos() {
        let error_of = |text: &str| syntax_error(text).unwrap_or_default();
        assert_eq!(error_of("{\"a\" 1}"), "invalid character '1' after object key");
        assert_eq!(error_of("{\"a\":1 2}"), "invalid character '2' after object key:value pair");
        assert_eq!(error_of("[1 2]"), "invalid character '2' after array element");
        assert_eq!(error_of("tru"), "unexpected end of JSON input");
        assert_eq!(error_of("trux"), "invalid character 'x' in literal true (expecting 'e')");
        assert_eq!(error_of("1 2"), "invalid character '2' after top-level value");
        assert_eq!(error_of("[1,]"), "invalid character ']' looking for beginning of value");
        assert_eq!(error_of("\"\\q\""), "invalid character 'q' in string escape code");
        assert_eq!(error_of("-"), "unexpected end of JSON input");
        assert_eq!(error_of("1.x"), "invalid character 'x' after decimal point in numeric literal");
        assert_eq!(syntax_error(" {\"a\": [1, -2.5e3, null, true, \"\\u0041\"]} "), None);
        assert_eq!(error_of(&"[".repeat(100_000)), "exceeded max depth");
    }
}
