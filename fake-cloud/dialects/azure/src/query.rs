//! Queries, pages and preconditions of Resource Manager.

use super::errors::{Arm, changed_since};
use super::names::is_host;
use fake_cloud_kit::{self as kit, Answer, Body, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use hyper::header::{HOST, HeaderMap, IF_MATCH};
use serde_json::{Value, json};
use std::time::Duration;

/// A query; its other part is the base of links to other pages.
pub(super) type Query = kit::Query<String>;

/// The parameters that every call accepts, and those of some.
const PARAMETERS: &[&str] = &["api-version", "$expand", "$filter", "statusOnly"];

/// The query of a call.
pub(super) fn query(request: &Request) -> Query {
    let target = format!("{}{}", base(request), request.uri.path());
    Query::sized("$top", request, PARAMETERS, None, target)
}

/// The plan of a call with a body.
pub(super) fn with_body<F>(request: &Request, call: Call, run: F) -> Plan
where
    F: FnOnce(Value, &mut Cloud, Duration) -> Result<Answer, Error> + Send + 'static,
{
    let Body { value, .. } = Body::<Value>::of(request);
    planned(&Arm, call, query(request), move |_, _, cloud, now| run(value?, cloud, now))
}

/// Scheme and host of the request. A client that calls a host of the vendor does so with TLS, any other without.
pub(super) fn base(request: &Request) -> String {
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    let scheme = if is_host(name) { "https" } else { "http" };
    format!("{scheme}://{host}")
}

/// One page of a list; `limit` is the cloud's page size. `nextLink` leads to the page after it.
pub(super) fn page(query: &Query, limit: u32, items: impl Iterator<Item = Value>) -> Answer {
    let size = query.per_page.unwrap_or(u64::MAX).min(u64::from(limit));
    let (items, more) = query.cut(size, items);
    let mut body = json!({ "value": items });
    if more {
        body["nextLink"] = json!(next_link(query));
    }
    Answer::json(200, &body)
}

fn next_link(query: &Query) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(query.filters());
    if let Some(size) = query.per_page {
        text.append_pair("$top", &size.to_string());
    }
    text.append_pair("page", &(query.page + 1).to_string());
    format!("{}?{}", query.besides, text.finish())
}

/// A resource with its etag, which changes whenever something in it changes.
pub(super) fn tagged(mut resource: Value) -> Value {
    // FNV-1a, 64 bits: the same in every version, so that recorded exchanges stay valid.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = resource.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, step);
    resource["etag"] = json!(format!("W/\"{hash:016x}\""));
    resource
}

/// The precondition in the headers of a request.
#[derive(Clone, Debug)]
pub(super) struct Precondition(Option<String>);

impl Precondition {
    pub(super) fn of(headers: &HeaderMap) -> Precondition {
        Precondition(headers.get(IF_MATCH).and_then(|value| value.to_str().ok()).map(str::to_owned))
    }

    /// Whether the resource is as the caller has read it; `None` if it does not exist.
    pub(super) fn check(&self, resource: Option<&Value>, id: &str) -> Result<(), Error> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        let current = resource.and_then(|resource| resource["etag"].as_str());
        let fits = match wanted.as_str() {
            "*" => current.is_some(),
            wanted => wanted.split(',').any(|tag| Some(tag.trim()) == current),
        };
        if fits { Ok(()) } else { Err(changed_since(id)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precondition_is_about_the_state_that_was_read() {
        let one = tagged(json!({"name": "a"}));
        let other = tagged(json!({"name": "b"}));
        let tag = one["etag"].as_str().expect("a tag").to_owned();
        let wanted = Precondition(Some(tag));
        assert!(wanted.check(Some(&one), "id").is_ok());
        assert_eq!(wanted.check(Some(&other), "id").map_err(|error| error.status()), Err(412));
        assert_eq!(wanted.check(None, "id").map_err(|error| error.status()), Err(412));
        assert!(Precondition(None).check(Some(&other), "id").is_ok());
        assert!(Precondition(Some("*".to_owned())).check(None, "id").is_err());
    }
}
