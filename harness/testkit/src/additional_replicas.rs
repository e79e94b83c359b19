//! Additional replicas of the CCM.

use super::replicas::{Replica, runs};
use super::undo_steps::Undo;
use super::{CheckCx, Subject};
use harness_core::check::{CheckError, chain};

impl CheckCx {
    /// Starts three more replicas, each with its own credential, next to the deployed ones; all run when this returns.
    /// They are removed when the check ends. Only for checks that run alone.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when there is no CCM or one of them does not run within B-START, [`CheckError::Error`]
    /// when the API server refuses.
    pub async fn newcomers(&self) -> Result<Vec<Replica<'_>>, CheckError> {
        let ccm = self.session.ccm();
        let rendered = ccm.rendered_newcomers();
        let none =
            || CheckError::violation("more replicas of the CCM start", "a CCM", "the profile deploys none");
        self.on_end(Undo::Newcomers);
        ccm.apply_rendered(&rendered.ok_or_else(none)?).await?;
        let newcomers: Vec<Replica<'_>> =
            ccm.newcomers().iter().map(|replica| self.replica(&replica.name)).collect();
        for newcomer in &newcomers {
            newcomer.becomes(runs()).within(self.limits().start()).await?;
        }
        Ok(newcomers)
    }

    /// Removes them. The Lease stays with its holder, so if that was one of them the next check waits.
    pub(super) async fn undo_newcomers(&self) -> Result<(), String> {
        let ccm = self.session.ccm();
        let Some(rendered) = ccm.rendered_newcomers() else { return Ok(()) };
        ccm.remove_additional(rendered).await.map_err(|error| chain(&error))?;
        self.session.note_returning().map_err(|error| chain(&error))
    }
}
