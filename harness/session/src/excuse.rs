//! Failures for which the CCM is not to blame: other components were away, silent, or too slow.

use super::environment_watch::EnvironmentCause;
use super::{Session, flood};
use harness_core::events::End;
use std::time::Duration;
use tokio::time::Instant;

impl Session {
    /// Whether cluster and cloud have answered since `began` and still do; otherwise a failure in that time is not
    /// evidence.
    ///
    /// # Errors
    /// The component that was away, and for how long.
    pub async fn stood_since(&self, began: Instant) -> Result<(), String> {
        match self.environment_watch.throughout(began).await {
            Ok(()) => Ok(()),
            // A CCM that caused the slowness itself is not excused.
            Err(EnvironmentCause::Slow(_) | EnvironmentCause::Away(_))
                if flood::has_come_since(began, self.cluster()).await =>
            {
                Ok(())
            }
            Err(EnvironmentCause::Slow(why) | EnvironmentCause::Away(why)) => Err(why),
        }
    }

    /// A message about the component that was silent when the CCM's process exited, or shortly before. A CCM with leader
    /// election exits when it cannot renew its Lease; if it gets no answer for half of its renew deadline, or if one
    /// answer takes a second, too little of the deadline is left. A crash is never excused.
    pub fn excuse_of(&self, end: &End) -> Option<String> {
        if end.is_crash() {
            return None;
        }
        let ago = Duration::from_millis(self.events.now_ms().saturating_sub(end.at_ms));
        let (at, deadline) = (Instant::now().checked_sub(ago)?, self.limits().lease().renew_deadline);
        let silent = self.environment_watch.silent_about(at, deadline / 2);
        silent.or_else(|| self.environment_watch.late_before(at, 2 * deadline))
    }
}
