//! Queries and pages of the `digitalocean` dialect.

use super::super::{Answer, Call, Request};
use super::errors::Trouble;
use crate::admin::Op;
use hyper::header::HOST;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// Items in a page for which nobody has said how long it is to be.
const DEFAULT_SIZE: u64 = 20;
/// Items in the longest page.
const LARGEST_SIZE: u64 = 200;

/// The query of a list.
#[derive(Debug)]
pub(super) struct Query {
    filters: Vec<(String, String)>,
    page: u64,
    per_page: Option<u64>,
    /// Where links to other pages lead: everything before the query.
    target: String,
    /// What makes no sense in it.
    pub(super) problem: Option<Trouble>,
    /// What this dialect does not know in it: the real API may, and a filter passed over in silence gives wrong answers.
    pub(super) unknown: Option<String>,
}

impl Query {
    /// The query of a list that can be filtered by these keys.
    pub(super) fn of_list(request: &Request, filters: &[&str]) -> Query {
        let mut query = Query::new(request);
        for (key, value) in request.query() {
            match key.as_str() {
                "page" => query.page = query.number(&key, &value),
                "per_page" => query.per_page = Some(query.number(&key, &value)),
                known if filters.contains(&known) => query.filters.push((key, value)),
                _ => query.does_not_know(&key),
            }
        }
        query
    }

    /// The query of a call that has none.
    pub(super) fn none(request: &Request) -> Query {
        let mut query = Query::new(request);
        request.query().for_each(|(key, _)| query.does_not_know(&key));
        query
    }

    fn new(request: &Request) -> Query {
        Query {
            filters: Vec::new(),
            page: 1,
            per_page: None,
            target: target(request),
            problem: None,
            unknown: None,
        }
    }

    fn does_not_know(&mut self, key: &str) {
        self.unknown.get_or_insert_with(|| format!("this dialect does not know the parameter {key:.40}"));
    }

    /// A number of at least 1.
    fn number(&mut self, key: &str, value: &str) -> u64 {
        let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
        match value.parse::<u64>() {
            Ok(number) if digits && number > 0 => number,
            _ => {
                self.problem
                    .get_or_insert_with(|| Trouble::invalid(format!("{key} must be a number from 1")));
                1
            }
        }
    }

    /// The value of a filter, if it is given and not empty.
    pub(super) fn filter(&self, key: &str) -> Option<&str> {
        let given = self.filters.iter().rev().find(|(known, _)| known == key);
        given.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// What a list with these filters is about.
    pub(super) fn call(&self, op: Op) -> Call {
        let given = self.filters.iter().filter(|(_, value)| !value.is_empty());
        given.fold(Call::new(op), |call, (key, value)| call.keyed(key, value))
    }

    /// One page of `items` under the name `key`; `limit` is the cloud's page size.
    pub(super) fn page<T: Serialize>(
        &self,
        key: &str,
        limit: u32,
        items: impl ExactSizeIterator<Item = T>,
    ) -> Answer {
        let size = self.per_page.unwrap_or(DEFAULT_SIZE).min(LARGEST_SIZE).min(u64::from(limit));
        let total = items.len() as u64;
        let skip = usize::try_from((self.page - 1).saturating_mul(size)).unwrap_or(usize::MAX);
        let shown: Vec<T> = items.skip(skip).take(usize::try_from(size).unwrap_or(usize::MAX)).collect();
        Answer::json(200, &Page { key, items: shown, links: self.links(size, total), total })
    }

    fn links(&self, size: u64, total: u64) -> Links {
        let last = total.div_ceil(size).max(1);
        let mut pages = BTreeMap::new();
        if self.page > 1 {
            pages.insert("first", self.link(1));
            // Beyond the end the page before this one is the last one there is.
            pages.insert("prev", self.link((self.page - 1).min(last)));
        }
        if self.page < last {
            pages.insert("next", self.link(self.page + 1));
            pages.insert("last", self.link(last));
        }
        Links { pages }
    }

    fn link(&self, page: u64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("page", &page.to_string());
        if let Some(per_page) = self.per_page {
            query.append_pair("per_page", &per_page.to_string());
        }
        query.extend_pairs(&self.filters);
        format!("{}?{}", self.target, query.finish())
    }
}

/// A page of a list.
struct Page<'a, T> {
    key: &'a str,
    items: Vec<T>,
    links: Links,
    total: u64,
}

impl<T: Serialize> Serialize for Page<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry(self.key, &self.items)?;
        map.serialize_entry("links", &self.links)?;
        map.serialize_entry("meta", &Meta { total: self.total })?;
        map.end()
    }
}

#[derive(Serialize)]
struct Meta {
    total: u64,
}

/// Where other pages are; an empty object when there are none.
#[derive(Serialize)]
struct Links {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pages: BTreeMap<&'static str, String>,
}

/// Scheme, host and path by which the caller has come; without a host the path alone.
fn target(request: &Request) -> String {
    let path = request.uri.path();
    match request.headers.get(HOST).and_then(|host| host.to_str().ok()) {
        Some(host) => format!("http://{host}{path}"),
        None => path.to_owned(),
    }
}
