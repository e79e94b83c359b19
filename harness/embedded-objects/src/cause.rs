//! Why an object is refused: one cause a field, in the words of the API server's field errors.

use serde_json::Value;

/// The kind of a field error. Source: `k8s.io/apimachinery/pkg/util/validation/field`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A value is missing.
    Required,
    /// A value stands twice.
    Duplicate,
    /// A value is wrong.
    Invalid,
    /// A value is of another type.
    TypeInvalid,
    /// A value is none of those possible.
    NotSupported,
    /// A value may not stand here.
    Forbidden,
    /// A text is too long.
    TooLong,
    /// There are too many items.
    TooMany,
    /// What is named does not exist.
    NotFound,
    /// The server itself failed.
    Internal,
}

impl Reason {
    /// The reason as a Status cause names it.
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

    /// A value is missing; the detail may be empty.
    pub fn required(field: impl Into<String>, detail: &str) -> Cause {
        Cause::new(Reason::Required, field, with_detail("Required value".to_owned(), detail))
    }

    /// A value is wrong.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl AsRef<str>) -> Cause {
        let head = format!("Invalid value: {}", shown(&value.into()));
        Cause::new(Reason::Invalid, field, with_detail(head, detail.as_ref()))
    }

    /// A value is of another type; its own stands for it.
    pub fn wrong_type(field: impl Into<String>, is: &str, detail: impl AsRef<str>) -> Cause {
        let head = format!("Invalid value: {}", quoted(is));
        Cause::new(Reason::TypeInvalid, field, with_detail(head, detail.as_ref()))
    }

    /// A value stands twice.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Cause {
        Cause::new(Reason::Duplicate, field, format!("Duplicate value: {}", shown(&value.into())))
    }

    /// A value is none of those possible, which are listed in the order given.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, possible: &[&str]) -> Cause {
        let listed: Vec<String> = possible.iter().map(|value| format!("{value:?}")).collect();
        let head = format!("Unsupported value: {}", shown(&value.into()));
        let message =
            if listed.is_empty() { head } else { format!("{head}: supported values: {}", listed.join(", ")) };
        Cause::new(Reason::NotSupported, field, message)
    }

    /// A value may not stand here.
    pub fn forbidden(field: impl Into<String>, detail: impl AsRef<str>) -> Cause {
        Cause::new(Reason::Forbidden, field, with_detail("Forbidden".to_owned(), detail.as_ref()))
    }

    /// A text is longer than so many bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Cause {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Cause::new(Reason::TooLong, field, format!("Too long: may not be more than {limit} {unit}"))
    }

    /// A list has more items than it may.
    pub fn too_many(field: impl Into<String>, count: usize, limit: usize) -> Cause {
        let unit = if limit == 1 { "item" } else { "items" };
        Cause::new(Reason::TooMany, field, format!("Too many: {count}: must have at most {limit} {unit}"))
    }

    /// What a value names does not exist.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Cause {
        Cause::new(Reason::NotFound, field, format!("Not found: {}", shown(&value.into())))
    }

    /// The server failed at this field.
    pub fn internal(field: impl Into<String>, detail: &str) -> Cause {
        Cause::new(Reason::Internal, field, format!("Internal error: {detail}"))
    }

    /// The cause with its path before it.
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
