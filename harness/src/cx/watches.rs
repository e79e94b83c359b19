//! Watches of the CCM that end and are too old when they come again.

use super::CheckCx;
use super::made::Undo;
use crate::check::{Stop, Verdict, chain};
use crate::cluster::{Operation, WatchOp};

/// The CCM's watches have ended and none begins: what changes now it is not told.
#[derive(Debug)]
#[must_use = "the CCM is told nothing until its watches are expired"]
pub struct Interruption<'a> {
    cx: &'a CheckCx,
}

impl CheckCx {
    /// Ends the CCM's watches; they stay away until they are expired, at the latest when the check ends.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn interrupt_watches(&self) -> Result<Interruption<'_>, Stop> {
        self.on_end(Undo::Watches);
        self.session.cluster().operate(Operation::Watches(WatchOp::Interrupt)).await?;
        Ok(Interruption { cx: self })
    }

    pub(super) async fn undo_watches(&self) -> Result<(), String> {
        let expire = Operation::Watches(WatchOp::Expire);
        self.session.cluster().operate(expire).await.map_err(|error| chain(&error))
    }
}

impl Interruption<'_> {
    /// Lets watches begin again. Those that missed something are answered with 410: only a list shows what it was.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn expire(self) -> Verdict {
        self.cx.undo_watches().await.map_err(Stop::Error)
    }
}
