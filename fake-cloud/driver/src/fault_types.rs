//! The driver API's types for disturbed calls: faults that hit calls and barriers that hold them.

use super::types::Op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Which calls a fault or a barrier applies to. All given fields must match; no field at all matches every call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Any of these operations; empty means any. If nothing else is given either, the metadata service of machines is
    /// left alone: it does not depend on the API.
    pub ops: Vec<Op>,
    /// The object: an id, a name, a provider id, or an owner. The fake cloud knows all of these for an object
    /// that it has, and otherwise compares with the names in the call.
    pub resource: Option<String>,
    /// The credential's name.
    pub credential: Option<String>,
    /// The caller's address.
    pub peer: Option<IpAddr>,
    /// For paged lists: only calls that ask for this page or a later one. All other calls ask for the first.
    pub from_page: Option<u64>,
    /// Method and path, for calls whose operation is not known: `GET /v2/droplets/*`. A `*` stands for any
    /// method or for any single part of the path, `**` at the end for everything that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl Match {
    /// Whether it is about the cloud as a whole: it names no operation, object, caller or path.
    pub fn is_general(&self) -> bool {
        self.ops.is_empty() && self.resource.is_none() && self.peer.is_none() && self.request.is_none()
    }

    /// Whether the method and path of a call match; `line` is `METHOD /path?query`.
    pub fn fits_request(&self, line: &str) -> bool {
        let Some((method, path)) = self.request.as_deref().map(split_request) else { return true };
        let (given, target) = split_request(line);
        let target = target.split('?').next().unwrap_or_default();
        (method == "*" || method.eq_ignore_ascii_case(given)) && fits_path(path, target)
    }
}

fn split_request(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}

fn fits_path(wanted: &str, path: &str) -> bool {
    let mut given = path.split('/');
    for part in wanted.split('/') {
        match (part, given.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (part, Some(given)) if part == given => {}
            _ => return false,
        }
    }
    given.next().is_none()
}

/// What happens to calls instead of their usual answer (contract CLOUD-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Calls that it applies to.
    #[serde(default)]
    pub matching: Match,
    /// What happens.
    pub effect: Effect,
    /// Ends after this many calls, at least 1; `None`: no limit.
    #[serde(default)]
    pub calls: Option<u64>,
    /// Ends after this many milliseconds, at least 1; `None`: until cleared.
    #[serde(default)]
    pub for_ms: Option<u64>,
}

/// The effect of a fault. Every driver with faults supports the effects on a call itself (`status` to
/// `lose-answer`). The effects on the cloud's behaviour (`slow-provisioning` and those after it) need a
/// driver that also has `settings`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// An error in the dialect's own form.
    Status {
        /// 400 to 599.
        status: u16,
        /// `Retry-After` header, seconds.
        #[serde(default)]
        retry_after_s: Option<u64>,
    },
    /// A 200 with a body that does not have the dialect's form.
    Malformed,
    /// The connection is closed without an answer, like a refused connection after it was set up.
    Refuse,
    /// Never answered; the connection stays open until the caller gives up, or is closed after `ms`.
    Hang {
        /// Milliseconds; `None`: until the caller gives up.
        #[serde(default)]
        ms: Option<u64>,
    },
    /// Answered normally, but with this delay. The time passes before the call takes effect, so a caller that
    /// gives up in the meantime has changed nothing.
    Latency {
        /// Milliseconds.
        ms: u64,
    },
    /// Takes effect in the model, then the connection is closed without an answer.
    LoseAnswer {
        /// After this many milliseconds, unless the caller gives up before; `None`: at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    },
    /// Takes effect and is answered, but a load balancer that it creates stays without an address for this
    /// time, whatever the settings say.
    SlowProvisioning {
        /// Milliseconds.
        ms: u64,
    },
    /// Takes effect and is answered, but a load balancer that it deletes stays for this time, and is shown as
    /// one that is being deleted if the dialect shows such load balancers, whatever the settings say.
    SlowDeletion {
        /// Milliseconds.
        ms: u64,
    },
    /// A list is returned empty, as if nothing existed. Look-ups of one object are answered as usual.
    Empty,
    /// A list lacks the objects with one of these names: an id, a name, a provider id, an owner.
    Without {
        /// The names of the objects.
        names: Vec<String>,
    },
    /// A list shows the state from when the fault was activated.
    Stale,
    /// A list begins with a page without items, followed by the usual pages.
    EmptyFirstPage,
    /// In every second list, each page begins one item later than the page before it lets expect, as if an item of an earlier
    /// page had been deleted in between. Only for clouds whose pages have numbers.
    ShiftedPages,
    /// Accepted, but the action that it began fails with this code, and nothing is changed. A call that
    /// begins no action is carried out as usual. Only for dialects with actions.
    FailAction {
        /// The error's code, in the dialect's words.
        code: String,
    },
}

/// A fault that was activated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveFault {
    /// Its id.
    pub id: u64,
    /// The fault as it was requested.
    pub fault: Fault,
    /// How many calls it has hit so far.
    pub hits: u64,
    /// Whether it can still hit: its calls are not used up and its time is not over. A fault that has ended
    /// can be read until it is cleared.
    pub in_force: bool,
}

/// A barrier (contract CLOUD-06): matching calls wait before they take effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BarrierStatus {
    /// Its id.
    pub id: u64,
    /// Which calls it holds.
    pub matching: Match,
    /// How many calls are waiting at it now.
    pub waiting: u64,
    /// How many calls have ever reached it.
    pub arrived: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_meant_by_method_and_path() {
        let fits = |wanted: &str, line: &str| {
            Match { request: Some(wanted.to_owned()), ..Match::default() }.fits_request(line)
        };
        for (wanted, line) in [
            ("GET /v2/droplets", "GET /v2/droplets?page=2"),
            ("get /v2/droplets/*", "GET /v2/droplets/42"),
            ("* /v2/**", "DELETE /v2/droplets/42"),
        ] {
            assert!(fits(wanted, line), "{wanted}: {line}");
        }
        for (wanted, line) in [
            ("GET /v2/droplets", "POST /v2/droplets"),
            ("GET /v2/droplets/*", "GET /v2/droplets"),
            ("GET /v2/droplets", "GET /v2/droplets/42"),
            ("GET", "GET /v2"),
        ] {
            assert!(!fits(wanted, line), "{wanted}: {line}");
        }
        assert!(Match::default().fits_request("GET /"));
    }
}
