//! Queries and pages of the `digitalocean` dialect: a page has links to the others.

use fake_cloud_kit::{self as kit, Answer, Request};
use hyper::header::HOST;
use serde::Serialize;
use std::collections::BTreeMap;

/// The default number of items in a page.
const DEFAULT_SIZE: u64 = 20;
/// The largest number of items in a page.
const LARGEST_SIZE: u64 = 200;

/// A query, and the base of links to other pages: everything before the query.
pub(super) type Query = kit::Query<String>;

/// The query of a list that can be filtered by these keys; an empty filter is ignored.
pub(super) fn list(request: &Request, filters: &[&str]) -> Query {
    Query::list(request, filters, None, target(request)).without_empty()
}

/// The query of a call that accepts none.
pub(super) fn none(request: &Request) -> Query {
    Query::none(request, String::new())
}

/// One page of `items` under the name `key`; `limit` is the cloud's page size.
pub(super) fn page<T: Serialize>(
    query: &Query,
    key: &str,
    limit: u32,
    items: impl ExactSizeIterator<Item = T>,
) -> Answer {
    let size = query.per_page.unwrap_or(DEFAULT_SIZE).min(LARGEST_SIZE).min(u64::from(limit));
    let total = items.len() as u64;
    let (items, _) = query.cut(size, items);
    Answer::page(key, &items, &Besides { links: links(query, size, total), meta: Meta { total } })
}

#[derive(Serialize)]
struct Besides {
    links: Links,
    meta: Meta,
}

#[derive(Serialize)]
struct Meta {
    total: u64,
}

/// The links to other pages; an empty object if there are none.
#[derive(Serialize)]
struct Links {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pages: BTreeMap<&'static str, String>,
}

fn links(query: &Query, size: u64, total: u64) -> Links {
    let last = query.last_page(size, total);
    let mut pages = BTreeMap::new();
    if query.page > 1 {
        pages.insert("first", link(query, 1));
        // After the end, the previous page is the last page.
        pages.insert("prev", link(query, (query.page - 1).min(last)));
    }
    if query.page < last {
        pages.insert("next", link(query, query.page + 1));
        pages.insert("last", link(query, last));
    }
    Links { pages }
}

fn link(query: &Query, page: u64) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.append_pair("page", &page.to_string());
    if let Some(per_page) = query.per_page {
        text.append_pair("per_page", &per_page.to_string());
    }
    text.extend_pairs(query.filters());
    format!("{}?{}", query.besides, text.finish())
}

/// Scheme, host and path of the request; without a host, only the path.
fn target(request: &Request) -> String {
    let path = request.uri.path();
    match request.headers.get(HOST).and_then(|host| host.to_str().ok()) {
        Some(host) => format!("http://{host}{path}"),
        None => path.to_owned(),
    }
}
