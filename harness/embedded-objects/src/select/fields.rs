//! Field selectors: which fields each kind can be selected by, and the grammar.
//!
//! Source: `k8s.io/apimachinery/pkg/fields` and the selectable fields of each registry.

use serde_json::Value;

use crate::kinds::Kind;
use crate::value::PathAccess as _;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    equal: bool,
}

/// A field selector for one kind: all terms must be true. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    terms: Vec<Term>,
}

impl Fields {
    /// Parses a selector for a kind.
    ///
    /// # Errors
    /// The API server's message about an invalid term or an unsupported field.
    pub fn parse(kind: &Kind, text: &str) -> Result<Fields, String> {
        let mut terms = Vec::new();
        for part in split_terms(text).into_iter().filter(|part| !part.is_empty()) {
            let (field, value, equal) = split_term(&part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            let value = unescape(value)?;
            let field = known(kind, field)?;
            terms.push(Term { field, value, equal });
        }
        Ok(Fields { terms })
    }

    /// Whether the selector has no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether the selector matches an object of the kind.
    pub fn matches(&self, kind: &Kind, object: &Value) -> bool {
        self.terms.iter().all(|term| (value_of(kind, object, &term.field) == term.value) == term.equal)
    }

    /// The name in a `metadata.name=` term: the result is at most one object.
    pub fn exact_name(&self) -> Option<&str> {
        self.exact("metadata.name")
    }

    /// The value in an equality term for a field.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for ch in text.chars() {
        if ch == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = ch == '\\' && !escaped;
        if let Some(last) = terms.last_mut() {
            last.push(ch);
        }
    }
    terms
}

fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    let at = term.find(['=', '!']).filter(|at| term[*at..].starts_with('=') || term[*at..].starts_with("!="));
    let at = match at {
        Some(at) => at,
        // A single exclamation mark belongs to the field's name: look for the first real operator.
        None => term.char_indices().map(|(at, _)| at).find(|at| {
            let rest = &term[*at..];
            rest.starts_with("!=") || rest.starts_with('=')
        })?,
    };
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        Some((field, value, false))
    } else if let Some(value) = rest.strip_prefix("==") {
        Some((field, value, true))
    } else {
        rest.strip_prefix('=').map(|value| (field, value, true))
    }
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => match chars.next() {
                Some(special @ ('\\' | ',' | '=')) => out.push(special),
                Some(other) => {
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", ch as u32));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// The fields of Pods that selectors can use.
const OF_PODS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
/// The fields of an Event's involved object that selectors can use.
const OF_REFERENCES: &[&str] =
    &["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

/// The canonical name of a field for comparisons.
fn known(kind: &Kind, field: &str) -> Result<String, String> {
    let plain = |names: &[&str]| names.contains(&field).then(|| field.to_owned());
    if let Some(custom) = &kind.custom {
        let by_all = plain(&["metadata.name", "metadata.namespace"]);
        let by_own = || custom.selectable.iter().find(|path| *path == field).cloned();
        return by_all.or_else(by_own).ok_or_else(|| format!("field label not supported: {field}"));
    }
    let found = match (kind.group, kind.kind) {
        ("", "Pod") if field == "spec.host" => Some("spec.nodeName".to_owned()),
        ("", "Pod") => plain(OF_PODS),
        ("", "Node") => plain(&["metadata.name", "spec.unschedulable"]),
        ("", "Event") => match field.strip_prefix("involvedObject.") {
            Some(rest) => OF_REFERENCES.contains(&rest).then(|| field.to_owned()),
            None => plain(&[
                "reason",
                "reportingComponent",
                "source",
                "type",
                "metadata.namespace",
                "metadata.name",
            ]),
        },
        ("events.k8s.io", "Event") => match (field, field.strip_prefix("regarding.")) {
            ("reportingController", _) => Some("reportingComponent".to_owned()),
            (_, Some(rest)) => OF_REFERENCES.contains(&rest).then(|| format!("involvedObject.{rest}")),
            (_, None) => plain(&["reason", "type", "metadata.namespace", "metadata.name"]),
        },
        ("", "Namespace") => plain(&["status.phase", "metadata.name"]),
        ("", "Secret") => plain(&["type", "metadata.namespace", "metadata.name"]),
        ("", "Service") => plain(&["metadata.namespace", "metadata.name", "spec.clusterIP", "spec.type"]),
        ("", "ReplicationController") => plain(&["metadata.name", "metadata.namespace", "status.replicas"]),
        ("batch", "Job") => {
            return plain(&["metadata.name", "metadata.namespace", "status.successful"])
                .ok_or_else(|| format!("field label {field:?} not supported for Job"));
        }
        ("resource.k8s.io", "ResourceSlice") => {
            return plain(&["metadata.name", "spec.nodeName", "spec.driver"]).ok_or_else(|| {
                let version = kind.version;
                format!(
                    "field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: {field}"
                )
            });
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => plain(&["metadata.name", "spec.signerName"]),
        _ => {
            return plain(&["metadata.name", "metadata.namespace"]).ok_or_else(|| {
                format!(
                    "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            });
        }
    };
    found.ok_or_else(|| format!("field label not supported: {field}"))
}

/// The value of an object's field for comparisons.
fn value_of(kind: &Kind, object: &Value, field: &str) -> String {
    if kind.custom.is_some() {
        return match object.at(field) {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
    }
    let regarding = if kind.group == "events.k8s.io" { "regarding" } else { "involvedObject" };
    match (kind.kind, field) {
        ("Node", "spec.unschedulable") | ("Pod", "spec.hostNetwork") => object.truth(field).to_string(),
        ("Job", "status.successful") => object.int("status.succeeded").to_string(),
        ("ReplicationController", "status.replicas") => object.int("status.replicas").to_string(),
        ("Pod", "status.podIP" | "status.podIPs") => {
            object.list("status.podIPs").first().map(|ip| ip.text("ip")).unwrap_or_default().to_owned()
        }
        ("Event", "reportingComponent") => {
            let core = object.text("reportingComponent");
            let other = object.text("reportingController");
            if core.is_empty() { other } else { core }.to_owned()
        }
        ("Event", "source") => {
            let old = if kind.group.is_empty() { "source" } else { "deprecatedSource" };
            match object.text(&format!("{old}.component")) {
                "" => value_of(kind, object, "reportingComponent"),
                component => component.to_owned(),
            }
        }
        ("Event", field) if field.starts_with("involvedObject.") => {
            object.text(&field.replacen("involvedObject", regarding, 1)).to_owned()
        }
        _ => object.text(field).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn kind(plural: &str) -> &'static Kind {
        kinds::find("", "v1", plural).expect("a kind of the core group")
    }

    #[test]
    fn selectors_match_by_the_fields_of_the_kind() {
        let node = json!({"metadata": {"name": "a"}, "spec": {}});
        let matches = |text: &str| {
            Fields::parse(kind("nodes"), text).expect("a right selector").matches(kind("nodes"), &node)
        };
        assert!(matches("spec.unschedulable=false"));
        assert!(matches("metadata.name==a,spec.unschedulable!=true"));
        assert!(!matches("metadata.name!=a"));
        assert!(matches(""));
    }

    #[test]
    fn unknown_fields_and_odd_terms_are_refused_in_the_servers_words() {
        let wrong =
            |plural: &str, text: &str| Fields::parse(kind(plural), text).expect_err("a wrong selector");
        assert_eq!(wrong("nodes", "spec.bogus=1"), "field label not supported: spec.bogus");
        assert_eq!(
            wrong("configmaps", "data=1"),
            "\"data\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
        assert_eq!(wrong("nodes", "x"), "invalid selector: 'x'; can't understand 'x'");
        assert!(wrong("nodes", "metadata.name=a\\b").contains("invalid escape sequence: \\b"));
    }

    #[test]
    fn workloads_and_slices_are_selected_as_their_controllers_ask() {
        let matches = |(group, plural): (&str, &str), text: &str, object: &Value| {
            let kind = kinds::find(group, "v1", plural).expect("the kind is served");
            Fields::parse(kind, text).map(|fields| fields.matches(kind, object))
        };
        let (jobs, slices) = (("batch", "jobs"), ("resource.k8s.io", "resourceslices"));
        assert_eq!(matches(jobs, "status.successful=0", &json!({"status": {}})), Ok(true));
        assert_eq!(matches(jobs, "status.successful=1", &json!({"status": {"succeeded": 1}})), Ok(true));
        assert_eq!(matches(("", "replicationcontrollers"), "status.replicas=0", &json!({})), Ok(true));
        let slice = json!({"spec": {"driver": "gpu.example.com", "nodeName": "n"}});
        assert_eq!(matches(slices, "spec.driver=gpu.example.com,spec.nodeName=n", &slice), Ok(true));
        assert_eq!(matches(slices, "spec.nodeName=other", &slice), Ok(false));
        assert_eq!(
            matches(jobs, "status.active=1", &slice),
            Err("field label \"status.active\" not supported for Job".to_owned())
        );
        assert_eq!(
            matches(slices, "spec.pool=1", &slice),
            Err("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool".to_owned())
        );
    }

    #[test]
    fn both_events_are_selected_by_the_object_they_are_about() {
        let events = kinds::find("events.k8s.io", "v1", "events").expect("events are served");
        let fields = Fields::parse(events, "regarding.name=x").expect("a right selector");
        assert!(fields.matches(events, &json!({"regarding": {"name": "x"}})));
        let core = Fields::parse(kind("events"), "involvedObject.name=x").expect("a right selector");
        assert!(core.matches(kind("events"), &json!({"involvedObject": {"name": "x"}})));
    }
}
