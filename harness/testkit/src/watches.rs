//! Watches of the CCM that end and are too old when they come again.

use super::CheckCx;
use super::undo_steps::Undo;
use harness_clusters::{Operation, WatchOp};
use harness_core::check::{CheckError, chain};
use std::time::Duration;
use tokio::time::Instant;

/// The CCM's watches have ended and none begins: what changes now it is not told.
#[derive(Debug)]
#[must_use = "the CCM is told nothing until its watches are expired"]
pub struct Interruption<'a> {
    cx: &'a CheckCx,
    began: Instant,
}

impl CheckCx {
    /// Ends the CCM's watches; they stay away until they are expired, at the latest when the check ends.
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
    /// Lets watches begin again. Those that missed something are answered with 410: only a list shows what it was. Returns how much
    /// longer than usual a client may take until it asks again: its pauses double while it is refused, and are lengthened by up to
    /// as much again at random (client-go tools/cache/reflector.go), so twice the time that watches were away.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn expire(self) -> Result<Duration, CheckError> {
        self.cx.undo_watches().await.map_err(CheckError::Error)?;
        self.cx.is_undone(&Undo::Watches);
        Ok(self.began.elapsed() * 2)
    }
}
