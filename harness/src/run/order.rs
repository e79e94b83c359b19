//! Phases: checks that need a cold cluster first, then those that share (those that watch the leader crash are the last
//! of them to begin), then those that run alone.

use crate::check::Sharing;
use std::sync::{Condvar, Mutex};

/// How many checks of each phase are still to end.
#[derive(Debug)]
pub(super) struct Phases {
    left: Mutex<[usize; 4]>,
    ended: Condvar,
}

/// A check's turn; when dropped it has ended.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    phases: &'a Phases,
    phase: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut left = self.phases.left.lock().expect("no holder of this lock panics");
        left[self.phase] = left[self.phase].saturating_sub(1);
        self.phases.ended.notify_all();
    }
}

/// A check's place in the order.
pub(super) fn phase(sharing: Sharing) -> usize {
    match sharing {
        Sharing::Cold => 0,
        Sharing::Shared => 1,
        Sharing::Joint => 2,
        Sharing::Exclusive => 3,
    }
}

impl Phases {
    /// For these checks.
    pub(super) fn of(checks: impl Iterator<Item = Sharing>) -> Phases {
        let mut left = [0; 4];
        checks.for_each(|sharing| left[phase(sharing)] += 1);
        Phases { left: Mutex::new(left), ended: Condvar::new() }
    }

    /// Waits until every check of an earlier phase has ended; those that watch the leader crash prepare beside those that
    /// share.
    pub(super) fn wait_for(&self, sharing: Sharing) -> Turn<'_> {
        let phase = phase(sharing);
        let left = self.left.lock().expect("no holder of this lock panics");
        let awaited = if sharing == Sharing::Joint { 1 } else { phase };
        let earlier = |left: &mut [usize; 4]| left[..awaited].iter().any(|count| *count > 0);
        drop(self.ended.wait_while(left, earlier).expect("no holder of this lock panics"));
        Turn { phases: self, phase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_phases_wait_for_earlier_ones() {
        let phases = Phases::of([Sharing::Exclusive, Sharing::Cold, Sharing::Shared].into_iter());
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for sharing in [Sharing::Exclusive, Sharing::Shared, Sharing::Cold] {
                let (phases, order) = (&phases, &order);
                scope.spawn(move || {
                    let _turn = phases.wait_for(sharing);
                    order.lock().expect("fine").push(sharing);
                });
            }
        });
        assert_eq!(*order.lock().expect("fine"), [Sharing::Cold, Sharing::Shared, Sharing::Exclusive]);
    }
}
