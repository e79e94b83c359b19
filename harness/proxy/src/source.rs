//! The place of a value in a call.

use crate::pattern::{PathPattern, RuleError, TextPattern};
use crate::xpath::Xpath;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;
use std::cell::OnceCell;

/// A call as rules see it.
#[derive(Debug)]
pub(crate) struct CallView<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// The body, if a rule needs it and it is not too long.
    pub(crate) body: Bytes,
    pub(crate) form: OnceCell<Vec<(String, String)>>,
    pub(crate) json: OnceCell<Value>,
}

impl CallView<'_> {
    fn query(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.map(|(key, value)| (key.into_owned(), value.into_owned()))
    }

    /// The fields of a form: those of the body, and those of the query, which some APIs accept too.
    fn form(&self) -> &[(String, String)] {
        self.form.get_or_init(|| {
            let body = form_urlencoded::parse(&self.body);
            body.map(|(key, value)| (key.into_owned(), value.into_owned())).chain(self.query()).collect()
        })
    }

    fn json(&self) -> &Value {
        self.json.get_or_init(|| serde_json::from_slice(&self.body).unwrap_or_default())
    }
}

/// A place in a call, or in its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A named segment of the path.
    Path(String),
    /// A parameter of the query.
    Query(String),
    /// A field of a form; `*` matches every number: `InstanceId.*`.
    Form(String),
    /// The values of `Filter.N.Value.M` of a form whose `Filter.N.Name` is this.
    Filter(String),
    /// A header.
    Header(String),
    /// A JSON pointer into the body; `*` matches every item of a list.
    Json(String),
    /// A place in XML.
    Xpath(Xpath),
}

impl Place {
    pub(crate) fn is_of_the_body(&self) -> bool {
        match self {
            Place::Form(_) | Place::Filter(_) | Place::Json(_) | Place::Xpath(_) => true,
            Place::Path(_) | Place::Query(_) | Place::Header(_) => false,
        }
    }

    /// All values at the place.
    pub(crate) fn values(&self, path: Option<&PathPattern>, seen: &CallView<'_>) -> Vec<String> {
        match self {
            Place::Path(name) => path.and_then(|path| path.value(seen.path, name)).into_iter().collect(),
            Place::Query(name) => named(seen.query(), name),
            Place::Form(key) => {
                let fields = seen.form().iter().filter(|(name, _)| is_field(key, name));
                fields.map(|(_, value)| value.clone()).collect()
            }
            Place::Filter(name) => filter(seen.form(), name),
            Place::Header(name) => {
                let values = seen.headers.get_all(name).into_iter();
                values.filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect()
            }
            Place::Json(pointer) => pointed(seen.json(), pointer),
            Place::Xpath(xpath) => xpath.values(&seen.body),
        }
    }

    /// All values in the body of an answer.
    pub(crate) fn values_of_answer(&self, body: &[u8]) -> Vec<String> {
        match self {
            Place::Json(pointer) => pointed(&serde_json::from_slice(body).unwrap_or_default(), pointer),
            Place::Xpath(xpath) => xpath.values(body),
            _ => Vec::new(),
        }
    }

    /// The key under which the journal shows a value from there; `None` for the object's id.
    fn key(&self) -> Option<&str> {
        match self {
            Place::Path(_) | Place::Xpath(_) => None,
            Place::Query(name) | Place::Filter(name) | Place::Header(name) => Some(name),
            Place::Form(name) => Some(name.split('.').next().unwrap_or(name)),
            Place::Json(pointer) => pointer.rsplit('/').find(|part| *part != "*"),
        }
    }
}

/// A value of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) place: Place,
    pattern: Option<TextPattern>,
}

/// A source in a rule file: one of the first seven, and optionally a pattern.
#[derive(Clone, Debug, Default)]
pub struct SourceText {
    /// A segment of the path, by its name.
    pub path: Option<String>,
    /// A parameter of the query.
    pub query: Option<String>,
    /// A field of a form.
    pub form: Option<String>,
    /// A filter of AWS's Query protocol, by its name.
    pub filter: Option<String>,
    /// A header.
    pub header: Option<String>,
    /// A JSON pointer into the body.
    pub json: Option<String>,
    /// An XPath into the body.
    pub xpath: Option<String>,
    /// The text around the value, with `{}` in its place.
    pub pattern: Option<String>,
}

impl Source {
    /// The place that is written.
    ///
    /// # Errors
    /// It names no place, several, or an impossible one.
    pub fn parse(text: SourceText) -> Result<Source, RuleError> {
        let pattern = text.pattern.as_deref().map(TextPattern::parse).transpose()?;
        let mut places = Vec::new();
        places.extend(text.path.map(Place::Path));
        places.extend(text.query.map(Place::Query));
        places.extend(text.form.map(Place::Form));
        places.extend(text.filter.map(Place::Filter));
        places.extend(text.header.map(|name| Place::Header(name.to_ascii_lowercase())));
        if let Some(pointer) = text.json {
            places.push(json(pointer)?);
        }
        if let Some(path) = text.xpath {
            places.push(Place::Xpath(Xpath::parse(&path)?));
        }
        match <[Place; 1]>::try_from(places) {
            Ok([place]) => Ok(Source { place, pattern }),
            Err(_) => Err(RuleError::Source),
        }
    }

