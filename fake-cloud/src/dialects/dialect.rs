//! What a dialect has to know and do.

use super::ALL;
use super::request::{Answer, Call, Request};
use crate::credentials::Credentials;
use crate::model::Cloud;
use std::sync::Arc;
use std::time::Duration;

/// A dialect that can be spoken.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, as in the command line and in profiles.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Makes one for a cloud of its own.
    pub(super) new: fn() -> Box<dyn Dialect>,
}

impl Kind {
    /// The dialect of that name.
    pub fn find(name: &str) -> Option<&'static Kind> {
        ALL.iter().find(|kind| kind.name == name)
    }

    pub(crate) fn make(&self) -> Box<dyn Dialect> {
        (self.new)()
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kind").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An API over the model. One dialect serves one cloud, and may keep what the model has no place for (behind a lock of
/// its own): actions that run, tokens it has issued.
///
/// For each call the server asks it, in this order, what the call means ([`Dialect::plan`]), whose it is
/// ([`Dialect::identify`]), and then either to carry it out ([`Plan::run`]) or to put a refusal into its own words.
/// Journal, faults and barriers are none of its business.
pub(crate) trait Dialect: Send + Sync {
    /// What a call means. Never fails: what makes no sense is a plan that answers so, and what is no call of this
    /// dialect at all is [`Op::Other`](crate::admin::Op::Other) with a 501 that says so.
    fn plan(&self, request: &Request) -> Plan;

    /// Whose call it is.
    fn identify(&self, request: &Request, known: &Credentials) -> Identity {
        match request.bearer().and_then(|token| known.name_of(token)) {
            Some(name) => Identity::Known(name),
            None => Identity::Unknown,
        }
    }

    /// A refusal in this dialect's form.
    fn refuse(&self, refusal: Denial) -> Answer;

    /// A 200 that is not what this dialect promises: JSON that breaks off.
    fn malformed(&self) -> Answer {
        Answer::json_text(200, "{\"unexpected\": [1, 2,".to_owned())
    }
}

/// Whose call it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// That of the credential of this name.
    Known(Arc<str>),
    /// Nobody's we know; the call is refused.
    Unknown,
    /// Anybody's: the call needs no credential, such as one that asks for a token.
    #[expect(dead_code, reason = "dialects with a call to log in need it, e.g. OpenStack's")]
    Anybody,
}

/// A refusal that does not come from the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// No credential, or one we do not know.
    Unauthenticated,
    /// The body is too long.
    TooLarge {
        /// Greatest number of bytes.
        limit_bytes: usize,
    },
    /// A fault says so.
    Fault {
        /// 400 to 599.
        status: u16,
        /// Value of `Retry-After`, seconds.
        retry_after_s: Option<u64>,
    },
}

/// What a call does when it takes effect: at once and as a whole.
pub(crate) type Effect = Box<dyn FnOnce(&mut Cloud, Duration) -> Answer + Send>;

/// What a call means, and how it is carried out.
pub(crate) struct Plan {
    /// What it means.
    pub(crate) call: Call,
    /// How it is carried out; gets the time.
    pub(crate) run: Effect,
}

impl Plan {
    pub(crate) fn new(call: Call, run: impl FnOnce(&mut Cloud, Duration) -> Answer + Send + 'static) -> Plan {
        Plan { call, run: Box::new(run) }
    }
}
