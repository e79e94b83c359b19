//! The queries of calls.

use fake_cloud_kit::{Error, Query, Request};

/// The query of a list that can be filtered by each of these keys once. This API rejects unknown parameters itself.
pub(super) fn query(request: &Request, filters: &[&str]) -> Query {
    strict(Query::list(request, filters, None, ()))
}

/// The query of a call that accepts none.
pub(super) fn none(request: &Request) -> Query {
    strict(Query::none(request, ()))
}

fn strict(mut query: Query) -> Query {
    let twice = |(at, (key, _)): (usize, &(String, String))| {
        query.filters()[..at].iter().any(|(earlier, _)| earlier == key).then(|| key.clone())
    };
    let second = query.filters().iter().enumerate().find_map(twice);
    if let Some(key) = query.take_unknown().or(second) {
        query.refuse(Error::new(422, format!("the query has an unknown or second {key:.40}")));
    }
    query
}
