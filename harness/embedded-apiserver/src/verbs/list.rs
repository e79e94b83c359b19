//! Lists: whole or in pages, of the current or an earlier state.

use std::sync::Arc;
use std::time::Duration;

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use serde_json::{Value, json};

use super::list_options::{ListOptions, Match, too_large};
use crate::http::call::Call;
use crate::http::reply::{Content, Outcome, Reply};
use embedded_state::store::{Continue, Expired, Key, Record, Snapshot};
use embedded_state::{Api, Selection, collection_of};

/// How long a list waits for a resource version that does not exist yet.
const FRESHNESS: Duration = Duration::from_secs(3);

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. \
You can start a new list without the continue parameter, or use the continue token in this response to retrieve \
the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that \
were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Answers a list.
pub(super) async fn list(call: &Call, kind: &'static Kind) -> Outcome {
    call.form()?;
    let options = ListOptions::parse(&call.query, false)?;
    let selection = Selection::parse(kind, &call.query, None)?;
    let namespace = namespace_of_list(call, kind);
    if !options.continue_token.is_empty() {
        return next_page(call, kind, &options, &selection, namespace);
    }
    let revision =
        options.revision().map_err(|why| status::bad_request(format!("invalid resource version: {why}")))?;
    let snapshot = match (revision, options.matching, options.limit) {
        (Some(0), ..) => cached(call, kind),
        (None, ..) => call.api.store.snapshot(collection_of(kind)),
        (Some(revision), Match::NotOlderThan, _) | (Some(revision), Match::Unset, 0) => {
            wait_for(&call.api, revision).await?;
            call.api.store.snapshot(collection_of(kind))
        }
        (Some(revision), ..) => {
            wait_for(&call.api, revision).await?;
            call.api.store.snapshot_at(collection_of(kind), revision).map_err(|_| status::expired(TOO_OLD))?
        }
    };
    // With version 0, a real server answers from its cache, without pages.
    let limit = if revision == Some(0) { 0 } else { call.api.interruption.page(&call.user, options.limit) };
    Ok(page(kind, &snapshot, &selection, namespace, None, limit, false))
}

/// The objects as the watch cache has them: usually the latest, but those of the past while it is behind.
fn cached(call: &Call, kind: &'static Kind) -> Snapshot {
    let collection = collection_of(kind);
    let until = call.api.lag.view_of(&call.user).and_then(|view| view.until());
    let behind = until.and_then(|revision| call.api.store.snapshot_at(collection, revision).ok());
    behind.unwrap_or_else(|| call.api.store.snapshot(collection))
}

/// The namespace that is listed, `None` for all.
pub(super) fn namespace_of_list<'a>(call: &'a Call, kind: &Kind) -> Option<&'a str> {
    Some(call.namespace()).filter(|namespace| kind.namespaced && !namespace.is_empty())
}

/// Waits until the store has reached a revision.
pub(super) async fn wait_for(api: &Arc<Api>, revision: u64) -> Result<(), Status> {
    let mut advanced = api.store.advanced();
    let reached = async { advanced.wait_for(|now| *now >= revision).await.is_ok() };
    match tokio::time::timeout(FRESHNESS, reached).await {
        Ok(true) => Ok(()),
        _ => Err(too_large(revision, api.store.revision())),
    }
}

fn next_page(
    call: &Call,
    kind: &'static Kind,
    options: &ListOptions,
    selection: &Selection,
    namespace: Option<&str>,
) -> Outcome {
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let token = Continue::decode(&options.continue_token, namespace, kind.namespaced)
        .map_err(|why| status::bad_request(format!("invalid continue token: {why}")))?;
    let collection = collection_of(kind);
    if token.revision.is_some() && call.api.interruption.refuses_page(&call.user) {
        return Ok(expired_page(&token, namespace));
    }
    let snapshot = match token.revision {
        None => call.api.store.snapshot(collection),
        Some(revision) => match call.api.store.snapshot_at(collection, revision) {
            Ok(snapshot) => snapshot,
            Err(Expired { .. }) => return Ok(expired_page(&token, namespace)),
        },
    };
    Ok(page(
        kind,
        &snapshot,
        selection,
        namespace,
        Some(&token.after),
        options.limit,
        token.revision.is_none(),
    ))
}

/// The rejection of an expired token. It contains a token with which the client gets the rest in its current state.
fn expired_page(token: &Continue, namespace: Option<&str>) -> Reply {
    let mut body = status::expired(CONTINUE_TOO_OLD).body();
    body["metadata"]["continue"] = json!(Continue { revision: None, ..token.clone() }.encode(namespace));
    Reply::object(body).with_code(410)
}

fn page(
    kind: &'static Kind,
    snapshot: &Snapshot,
    selection: &Selection,
    namespace: Option<&str>,
    after: Option<&Key>,
    limit: usize,
    inconsistent: bool,
) -> Reply {
    let mut metadata = json!({"resourceVersion": snapshot.revision().to_string()});
    let mut records: Vec<Arc<Record>> = Vec::new();
    let mut more = 0_u64;
    let mut rest = snapshot.iter(namespace, after).filter(|record| selection.matches(record));
    for record in rest.by_ref() {
        if limit > 0 && records.len() == limit {
            more = 1;
            break;
        }
        records.push(Arc::clone(record));
    }
    if more > 0
        && let Some(last) = records.last()
    {
        let revision = if inconsistent { None } else { Some(snapshot.revision()) };
        let token = Continue { revision, after: last.key().clone() };
        metadata["continue"] = Value::String(token.encode(namespace));
        if selection.is_everything() {
            metadata["remainingItemCount"] = json!(more + rest.count() as u64);
        }
    }
    Reply { code: 200, content: Content::List(kind, records, metadata), warnings: Vec::new() }
}
