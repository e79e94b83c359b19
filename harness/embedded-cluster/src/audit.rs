//! The requests to the API server, for another process.

use embedded_apiserver::audit::Entry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Selects requests from the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuery {
    /// Only requests of users whose name begins with this text.
    pub user: String,
    /// Only requests since this time, in milliseconds since 1970.
    pub since_ms: i64,
    /// Only requests that authorization denied.
    pub refused: bool,
    /// Only the first of all requests that need the same right.
    pub distinct: bool,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it came, milliseconds since 1970.
    pub at_ms: i64,
    /// The user who sent it.
    pub user: String,
    /// The verb, as in roles.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, followed by `/` and the subresource if there is one; empty for a path that is not a resource.
    pub resource: String,
    /// The namespace; empty at the cluster scope.
    pub namespace: String,
    /// The name; empty if the request has none.
    pub name: String,
    /// The path of the request.
    pub path: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether authorization allowed it; later steps may still have rejected it.
    pub authorized: bool,
    /// The user agent of the client.
    pub user_agent: String,
}

impl AuditQuery {
    /// The entries that the query selects, in their order.
    pub(crate) fn answer(&self, entries: &[Arc<Entry>]) -> Vec<AuditEntry> {
        let mut seen = BTreeSet::new();
        let asked = entries.iter().filter(|entry| {
            entry.user.starts_with(&self.user)
                && entry.at.as_millisecond() >= self.since_ms
                && (!self.refused || !entry.authorized)
        });
        let found = asked.map(|entry| audit_entry(entry)).filter(|entry| {
            let resource = if entry.resource.is_empty() { &entry.path } else { &entry.resource };
            let right = (&entry.user, &entry.verb, &entry.group, resource, &entry.namespace);
            !self.distinct || seen.insert((format!("{right:?}"), entry.authorized))
        });
        found.collect()
    }
}

fn audit_entry(entry: &Entry) -> AuditEntry {
    AuditEntry {
        at_ms: entry.at.as_millisecond(),
        user: entry.user.clone(),
        verb: entry.request.verb.clone(),
        group: entry.request.group.clone(),
        resource: entry.request.full_resource(),
        namespace: entry.request.namespace.clone(),
        name: entry.request.name.clone(),
        path: entry.request.path.clone(),
        code: entry.code,
        authorized: entry.authorized,
        user_agent: entry.user_agent.clone(),
    }
}
