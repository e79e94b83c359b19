//! The crash of the leader, caused once for all checks that watch it.

use super::lease::{holder_of, transitions_of};
use super::undo_steps::Undo;
use super::{CheckCx, Subject};
use harness_core::check::CheckError;
use harness_core::probe::ReadSource;
use harness_session::Crash;
use std::time::Instant;

fn no_part() -> CheckError {
    CheckError::Error("this check does not declare that it watches the leader crash".to_owned())
}

impl CheckCx {
    /// Waits until the crash is near: from then on only checks that watch the same crash run, and each makes its last
    /// preparations. Until then the check has run together with others. Only for checks that declare this
    /// ([`Isolation::SharedCrash`](harness_core::check::Isolation::SharedCrash)).
    ///
    /// # Errors
    /// [`CheckError::Error`] when the cluster could not be held.
    pub async fn crash_is_near(&self) -> Result<(), CheckError> {
        let mut participant = self.participant.lock().await;
        let participant = participant.as_mut().ok_or_else(no_part)?;
        drop(self.turn.lock().expect("no holder of this lock panics").take());
        let arrival = async { participant.arrive(self.session.dir()).await.map_err(CheckError::Error) };
        self.session.unless_interrupted(arrival).await
    }

    /// Waits until the crash waits only for this check: what it starts now is in progress when the leader dies, however
    /// long the preparations of the others take. Only one check of each crash may use this.
    ///
    /// # Errors
    /// As [`CheckCx::crash_is_near`].
    pub async fn crash_waits_for_this(&self) -> Result<(), CheckError> {
        self.crash_is_near().await?;
        let mut participant = self.participant.lock().await;
        let participant = participant.as_mut().ok_or_else(no_part)?;
        let last = async { participant.last(self.session.dir()).await.map_err(CheckError::Error) };
        self.session.unless_interrupted(last).await
    }

    /// Kills the leader as a crash would, and keeps it down until all checks that watch have ended.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when no replica leads, otherwise that it could not be killed; the same for all checks.
    pub async fn leader_crash(&self) -> Result<Crash, CheckError> {
        self.crash_is_near().await?;
        self.on_end(Undo::Crash);
        let mut participant = self.participant.lock().await;
        let participant = participant.as_mut().ok_or_else(no_part)?;
        let crash = participant.crash(self.session.dir(), || self.make_crash());
        self.session.unless_interrupted(crash).await
    }

    async fn make_crash(&self) -> Result<Crash, CheckError> {
        let replica = self.active_replica().await?;
        let lease = self.lease().read(ReadSource::Origin).await?;
        let (holder, transitions) =
            lease.map_or((None, 0), |lease| (holder_of(&lease), transitions_of(&lease)));
        let mark = self.heard().mark()?;
        let at = Instant::now();
        replica.kill().await?;
        Ok(Crash { replica: replica.name().to_owned(), holder, transitions, mark, at })
    }

    /// The last check that watched brings the CCM back; `needed` says whether its next undo step needs the CCM.
    pub(super) async fn undo_crash(&self, needed: bool) -> Result<(), String> {
        let participant = self.participant.lock().await;
        let Some(participant) = participant.as_ref() else { return Ok(()) };
        if participant.finish() { self.undo_ccm(participant.crashed(), needed).await } else { Ok(()) }
    }
}
