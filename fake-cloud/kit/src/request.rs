//! Calls as dialects get them: HTTP without connections.

use super::error::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fake_cloud_driver::{Address, Instance, Op};
use fake_cloud_model::Cloud;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Uri};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use std::fmt;
use std::net::IpAddr;

/// A call as it was received.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The headers. They contain tokens: do not show them.
    pub headers: HeaderMap,
    /// The body; empty if it was too large.
    pub body: Bytes,
}

impl Request {
    /// The token in the header `Authorization: Bearer TOKEN`.
    pub fn bearer(&self) -> Option<&str> {
        let value = self.headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// The header `User-Agent`.
    pub fn user_agent(&self) -> Option<&str> {
        self.headers.get(USER_AGENT)?.to_str().ok()
    }

    /// The decoded parts of the path between slashes.
    pub fn segments(&self) -> Vec<String> {
        let path = self.uri.path();
        let parts = path.strip_prefix('/').unwrap_or(path).split('/');
        parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect()
    }

    /// The decoded pairs of the query, in order.
    pub fn query(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes());
        pairs.map(|(key, value)| (key.into_owned(), value.into_owned()))
    }

    /// Parses the body.
    ///
    /// # Errors
    /// When it is not JSON or has another form.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// `METHOD /path?query` as received.
    pub fn line(&self) -> String {
        let target = self.uri.path_and_query().map_or("", |target| target.as_str());
        format!("{} {target}", self.method)
    }
}

/// The caller of a metadata service, which accepts every machine of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The machine's name, if the caller gives it: the user of its `Proxy-Authorization` or `Authorization`.
    name: Option<String>,
    /// The address of the caller.
    address: IpAddr,
}

impl Asker {
    /// The caller that sent a request from this address.
    pub fn of(request: &Request, address: IpAddr) -> Asker {
        let name = [PROXY_AUTHORIZATION, AUTHORIZATION].iter().find_map(|header| {
            let value = request.headers.get(header)?.to_str().ok()?;
            let (scheme, coded) = value.split_once(' ')?;
            let pair = scheme.eq_ignore_ascii_case("basic").then(|| BASE64.decode(coded.trim()).ok())??;
            let pair = String::from_utf8(pair).ok()?;
            let user = pair.split_once(':').map_or(pair.as_str(), |(user, _)| user);
            Some(percent_decode_str(user).decode_utf8_lossy().into_owned()).filter(|user| !user.is_empty())
        });
        Asker { name, address }
    }

    /// The machine that calls: the one with the given name, or, without a name, the one with the address.
    pub fn machine<'a>(&self, cloud: &'a Cloud) -> Option<&'a Instance> {
        match &self.name {
            Some(name) => cloud.instances_named(name).next(),
            None => cloud.instances().find(|instance| {
                let own = |address: &Address| address.address.parse() == Ok(self.address);
                instance.addresses.iter().any(own)
            }),
        }
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "'{name}' at {}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// The meaning of a call, before it takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation in the model.
    pub op: Op,
    /// All names in the request for the object: id, name, provider id, owner. None is empty.
    pub named: Vec<String>,
    /// The object as the journal shows it: an id, or `key=value`.
    pub resource: Option<String>,
    /// The load balancer's owner, if the request itself names it.
    pub owner: Option<String>,
    /// The requested page of a list, from 1.
    pub page: u64,
}

impl Call {
    /// A call about no particular object.
    pub fn new(op: Op) -> Call {
        Call { op, named: Vec::new(), resource: None, owner: None, page: 1 }
    }

    /// A call about the object with this id.
    pub fn on(op: Op, id: &str) -> Call {
        Call { resource: Some(id.to_owned()), ..Call::new(op).naming(id) }
    }

    /// The same, if the request also contains this name of the object.
    pub fn naming(mut self, name: &str) -> Call {
        if !name.is_empty() {
            self.named.push(name.to_owned());
        }
        self
    }

    /// The same, if it looks the object up by this key, or is about to create it with this value.
    pub fn keyed(mut self, key: &str, value: &str) -> Call {
        let shown = format!("{key}={value}");
        self.resource = Some(self.resource.map_or(shown.clone(), |earlier| format!("{earlier}&{shown}")));
        self.naming(value)
    }

    /// The same, if it names this owner.
    pub fn owned_by(mut self, owner: &str) -> Call {
        if !owner.is_empty() {
            self.owner = Some(owner.to_owned());
        }
        self.naming(owner)
    }
}
