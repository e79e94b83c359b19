//! The parameters of lists and watches, and the check for contradictions.

use embedded_objects::cause::Cause;
use embedded_objects::status::{self, Status};

use crate::http::call::Call;
use embedded_state::query::Query;

/// How the state of a list relates to the requested resource version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// Not specified.
    Unset,
    /// Exactly this version.
    Exact,
    /// This version or a later one.
    NotOlderThan,
}

/// The parameters of a list or watch.
#[derive(Clone, Debug)]
pub(super) struct ListOptions {
    /// The resource version as the client wrote it.
    pub resource_version: String,
    /// How the resource version is matched.
    pub matching: Match,
    /// The largest number of objects in a page; zero for all.
    pub limit: usize,
    /// The token from the previous page.
    pub continue_token: String,
    /// Whether the client wants bookmarks.
    pub bookmarks: bool,
    /// Whether a watch begins with the existing objects; `None` leaves it to the resource version.
    pub initial_events: Option<bool>,
    /// How long a watch lasts, in seconds.
    pub timeout_seconds: Option<i64>,
}

impl ListOptions {
    /// Parses and checks the parameters.
    pub(super) fn parse(query: &Query, watch: bool) -> Result<Self, Status> {
        let number = |name: &str| query.number(name).map_err(status::bad_request);
        let resource_version = query.get("resourceVersion").unwrap_or_default().to_owned();
        let continue_token = query.get("continue").unwrap_or_default().to_owned();
        let initial_events = query.flag("sendInitialEvents");
        let said = query.get("resourceVersionMatch").unwrap_or_default();
        let matching = match said {
            "Exact" => Match::Exact,
            "NotOlderThan" => Match::NotOlderThan,
            _ => Match::Unset,
        };
        let faults = faults(watch, &resource_version, &continue_token, said, initial_events);
        if !faults.is_empty() {
            return Err(status::invalid_of("meta.k8s.io", "ListOptions", "", &faults));
        }
        Ok(Self {
            resource_version,
            matching,
            limit: number("limit")?.and_then(|limit| usize::try_from(limit).ok()).unwrap_or_default(),
            continue_token,
            bookmarks: query.flag("allowWatchBookmarks") == Some(true),
            initial_events,
            timeout_seconds: number("timeoutSeconds")?,
        })
    }

    /// The resource version as a number: `None` if it is empty, and `Some(0)` if it is zero.
    pub(super) fn revision(&self) -> Result<Option<u64>, String> {
        revision(&self.resource_version)
    }
}

/// Parses a resource version.
pub(super) fn revision(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")
    })
}

/// Checks the resource version of a get.
pub(super) fn check_revision_of_get(call: &Call) -> Result<(), Status> {
    let text = call.query.get("resourceVersion").unwrap_or_default();
    let revision =
        revision(text).map_err(|why| status::bad_request(format!("invalid resource version: {why}")))?;
    match revision {
        Some(revision) if revision > call.api.store.revision() => {
            Err(too_large(revision, call.api.store.revision()))
        }
        _ => Ok(()),
    }
}

/// The answer for a resource version that does not exist yet.
pub(super) fn too_large(asked: u64, current: u64) -> Status {
    status::timeout(&format!("Too large resource version: {asked}, current: {current}"), 1).caused_by(
        "ResourceVersionTooLarge",
        "Too large resource version",
        "",
    )
}

fn faults(watch: bool, version: &str, token: &str, said: &str, initial: Option<bool>) -> Vec<Cause> {
    let mut faults = Vec::new();
    let mut forbid = |field: &str, why: &str| faults.push(Cause::forbidden(field, why));
    if watch {
        if initial.is_some() && said.is_empty() {
            forbid(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
        }
        if initial.is_none() && !said.is_empty() {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if !said.is_empty() && said != "NotOlderThan" && initial.is_some() {
            faults.push(Cause::not_supported("resourceVersionMatch", said, &["NotOlderThan"]));
        }
        if initial.is_some() && !token.is_empty() {
            faults.push(Cause::forbidden("continue", "continue is forbidden for watch"));
        }
        return faults;
    }
    if initial.is_some() {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if !said.is_empty() {
        if version.is_empty() {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        }
        if !token.is_empty() {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        }
        if said == "Exact" && version == "0" {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            );
        }
        if !matches!(said, "Exact" | "NotOlderThan") {
            faults.push(Cause::not_supported("resourceVersionMatch", said, &["Exact", "NotOlderThan", ""]));
        }
    }
    faults
}
