//! What ends the waits of a session: the run is interrupted, or cluster or cloud are gone.

use super::{Continuity, Session};
use harness_core::check::CheckError;
use harness_core::ledger::INTERRUPTED;
use std::future::Future;

impl Session {
    /// Why there is no environment any more, if cluster or cloud are gone.
    pub fn gone(&self) -> Option<&str> {
        self.environment_watch.gone()
    }

    /// Runs a future until it ends, or the environment is gone: nothing can be read of it then, and nothing undone.
    ///
    /// # Errors
    /// The future's own, or why the environment is gone.
    pub async fn unless_gone<T>(&self, future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        self.environment_watch.unless_gone(future).await
    }

    /// Runs a future that has the API server be away for a while, which is then nobody's excuse.
    pub async fn through_absence<T>(&self, future: impl Future<Output = T>) -> T {
        self.environment_watch.through_absence(future).await
    }

    /// Runs a future until it ends, the run is interrupted, or the environment is gone.
    ///
    /// # Errors
    /// The future's own, or [`CheckError::Error`] on interruption and loss.
    pub async fn unless_interrupted<T>(
        &self,
        future: impl Future<Output = Result<T, CheckError>>,
    ) -> Result<T, CheckError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CheckError::Error(INTERRUPTED.to_owned())),
            why = self.environment_watch.until_gone() => Err(CheckError::Error(why)),
            outcome = future => outcome,
        }
    }

    /// What load balancers lost between one right state and the next.
    pub fn continuity(&self) -> &Continuity {
        &self.continuity
    }
}
