//! The cloud as a check sees it: its inventory and its journal.

use super::{Calls, CheckCx, Subject};
use crate::check::SubjectName;
use crate::cloud::{CloudError, Entry, Inventory, LoadBalancer};
use crate::probe::{Observed, Reach, ReadError};

/// The cloud as a whole.
#[derive(Clone, Copy)]
pub struct Cloud<'a> {
    pub(super) cx: &'a CheckCx,
}

impl<'a> Cloud<'a> {
    /// This moment in the journal, for [`Calls::since`].
    ///
    /// # Errors
    /// While the cloud is not heard.
    pub fn mark(&self) -> Result<u64, ReadError> {
        self.cx.heard().mark()
    }

    /// As [`Cloud::mark`], by the cloud itself: every call that has arrived by now is before it, however far behind the
    /// mirror of the journal is.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn mark_now(&self) -> Result<u64, ReadError> {
        self.cx.heard().catch_up().await?;
        self.mark()
    }

    /// All calls since the check began.
    pub fn calls(&self) -> Calls<'a> {
        Calls::about(self.cx, self.name(), |_| true)
    }

    /// Whether a machine may lack a providerID, for all that the cloud says of it.
    pub fn shows_missing_ids(&self) -> bool {
        self.cx.cloud.shown().provider_ids
    }

    /// Whether who is told to come back later is told when.
    pub fn tells_when_to_come_back(&self) -> bool {
        self.cx.cloud.shown().retry_after
    }

    /// Whether there may be a route to a network within that of another.
    pub fn has_nested_routes(&self) -> bool {
        self.cx.cloud.shown().nested_routes
    }
}

impl Subject for Cloud<'_> {
    type Seen = Inventory;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the cloud", name: "under test".to_owned(), uid: None }
    }

    async fn read(&self, _: Reach) -> Result<Inventory, ReadError> {
        self.cx.inventory().await
    }

    fn concerns(&self, _: &Entry) -> bool {
        true
    }
}

impl CheckCx {
    /// The cloud.
    pub fn cloud(&self) -> Cloud<'_> {
        Cloud { cx: self }
    }

    /// Everything the cloud holds.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub(crate) async fn inventory(&self) -> Result<Inventory, ReadError> {
        self.cloud.inventory().await.map_err(passing)
    }

    /// Calls to the cloud since this check began that are kept, in order of arrival, and how many before them are not.
    ///
    /// # Errors
    /// While the cloud is not heard.
    pub(crate) fn journal(&self) -> Result<(u64, Vec<Entry>), ReadError> {
        self.session.journal().kept_since(self.mark)
    }
}

impl Observed for LoadBalancer {
    fn observed(&self) -> String {
        let frontends: Vec<String> = self
            .frontends
            .iter()
            .map(|f| {
                let to =
                    f.backends.as_ref().map(|own| format!(" of [{}]", own.join(", "))).unwrap_or_default();
                let probe = f.health_check.as_ref().map(|h| format!(" checked by {} {}:{}", h.protocol, h.path, h.port));
                let probe = probe.unwrap_or_default();
                format!("{}/{} to {}{to}{probe}", f.port, f.protocol, f.node_port)
            })
            .collect();
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

/// A deletion that found nothing to delete has reached its aim.
pub(super) fn absent_is_fine(outcome: Result<(), CloudError>) -> Result<(), String> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(crate::check::chain(&error)),
    }
}
