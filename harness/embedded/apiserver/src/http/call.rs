//! One request, understood and allowed, on its way to a verb.

use std::sync::Arc;

use bytes::Bytes;
use embedded_semantics::kinds::Kind;
use embedded_semantics::status::{self, Status};
use http::header::HeaderName;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::accept::Form;
use super::body::{self, Parsed};
use super::query::Query;
use super::reply;
use super::target::Target;
use crate::api::{Api, Clock};
use crate::auth::attributes::Attributes;
use crate::auth::user::User;

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The server's state.
    pub api: Arc<Api>,
    /// Who asks.
    pub user: User,
    /// The HTTP method.
    pub method: Method,
    /// The headers.
    pub headers: HeaderMap,
    /// What is asked.
    pub target: Target,
    /// The parameters.
    pub query: Query,
    /// The form of the answer, `None` if the client takes none that there is.
    pub form: Option<Form>,
    /// The body, whole.
    pub body: Bytes,
    /// When it came.
    pub clock: Clock,
}

/// A header's text, empty where it is absent or no text.
#[must_use]
pub fn text_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

impl Call {
    /// What was asked, as authorization sees it.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.target.attributes
    }

    /// The namespace, empty for none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.target.attributes.namespace
    }

    /// The name in the path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.target.attributes.name
    }

    /// The form of the answer.
    ///
    /// # Errors
    ///
    /// 406 if the client takes none that there is.
    pub fn form(&self) -> Result<Form, Status> {
        let form = self.form.ok_or_else(reply::not_acceptable)?;
        let pretty = match self.query.get("pretty") {
            Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
            None => {
                let agent = text_header(&self.headers, &header::USER_AGENT);
                ["curl", "Wget", "Mozilla/5.0"].iter().any(|human| agent.starts_with(human))
            }
        };
        Ok(Form { pretty, ..form })
    }

    /// Whether nothing shall be kept.
    ///
    /// # Errors
    ///
    /// 422 for a value other than `All`.
    pub fn dry_run(&self, options: &str) -> Result<bool, Status> {
        let mut values = self.query.all("dryRun").peekable();
        if values.peek().is_none() {
            return Ok(false);
        }
        let values: Vec<String> = values.map(str::to_owned).collect();
        check_dry_run(&values, options)
    }

    /// The manager whose fields a write is about: `fieldManager`, else what the client calls itself before the `/`.
    #[must_use]
    pub fn manager(&self) -> String {
        match self.query.text("fieldManager") {
            Some(manager) => manager.to_owned(),
            None => {
                let agent = text_header(&self.headers, &header::USER_AGENT);
                let name = agent.split('/').next().unwrap_or_default();
                let shown: String = name.chars().filter(|c| !c.is_control()).take(128).collect();
                if shown.is_empty() { "unknown".to_owned() } else { shown }
            }
        }
    }

    /// The body as an object that is to be of `kind`.
    ///
    /// # Errors
    ///
    /// 415 or 400.
    pub fn object(&self, kind: &str) -> Result<Parsed, Status> {
        body::parse(&self.body, text_header(&self.headers, &header::CONTENT_TYPE), kind)
    }
}

/// Reads the values of `dryRun`.
///
/// # Errors
///
/// 422 about `options` for a value other than `All`.
pub fn check_dry_run(values: &[String], options: &str) -> Result<bool, Status> {
    use embedded_semantics::cause::Cause;
    if values.is_empty() {
        return Ok(false);
    }
    if values.iter().all(|value| value == "All") {
        return Ok(true);
    }
    let shown = Value::from(values.to_vec());
    let cause = Cause::not_supported("dryRun", shown, &["All"]);
    Err(status::invalid_of("meta.k8s.io", options, "", &[cause]))
}

/// Whether the body says it is what belongs there.
///
/// # Errors
///
/// 400 in the API server's words.
pub fn check_kind(value: &Value, api_version: &str, kind: &str, of: &Kind) -> Result<(), Status> {
    let (said_version, said_kind) = (value["apiVersion"].as_str().unwrap_or_default(), value["kind"].as_str().unwrap_or_default());
    let internal = |kind: &str| format!("{}.{kind}", if of.group.is_empty() { "core" } else { group_word(of.group) });
    if (!said_kind.is_empty() && said_kind != kind) || (!said_version.is_empty() && said_version != api_version) {
        let version = said_version.rsplit('/').next().unwrap_or_default();
        if !said_kind.is_empty() && !said_version.is_empty() && embedded_semantics::kinds::by_kind(said_version, said_kind).is_none() {
            let (group_version, shown) = (said_version, said_kind);
            return Err(status::bad_request(format!(
                "{shown} in version {version:?} cannot be handled as a {kind}: no kind {shown:?} is registered for version {group_version:?} in scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\""
            )));
        }
        if !said_kind.is_empty() && said_kind == kind && said_version != api_version {
            return Err(status::bad_request(format!(
                "the API version in the data ({said_version}) does not match the expected API version ({api_version})"
            )));
        }
        let from = format!("{}.{said_kind}", version);
        return Err(status::bad_request(format!(
            "{said_kind} in version {version:?} cannot be handled as a {kind}: converting ({from}) to ({}): unknown conversion",
            internal(kind)
        )));
    }
    Ok(())
}

/// The first word of a group's name, which is the name of its Go package.
fn group_word(group: &str) -> &str {
    group.split('.').next().unwrap_or(group)
}
