//! Turns: a check starts when a lane has started its step and has a free slot.

use super::schedule::{Arrangement, Kind};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The state of all lanes: which step each is at, and how many more checks may run in it.
#[derive(Debug)]
pub(super) struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    steps: Vec<Waiting>,
    lanes: Vec<Lane>,
}

/// A step and its progress.
#[derive(Debug)]
struct Waiting {
    kind: Kind,
    /// Checks that have not ended.
    left: usize,
    /// The lane that runs it.
    lane: Option<usize>,
    /// Whether one of its checks has begun.
    begun: bool,
}

impl Waiting {
    /// Whether another lane can run the checks that have not begun. Checks of one crash wait for each other, so their
    /// step is not divided.
    fn can_move(&self) -> bool {
        self.kind == Kind::Shared || !self.begun
    }
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// The step that it is at.
    at: Option<usize>,
    /// The step with its own environment that runs next to that one.
    crowding: Option<usize>,
    /// Whether it prefers cold steps.
    cold: bool,
    /// The number of free slots in it.
    free: usize,
    /// Whether its environment is gone.
    lost: bool,
}

/// A check's turn; dropping it ends the check.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Scheduler,
    step: usize,
    lane: usize,
}

impl Turn<'_> {
    /// The lane in which it runs.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }

    /// Ends the turn. Returns whether only checks of the whole run are left for its lane, while others still run.
    pub(super) fn ends_the_work_of_its_lane(self) -> bool {
        let (turns, lane) = (self.turns, self.lane);
        drop(self);
        let state = turns.lock();
        // A lane that starts no step now starts another one later only if a lost lane leaves it.
        !state.lanes[lane].lost && state.lanes[lane].at.is_none() && state.next(Kind::Last).is_some()
    }

    /// Reports that the environment of its lane is gone. Other lanes then run what is left: a check in this lane would
    /// end at once, and so would all others, one after the other.
    pub(super) fn loses_its_lane(&self) {
        self.turns.lock().lose(self.lane);
        self.turns.changed.notify_all();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        let free = &mut state.lanes[self.lane].free;
        *free = free.saturating_add(1);
        state.steps[self.step].left -= 1;
        if state.steps[self.step].left == 0 {
            state.leave(self.step);
            state.take_steps();
        }
        drop(state);
        self.turns.changed.notify_all();
    }
}

impl State {
    /// Lets every idle lane start a step.
    fn take_steps(&mut self) {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].at.is_some() || !self.is_usable(lane) {
                continue;
            }
            let Some(step) = self.next_for(lane) else { continue };
            self.steps[step].lane = Some(lane);
            self.lanes[lane].at = Some(step);
        }
        // Sharing checks are many, and late on a crowded machine, as all checks are if two environments crowd it.
        let share = self.steps.iter().any(|step| step.kind == Kind::Shared && step.left > 0);
        let crowded = self.lanes.iter().any(|lane| lane.crowding.is_some());
        if let Some(step) = self.next(Kind::Crowding).filter(|_| !share && !crowded) {
            let lane = self.first_lane();
            self.steps[step].lane = Some(lane);
            self.lanes[lane].crowding = Some(step);
        }
    }

    /// Takes this lane out of use, and lets others run what is left of its steps. The last lane stays in use: the
    /// remaining checks end there, with the reason.
    fn lose(&mut self, lane: usize) {
        if std::mem::replace(&mut self.lanes[lane].lost, true) || !self.lanes.iter().any(|lane| !lane.lost) {
            return;
        }
        let at = [self.lanes[lane].at, self.lanes[lane].crowding];
        for step in at.into_iter().flatten() {
            if self.steps[step].can_move() {
                self.leave(step);
                self.steps[step].lane = None;
            }
        }
        self.take_steps();
    }

    /// Frees the lane of a step.
    fn leave(&mut self, step: usize) {
        for lane in &mut self.lanes {
            lane.at = lane.at.filter(|at| *at != step);
            lane.crowding = lane.crowding.filter(|at| *at != step);
        }
    }

    /// Whether a lane may start steps: its environment is there, or no lane's is.
    fn is_usable(&self, lane: usize) -> bool {
        !self.lanes[lane].lost || self.lanes.iter().all(|lane| lane.lost)
    }

    /// The first lane that may start steps: the one in which checks share the cluster.
    fn first_lane(&self) -> usize {
        (0..self.lanes.len()).find(|lane| self.is_usable(*lane)).unwrap_or(0)
    }

    /// The first step of this kind that no lane has started.
    fn next(&self, kind: Kind) -> Option<usize> {
        self.steps.iter().position(|step| step.kind == kind && step.lane.is_none() && step.left > 0)
    }

    /// The step that a lane starts next, if one is left for it.
    fn next_for(&self, lane: usize) -> Option<usize> {
        let next = |kind: Kind| self.next(kind);
        let first_of_all = self.lanes.len() == 1 && next(Kind::Cold).is_some();
        let shared = next(Kind::Shared).filter(|_| lane == self.first_lane() && !first_of_all);
        let kinds = match self.lanes[lane].cold {
            true => [Kind::Cold, Kind::Apart],
            false => [Kind::Apart, Kind::Cold],
        };
        let last = || next(Kind::Last).filter(|at| self.steps[..*at].iter().all(|step| step.left == 0));
        shared.or_else(|| kinds.into_iter().find_map(next)).or_else(last)
    }

    /// The lane in which a check of this step may start now.
    fn lane_for(&self, step: usize) -> Option<usize> {
        self.steps[step].lane.filter(|lane| self.lanes[*lane].free > 0)
    }
}

