//! Requests to a plugin and its answers, decoded as strictly as a kubelet decodes them.

use super::configuration::NEWEST;
use super::go_duration::go_duration;
use super::json;
use harness_core::secrets;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The kind of a response.
const RESPONSE: &str = "CredentialProviderResponse";

/// A request for the credentials of an image, with the service account's data if the configuration asks for it.
pub fn request(
    version: &str,
    image: &str,
    token: Option<&str>,
    annotations: &BTreeMap<String, String>,
) -> String {
    let mut request = json!({"kind": "CredentialProviderRequest", "apiVersion": version, "image": image});
    // Older versions do not support service accounts.
    if let Some(token) = token.filter(|_| version == NEWEST) {
        request["serviceAccountToken"] = token.into();
        request["serviceAccountAnnotations"] = json!(annotations);
    }
    format!("{request}\n")
}

/// The images for which a cached response is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKeyType {
    /// For the image.
    Image,
    /// For all images of its registry.
    Registry,
    /// For all images.
    Global,
}

impl fmt::Display for CacheKeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CacheKeyType::Image => "Image",
            CacheKeyType::Registry => "Registry",
            CacheKeyType::Global => "Global",
        })
    }
}

impl CacheKeyType {
    /// Its name, in the spelling of kubelets.
    pub(super) fn of(name: &str) -> Option<CacheKeyType> {
        match name {
            "Image" => Some(CacheKeyType::Image),
            "Registry" => Some(CacheKeyType::Registry),
            "Global" => Some(CacheKeyType::Global),
            _ => None,
        }
    }

    /// Whether a response for one image is used for the other.
    pub fn joins(self, one: &str, other: &str) -> bool {
        let registry = |image: &str| image.split('/').next().unwrap_or_default().to_owned();
        match self {
            CacheKeyType::Image => one == other,
            CacheKeyType::Registry => registry(one) == registry(other),
            CacheKeyType::Global => true,
        }
    }
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user.
    pub username: String,
    /// The password, which is a secret.
    pub password: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("username", &self.username).finish_non_exhaustive()
    }
}

/// The errors that a kubelet finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not exactly one response.
    NotOne(String),
    /// It has another version.
    Version(String),
    /// A field is unknown, duplicate or of another type.
    Field(String),
    /// The kind of cache key is invalid.
    KeyType(String),
    /// The duration is invalid.
    Duration(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::NotOne(what)
        | Fault::Version(what)
        | Fault::Field(what)
        | Fault::KeyType(what)
        | Fault::Duration(what)) = self;
        f.write_str(what)
    }
}

/// A plugin's response, as far as it can be read, and all errors that a kubelet would find.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The images for which it is cached.
    pub cache_key_type: Option<CacheKeyType>,
    /// How long it is cached, in seconds; `None` uses the configuration's value.
    pub cache_duration: Option<f64>,
    /// Credentials by pattern.
    pub auth: BTreeMap<String, Credential>,
    /// The errors in it.
    pub faults: Vec<Fault>,
}

impl Answer {
    /// Reads a plugin's output for a request of `version`. Its passwords are redacted from all output of this process
    /// from now on.
    pub fn read(stdout: &[u8], version: &str) -> Answer {
        let mut answer = Answer::default();
        match json::read(stdout) {
            Err(error) => answer.faults.push(Fault::NotOne(not_one(stdout, &error))),
            Ok(json::Read { value: Value::Object(fields), twice }) => {
                let said =
                    twice.into_iter().map(|path| Fault::Field(format!("the field '{path}' is given twice")));
                answer.faults.extend(said);
                answer.fields(fields, version);
            }
            Ok(other) => answer
                .faults
                .push(Fault::NotOne(format!("it is not an object but {}", type_of(&other.value)))),
        }
        answer
    }

    fn fields(&mut self, fields: Map<String, Value>, version: &str) {
        match fields.get("kind").and_then(Value::as_str) {
            Some(RESPONSE) => {}
            other => {
                self.faults.push(Fault::NotOne(format!("its kind is {}, expected {RESPONSE}", shown(other))))
            }
        }
        match fields.get("apiVersion").and_then(Value::as_str) {
            Some(said) if said == version => {}
            other => {
                let what = format!("its apiVersion is {}, expected the request's {version}", shown(other));
                self.faults.push(Fault::Version(what));
            }
        }
        let mut key_type = None;
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("kind" | "apiVersion", _) => {}
                ("cacheKeyType", value) => key_type = Some(value),
                ("cacheDuration", value) => self.duration(&value),
                ("auth", Value::Null) => {}
                ("auth", Value::Object(auth)) => {
                    auth.into_iter().for_each(|(key, value)| self.credential(key, value))
                }
                ("auth", other) => self.wrong_type("auth", "a map", &other),
                (unknown, _) => self.faults.push(Fault::Field(format!("unknown field '{unknown}'"))),
            }
        }
        let said = key_type.as_ref().and_then(Value::as_str);
        self.cache_key_type = said.and_then(CacheKeyType::of);
        if self.cache_key_type.is_none() {
            let said = shown(said);
            self.faults
                .push(Fault::KeyType(format!("cacheKeyType is {said}, expected Image, Registry or Global")));
        }
    }

    fn duration(&mut self, value: &Value) {
        let read = match value {
            Value::Null => return,
            Value::String(text) => go_duration(text),
            other => Err(format!("cacheDuration is {}, expected a string such as \"10m\"", type_of(other))),
        };
        match read {
            Ok(seconds) if seconds >= 0.0 => self.cache_duration = Some(seconds),
            Ok(_) => {
                self.faults.push(Fault::Duration(format!("cacheDuration must not be negative (got {value})")))
            }
            Err(why) => self.faults.push(Fault::Duration(why)),
        }
    }

    fn credential(&mut self, key: String, value: Value) {
        let path = format!("auth.{key}");
        let Value::Object(fields) = value else {
            return self.wrong_type(&path, "username and password", &value);
        };
        let mut credential = Credential { username: String::new(), password: String::new() };
        for (name, value) in fields {
            let field = match name.as_str() {
                "username" => &mut credential.username,
                "password" => &mut credential.password,
                _ => {
                    self.faults.push(Fault::Field(format!("unknown field '{path}.{name}'")));
                    continue;
                }
            };
            match value {
                Value::String(text) => *field = text,
                Value::Null => {}
                other => self.wrong_type(&format!("{path}.{name}"), "a text", &other),
            }
        }
        secrets::know(&credential.password);
        self.auth.insert(key, credential);
    }

    fn wrong_type(&mut self, path: &str, wanted: &str, found: &Value) {
        self.faults.push(Fault::Field(format!("'{path}' is {}, expected {wanted}", type_of(found))));
    }
}

