//! Queries and pages of the `openstack` dialect: a page has a link to the next one.

use fake_cloud_kit::{self as kit, Answer, Request};
use hyper::header::HOST;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A query, and the base of links to other pages: everything before the query.
pub(super) type Query = kit::Query<String>;

/// The query of a list that can be filtered by these keys.
pub(super) fn list(request: &Request, filters: &[&str]) -> Query {
    let target = format!("{}{}", host(request), request.uri.path());
    Query::sized("limit", request, filters, None, target)
}

/// The query of a call that accepts none.
pub(super) fn none(request: &Request) -> Query {
    Query::none(request, String::new())
}

/// Scheme and host of the request; empty without a host.
pub(super) fn host(request: &Request) -> String {
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok());
    host.map(|host| format!("http://{host}")).unwrap_or_default()
}

/// One page of `items` under the name `key`; `limit` is the cloud's page size.
pub(super) fn page<T: Serialize>(
    query: &Query,
    key: &str,
    limit: u32,
    items: impl Iterator<Item = T>,
) -> Answer {
    let size = query.per_page.unwrap_or(u64::MAX).min(u64::from(limit));
    let (items, more) = query.cut(size, items);
    let mut besides = Map::new();
    if more {
        let link = json!([{"rel": "next", "href": link(query)}]);
        besides.insert(format!("{key}_links"), link);
    }
    Answer::page(key, &items, &Value::Object(besides))
}

fn link(query: &Query) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.append_pair("page", &(query.page + 1).to_string());
    if let Some(limit) = query.per_page {
        text.append_pair("limit", &limit.to_string());
    }
    text.extend_pairs(query.filters());
    format!("{}?{}", query.besides, text.finish())
}
