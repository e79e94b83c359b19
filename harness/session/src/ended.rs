//! What ends the waits of a session: the run is interrupted, or cluster or cloud are gone.

use super::{Continuity, Session};
use harness_core::check::CheckError;
use harness_core::ledger::INTERRUPTED;
use std::future::Future;

impl Session {
    /// Why the environment is gone, if it is.
    pub fn gone(&self) -> Option<&str> {
        self.environment_watch.gone()
    }

    /// Runs a future until it ends or the environment is gone, after which nothing can be read or undone.
    ///
    /// # Errors
    /// The future's own, or why the environment is gone.
    pub async fn unless_gone<T>(&self, future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        self.environment_watch.unless_gone(future).await
    }

    /// Runs a future that makes the API server unavailable for a while; this time does not count as a failure of the
    /// environment.
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

    /// What load balancers lost between one correct state and the next.
    pub fn continuity(&self) -> &Continuity {
        &self.continuity
    }
}
