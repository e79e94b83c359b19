//! The tested requirements, and their results.

use fake_cloud_driver::{Capabilities, Client, ClientError, Inventory};
use serde::Serialize;
use std::fmt;

/// The result for one requirement of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The requirement, e.g. `machines: a stopped machine is seen as stopped`.
    pub promise: String,
    /// Why it was not met.
    pub broken: Option<String>,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.broken {
            None => write!(f, "ok    {}", self.promise),
            Some(why) => write!(f, "FAIL  {}: {why}", self.promise),
        }
    }
}

/// The prefix of names of objects that the test creates.
pub(super) const OURS: &str = "driver-check";

/// The reason why a requirement is not met.
pub(super) type Broken = String;

/// One requirement, and how it is tested.
pub(super) struct Trial<'a> {
    pub(super) client: &'a Client,
    pub(super) capabilities: &'a Capabilities,
    pub(super) tried: Vec<Tried>,
}

impl Trial<'_> {
    pub(super) fn note(&mut self, promise: impl Into<String>, outcome: Result<(), Broken>) {
        self.tried.push(Tried { promise: promise.into(), broken: outcome.err() });
    }

    pub(super) async fn inventory(&self) -> Result<Inventory, Broken> {
        self.client.inventory().await.map_err(words)
    }
}

/// Checks that an inventory is consistent.
pub(super) fn is_sound(inventory: &Inventory) -> Result<(), Broken> {
    let ids = |kind: &str, ids: Vec<&str>| {
        let mut seen = std::collections::BTreeSet::new();
        match ids.into_iter().find(|id| id.is_empty() || !seen.insert(*id)) {
            Some("") => Err(format!("a {kind} has no id")),
            Some(id) => Err(format!("two of kind {kind} have the id {id}")),
            None => Ok(()),
        }
    };
    ids("instance", inventory.instances.iter().map(|one| one.id.as_str()).collect())?;
    ids("load balancer", inventory.load_balancers.iter().map(|one| one.id.as_str()).collect())?;
    ids("auxiliary", inventory.auxiliaries.iter().map(|one| one.id.as_str()).collect())?;
    ids("route", inventory.routes.iter().map(|one| one.id.as_str()).collect())?;
    let there = |id: &String| inventory.load_balancers.iter().any(|lb| lb.id == *id);
    match inventory.auxiliaries.iter().find(|aux| aux.load_balancer.as_ref().is_some_and(|id| !there(id))) {
        Some(aux) => Err(format!("{} {} serves a load balancer that is not there", aux.kind, aux.id)),
        None => Ok(()),
    }
}

/// Checks that a call is rejected with this status, in the protocol's form.
pub(super) fn refused<T>(answer: Result<T, ClientError>, wanted: u16) -> Result<(), Broken> {
    match answer {
        Ok(_) => Err(format!("expected a refusal with {wanted}, and it was done")),
        Err(ClientError::Refused { status, message, .. }) if status == wanted && !message.is_empty() => {
            Ok(())
        }
        Err(error) => Err(format!("expected a refusal with {wanted}: {}", words(error))),
    }
}

/// Checks that two values are equal.
pub(super) fn same<T: PartialEq + Serialize>(what: &str, expected: T, seen: T) -> Result<(), Broken> {
    let shown = |value: &T| serde_json::to_string(value).unwrap_or_default();
    if expected == seen {
        Ok(())
    } else {
        Err(format!("{what}: expected {}, saw {}", shown(&expected), shown(&seen)))
    }
}

/// Checks that nothing that was written is lost.
pub(super) fn kept(lost: Vec<String>) -> Result<(), Broken> {
    if lost.is_empty() { Ok(()) } else { Err(lost.join("; ")) }
}

/// The result of a step after the removal of its object, so that a failed step leaves nothing behind. A
/// missing object (404) is fine.
pub(super) fn removed_again(
    outcome: Result<(), Broken>,
    removed: Result<(), ClientError>,
) -> Result<(), Broken> {
    match (outcome, removed) {
        (Err(why), Err(error)) if !is_absent(&error) => {
            Err(format!("{why}; and it could not be removed again: {}", words(error)))
        }
        (outcome, _) => outcome,
    }
}

fn is_absent(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: 404, .. })
}

pub(super) fn words(error: ClientError) -> Broken {
    harness_core::check::chain(&error)
}
