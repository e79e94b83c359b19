//! One request, parsed and authorized, on its way to a verb.

use std::sync::Arc;

use bytes::Bytes;
use embedded_objects::cause::Cause;
use embedded_objects::fields::{Body as Parsed, Mode};
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use http::header::HeaderName;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::accept::{self, Encoding, Form};
use super::body;
use super::reply;
use super::target::Target;
use embedded_state::auth::attributes::Attributes;
use embedded_state::auth::user::User;
use embedded_state::query::Query;
use embedded_state::{Api, Clock, Share};

/// The longest name of a field manager, in bytes.
const MANAGER: usize = 128;

/// A request.
#[derive(Debug)]
pub(crate) struct Call {
    /// The server's state.
    pub api: Arc<Api>,
    /// The user who sent the request.
    pub user: User,
    /// The HTTP method.
    pub method: Method,
    /// The headers.
    pub headers: HeaderMap,
    /// The target of the request.
    pub target: Target,
    /// The parameters.
    pub query: Query,
    /// The form of the answer, `None` if the client accepts none that the server has.
    pub form: Option<Form>,
    /// The whole body.
    pub body: Bytes,
    /// When the request came.
    pub clock: Clock,
    /// The user's share, to which the memory of a streamed answer is counted; `None` if there is no limit.
    pub share: Option<Share>,
}

/// A header's text; empty if it is missing or not valid text.
#[must_use]
pub(crate) fn text_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

impl Call {
    /// The attributes of the request for authorization.
    #[must_use]
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.target.attributes
    }

    /// The namespace, empty for none.
    #[must_use]
    pub(crate) fn namespace(&self) -> &str {
        &self.target.attributes.namespace
    }

    /// The name in the path.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.target.attributes.name
    }

    /// The form of the answer.
    ///
    /// # Errors
    ///
    /// 406 if the client accepts none that the server has.
    pub(crate) fn form(&self) -> Result<Form, Status> {
        self.form.ok_or_else(|| self.not_acceptable())
    }

    /// The answer for a client that accepts nothing that the server has. If no media type is one of those of
    /// the path, the router answers; if only the form is unknown, the handler does. Custom resources have no
    /// router.
    fn not_acceptable(&self) -> Status {
        let attributes = self.attributes();
        let kind = self.api.kind(&attributes.group, &self.target.version, &attributes.resource);
        let accepted = text_header(&self.headers, &header::ACCEPT);
        if kind.is_some_and(|kind| kind.custom.is_some()) || accept::knows_a_media_type(accepted) {
            return reply::not_acceptable();
        }
        let streams = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
        let listed = matches!(attributes.verb.as_str(), "list" | "watch");
        let media = Encoding::ALL.map(Encoding::media_type).into_iter();
        let available: Vec<&str> = media.chain(streams.into_iter().filter(|_| listed)).collect();
        status::not_acceptable_here(&available)
    }

    /// Whether this is a dry run; `options` is the kind of this verb's parameters.
    ///
    /// # Errors
    ///
    /// 422 for a value other than `All`, or for a `fieldManager` that is too long or not printable.
    pub(crate) fn dry_run(&self, options: &str) -> Result<bool, Status> {
        let causes = manager_causes(self.query.text("fieldManager").unwrap_or_default());
        if !causes.is_empty() {
            return Err(status::invalid_of("meta.k8s.io", options, "", &causes));
        }
        let mut values = self.query.all("dryRun").peekable();
        if values.peek().is_none() {
            return Ok(false);
        }
        let values: Vec<String> = values.map(str::to_owned).collect();
        check_dry_run(&values, options)
    }

    /// The field manager of a write: `fieldManager`, otherwise the user agent up to the `/`.
    #[must_use]
    pub(crate) fn manager(&self) -> String {
        match self.query.text("fieldManager") {
            Some(manager) => manager.to_owned(),
            None => {
                let agent = text_header(&self.headers, &header::USER_AGENT);
                let name = agent.split('/').next().unwrap_or_default();
                let shown: String = name.chars().filter(|c| !c.is_control()).take(MANAGER).collect();
                if shown.is_empty() { "unknown".to_owned() } else { shown }
            }
        }
    }

    /// The body as an object of `kind`; `options` is the kind of this verb's parameters.
    ///
    /// # Errors
    ///
    /// 415; 400 if it cannot be read or is something else; or 422 for invalid parameters.
    pub(crate) fn object(&self, kind: &Kind, options: &str) -> Result<Parsed, Status> {
        let mode = self.field_validation(options)?;
        body::of_kind(&self.body, self.content_type(), kind, mode)
    }

    /// The body as an object of a group, version and kind that is not served itself.
    ///
    /// # Errors
    ///
    /// As for [`Call::object`].
    pub(crate) fn object_as(&self, kind: (&str, &str, &str), options: &str) -> Result<Parsed, Status> {
        body::parse(&self.body, self.content_type(), kind, self.field_validation(options)?)
    }

    /// What happens to unknown and duplicate fields.
    ///
    /// # Errors
    ///
    /// 422 for an unknown mode.
    pub(crate) fn field_validation(&self, options: &str) -> Result<Mode, Status> {
        let text = self.query.get("fieldValidation").unwrap_or_default();
        Mode::parse(text).ok_or_else(|| {
            let cause = Cause::not_supported("fieldValidation", text, &["", "Ignore", "Strict", "Warn"]);
            status::invalid_of("meta.k8s.io", options, "", &[cause])
        })
    }

    /// The content type of the body.
    #[must_use]
    pub(crate) fn content_type(&self) -> &str {
        text_header(&self.headers, &header::CONTENT_TYPE)
    }
}

/// The faults in the name of a field manager.
fn manager_causes(manager: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if manager.len() > MANAGER {
        causes.push(Cause::too_long("fieldManager", MANAGER));
    }
    let printable = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
    for (at, wrong) in manager.char_indices().filter(|(_, c)| !printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(wrong));
        causes.push(Cause::invalid("fieldManager", manager, why));
    }
    causes
}

/// Reads the values of `dryRun`.
///
/// # Errors
///
/// 422 about `options` for a value other than `All`.
pub(crate) fn check_dry_run(values: &[String], options: &str) -> Result<bool, Status> {
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
