//! A fault that is set at one point of a trial.

use crate::pattern::Pattern;
use crate::point::Point;
use harness_clouds::{Effect, Fault as CloudFault, Match, fresh_id};
use harness_clusters::{RequestFault, RequestMatch};
use harness_core::check::CheckError;
use harness_session::Session;
use std::cell::Cell;

/// A fault that is set.
pub(crate) struct Fault<'a> {
    session: &'a Session,
    set: Set,
    /// How many requests had met it when it was last read.
    hits: Cell<u64>,
    cleared: Cell<bool>,
}

enum Set {
    /// At the API server, by its id.
    Api(u64),
    /// At the cloud: the ids of all faults, the one that matters last.
    Cloud(Vec<u64>),
}

impl<'a> Fault<'a> {
    /// Sets a fault. `name_of` returns the name of a machine in this trial, `namespace` is that of the trial's Services.
    ///
    /// # Errors
    /// Cluster or cloud do not answer.
    pub(crate) async fn set(
        session: &'a Session,
        point: &Point,
        pattern: Pattern,
        name_of: &dyn Fn(&str) -> String,
        namespace: &str,
    ) -> Result<Fault<'a>, CheckError> {
        let set = match point {
            Point::Api { verb, resource, object, nth } => {
                let faults = session.cluster().api_faults().ok_or_else(|| impossible(point))?;
                let fault = pattern.at_api_server().ok_or_else(|| impossible(point))?;
                let of_nodes = resource.split('/').next() == Some("nodes");
                let matching = RequestMatch {
                    verb: verb.clone(),
                    resource: resource.clone(),
                    namespace: if of_nodes { String::new() } else { namespace.to_owned() },
                    name: if of_nodes { name_of(object) } else { object.clone() },
                };
                let id = fresh_id();
                let fault =
                    RequestFault { matching, skip: nth - 1, times: fault.times, effect: fault.effect };
                faults.set(id, fault).await?;
                Set::Api(id)
            }
            Point::Cloud { operation, object, nth } => {
                let (effect, times) = pattern.at_cloud().ok_or_else(|| impossible(point))?;
                let resource = (!object.is_empty()).then(|| name_of(object));
                let matching = Match { ops: vec![*operation], resource, ..Match::default() };
                let (mut ids, mut faults) = (Vec::new(), Vec::new());
                if *nth > 1 {
                    // The calls before it are answered as usual, and at once.
                    let usual = Effect::Latency { ms: 0 };
                    faults.push((usual, nth - 1));
                }
                faults.push((effect, times));
                for (effect, calls) in faults {
                    let fault =
                        CloudFault { matching: matching.clone(), effect, calls: Some(calls), for_ms: None };
                    let id = fresh_id();
                    session.cloud().inject(id, &fault).await?;
                    ids.push(id);
                }
                Set::Cloud(ids)
            }
            Point::Step { .. } => return Err(impossible(point)),
        };
        Ok(Fault { session, set, hits: Cell::new(0), cleared: Cell::new(false) })
    }

    /// How many requests have met it.
    ///
    /// # Errors
    /// Cluster or cloud do not answer.
    pub(crate) async fn hits(&self) -> Result<u64, CheckError> {
        if self.cleared.get() {
            return Ok(self.hits.get());
        }
        let hits = match (&self.set, self.session.cluster().api_faults()) {
            (Set::Api(id), Some(faults)) => faults.state(*id).await?.map_or(0, |state| state.hits),
            (Set::Api(_), None) => 0,
            (Set::Cloud(ids), _) => match ids.last() {
                Some(id) => self.session.cloud().fault(*id).await?.hits,
                None => 0,
            },
        };
        self.hits.set(hits);
        Ok(hits)
    }

    /// Removes it; may be called again.
    ///
    /// # Errors
    /// Cluster or cloud do not answer.
    pub(crate) async fn clear(&self) -> Result<(), CheckError> {
        if self.cleared.replace(true) {
            return Ok(());
        }
        match (&self.set, self.session.cluster().api_faults()) {
            (Set::Api(id), Some(faults)) => faults.clear(*id).await?,
            (Set::Api(_), None) => {}
            (Set::Cloud(ids), _) => {
                for id in ids {
                    self.session.cloud().clear_fault(*id).await?;
                }
            }
        }
        Ok(())
    }
}

fn impossible(point: &Point) -> CheckError {
    CheckError::Error(format!("this cluster cannot put this fault at the {point}"))
}
