//! Calls as dialects see them: HTTP without connections.

use super::error::Error;
use crate::driver::Op;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, USER_AGENT};
use hyper::{Method, Uri};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

/// A call as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// HTTP method.
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) uri: Uri,
    /// Headers. They hold tokens: show them to nobody.
    pub(crate) headers: HeaderMap,
    /// The body; empty when it was too long.
    pub(crate) body: Bytes,
}

impl Request {
    /// Token of the header `Authorization: Bearer TOKEN`.
    pub(crate) fn bearer(&self) -> Option<&str> {
        let value = self.headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// Who the caller's program says that it is.
    pub(crate) fn user_agent(&self) -> Option<&str> {
        self.headers.get(USER_AGENT)?.to_str().ok()
    }

    /// Decoded parts of the path between slashes.
    pub(crate) fn segments(&self) -> Vec<String> {
        let path = self.uri.path();
        let parts = path.strip_prefix('/').unwrap_or(path).split('/');
        parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect()
    }

    /// Decoded pairs of the query, in order.
    pub(crate) fn query(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes());
        pairs.map(|(key, value)| (key.into_owned(), value.into_owned()))
    }

    /// What the body says.
    ///
    /// # Errors
    /// When it is no JSON or not of that form.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// `METHOD /path?query` as received.
    pub(crate) fn line(&self) -> String {
        let target = self.uri.path_and_query().map_or("", |target| target.as_str());
        format!("{} {target}", self.method)
    }
}

/// What a call means, before it takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The model's word for it.
    pub(crate) op: Op,
    /// All names by which the request itself names the object: id, name, provider id, owner. None is empty.
    pub(crate) named: Vec<String>,
    /// What the journal shows: an id, or `key=value`.
    pub(crate) resource: Option<String>,
    /// The load balancer's owner, if the request itself names it.
    pub(crate) owner: Option<String>,
    /// Which page of a list it asks for, from 1.
    pub(crate) page: u64,
}

impl Call {
    /// A call about nothing in particular.
    pub(crate) fn new(op: Op) -> Call {
        Call { op, named: Vec::new(), resource: None, owner: None, page: 1 }
    }

    /// A call about the object with that id.
    pub(crate) fn on(op: Op, id: &str) -> Call {
        Call { resource: Some(id.to_owned()), ..Call::new(op).naming(id) }
    }

    /// The same, if the request names the object by this as well.
    pub(crate) fn naming(mut self, name: &str) -> Call {
        if !name.is_empty() {
            self.named.push(name.to_owned());
        }
        self
    }

    /// The same, if it looks the object up by this, or is about to create it with this.
    pub(crate) fn keyed(mut self, key: &str, value: &str) -> Call {
        let shown = format!("{key}={value}");
        self.resource = Some(self.resource.map_or(shown.clone(), |earlier| format!("{earlier}&{shown}")));
        self.naming(value)
    }

    /// The same, if it names this owner.
    pub(crate) fn owned_by(mut self, owner: &str) -> Call {
        if !owner.is_empty() {
            self.owner = Some(owner.to_owned());
        }
        self.naming(owner)
    }
}
