//! Barriers: where calls wait before they take effect. It knows who waits, not for what.

use crate::driver::{BarrierStatus, Match};
use tokio::sync::watch;

/// All barriers that stand, in the order they were raised.
#[derive(Debug, Default)]
pub struct Barriers {
    last_id: u64,
    list: Vec<Barrier>,
}

#[derive(Debug)]
struct Barrier {
    status: BarrierStatus,
    /// Dropped with the barrier, which wakes everybody who waits.
    gate: watch::Sender<()>,
}

/// A place in front of a barrier.
#[derive(Debug)]
pub struct Place {
    /// The barrier's id; the one who waits has to tell [`Barriers::leave`] when it goes away.
    pub barrier: u64,
    gate: watch::Receiver<()>,
}

impl Place {
    /// Waits until the barrier is gone.
    pub async fn released(&mut self) {
        while self.gate.changed().await.is_ok() {}
    }
}

impl Barriers {
    /// Raises a barrier.
    pub fn raise(&mut self, matching: Match) -> BarrierStatus {
        self.last_id += 1;
        let status = BarrierStatus { id: self.last_id, matching, waiting: 0, arrived: 0 };
        self.list.push(Barrier { status: status.clone(), gate: watch::Sender::new(()) });
        status
    }

    /// The id of the barrier raised last; 0 when there was none.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// A place in front of the first barrier that applies and is not younger than `youngest`, if there is one.
    pub fn arrive(&mut self, youngest: u64, applies: impl Fn(&Match) -> bool) -> Option<Place> {
        let stands =
            |barrier: &&mut Barrier| barrier.status.id <= youngest && applies(&barrier.status.matching);
        let barrier = self.list.iter_mut().find(stands)?;
        barrier.status.arrived += 1;
        barrier.status.waiting += 1;
        Some(Place { barrier: barrier.status.id, gate: barrier.gate.subscribe() })
    }

    /// Somebody has gone away from a barrier, which may be gone itself.
    pub fn leave(&mut self, id: u64) {
        if let Some(barrier) = self.list.iter_mut().find(|barrier| barrier.status.id == id) {
            barrier.status.waiting = barrier.status.waiting.saturating_sub(1);
        }
    }

    /// One barrier.
    pub fn find(&self, id: u64) -> Option<&BarrierStatus> {
        self.list.iter().map(|barrier| &barrier.status).find(|status| status.id == id)
    }

    /// All barriers.
    pub fn all(&self) -> Vec<BarrierStatus> {
        self.list.iter().map(|barrier| barrier.status.clone()).collect()
    }

    /// Takes a barrier away; returns what it was at that moment.
    pub fn release(&mut self, id: u64) -> Option<BarrierStatus> {
        let at = self.list.iter().position(|barrier| barrier.status.id == id)?;
        Some(self.list.remove(at).status)
    }

    /// Takes all barriers away.
    pub fn release_all(&mut self) {
        self.list.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Op;

    fn on(op: Op) -> Match {
        Match { ops: vec![op], ..Match::default() }
    }

    #[test]
    fn a_barrier_counts_who_waits_and_who_came() {
        let mut barriers = Barriers::default();
        let raised = barriers.raise(on(Op::LbCreate));
        assert!(barriers.arrive(raised.id, |matching| matching.ops == [Op::LbDelete]).is_none());
        let first = barriers.arrive(raised.id, |_| true).expect("a place");
        let _second = barriers.arrive(raised.id, |_| true).expect("a place");
        barriers.leave(first.barrier);
        let last = barriers.release(raised.id).expect("it stands");
        assert_eq!((last.waiting, last.arrived), (1, 2));
        assert_eq!(barriers.release(raised.id), None);
        barriers.leave(raised.id);
    }

    #[test]
    fn only_barriers_that_stood_when_a_call_arrived_hold_it() {
        let mut barriers = Barriers::default();
        let youngest = barriers.last_id();
        barriers.raise(Match::default());
        assert!(barriers.arrive(youngest, |_| true).is_none());
    }

    #[tokio::test]
    async fn release_wakes_everybody() {
        let mut barriers = Barriers::default();
        barriers.raise(Match::default());
        let mut first = barriers.arrive(1, |_| true).expect("a place");
        let mut second = barriers.arrive(1, |_| true).expect("a place");
        barriers.release_all();
        first.released().await;
        second.released().await;
    }
}
