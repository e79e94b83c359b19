//! Faults as values: the first in order of injection that matches a call wins.

use crate::admin::{ActiveFault, Effect, Fault, Match, Op};
use crate::model::{Millis, Model};
use std::net::IpAddr;

/// What is known of a call before it takes effect.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// What the call means.
    pub(crate) op: Op,
    /// Ids, names and owners the call itself names.
    pub(crate) keys: Vec<String>,
    /// Name of the credential.
    pub(crate) credential: Option<String>,
    /// The caller.
    pub(crate) peer: IpAddr,
}

impl Match {
    /// Whether a call is meant. The model is asked what else the named objects are called.
    pub(crate) fn fits(&self, subject: &Subject, model: &Model) -> bool {
        (self.ops.is_empty() || self.ops.contains(&subject.op))
            && self.credential.as_ref().is_none_or(|name| subject.credential.as_ref() == Some(name))
            && self.peer.is_none_or(|peer| peer == subject.peer)
            && self.resource.as_ref().is_none_or(|wanted| {
                subject.keys.iter().any(|key| key == wanted || model.aliases(subject.op, key).contains(wanted))
            })
    }
}

#[derive(Debug)]
struct Held {
    active: ActiveFault,
    until: Option<Millis>,
}

/// Faults in force.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    held: Vec<Held>,
    spent: Vec<ActiveFault>,
    last_id: u64,
}

impl Faults {
    pub(crate) fn inject(&mut self, fault: Fault, now: Millis) -> ActiveFault {
        self.last_id += 1;
        let active = ActiveFault { id: self.last_id, fault, hits: 0 };
        let until = active.fault.for_ms.map(|ms| now + ms);
        self.held.push(Held { active: active.clone(), until });
        active
    }

    /// The effect on a call, counted as a hit.
    pub(crate) fn strike(&mut self, subject: &Subject, model: &Model, now: Millis) -> Option<(u64, Effect)> {
        self.expire(now);
        let held = self.held.iter_mut().find(|held| held.active.fault.matching.fits(subject, model))?;
        held.active.hits += 1;
        let struck = (held.active.id, held.active.fault.effect.clone());
        self.expire(now);
        Some(struck)
    }

    /// Faults in force.
    pub(crate) fn list(&mut self, now: Millis) -> Vec<ActiveFault> {
        self.expire(now);
        self.held.iter().map(|held| held.active.clone()).collect()
    }

    /// One fault, also when it is used up.
    pub(crate) fn find(&self, id: u64) -> Option<ActiveFault> {
        let held = self.held.iter().map(|held| &held.active);
        held.chain(&self.spent).find(|active| active.id == id).cloned()
    }

    /// Ends one fault; says whether there was one, in force or used up.
    pub(crate) fn clear(&mut self, id: u64) -> bool {
        let known = self.find(id).is_some();
        if let Some(at) = self.held.iter().position(|held| held.active.id == id) {
            let held = self.held.remove(at);
            self.spent.push(held.active);
        }
        known
    }

    pub(crate) fn clear_all(&mut self) {
        self.spent.extend(self.held.drain(..).map(|held| held.active));
    }

    fn expire(&mut self, now: Millis) {
        let over = |held: &Held| {
            held.until.is_some_and(|until| now >= until)
                || held.active.fault.calls.is_some_and(|calls| held.active.hits >= calls)
        };
        let mut kept = Vec::with_capacity(self.held.len());
        for held in self.held.drain(..) {
            if over(&held) { self.spent.push(held.active) } else { kept.push(held) }
        }
        self.held = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Instance;

    fn subject(op: Op, key: &str) -> Subject {
        Subject { op, keys: vec![key.into()], credential: Some("a".into()), peer: IpAddr::from([127, 0, 0, 1]) }
    }

    fn fault(matching: Match, calls: Option<u64>, for_ms: Option<u64>) -> Fault {
        Fault { matching, effect: Effect::Refuse, calls, for_ms }
    }

    fn model() -> Model {
        let mut model = Model::default();
        let instance = serde_json::json!({"id": "i-1", "name": "n1", "provider_id": "native://i-1"});
        let instance: Instance = serde_json::from_value(instance).expect("an instance");
        model.put_instance(instance).expect("it has an id");
        model
    }

    #[test]
    fn an_object_is_meant_by_any_of_its_names() {
        let model = model();
        for name in ["i-1", "n1", "native://i-1"] {
            let matching = Match { resource: Some(name.into()), ..Match::default() };
            assert!(matching.fits(&subject(Op::InstanceGet, "n1"), &model), "{name}");
            assert!(!matching.fits(&subject(Op::InstanceGet, "n2"), &model), "{name}");
        }
        let other = Match { credential: Some("b".into()), ..Match::default() };
        assert!(!other.fits(&subject(Op::InstanceGet, "n1"), &model));
    }

    #[test]
    fn the_first_injected_wins_until_it_is_used_up_or_over() {
        let (model, mut faults) = (model(), Faults::default());
        let first = faults.inject(fault(Match::default(), Some(1), None), 0);
        let second = faults.inject(fault(Match::default(), None, Some(100)), 0);
        let call = subject(Op::LbList, "x");
        assert_eq!(faults.strike(&call, &model, 1).map(|(id, _)| id), Some(first.id));
        assert_eq!(faults.strike(&call, &model, 2).map(|(id, _)| id), Some(second.id));
        assert_eq!(faults.strike(&call, &model, 100), None);
        assert_eq!(faults.find(first.id).map(|f| f.hits), Some(1), "hits outlive the fault");
        assert!(faults.clear(second.id) && !faults.clear(99));
    }
}