    pub(crate) fn values(&self, path: &PathPattern, seen: &CallView<'_>) -> Vec<String> {
        self.narrowed(self.place.values(Some(path), seen))
    }

    pub(crate) fn values_of_answer(&self, body: &[u8]) -> Vec<String> {
        self.narrowed(self.place.values_of_answer(body))
    }

    fn narrowed(&self, values: Vec<String>) -> Vec<String> {
        let values = values.into_iter().filter_map(|value| match &self.pattern {
            Some(pattern) => pattern.value(&value).map(str::to_owned),
            None => Some(value),
        });
        values.filter(|value| !value.is_empty()).collect()
    }

    /// A value from there in the form of the journal.
    pub(crate) fn shown(&self, value: &str) -> String {
        match self.place.key() {
            Some(key) => format!("{key}={value}"),
            None => value.to_owned(),
        }
    }
}

/// A place in JSON.
///
/// # Errors
/// It is not a pointer.
pub(crate) fn json(pointer: String) -> Result<Place, RuleError> {
    match pointer.starts_with('/') {
        true => Ok(Place::Json(pointer)),
        false => Err(RuleError::Pointer(pointer)),
    }
}

fn named(pairs: impl Iterator<Item = (String, String)>, name: &str) -> Vec<String> {
    pairs.filter(|(key, _)| key == name).map(|(_, value)| value).collect()
}

fn is_field(wanted: &str, name: &str) -> bool {
    let mut given = name.split('.');
    let all = wanted.split('.').all(|part| match (part, given.next()) {
        ("*", Some(number)) => number.bytes().all(|byte| byte.is_ascii_digit()),
        (part, given) => given == Some(part),
    });
    all && given.next().is_none()
}

fn filter(fields: &[(String, String)], name: &str) -> Vec<String> {
    let number = fields.iter().find_map(|(key, value)| {
        let number = key.strip_prefix("Filter.")?.strip_suffix(".Name")?;
        (value == name).then_some(number)
    });
    let Some(number) = number else { return Vec::new() };
    let key = format!("Filter.{number}.Value.*");
    fields.iter().filter(|(name, _)| is_field(&key, name)).map(|(_, value)| value.clone()).collect()
}

/// The values to which one part of a pointer leads.
fn inner<'a>(value: &'a Value, part: &str) -> Vec<&'a Value> {
    match (value, part) {
        (Value::Array(items), "*") => items.iter().collect(),
        (Value::Array(items), _) => {
            part.parse::<usize>().ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        (Value::Object(fields), _) => fields.get(part).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The strings and numbers to which a pointer leads.
fn pointed(value: &Value, pointer: &str) -> Vec<String> {
    let mut found = vec![value];
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        found = found.into_iter().flat_map(|value| inner(value, &part)).collect();
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    found.into_iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(place: Place, query: &str, body: &str) -> Vec<String> {
        let headers = HeaderMap::new();
        let seen = CallView {
            method: &Method::POST,
            path: "/",
            query,
            headers: &headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
            form: OnceCell::new(),
            json: OnceCell::new(),
        };
        place.values(None, &seen)
    }

    #[test]
    fn values_are_found_wherever_a_call_has_them() {
        let form = "Action=DescribeInstances&InstanceId.1=i-1&InstanceId.2=i-2&Filter.1.Name=vpc-id&Filter.1.Value.1=v\
                    &Filter.2.Name=private-dns-name&Filter.2.Value.1=ip-10-0-0-1.ec2.internal";
        assert_eq!(of(Place::Form("InstanceId.*".into()), "", form), ["i-1", "i-2"]);
        assert_eq!(of(Place::Form("Action".into()), "Action=X", ""), ["X"]);
        assert_eq!(of(Place::Filter("private-dns-name".into()), "", form), ["ip-10-0-0-1.ec2.internal"]);
        assert!(of(Place::Filter("other".into()), "", form).is_empty());
        assert_eq!(of(Place::Query("label".into()), "label=a%3Db&x=1", ""), ["a=b"]);
        let body = r#"{"server": {"name": "n", "ids": [1, 2], "a/b": "c"}}"#;
        assert_eq!(of(Place::Json("/server/ids/*".into()), "", body), ["1", "2"]);
        assert_eq!(of(Place::Json("/server/a~1b".into()), "", body), ["c"]);
        assert!(of(Place::Json("/server".into()), "", "no JSON").is_empty());
    }

    #[test]
    fn a_source_is_one_place() {
        let refused = |text: SourceText| Source::parse(text).expect_err("refused");
        assert_eq!(refused(SourceText::default()), RuleError::Source);
        let two = SourceText { path: Some("id".into()), query: Some("id".into()), ..SourceText::default() };
        assert_eq!(refused(two), RuleError::Source);
        let pointer = SourceText { json: Some("name".into()), ..SourceText::default() };
        assert_eq!(refused(pointer), RuleError::Pointer("name".into()));
    }
}
