//! Dialects: vendors' APIs over the one model.
//!
//! A dialect says how a token is presented, what a call means to the model, how the model's answer looks and how an
//! error looks. Faults, barriers, journal and paging are the server's and work alike in each. To add one: a folder
//! with `mod.rs`, `routes.rs`, `wire.rs` and `errors.rs`, and a line in [`ALL`].

pub mod native;

use crate::admin::Op;
use crate::model::{Millis, Model};
use http::{HeaderMap, Method};

/// Every dialect.
pub const ALL: &[&dyn Dialect] = &[&native::Native];

/// The dialect of that name.
pub fn find(name: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name() == name)
}

/// A request, parsed as far as every dialect needs it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Path without query.
    pub path: String,
    /// Query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// The first value of a query parameter, where not empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What a call means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The model's operation.
    pub op: Op,
    /// How the journal names the object: an id, or `key=value`.
    pub resource: Option<String>,
    /// Every id, name or owner the call itself names.
    pub keys: Vec<String>,
    /// The load balancer's owner, where the call names it.
    pub owner: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// JSON; `None` for an empty body.
    pub body: Option<Vec<u8>>,
}

/// A vendor's API.
pub trait Dialect: Send + Sync {
    /// Its name, as profiles spell it.
    fn name(&self) -> &'static str;

    /// The token a request presents.
    fn token<'a>(&self, request: &'a Request) -> Option<&'a str>;

    /// What a request means to the model; asked before it takes effect, and also of nonsense.
    fn meaning(&self, request: &Request) -> Meaning;

    /// Lets the request take effect.
    fn answer(&self, request: &Request, meaning: &Meaning, model: &mut Model, now: Millis) -> Answer;

    /// An error in the dialect's own form.
    fn error(&self, status: u16, message: &str) -> Answer;
}
