//! What the CCM cannot be blamed for: that others were away, silent, or too slow.

use super::environment_watch::Excuse;
use super::{Session, flood};
use harness_core::events::End;
use std::time::Duration;
use tokio::time::Instant;

impl Session {
    /// Whether cluster and cloud have been there since `began` and still are: else whatever failed meanwhile says nothing.
    ///
    /// # Errors
    /// Who was away, and for how long.
    pub async fn stood_since(&self, began: Instant) -> Result<(), String> {
        match self.environment_watch.throughout(began).await {
            Ok(()) => Ok(()),
            // Who has made everything slow does not get away with it.
            Err(Excuse::Slow(_) | Excuse::Away(_)) if flood::has_come_since(began, self.cluster()).await => {
                Ok(())
            }
            Err(Excuse::Slow(why) | Excuse::Away(why)) => Err(why),
        }
    }

    /// Who was silent when the CCM's process ended, or shortly before, in words: a CCM that elects ends when it cannot renew its
    /// Lease, and has no more than half of the time for it where it is not answered in the other half, or where one answer takes a
    /// second. A crash is never excused.
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