impl Scheduler {
    /// Turns for checks in this arrangement and number of lanes (at least one), each with this many slots (at least one).
    pub(super) fn of(arranged: &Arrangement, lanes: usize, at_once: usize) -> Scheduler {
        let mut steps: Vec<Waiting> = arranged
            .steps
            .iter()
            .map(|step| Waiting { kind: step.kind, left: 0, lane: None, begun: false })
            .collect();
        arranged.of.iter().for_each(|step| steps[*step].left += 1);
        let lanes = lanes.max(1);
        let shares = lanes > 1 && steps.iter().any(|step| step.kind == Kind::Shared);
        let others = lanes - usize::from(shares);
        // The first lane has been used by then.
        let cold = lanes - others..lanes - others + arranged.cold_lanes(others);
        let lane = |number: usize| Lane {
            at: None,
            crowding: None,
            cold: cold.contains(&number),
            free: at_once.max(1),
            lost: false,
        };
        let mut state = State { steps, lanes: (0..lanes).map(lane).collect() };
        state.take_steps();
        Scheduler { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits for the turn of a check of this step.
    pub(super) fn wait_for(&self, step: usize) -> Turn<'_> {
        let mut state = self.lock();
        loop {
            if let Some(lane) = state.lane_for(step) {
                state.lanes[lane].free -= 1;
                state.steps[step].begun = true;
                return Turn { turns: self, step, lane };
            }
            state = self.changed.wait(state).expect("no holder of this lock panics");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Step;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Steps of these kinds, each with this many checks.
    fn arranged(steps: &[(Kind, usize)]) -> Arrangement {
        Arrangement {
            steps: steps.iter().map(|(kind, _)| Step { kind: *kind, takes_s: 1 }).collect(),
            of: steps.iter().enumerate().flat_map(|(step, (_, checks))| vec![step; *checks]).collect(),
        }
    }

    /// Runs all checks, and returns step and lane of each in the order in which they started.
    fn run(arranged: &Arrangement, lanes: usize, at_once: usize) -> Vec<(usize, usize)> {
        let turns = Scheduler::of(arranged, lanes, at_once);
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for step in &arranged.of {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let turn = turns.wait_for(*step);
                    order.lock().expect("fine").push((*step, turn.lane()));
                    std::thread::yield_now();
                });
            }
        });
        order.into_inner().expect("fine")
    }

    #[test]
    fn the_steps_of_one_lane_follow_one_another() {
        use Kind::{Apart, Cold, Last, Shared};
        let arranged = arranged(&[(Cold, 1), (Cold, 1), (Shared, 3), (Apart, 2), (Apart, 1), (Last, 1)]);
        for at_once in [1, 8] {
            let steps: Vec<usize> = run(&arranged, 1, at_once).iter().map(|(step, _)| *step).collect();
            assert_eq!(steps, [0, 1, 2, 2, 2, 3, 3, 4, 5]);
        }
    }

    #[test]
    fn with_more_lanes_the_first_has_those_that_share_and_every_step_is_taken_once() {
        use Kind::{Apart, Cold, Last, Shared};
        let arranged = arranged(&[
            (Cold, 1),
            (Cold, 1),
            (Shared, 9),
            (Apart, 2),
            (Apart, 1),
            (Apart, 1),
            (Last, 2),
            (Last, 1),
        ]);
        for (lanes, at_once) in [(2, 1), (2, 4), (3, 2), (5, 99), (12, 3)] {
            let ran = run(&arranged, lanes, at_once);
            assert_eq!(ran.len(), arranged.of.len());
            for (step, lane) in &ran {
                assert!(ran.iter().all(|(other, there)| other != step || there == lane), "one lane a step");
            }
            assert!(ran.iter().filter(|(step, _)| *step == 2).all(|(_, lane)| *lane == 0));
            let ends: Vec<usize> = ran[ran.len() - 3..].iter().map(|(step, _)| *step).collect();
            assert_eq!(ends, [6, 6, 7], "{ran:?}");
        }
    }

    #[test]
    fn a_lane_is_notified_when_only_the_end_is_left_for_it() {
        use Kind::{Apart, Last};
        let ends = |lanes, steps: &[(Kind, usize)]| {
            let turns = Scheduler::of(&arranged(steps), lanes, 1);
            let one = turns.wait_for(0);
            let other = (lanes > 1).then(|| turns.wait_for(1));
            let first = one.ends_the_work_of_its_lane();
            (first, other.map(Turn::ends_the_work_of_its_lane))
        };
        assert_eq!(
            ends(2, &[(Apart, 1), (Apart, 1), (Last, 1)]),
            (true, Some(false)),
            "the other one ends the run"
        );
        assert_eq!(ends(2, &[(Apart, 1), (Apart, 1)]), (false, Some(false)), "nothing judges the whole run");
        assert!(!ends(2, &[(Apart, 1), (Apart, 1), (Apart, 1), (Last, 1)]).0, "it has another step");
        assert_eq!(ends(1, &[(Apart, 1), (Last, 1)]), (false, None));
    }

    #[test]
    fn other_lanes_run_what_a_lost_lane_leaves() {
        use Kind::{Apart, Last, Shared};
        let arranged = arranged(&[(Shared, 3), (Apart, 2), (Apart, 1), (Last, 1)]);
        let turns = Scheduler::of(&arranged, 2, 1);
        let (shared, apart) = (turns.wait_for(0), turns.wait_for(1));
        assert_eq!((shared.lane(), apart.lane()), (0, 1));
        shared.loses_its_lane();
        assert!(!shared.ends_the_work_of_its_lane(), "nothing is done there any more");
        assert_eq!(turns.lock().lane_for(0), None, "the other lane is at its own step");
        drop(apart);
        let apart = turns.wait_for(1);
        drop(apart);
        // The rest of what shares a cluster, then the other step.
        for step in [0, 0, 2] {
            assert_eq!(turns.wait_for(step).lane(), 1);
        }
        assert_eq!(turns.wait_for(3).lane(), 1);
    }

    #[test]
    fn a_step_that_has_begun_ends_in_its_lane_and_the_last_lane_stays_in_use() {
        use Kind::Apart;
        let arranged = arranged(&[(Apart, 2), (Apart, 1), (Apart, 1)]);
        let turns = Scheduler::of(&arranged, 2, 1);
        let (one, other) = (turns.wait_for(0), turns.wait_for(1));
        one.loses_its_lane();
        let lost = one.lane();
        drop(one);
        assert_eq!(turns.wait_for(0).lane(), lost, "its checks may wait for each other");
        other.loses_its_lane();
        drop(other);
        assert_eq!(
            turns.lock().lanes.iter().filter(|lane| lane.at == Some(2)).count(),
            1,
            "it ends somewhere"
        );
        drop(turns.wait_for(2));
    }

    #[test]
    fn the_machine_is_not_crowded_while_checks_share() {
        use Kind::{Apart, Crowding, Shared};
        let arranged = arranged(&[(Shared, 2), (Crowding, 1), (Crowding, 1), (Apart, 1)]);
        let turns = Scheduler::of(&arranged, 2, 1);
        let shared = turns.wait_for(0);
        let at = |turns: &Scheduler| {
            turns.lock().lanes.iter().map(|lane| (lane.at, lane.crowding)).collect::<Vec<_>>()
        };
        assert_eq!(at(&turns), [(Some(0), None), (Some(3), None)]);
        drop(shared);
        drop(turns.wait_for(0));
        assert_eq!(at(&turns), [(None, Some(1)), (Some(3), None)], "one at a time, and other lanes continue");
        drop(turns.wait_for(1));
        assert_eq!(at(&turns), [(None, Some(2)), (Some(3), None)]);
        for step in [2, 3] {
            drop(turns.wait_for(step));
        }
        assert_eq!(at(&turns), [(None, None); 2]);
    }

    #[test]
    fn lanes_do_not_wait_for_one_another() {
        use Kind::{Apart, Shared};
        let arranged = arranged(&[(Shared, 2), (Apart, 1)]);
        let turns = Scheduler::of(&arranged, 2, 1);
        let shared = turns.wait_for(0);
        assert_eq!((shared.lane(), turns.lock().lane_for(0)), (0, None), "its only place is taken");
        assert_eq!(turns.wait_for(1).lane(), 1);
        drop(shared);
        assert_eq!(turns.wait_for(0).lane(), 0);
    }

    #[test]
    fn a_lane_that_began_cold_continues_with_other_checks() {
        use Kind::{Apart, Cold};
        let arranged = arranged(&[(Cold, 1), (Apart, 1), (Apart, 1)]);
        let turns = Scheduler::of(&arranged, 1, 1);
        for step in 0..3 {
            assert_eq!(turns.wait_for(step).lane(), 0);
        }
    }

    #[test]
    fn no_more_work_at_once_than_may() {
        let arranged = arranged(&[(Kind::Shared, 12)]);
        let turns = Scheduler::of(&arranged, 1, 3);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let _turn = turns.wait_for(0);
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 3);
    }
}
