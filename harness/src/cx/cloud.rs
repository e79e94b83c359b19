//! The fake cloud as a check uses it: inventory, journal, faults, barriers.

use super::{CheckCx, Undo};
use crate::check::Stop;
use crate::probe::{Observed, ReadError};
use fake_cloud::admin::{
    ActiveFault, Client, ClientError, Effect, Entry, Fault, Inventory, LoadBalancer, Match, Op, Settings,
};

/// A barrier this check has raised. Calls that match wait at it until it is opened, at the latest by cleanup.
#[derive(Debug)]
pub struct Gate {
    id: u64,
    cloud: Client,
}

impl Gate {
    /// How many calls wait at it now.
    ///
    /// # Errors
    /// When the fake cloud does not answer.
    pub async fn waiting(&self) -> Result<u64, ReadError> {
        self.cloud.barrier(self.id).await.map(|status| status.waiting).map_err(passing)
    }

    /// Lets the waiting calls take effect and takes the barrier away.
    ///
    /// # Errors
    /// When the fake cloud does not answer.
    pub async fn open(self) -> Result<(), Stop> {
        self.cloud.release(self.id).await?;
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

pub(super) fn passing(error: ClientError) -> ReadError {
    ReadError::passing(crate::check::chain(&error))
}

impl CheckCx {
    /// Everything the cloud holds.
    ///
    /// # Errors
    /// When the fake cloud does not answer.
    pub async fn inventory(&self) -> Result<Inventory, ReadError> {
        self.session.cloud().inventory().await.map_err(passing)
    }

    /// Journal entries since this check began that fit, in order of arrival.
    pub fn journal(&self, fits: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.session.journal().since(self.mark, fits)
    }

    /// Journal entries about an instance since this check began: by id, name or providerID.
    pub fn journal_of_instance(&self, instance: &fake_cloud::admin::Instance) -> Vec<Entry> {
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
    /// When the fake cloud refuses.
    pub async fn inject(&self, fault: Fault) -> Result<ActiveFault, Stop> {
        let active = self.session.cloud().inject(&fault).await?;
        self.on_end(Undo::Fault(active.id));
        Ok(active)
    }

    /// An HTTP status instead of an answer, for these operations on this object, until cleared.
    ///
    /// # Errors
    /// When the fake cloud refuses.
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
    /// When the fake cloud does not answer.
    pub async fn hits(&self, fault: &ActiveFault) -> Result<u64, ReadError> {
        self.session.cloud().fault(fault.id).await.map(|f| f.hits).map_err(passing)
    }

    /// Ends a fault.
    ///
    /// # Errors
    /// When the fake cloud does not answer.
    pub async fn clear(&self, fault: &ActiveFault) -> Result<(), Stop> {
        self.session.cloud().clear_fault(fault.id).await?;
        Ok(())
    }

    /// Holds these operations on this object before they take effect.
    ///
    /// # Errors
    /// When the fake cloud refuses.
    pub async fn hold(&self, ops: &[Op], resource: &str) -> Result<Gate, Stop> {
        let matching = Match { ops: ops.to_vec(), resource: Some(resource.to_owned()), ..Match::default() };
        let cloud = self.session.cloud().clone();
        let barrier = cloud.raise_barrier(&matching).await?;
        self.on_end(Undo::Barrier(barrier.id));
        Ok(Gate { id: barrier.id, cloud })
    }

    /// Changes the whole cloud's timing until the check ends; only for checks that run alone.
    ///
    /// # Errors
    /// When the fake cloud refuses.
    pub async fn set_cloud(&self, settings: &Settings) -> Result<(), Stop> {
        self.on_end(Undo::Settings);
        self.session.cloud().set_settings(settings).await?;
        Ok(())
    }

    /// Deletes a load balancer behind the CCM's back, with everything that belongs to it.
    ///
    /// # Errors
    /// When the fake cloud refuses.
    pub async fn remove_load_balancer(&self, lb: &LoadBalancer) -> Result<(), Stop> {
        self.session.cloud().delete_load_balancer(&lb.id, true).await?;
        Ok(())
    }

    pub(super) async fn undo_instance(&self, id: &str) -> Result<(), String> {
        absent_is_fine(self.session.cloud().delete_instance(id).await)
    }

    pub(super) async fn undo_fault(&self, id: u64) -> Result<(), String> {
        absent_is_fine(self.session.cloud().clear_fault(id).await)
    }

    pub(super) async fn undo_barrier(&self, id: u64) -> Result<(), String> {
        absent_is_fine(self.session.cloud().release(id).await.map(|_| ()))
    }

    pub(super) async fn undo_settings(&self) -> Result<(), String> {
        let settings = Settings {
            provisioning_ms: Some(0),
            deletion_ms: Some(0),
            stale_ms: Some(0),
            page_size: Some(50),
            action_ms: Some(0),
        };
        absent_is_fine(self.session.cloud().set_settings(&settings).await.map(|_| ()))
    }
}

fn absent_is_fine(outcome: Result<(), ClientError>) -> Result<(), String> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(crate::check::chain(&error)),
    }
}
