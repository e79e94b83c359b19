//! Files of its Pod that the CCM's program cannot find, for which it is not to blame.

use super::{Session, SessionError};
use crate::ccm::{Form, untold_mounts};
use crate::check::Facility;
use crate::config::BackendKind;
use std::collections::BTreeSet;

impl Session {
    /// Whether the CCM's programs have no files of their own here, and so none of what their Pods mount at paths that nobody tells
    /// them.
    pub(super) fn has_no_mounts(&self) -> bool {
        // They know the cloud by a name where they have some.
        let named = self.cluster.facilities().contains(&Facility::CloudName);
        self.state.cluster.backend == BackendKind::Embedded && !named && self.ccm.exists()
    }

    /// What its Pods mount at paths that are built into its program and that it has not here; `None` where there is nothing like
    /// that.
    pub(super) fn out_of_reach(&self, form: Form) -> Option<String> {
        if !self.has_no_mounts() {
            return None;
        }
        let paths: BTreeSet<String> = self.ccm.pods(form).iter().flat_map(|pod| untold_mounts(pod)).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        (!paths.is_empty()).then(|| {
            format!(
                "this machine gives programs no mount namespaces, so the CCM does not find what its Pod mounts at {}; \
                 'ccm-conformance doctor' says how to mend that",
                paths.join(", ")
            )
        })
    }

    /// Starts the CCM to see whether it does without what is out of reach. One that does not cannot be judged here at all: every
    /// form of it would miss the same, and no check could tell that from a fault of its own.
    ///
    /// # Errors
    /// When it does not come up and something is out of reach: both.
    pub(super) async fn comes_up_without_mounts(&self) -> Result<(), SessionError> {
        match self.ensure_ccm(Form::Replicas).await {
            Err(stop) if self.out_of_reach(Form::Replicas).is_some() => {
                Err(SessionError::Precondition(stop.in_words()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
