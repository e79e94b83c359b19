//! The interface of a dialect.

use super::answer::Answer;
use super::error::Denial;
use super::plan::Plan;
use super::request::{Asker, Call, Request};
use fake_cloud_model::{Cloud, GoneBackends, IdForm, Naming};
use fake_cloud_recording::credentials::Credentials;
use std::sync::Arc;
use std::time::Duration;

/// An API over the model. One dialect serves one cloud, and may keep data that the model has no place for
/// (behind its own lock), such as running actions or issued tokens.
///
/// For each call the server asks the dialect, in this order, for the meaning of the call ([`Dialect::plan`])
/// and for its credential ([`Dialect::identify`]). Then the call is either carried out ([`Plan::run`]) or
/// rejected in the dialect's words. The dialect does not deal with journal, faults and barriers.
pub trait Dialect: Send + Sync {
    /// The plan of a call. Never fails: for an invalid call it is a plan with an error as its answer, and for
    /// an unknown call it is a [`Plan::unknown`].
    fn plan(&self, request: &Request) -> Plan;

    /// The meaning of a call in the current state of the cloud, for an API whose calls replace objects that
    /// several owners share: which of them a call creates, changes or removes depends on what is there. Gets
    /// the meaning according to the plan.
    fn meaning(&self, _request: &Request, call: Call, _cloud: &mut Cloud, _now: Duration) -> Call {
        call
    }

    /// The plan of a call of the metadata service, with which a machine reads about itself. Only called for a
    /// dialect whose entry in the table has a metadata service.
    fn metadata(&self, request: &Request, _asker: Asker) -> Plan {
        Plan::unknown(request)
    }

    /// The form of the ids that the cloud assigns.
    fn ids(&self) -> IdForm {
        IdForm::Prefixed
    }

    /// What happens to deleted instances among the backends of load balancers.
    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Kept
    }

    /// Whether two load balancers can have the same name.
    fn naming(&self) -> Naming {
        Naming::Unique
    }

    /// Adds the headers that every answer has. Gets the time.
    fn with_headers(&self, answer: Answer, _now: Duration) -> Answer {
        answer
    }

    /// The credential of a call.
    fn identify(&self, request: &Request, known: &Credentials) -> Identity {
        match request.bearer().and_then(|token| known.name_of(token)) {
            Some(name) => Identity::Known(name),
            None => Identity::Unknown,
        }
    }

    /// The answer for a rejected call, in this dialect's form.
    fn refuse(&self, denial: Denial) -> Answer;

    /// A 200 without this dialect's form: truncated JSON.
    fn malformed(&self) -> Answer {
        Answer::json_text(200, "{\"unexpected\": [1, 2,".to_owned())
    }
}

/// The credential of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The credential with this name.
    Known(Arc<str>),
    /// No known credential; the call is rejected.
    Unknown,
    /// No known credential; the call is rejected in these words.
    Rejected(Denial),
    /// The call needs no credential, for example because it requests a token or uses the metadata service.
    Anybody,
}
