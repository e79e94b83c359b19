//! Watches of the CCM that are interrupted until their resource versions have expired.

use super::CheckCx;
use super::undo_steps::Undo;
use harness_clusters::{Operation, WatchOp};
use harness_core::check::{CheckError, chain};
use std::time::Duration;
use tokio::time::Instant;

/// The CCM's watches have ended and new ones are refused: it gets no events about changes.
#[derive(Debug)]
#[must_use = "the CCM gets no events until its watches are expired"]
pub struct Interruption<'a> {
    cx: &'a CheckCx,
    began: Instant,
}

impl CheckCx {
    /// Ends the CCM's watches and refuses new ones until they are expired, at the latest when the check ends.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn interrupt_watches(&self) -> Result<Interruption<'_>, CheckError> {
        self.on_end(Undo::Watches);
        let began = Instant::now();
        let interrupt = Operation::Watches(WatchOp::Interrupt);
        self.session.through_absence(self.session.cluster().operate(interrupt)).await?;
        Ok(Interruption { cx: self, began })
    }

    pub(super) async fn undo_watches(&self) -> Result<(), String> {
        let expire = Operation::Watches(WatchOp::Expire);
        self.session.cluster().operate(expire).await.map_err(|error| chain(&error))
    }
}

impl Interruption<'_> {
    /// Allows watches again. Those that missed something are answered with 410, so that the CCM must list. Returns how
    /// much longer than usual a client may take until its next request: its pauses double while it is refused, and a
    /// random part of up to the same length is added (client-go tools/cache/reflector.go), so twice the time that watches
    /// were refused.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn expire(self) -> Result<Duration, CheckError> {
        self.cx.undo_watches().await.map_err(CheckError::Error)?;
        self.cx.is_undone(&Undo::Watches);
        Ok(self.began.elapsed() * 2)
    }
}
