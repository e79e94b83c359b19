//! Queries and pages of lists.

use super::errors::{Google, invalid};
use super::filter::Filter;
use super::names::{Scope, collection_link, short};
use fake_cloud_kit::{self as kit, Answer, Call, Error, Plan, Request, planned};
use fake_cloud_model::Cloud;
use hyper::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// The largest page.
const MOST: u64 = 500;
/// The parameters of lists, and those that every call accepts.
const PARAMETERS: &[&str] =
    &["filter", "pageToken", "orderBy", "returnPartialSuccess", "alt", "prettyPrint", "requestId", "fields"];

/// A query.
pub(super) type Query = kit::Query<Filter>;

/// The query of a call.
pub(super) fn query(request: &Request) -> Query {
    let mut query = kit::Query::sized("maxResults", request, PARAMETERS, Some(MOST), Filter::default());
    if let Some(order) = query.take("orderBy").pop() {
        query.does_not_know(format!("orderBy={order}"));
    }
    if let Some(text) = query.take("filter").pop() {
        match Filter::parse(&text) {
            Ok(filter) => query.besides = filter,
            Err(unknown) => query.does_not_know(unknown),
        }
    }
    if let Some(token) = query.take("pageToken").pop().filter(|token| !token.is_empty()) {
        match token.strip_prefix("page-").and_then(|number| number.parse().ok()).filter(|number| *number > 1)
        {
            Some(number) => query.page = number,
            None => query.refuse(invalid("pageToken", &token, "Invalid page token.")),
        }
    }
    query
}

/// The plan of a call that reads one resource.
pub(super) fn reading<F>(request: &Request, call: Call, run: F) -> Plan
where
    F: FnOnce(&mut Cloud, Duration) -> Result<Value, Error> + Send + 'static,
{
    planned(&Google, call, query(request), move |_, _, cloud, now| Ok(Answer::json(200, &run(cloud, now)?)))
}

/// A collection: the kind of its items, where it is, and its name.
pub(super) type Place = (&'static str, Scope, &'static str);

/// The plan of a call that lists a collection.
pub(super) fn listing<F>(request: &Request, call: Call, (kind, scope, collection): Place, run: F) -> Plan
where
    F: FnOnce(&mut Cloud, Duration) -> Vec<Value> + Send + 'static,
{
    planned(&Google, call, query(request), move |_, query, cloud, now| {
        let found = run(cloud, now);
        let page = page(query, cloud.page_size(), found.into_iter().filter(|item| query.besides.fits(item)));
        let header = json!({
            "kind": format!("{kind}List"),
            "id": short(&scope, collection, "").trim_end_matches('/'),
            "selfLink": collection_link(&scope, collection),
        });
        Ok(Answer::json(200, &merged(header, page)))
    })
}

/// One page of a list; `limit` is the cloud's page size. Without items it has no list.
pub(super) fn page(query: &Query, limit: u32, items: impl Iterator<Item = Value>) -> Value {
    let size = query.per_page.unwrap_or(MOST).min(u64::from(limit));
    let (items, more) = query.cut(size, items);
    let mut page = json!({});
    if !items.is_empty() {
        page["items"] = json!(items);
    }
    if more {
        page["nextPageToken"] = json!(format!("page-{}", query.page + 1));
    }
    page
}

/// An object with the fields of another.
pub(super) fn merged(mut object: Value, other: Value) -> Value {
    if let (Some(fields), Value::Object(others)) = (object.as_object_mut(), other) {
        fields.extend(others);
    }
    object
}

/// The plan of a call with a JSON body.
pub(super) fn writing<F>(request: &Request, call: Call, run: F) -> Plan
where
    F: FnOnce(Value, &mut Cloud, Duration) -> Result<Answer, Error> + Send + 'static,
{
    let body = match request.method {
        Method::DELETE => Ok(Value::Null),
        _ if request.body.is_empty() => Ok(Value::Null),
        _ => request.body::<Value>(),
    };
    planned(&Google, call, query(request), move |_, _, cloud, now| run(body?, cloud, now))
}
