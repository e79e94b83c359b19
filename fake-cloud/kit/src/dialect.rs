//! What a dialect has to know and do.

use super::answer::Answer;
use super::error::Denial;
use super::plan::Plan;
use super::request::{Asker, Request};
use fake_cloud_model::{GoneBackends, IdForm, Naming};
use fake_cloud_recording::credentials::Credentials;
use std::sync::Arc;
use std::time::Duration;

/// An API over the model. One dialect serves one cloud, and may keep what the model has no place for (behind a lock of
/// its own): actions that run, tokens it has issued.
///
/// For each call the server asks it, in this order, what the call means ([`Dialect::plan`]), whose it is
/// ([`Dialect::identify`]), and then either to carry it out ([`Plan::run`]) or to put a refusal into its own words.
/// Journal, faults and barriers are none of its business.
pub trait Dialect: Send + Sync {
    /// What a call means. Never fails: what makes no sense is a plan that answers so, and what this dialect does not know
    /// is a [`Plan::unknown`].
    fn plan(&self, request: &Request) -> Plan;

    /// What a call of the metadata service means, which a machine asks about itself. Only a dialect whose line in the
    /// table says that it has one is asked.
    fn metadata(&self, request: &Request, _asker: Asker) -> Plan {
        Plan::unknown(request)
    }

    /// What ids the cloud gives out look like.
    fn ids(&self) -> IdForm {
        IdForm::Prefixed
    }

    /// What becomes of deleted instances among the backends of load balancers.
    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Kept
    }

    /// Whether two load balancers can have one name.
    fn naming(&self) -> Naming {
        Naming::Unique
    }

    /// The same answer with the headers that every answer has. Gets the time.
    fn with_headers(&self, answer: Answer, _now: Duration) -> Answer {
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
    fn refuse(&self, denial: Denial) -> Answer;

    /// A 200 that is not what this dialect promises: JSON that breaks off.
    fn malformed(&self) -> Answer {
        Answer::json_text(200, "{\"unexpected\": [1, 2,".to_owned())
    }
}

/// Whose call it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// That of the credential of this name.
    Known(Arc<str>),
    /// Nobody's we know; the call is refused.
    Unknown,
    /// Anybody's: the call needs no credential, such as one that asks for a token or asks the metadata service.
    Anybody,
}
