//! More replicas of the CCM than it is deployed with.

use super::replicas::{Replica, runs};
use super::undo_steps::Undo;
use super::{CheckCx, Subject};
use harness_core::check::{CheckError, chain};

impl CheckCx {
    /// Three more replicas, each with a credential of its own, beside those that are deployed; all run when this returns. They go
    /// when the check ends. Only for checks that run alone.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when there is no CCM or one of them does not run in B-START, [`CheckError::Error`] when the API server refuses.
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

    /// Takes them away. The Lease stays whoever holds it, so that where that was one of them the next check waits.
    pub(super) async fn undo_newcomers(&self) -> Result<(), String> {
        let ccm = self.session.ccm();
        let Some(rendered) = ccm.rendered_newcomers() else { return Ok(()) };
        ccm.remove_beside(rendered).await.map_err(|error| chain(&error))?;
        self.session.note_returning().map_err(|error| chain(&error))
    }
}
