//! The objects that belong to load balancers: firewalls, listeners, pools, reserved addresses. The cloud
//! knows which load balancer they belong to, but not their function.

use super::Refusal;
use super::checks::{check_name, check_text, shown};
use super::ids::Ids;
use fake_cloud_driver::Auxiliary;
use serde_json::Value;
use std::collections::BTreeMap;

/// The part of an auxiliary object that its creator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuxSpec {
    /// See [`Auxiliary::name`]; unique in its kind.
    pub name: String,
    /// See [`Auxiliary::owner`].
    pub owner: String,
    /// See [`Auxiliary::load_balancer`].
    pub load_balancer: Option<String>,
    /// See [`Auxiliary::spec`]; the dialect defines its meaning.
    pub spec: Value,
}

/// All auxiliary objects by id.
#[derive(Debug, Default)]
pub(super) struct Auxiliaries(BTreeMap<String, Auxiliary>);

impl Auxiliaries {
    pub(super) fn get(&self, kind: &str, id: &str) -> Result<&Auxiliary, Refusal> {
        self.0.get(id).filter(|aux| aux.kind == kind).ok_or_else(|| Refusal::no(kind, id))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Auxiliary> {
        self.0.values()
    }

    /// The auxiliary object that belongs to the load balancer.
    pub(super) fn serving(&self, load_balancer: &str) -> Option<&Auxiliary> {
        self.iter().find(|aux| aux.load_balancer.as_deref() == Some(load_balancer))
    }

    pub(super) fn remove_serving(&mut self, load_balancer: &str) {
        self.0.retain(|_, aux| aux.load_balancer.as_deref() != Some(load_balancer));
    }

    pub(super) fn create(
        &mut self,
        kind: &str,
        prefix: &str,
        spec: AuxSpec,
        ids: &mut Ids,
    ) -> Result<&Auxiliary, Refusal> {
        self.check(kind, None, &spec)?;
        let id = ids.next(prefix);
        self.insert(kind, &id, spec)
    }

    pub(super) fn update(&mut self, kind: &str, id: &str, spec: AuxSpec) -> Result<&Auxiliary, Refusal> {
        self.get(kind, id)?;
        self.check(kind, Some(id), &spec)?;
        self.insert(kind, id, spec)
    }

    pub(super) fn remove(&mut self, kind: &str, id: &str) -> Result<(), Refusal> {
        self.get(kind, id)?;
        self.0.remove(id);
        Ok(())
    }

    fn insert(&mut self, kind: &str, id: &str, spec: AuxSpec) -> Result<&Auxiliary, Refusal> {
        let aux = Auxiliary {
            id: id.to_owned(),
            kind: kind.to_owned(),
            name: spec.name,
            owner: spec.owner,
            load_balancer: spec.load_balancer,
            spec: spec.spec,
        };
        self.0.insert(id.to_owned(), aux);
        self.get(kind, id)
    }

    fn check(&self, kind: &str, except: Option<&str>, spec: &AuxSpec) -> Result<(), Refusal> {
        check_name(&spec.name)?;
        check_text("owner", &spec.owner)?;
        let taken =
            |aux: &&Auxiliary| aux.kind == kind && aux.name == spec.name && Some(aux.id.as_str()) != except;
        match self.iter().find(taken) {
            None => Ok(()),
            Some(aux) => {
                Err(Refusal::Conflict(format!("{kind} {} has the name {}", aux.id, shown(&spec.name))))
            }
        }
    }
}

impl FromIterator<Auxiliary> for Auxiliaries {
    fn from_iter<I: IntoIterator<Item = Auxiliary>>(auxiliaries: I) -> Auxiliaries {
        Auxiliaries(auxiliaries.into_iter().map(|aux| (aux.id.clone(), aux)).collect())
    }
}
