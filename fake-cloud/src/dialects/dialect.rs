//! What a dialect has to know and do.

use super::request::{Answer, Call, Request};
use crate::admin::Op;
use crate::credentials::Credentials;
use crate::model::{Cloud, GoneBackends, IdForm};
use hyper::Method;
use std::sync::Arc;
use std::time::Duration;

/// An API over the model. One dialect serves one cloud, and may keep what the model has no place for (behind a lock of
/// its own): actions that run, tokens it has issued.
///
/// For each call the server asks it, in this order, what the call means ([`Dialect::plan`]), whose it is
/// ([`Dialect::identify`]), and then either to carry it out ([`Plan::run`]) or to put a refusal into its own words.
/// Journal, faults and barriers are none of its business.
pub(crate) trait Dialect: Send + Sync {
    /// What a call means. Never fails: what makes no sense is a plan that answers so, and what this dialect does not know
    /// is a [`Plan::unknown`].
    fn plan(&self, request: &Request) -> Plan;

    /// What ids the cloud gives out look like.
    fn ids(&self) -> IdForm {
        IdForm::Prefixed
    }

    /// What becomes of deleted instances among the backends of load balancers.
    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Kept
    }

    /// Whether it has actions that can fail after the call that began them was answered.
    fn has_actions(&self) -> bool {
        false
    }

    /// What every answer has besides: headers that count, for instance. Gets the time.
    fn dress(&self, answer: Answer, _now: Duration) -> Answer {
        answer
    }

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
    /// Anybody's: the call needs no credential, such as one that asks for a token or for a machine's metadata.
    Anybody,
}

/// A refusal that does not come from the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// No credential, or one we do not know.
    Unauthenticated,
    /// The body is too long.
    TooLarge {
        /// Greatest number of bytes.
        limit_bytes: usize,
    },
    /// The dialect does not know the call, or not all of it, and is strict: a 501 that says so.
    Unknown {
        /// What it does not know.
        what: String,
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
    /// What of it the dialect does not know. A strict cloud then refuses it with [`Denial::Unknown`], a lenient one
    /// carries it out all the same; the journal shows it either way.
    pub(crate) unknown: Option<String>,
}

impl Plan {
    pub(crate) fn new(call: Call, run: impl FnOnce(&mut Cloud, Duration) -> Answer + Send + 'static) -> Plan {
        Plan { call, run: Box::new(run), unknown: None }
    }

    /// A call that is none of this dialect. A lenient cloud answers it as if it were one about nothing: with an empty
    /// object, with 201 where something would be created, with 204 where it would be deleted.
    pub(crate) fn unknown(request: &Request) -> Plan {
        let answer = match request.method {
            Method::DELETE => Answer::empty(204),
            Method::POST => Answer::json_text(201, "{}".to_owned()),
            _ => Answer::json_text(200, "{}".to_owned()),
        };
        let plan = Plan::new(Call::new(Op::Other), move |_, _| answer);
        plan.beyond("this dialect has no such call".to_owned())
    }

    /// The same plan of a call which has something the dialect does not know.
    pub(crate) fn beyond(mut self, what: String) -> Plan {
        self.unknown.get_or_insert(what);
        self
    }
}