fn shown(text: Option<&str>) -> String {
    text.map_or_else(|| "absent".to_owned(), |text| format!("'{text}'"))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// What the output is instead of a single response. None of it is shown, as it may contain a password.
fn not_one(stdout: &[u8], error: &serde_json::Error) -> String {
    if stdout.iter().all(u8::is_ascii_whitespace) {
        return "it wrote nothing to standard output".to_owned();
    }
    let (line, column) = (error.line(), error.column());
    let lines = stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    format!(
        "its standard output ({} bytes, {lines} lines) is not a single JSON object: error at {line}:{column}",
        stdout.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "credentialprovider.kubelet.k8s.io/v1";

    fn read(fields: &str) -> Answer {
        let text = format!("{{\"kind\": \"{RESPONSE}\", \"apiVersion\": \"{V1}\", {fields}}}");
        Answer::read(text.as_bytes(), V1)
    }

    fn faults(fields: &str) -> Vec<String> {
        read(fields).faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_right_answer_is_read_whole() {
        let answer = read(
            r#""cacheKeyType": "Registry", "cacheDuration": "1h30m", "auth": {"*.example.com": {"username": "u", "password": "a-password"}}"#,
        );
        assert_eq!(answer.faults, []);
        assert_eq!(
            (answer.cache_key_type, answer.cache_duration),
            (Some(CacheKeyType::Registry), Some(5400.0))
        );
        assert_eq!(answer.auth["*.example.com"].username, "u");
        assert!(!format!("{answer:?}").contains("a-password"));
        let none = read(r#""cacheKeyType": "Image", "cacheDuration": null, "auth": null"#);
        assert_eq!((none.faults.len(), none.auth.len(), none.cache_duration), (0, 0, None));
    }

    #[test]
    fn answers_that_a_kubelet_refuses_are_faults() {
        let image = r#""cacheKeyType": "Image""#;
        for (fields, fault) in [
            (
                r#""cacheKeyType": "registry""#.to_owned(),
                "cacheKeyType is 'registry', expected Image, Registry or Global",
            ),
            (r#""auth": {}"#.to_owned(), "cacheKeyType is absent, expected Image, Registry or Global"),
            (format!("{image}, \"expires\": 1"), "unknown field 'expires'"),
            (format!("{image}, {image}"), "the field 'cacheKeyType' is given twice"),
            (format!("{image}, \"auth\": {{\"a\": {{}}, \"a\": {{}}}}"), "the field 'auth.a' is given twice"),
            (format!("{image}, \"auth\": {{\"a\": {{\"token\": \"t\"}}}}"), "unknown field 'auth.a.token'"),
            (format!("{image}, \"auth\": []"), "'auth' is a list, expected a map"),
            (
                format!("{image}, \"cacheDuration\": 0"),
                "cacheDuration is a number, expected a string such as \"10m\"",
            ),
            (format!("{image}, \"cacheDuration\": \"1d\""), "'1d' is not a Go duration: 'd' is not a unit"),
            (
                format!("{image}, \"cacheDuration\": \"-1s\""),
                "cacheDuration must not be negative (got \"-1s\")",
            ),
        ] {
            assert_eq!(faults(&fields), [fault], "{fields}");
        }
    }

    #[test]
    fn invalid_answers_are_not_shown() {
        let text = |stdout: &str| Answer::read(stdout.as_bytes(), V1).faults[0].to_string();
        assert_eq!(text(" \n"), "it wrote nothing to standard output");
        assert_eq!(text("[]"), "it is not an object but a list");
        assert_eq!(
            text("fetching hunter2\n{}"),
            "its standard output (19 bytes, 2 lines) is not a single JSON object: error at 1:2"
        );
        assert_eq!(
            text("{} {}"),
            "its standard output (5 bytes, 1 lines) is not a single JSON object: error at 1:4"
        );
        assert_eq!(text("{}"), "its kind is absent, expected CredentialProviderResponse");
    }
}
