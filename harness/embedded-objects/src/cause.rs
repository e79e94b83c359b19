//! The causes for which an object is rejected, one per field, in the words of the API server's field errors.

use serde_json::Value;

/// The kind of a field error. Source: `k8s.io/apimachinery/pkg/util/validation/field`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A value is missing.
    Required,
    /// A value occurs twice.
    Duplicate,
    /// A value is wrong.
    Invalid,
    /// A value has the wrong type.
    TypeInvalid,
    /// A value is not one of the supported ones.
    NotSupported,
    /// A value is not allowed here.
    Forbidden,
    /// A text is too long.
    TooLong,
    /// There are too many items.
    TooMany,
    /// A referenced object does not exist.
    NotFound,
    /// The server itself failed.
    Internal,
}

impl Reason {
    /// The reason's name in the causes of a Status.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Invalid => "FieldValueInvalid",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::NotFound => "FieldValueNotFound",
            Reason::Internal => "InternalError",
        }
    }
}

/// One field error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The kind of error.
    pub reason: Reason,
    /// The field's path, such as `spec.ports[0].port`.
    pub field: String,
    /// The text without the field's path.
    pub message: String,
}

impl Cause {
    fn new(reason: Reason, field: impl Into<String>, message: String) -> Cause {
        Cause { reason, field: field.into(), message }
    }

    /// The cause for a missing value; the detail may be empty.
    pub fn required(field: impl Into<String>, detail: &str) -> Cause {
        Cause::new(Reason::Required, field, with_detail("Required value".to_owned(), detail))
    }

    /// The cause for an invalid value.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl AsRef<str>) -> Cause {
        let head = format!("Invalid value: {}", shown(&value.into()));
        Cause::new(Reason::Invalid, field, with_detail(head, detail.as_ref()))
    }

    /// The cause for a value of the wrong type, which is shown instead of the value.
    pub fn wrong_type(field: impl Into<String>, is: &str, detail: impl AsRef<str>) -> Cause {
        let head = format!("Invalid value: {}", quoted(is));
        Cause::new(Reason::TypeInvalid, field, with_detail(head, detail.as_ref()))
    }

    /// The cause for a value that occurs twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Cause {
        Cause::new(Reason::Duplicate, field, format!("Duplicate value: {}", shown(&value.into())))
    }

    /// The cause for an unsupported value; the supported ones are listed in the given order.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, possible: &[&str]) -> Cause {
        let listed: Vec<String> = possible.iter().map(|value| format!("{value:?}")).collect();
        let head = format!("Unsupported value: {}", shown(&value.into()));
        let message =
            if listed.is_empty() { head } else { format!("{head}: supported values: {}", listed.join(", ")) };
        Cause::new(Reason::NotSupported, field, message)
    }

    /// The cause for a value that is not allowed here.
    pub fn forbidden(field: impl Into<String>, detail: impl AsRef<str>) -> Cause {
        Cause::new(Reason::Forbidden, field, with_detail("Forbidden".to_owned(), detail.as_ref()))
    }

    /// The cause for a text with more than this many bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Cause {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Cause::new(Reason::TooLong, field, format!("Too long: may not be more than {limit} {unit}"))
    }

    /// The cause for a list with too many items.
    pub fn too_many(field: impl Into<String>, count: usize, limit: usize) -> Cause {
        let unit = if limit == 1 { "item" } else { "items" };
        Cause::new(Reason::TooMany, field, format!("Too many: {count}: must have at most {limit} {unit}"))
    }

    /// The cause for a reference to an object that does not exist.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Cause {
        Cause::new(Reason::NotFound, field, format!("Not found: {}", shown(&value.into())))
    }

    /// The cause for a failure of the server at this field.
    pub fn internal(field: impl Into<String>, detail: &str) -> Cause {
        Cause::new(Reason::Internal, field, format!("Internal error: {detail}"))
    }

    /// The cause as text, after its path.
    pub fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}

fn with_detail(head: String, detail: &str) -> String {
    if detail.is_empty() { head } else { format!("{head}: {detail}") }
}

/// A value as field errors show it: a text in quotes, everything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text in Go's quotes (`%q`).
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for ch in text.chars() {
        match ch {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            control if control.is_ascii_control() => out.push_str(&format!("\\x{:02x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
