//! Barriers, at which calls wait before they take effect. A barrier knows its callers, but not what their calls do.

use crate::used_ids::{Taken, UsedIds};
use fake_cloud_driver::{BarrierStatus, Match};
use tokio::sync::watch;

/// All current barriers, in the order in which they were raised.
#[derive(Debug, Default)]
pub struct Barriers {
    /// How many barriers were raised.
    raised: u64,
    ended: UsedIds,
    list: Vec<Barrier>,
}

#[derive(Debug)]
struct Barrier {
    /// Its position in the order in which barriers were raised, from 1.
    place: u64,
    status: BarrierStatus,
    /// Dropped with the barrier, which wakes all waiting calls.
    gate: watch::Sender<()>,
}

/// A place at a barrier.
#[derive(Debug)]
pub struct Place {
    /// The barrier's id. A call that stops waiting has to call [`Barriers::leave`].
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
    /// Raises a barrier. An id can be used once. So a released barrier stays released, even if the call that
    /// raises it is carried out after the one that releases it.
    ///
    /// # Errors
    /// There is a barrier with this id, or there was one.
    pub fn raise(&mut self, id: u64, matching: Match) -> Result<BarrierStatus, Taken> {
        self.ended.is_free(id, self.find(id).is_some())?;
        self.raised += 1;
        let status = BarrierStatus { id, matching, waiting: 0, arrived: 0 };
        let gate = watch::Sender::new(());
        self.list.push(Barrier { place: self.raised, status: status.clone(), gate });
        Ok(status)
    }

    /// How many barriers were raised so far.
    pub fn raised(&self) -> u64 {
        self.raised
    }

    /// A place at the first barrier that applies and is among the first `youngest` that were raised, if there
    /// is one.
    pub fn arrive(&mut self, youngest: u64, applies: impl Fn(&Match) -> bool) -> Option<Place> {
        let stands = |barrier: &&mut Barrier| barrier.place <= youngest && applies(&barrier.status.matching);
        let barrier = self.list.iter_mut().find(stands)?;
        barrier.status.arrived += 1;
        barrier.status.waiting += 1;
        Some(Place { barrier: barrier.status.id, gate: barrier.gate.subscribe() })
    }

    /// Records that a call has left a barrier, which may already be gone.
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

    /// Removes a barrier; returns its state at that moment. Its id cannot be used again.
    pub fn release(&mut self, id: u64) -> Option<BarrierStatus> {
        self.ended.use_up(id);
        let at = self.list.iter().position(|barrier| barrier.status.id == id)?;
        Some(self.list.remove(at).status)
    }

    /// Removes all barriers.
    pub fn release_all(&mut self) {
        self.list.drain(..).for_each(|barrier| self.ended.use_up(barrier.status.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_cloud_driver::Op;

    fn on(op: Op) -> Match {
        Match { ops: vec![op], ..Match::default() }
    }

    #[test]
    fn a_barrier_counts_who_waits_and_who_came() {
        let mut barriers = Barriers::default();
        let raised = barriers.raise(44, on(Op::LbCreate)).expect("a free id");
        assert!(barriers.arrive(1, |matching| matching.ops == [Op::LbDelete]).is_none());
        let first = barriers.arrive(1, |_| true).expect("a place");
        let _second = barriers.arrive(1, |_| true).expect("a place");
        barriers.leave(first.barrier);
        let last = barriers.release(raised.id).expect("it stands");
        assert_eq!((last.waiting, last.arrived), (1, 2));
        assert_eq!(barriers.release(raised.id), None);
        barriers.leave(raised.id);
    }

    #[test]
    fn only_barriers_that_stood_when_a_call_arrived_hold_it() {
        let mut barriers = Barriers::default();
        let youngest = barriers.raised();
        barriers.raise(44, Match::default()).expect("a free id");
        assert!(barriers.arrive(youngest, |_| true).is_none());
    }

    #[tokio::test]
    async fn release_wakes_everybody() {
        let mut barriers = Barriers::default();
        barriers.raise(44, Match::default()).expect("a free id");
        let mut first = barriers.arrive(1, |_| true).expect("a place");
        let mut second = barriers.arrive(1, |_| true).expect("a place");
        barriers.release_all();
        first.released().await;
        second.released().await;
    }

    #[test]
    fn a_released_barrier_stays_released_whichever_call_comes_first() {
        let mut barriers = Barriers::default();
        assert_eq!(barriers.release(7), None, "it does not stand yet");
        assert_eq!(barriers.raise(7, Match::default()), Err(Taken::Ended(7)));
        barriers.raise(8, Match::default()).expect("a free id");
        assert_eq!(barriers.raise(8, Match::default()), Err(Taken::Stands(8)));
        assert!(barriers.arrive(2, |_| true).is_some_and(|place| place.barrier == 8));
    }
}
