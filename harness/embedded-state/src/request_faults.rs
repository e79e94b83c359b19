//! Faults of single requests: a test refuses a chosen request of a service account, lets its connection end, or holds
//! it back, before or after it has taken effect.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::auth::attributes::Attributes;
use crate::auth::user::User;

/// Selects requests. An empty text matches any value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestMatch {
    /// The verb, as in roles: `create`, `update`, `patch`.
    pub verb: String,
    /// The resource in the plural, followed by `/` and the subresource if there is one.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object; never empty in a request for one object, except in `create`.
    pub name: String,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestEffect {
    /// It is answered with this error and has no effect.
    Refuse {
        /// The HTTP status: 409, 429, 500, 503 or 504; any other number is answered as 500.
        code: u16,
    },
    /// It has no effect, and its stream is reset without an answer.
    LoseRequest,
    /// It takes effect, and its stream is reset without an answer.
    LoseAnswer,
    /// It takes effect, and its answer breaks off in the middle of its body.
    CutAnswer,
    /// It waits until the fault is cleared, and takes effect then, if its client is still there.
    HoldRequest,
    /// It takes effect, and its answer waits until the fault is cleared.
    HoldAnswer,
}

/// A fault of some requests of service accounts. Requests of other users are never affected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFault {
    /// Which requests.
    pub matching: RequestMatch,
    /// How many of them are answered as usual before the first one that is affected.
    pub skip: u64,
    /// How many are affected; later ones are answered as usual.
    pub times: u64,
    /// What happens to them.
    pub effect: RequestEffect,
}

/// What a fault has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFaultState {
    /// The number of requests that it has affected.
    pub hits: u64,
    /// The number of requests that it holds now.
    pub waiting: u64,
}

/// The faults that are set.
#[derive(Debug, Default)]
pub struct RequestFaults {
    set: Mutex<BTreeMap<u64, Active>>,
    /// Changes when a fault is cleared.
    cleared: watch::Sender<u64>,
}

#[derive(Debug)]
struct Active {
    fault: RequestFault,
    matched: u64,
    state: RequestFaultState,
}

/// A fault that has met a request.
#[derive(Debug)]
pub struct Met {
    id: u64,
    /// What happens to the request.
    pub effect: RequestEffect,
}

impl RequestMatch {
    fn fits(&self, request: &Attributes) -> bool {
        let is = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
        is(&self.verb, &request.verb)
            && is(&self.resource, &request.full_resource())
            && is(&self.namespace, &request.namespace)
            && is(&self.name, &request.name)
    }
}

impl RequestFaults {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Active>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a fault under an id that its user chooses; one with the same id is replaced.
    pub fn set(&self, id: u64, fault: RequestFault) {
        self.lock().insert(id, Active { fault, matched: 0, state: RequestFaultState::default() });
    }

    /// Removes a fault; requests that it holds continue. Without such a fault nothing happens.
    pub fn clear(&self, id: u64) {
        self.lock().remove(&id);
        self.cleared.send_modify(|times| *times += 1);
    }

    /// What a fault has done so far; `None` if there is none with this id.
    #[must_use]
    pub fn state(&self, id: u64) -> Option<RequestFaultState> {
        self.lock().get(&id).map(|active| active.state)
    }

    /// The fault that a request meets, if any. Counts the request, so it is called once for each.
    pub fn meets(&self, user: &User, request: &Attributes) -> Option<Met> {
        user.as_service_account()?;
        for (id, active) in self.lock().iter_mut() {
            if !active.fault.matching.fits(request) {
                continue;
            }
            active.matched += 1;
            if active.matched > active.fault.skip && active.state.hits < active.fault.times {
                active.state.hits += 1;
                return Some(Met { id: *id, effect: active.fault.effect });
            }
        }
        None
    }

    /// Waits until the fault is cleared.
    pub async fn held(&self, met: &Met) {
        let mut cleared = self.cleared.subscribe();
        let _waiting = Waiting::at(self, met.id);
        while self.lock().contains_key(&met.id) {
            if cleared.changed().await.is_err() {
                // This object owns the sender, so this does not happen.
                return;
            }
        }
    }
}

/// A request that a fault holds. It is no longer counted when its client has gone.
struct Waiting<'a> {
    faults: &'a RequestFaults,
    id: u64,
}

impl<'a> Waiting<'a> {
    fn at(faults: &'a RequestFaults, id: u64) -> Waiting<'a> {
        if let Some(active) = faults.lock().get_mut(&id) {
            active.state.waiting += 1;
        }
        Waiting { faults, id }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(active) = self.faults.lock().get_mut(&self.id) {
            active.state.waiting = active.state.waiting.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(verb: &str, name: &str) -> Attributes {
        Attributes {
            verb: verb.to_owned(),
            resource: "services".to_owned(),
            subresource: "status".to_owned(),
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    fn fault(skip: u64, times: u64) -> RequestFault {
        let matching = RequestMatch {
            verb: "patch".to_owned(),
            resource: "services/status".to_owned(),
            name: "web".to_owned(),
            ..RequestMatch::default()
        };
        RequestFault { matching, skip, times, effect: RequestEffect::Refuse { code: 503 } }
    }

    fn ccm() -> User {
        User::service_account("kube-system", "ccm", "")
    }

    #[test]
    fn only_the_chosen_requests_of_service_accounts_are_affected() {
        let faults = RequestFaults::default();
        faults.set(7, fault(1, 2));
        let meets = |user: &User, verb, name| faults.meets(user, &request(verb, name)).is_some();
        assert!(!meets(&User::admin(), "patch", "web"));
        assert!(!meets(&ccm(), "update", "web") && !meets(&ccm(), "patch", "other"));
        assert!(!meets(&ccm(), "patch", "web"), "the first one is skipped");
        assert!(meets(&ccm(), "patch", "web") && meets(&ccm(), "patch", "web"));
        assert!(!meets(&ccm(), "patch", "web"), "two of them are affected");
        assert_eq!(faults.state(7), Some(RequestFaultState { hits: 2, waiting: 0 }));
        faults.clear(7);
        assert_eq!(faults.state(7), None);
    }

    #[tokio::test]
    async fn a_held_request_continues_when_the_fault_is_cleared() {
        let faults = RequestFaults::default();
        faults.set(1, fault(0, 1));
        let met = faults.meets(&ccm(), &request("patch", "web")).expect("a fault");
        let mut held = Box::pin(faults.held(&met));
        assert!(futures::poll!(&mut held).is_pending());
        assert_eq!(faults.state(1).map(|state| state.waiting), Some(1));
        faults.clear(2);
        assert!(futures::poll!(&mut held).is_pending(), "another fault");
        faults.clear(1);
        held.await;
    }

    #[tokio::test]
    async fn a_client_that_has_gone_waits_no_longer() {
        let faults = RequestFaults::default();
        faults.set(1, fault(0, 1));
        let met = faults.meets(&ccm(), &request("patch", "web")).expect("a fault");
        {
            let mut held = Box::pin(faults.held(&met));
            assert!(futures::poll!(&mut held).is_pending());
        }
        assert_eq!(faults.state(1), Some(RequestFaultState { hits: 1, waiting: 0 }));
    }
}
