//! The cloud as a check uses it: inventory, journal, faults, barriers.

use super::{CheckCx, Undo};
use crate::check::Stop;
use crate::cloud::{
    ActiveFault, Cloud, CloudError, Effect, Entry, Fault, Instance, Inventory, LoadBalancer, Match, Op,
};
use crate::probe::{Observed, ReadError};

/// A barrier this check has raised. Calls that match wait at it until it is released, at the latest by cleanup.
#[derive(Debug)]
pub struct Barrier {
    id: u64,
    cloud: Cloud,
}

impl Barrier {
    /// How many calls wait at it now.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn waiting(&self) -> Result<u64, ReadError> {
        self.cloud.barrier(self.id).await.map(|status| status.waiting).map_err(passing)
    }

    /// Lets the waiting calls take effect and takes the barrier away.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn release(self) -> Result<(), Stop> {
        self.cloud.release_barrier(self.id).await?;
        Ok(())
    }
}

impl Observed for LoadBalancer {
    fn observed(&self) -> String {
        let frontends: Vec<String> =
            self.frontends.iter().map(|f| format!("{}/{} to {}", f.port, f.protocol, f.node_port)).collect();
        let addresses: Vec<String> = self
            .addresses
            .iter()
            .map(|a| a.ip.map(|ip| ip.to_string()).or_else(|| a.hostname.clone()).unwrap_or_default())
            .collect();
        let probe = self.health_check.as_ref().map(|h| format!("{} {}:{}", h.protocol, h.path, h.port));
        format!(
            "load balancer {} {:?}, addresses [{}], frontends [{}], backends [{}], health check {}, affinity {}, ranges {:?}",
            self.id,
            self.state,
            addresses.join(", "),
            frontends.join(", "),
            self.backends.join(", "),
            probe.unwrap_or_else(|| "none".to_owned()),
            self.session_affinity,
            self.source_ranges,
        )
    }
}

impl Observed for Inventory {
    fn observed(&self) -> String {
        let auxiliaries: Vec<String> =
            self.auxiliaries.iter().map(|a| format!("{} {}: {}", a.kind, a.id, a.spec)).collect();
        format!("load balancers {}; auxiliaries [{}]", self.load_balancers.observed(), auxiliaries.join("; "))
    }
}

pub(super) fn passing(error: CloudError) -> ReadError {
    ReadError::passing(crate::check::chain(&error))
}

impl CheckCx {
    /// Everything the cloud holds.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn inventory(&self) -> Result<Inventory, ReadError> {
        self.session.cloud().inventory().await.map_err(passing)
    }

    /// Journal entries since this check began that fit, in order of arrival.
    ///
    /// # Errors
    /// While the cloud is not heard, so that what is known of its journal is the past.
    pub fn journal(&self, fits: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, ReadError> {
        self.session.journal().since(self.mark, fits)
    }

    /// Journal entries about an instance since this check began: by id, name or providerID.
    ///
    /// # Errors
    /// As [`CheckCx::journal`].
    pub fn journal_of_instance(&self, instance: &Instance) -> Result<Vec<Entry>, ReadError> {
        let (id, name) = (instance.id.clone(), instance.name.clone());
        let provider_id = instance.provider_id.clone();
        self.journal(move |entry| {
            let Some(resource) = entry.resource.as_deref() else { return false };
            let value = resource.split_once('=').map_or(resource, |(_, value)| value);
            value == id || value == name || Some(value) == provider_id.as_deref()
        })
    }

    /// Puts a fault in force until it is used up, cleared, or the check ends.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn inject(&self, fault: Fault) -> Result<ActiveFault, Stop> {
        let active = self.session.cloud().inject(&fault).await?;
        self.on_end(Undo::Fault(active.id));
        Ok(active)
    }

    /// An HTTP status instead of an answer, for these operations on this object, until cleared.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn fail_with(&self, status: u16, ops: &[Op], resource: &str) -> Result<ActiveFault, Stop> {
        self.inject(Fault {
            matching: Match { ops: ops.to_vec(), resource: Some(resource.to_owned()), ..Match::default() },
            effect: Effect::Status { status, retry_after_s: None },
            calls: None,
            for_ms: None,
        })
        .await
    }

    /// How often a fault has hit.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn hits(&self, fault: &ActiveFault) -> Result<u64, ReadError> {
        self.session.cloud().fault(fault.id).await.map(|f| f.hits).map_err(passing)
    }

    /// Ends a fault.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn clear(&self, fault: &ActiveFault) -> Result<(), Stop> {
        self.session.cloud().clear_fault(fault.id).await?;
        Ok(())
    }

    /// Holds these operations on this object before they take effect.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn raise_barrier(&self, ops: &[Op], resource: &str) -> Result<Barrier, Stop> {
        let matching = Match { ops: ops.to_vec(), resource: Some(resource.to_owned()), ..Match::default() };
        let cloud = self.session.cloud().clone();
        let barrier = cloud.raise_barrier(&matching).await?;
        self.on_end(Undo::Barrier(barrier.id));
        Ok(Barrier { id: barrier.id, cloud })
    }

    /// Deletes a load balancer behind the CCM's back, with everything that belongs to it.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn remove_load_balancer(&self, lb: &LoadBalancer) -> Result<(), Stop> {
        self.session.cloud().remove_load_balancer(&lb.id).await?;
        Ok(())
    }

    pub(super) async fn undo_instance(&self, id: &str) -> Result<(), String> {
        absent_is_fine(self.session.cloud().remove_instance(id).await)
    }

    pub(super) async fn undo_fault(&self, id: u64) -> Result<(), String> {
        absent_is_fine(self.session.cloud().clear_fault(id).await)
    }

    pub(super) async fn undo_barrier(&self, id: u64) -> Result<(), String> {
        absent_is_fine(self.session.cloud().release_barrier(id).await.map(|_| ()))
    }
}

fn absent_is_fine(outcome: Result<(), CloudError>) -> Result<(), String> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(crate::check::chain(&error)),
    }
}
