//! Filters of lists: a JSON object in the header `X-Filter`. All its fields have to match.

use fake_cloud_kit::Request;
use hyper::header::HeaderName;
use serde_json::{Map, Value};

const HEADER: HeaderName = HeaderName::from_static("x-filter");
/// The only supported operator besides equality.
const CONTAINS: &str = "+contains";

/// The filter of a list.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filter(Map<String, Value>);

/// The fault of a filter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not a JSON object.
    NoObject,
    /// It has this unknown operator, or compares with a value that is not a scalar.
    Unknown(String),
}

impl Filter {
    /// Parses the filter of a call.
    pub(super) fn of(request: &Request) -> Result<Filter, Wrong> {
        let Some(header) = request.headers.get(HEADER) else { return Ok(Filter::default()) };
        let fields: Map<String, Value> =
            serde_json::from_slice(header.as_bytes()).map_err(|_| Wrong::NoObject)?;
        for (field, wanted) in &fields {
            let known = match wanted {
                Value::Object(terms) => {
                    terms.iter().all(|(operator, value)| operator == CONTAINS && value.is_string())
                }
                Value::Array(_) => false,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            };
            if !known || field.starts_with('+') {
                return Err(Wrong::Unknown(format!("{field:.40}: {:.80}", wanted.to_string())));
            }
        }
        Ok(Filter(fields))
    }

    /// Whether it matches everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that a field must equal, if the filter says so.
    pub(super) fn equal(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }

    /// Whether an object in this form matches.
    pub(super) fn fits(&self, shown: &Value) -> bool {
        self.0.iter().all(|(field, wanted)| {
            let seen = &shown[field.as_str()];
            let part = wanted.get(CONTAINS).and_then(Value::as_str);
            let meets = |seen: &Value| match part {
                Some(part) => seen.as_str().is_some_and(|text| text.contains(part)),
                None => seen == wanted,
            };
            // A list matches if one of its items does.
            seen.as_array().map_or_else(|| meets(seen), |items| items.iter().any(meets))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Bytes;
    use hyper::{HeaderMap, Method, Uri};
    use serde_json::json;

    fn filter(text: &str) -> Result<Filter, Wrong> {
        let headers = HeaderMap::from_iter([(HEADER, text.parse().expect("a header"))]);
        let (method, uri) = (Method::GET, Uri::from_static("/v4/nodebalancers"));
        Filter::of(&Request { method, uri, headers, body: Bytes::new() })
    }

    #[test]
    fn all_fields_hold_and_a_list_has_what_an_item_is() {
        let shown = json!({"ipv4": "203.0.113.1", "tags": ["kubernetes", "default/web"], "id": 7});
        for (text, fits) in [
            ("{}", true),
            (r#"{"ipv4": "203.0.113.1"}"#, true),
            (r#"{"ipv4": "203.0.113.1", "id": 8}"#, false),
            (r#"{"id": 7}"#, true),
            (r#"{"tags": "default/web"}"#, true),
            (r#"{"tags": {"+contains": "web"}}"#, true),
            (r#"{"tags": {"+contains": "api"}}"#, false),
            (r#"{"other": 1}"#, false),
        ] {
            assert_eq!(filter(text).expect("a filter").fits(&shown), fits, "{text}");
        }
    }

    #[test]
    fn unknown_filters_are_reported() {
        assert_eq!(filter("[1]"), Err(Wrong::NoObject));
        for text in [r#"{"+and": [{"id": 7}]}"#, r#"{"id": {"+gt": 7}}"#, r#"{"id": [7]}"#] {
            assert!(matches!(filter(text), Err(Wrong::Unknown(_))), "{text}");
        }
    }
}
