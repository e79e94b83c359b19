//! Queries and pages of the `linode` dialect: a page contains the number of pages.

use super::errors;
use super::filter::{Filter, Wrong};
use fake_cloud_driver::Op;
use fake_cloud_kit::{self as kit, Answer, Call, Request};
use serde::Serialize;

/// The default number of items in a page.
const USUAL_SIZE: u64 = 100;
/// The largest number of items in a page.
const GREATEST_SIZE: u64 = 500;

/// A query with its filter.
pub(super) type Query = kit::Query<Filter>;

/// The query of a list.
pub(super) fn list(request: &Request) -> Query {
    let (filter, wrong) = match Filter::of(request) {
        Ok(filter) => (filter, None),
        Err(wrong) => (Filter::default(), Some(wrong)),
    };
    let mut query = Query::sized("page_size", request, &[], Some(GREATEST_SIZE), filter);
    match wrong {
        None => {}
        Some(Wrong::NoObject) => query.refuse(errors::field("X-Filter", "Cannot decode the filter as JSON")),
        Some(Wrong::Unknown(what)) => query.does_not_know(format!("X-Filter {what}")),
    }
    query
}

/// The query of a call that accepts none.
pub(super) fn none(request: &Request) -> Query {
    Query::none(request, Filter::default())
}

/// The call of a list in the model: a list whose filter names a single object by one of these fields is a look-up.
pub(super) fn call(query: &Query, (list, look_up): (Op, Op), names: &[&str]) -> Call {
    let named = names.iter().find_map(|field| Some((*field, query.besides.equal(field)?)));
    named.map_or_else(|| Call::new(list), |(field, value)| Call::new(look_up).keyed(field, value))
}

/// One page of `items`; `limit` is the cloud's page size.
pub(super) fn page<T: Serialize>(
    query: &Query,
    limit: u32,
    items: impl ExactSizeIterator<Item = T>,
) -> Answer {
    let size = query.per_page.unwrap_or(USUAL_SIZE).min(u64::from(limit));
    let results = items.len() as u64;
    let (items, _) = query.cut(size, items);
    Answer::page(
        "data",
        &items,
        &Besides { page: query.page, pages: query.last_page(size, results), results },
    )
}

#[derive(Serialize)]
struct Besides {
    page: u64,
    pages: u64,
    results: u64,
}
