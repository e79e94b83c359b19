//! Barriers: matching calls wait before they take effect until somebody releases them.

use crate::admin::{BarrierStatus, Match};
use crate::faults::Subject;
use crate::model::Model;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

#[derive(Debug)]
struct Barrier {
    id: u64,
    matching: Match,
    waiting: Arc<AtomicU64>,
    arrived: u64,
    open: watch::Sender<bool>,
}

impl Barrier {
    fn status(&self) -> BarrierStatus {
        BarrierStatus {
            id: self.id,
            matching: self.matching.clone(),
            waiting: self.waiting.load(Ordering::Relaxed),
            arrived: self.arrived,
        }
    }
}

/// Barriers that stand.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    standing: Vec<Barrier>,
    last_id: u64,
}

/// A call's place at a barrier; dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct Place {
    open: watch::Receiver<bool>,
    waiting: Arc<AtomicU64>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Place {
    /// Waits until the barrier is released.
    pub(crate) async fn wait(mut self) {
        // A barrier that is dropped without a word is open, too.
        let _ = self.open.wait_for(|open| *open).await;
    }
}

impl Barriers {
    pub(crate) fn raise(&mut self, matching: Match) -> BarrierStatus {
        self.last_id += 1;
        let barrier = Barrier {
            id: self.last_id,
            matching,
            waiting: Arc::default(),
            arrived: 0,
            open: watch::Sender::new(false),
        };
        let status = barrier.status();
        self.standing.push(barrier);
        status
    }

    /// A place at the first barrier that matches the call.
    pub(crate) fn hold(&mut self, subject: &Subject, model: &Model) -> Option<Place> {
        let barrier = self.standing.iter_mut().find(|barrier| barrier.matching.fits(subject, model))?;
        barrier.arrived += 1;
        barrier.waiting.fetch_add(1, Ordering::Relaxed);
        Some(Place { open: barrier.open.subscribe(), waiting: barrier.waiting.clone() })
    }

    pub(crate) fn list(&self) -> Vec<BarrierStatus> {
        self.standing.iter().map(Barrier::status).collect()
    }

    pub(crate) fn find(&self, id: u64) -> Option<BarrierStatus> {
        self.standing.iter().find(|barrier| barrier.id == id).map(Barrier::status)
    }

    /// Takes a barrier away and lets its calls go on; its last status.
    pub(crate) fn release(&mut self, id: u64) -> Option<BarrierStatus> {
        let at = self.standing.iter().position(|barrier| barrier.id == id)?;
        let barrier = self.standing.remove(at);
        let status = barrier.status();
        barrier.open.send_replace(true);
        Some(status)
    }

    pub(crate) fn release_all(&mut self) {
        for barrier in self.standing.drain(..) {
            barrier.open.send_replace(true);
        }
    }
}
