//! Turns: a check begins when every check it comes after has ended, and a place at work is free.

use super::arrange::Place;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How many checks of each lane and step are still to end, and how many more may work at once.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    left: BTreeMap<(usize, usize), usize>,
    free: usize,
}

/// A check's turn; when dropped it has ended.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    place: Place,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        if let Some(left) = state.left.get_mut(&(self.place.lane, self.place.step)) {
            *left = left.saturating_sub(1);
        }
        state.free = state.free.saturating_add(1);
        self.turns.changed.notify_all();
    }
}

impl Turns {
    /// For checks in these places, of which so many work at once, at least one.
    pub(super) fn of(places: impl Iterator<Item = Place>, at_once: usize) -> Turns {
        let mut left = BTreeMap::new();
        places.for_each(|place| *left.entry((place.lane, place.step)).or_default() += 1);
        Turns { state: Mutex::new(State { left, free: at_once.max(1) }), changed: Condvar::new() }
    }

    /// Waits for the turn of a check in this place.
    pub(super) fn wait_for(&self, place: Place) -> Turn<'_> {
        let waits = |state: &mut State| {
            let waited_for = |lane: usize, step: usize| match place {
                Place::AT_THE_END => step != Place::AT_THE_END.step,
                _ => lane == place.lane && step < place.after,
            };
            state.free == 0
                || state.left.iter().any(|((lane, step), left)| *left > 0 && waited_for(*lane, *step))
        };
        let mut state = self.changed.wait_while(self.lock(), waits).expect("no holder of this lock panics");
        state.free -= 1;
        Turn { turns: self, place }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn place(lane: usize, step: usize, after: usize) -> Place {
        Place { lane, step, after }
    }

    #[test]
    fn steps_of_a_lane_follow_one_another_and_lanes_do_not_wait() {
        let places = [place(0, 2, 2), place(0, 0, 0), place(0, 1, 1), place(1, 5, 5)];
        let turns = Turns::of(places.into_iter(), 8);
        let order = Mutex::new(Vec::new());
        // The other lane's check need not wait for anybody, even before the first has begun.
        drop(turns.wait_for(places[3]));
        std::thread::scope(|scope| {
            for place in &places[..3] {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.wait_for(*place);
                    order.lock().expect("fine").push(place.step);
                });
            }
        });
        assert_eq!(*order.lock().expect("fine"), [0, 1, 2]);
    }

    #[test]
    fn what_judges_the_whole_run_waits_for_every_lane() {
        let places = [Place::AT_THE_END, place(0, 0, 0), place(3, 1, 1)];
        let turns = Turns::of(places.into_iter(), 8);
        let ended = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for place in places {
                let (turns, ended) = (&turns, &ended);
                scope.spawn(move || {
                    let _turn = turns.wait_for(place);
                    let before = ended.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(before == 2, place == Place::AT_THE_END);
                });
            }
        });
    }

    #[test]
    fn no_more_work_at_once_than_may() {
        let places = [place(0, 0, 0); 12];
        let turns = Turns::of(places.into_iter(), 3);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for place in places {
                let (turns, now, most) = (&turns, &now, &most);
                scope.spawn(move || {
                    let _turn = turns.wait_for(place);
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 3);
    }
}
