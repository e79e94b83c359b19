//! Judges without any output, for runs whose results are only counted.

use super::ready_environment::{Judging, Stand};
use super::run_check::{Hold, run_one};

/// Judges in this process, with a thread for each check and without output; results are in the events.
pub struct Quiet<Wanted> {
    /// Selects checks by id.
    pub wanted: Wanted,
    /// How many run at the same time; by default as many as allowed.
    pub at_once: Option<u32>,
}

impl<Wanted: Fn(&str) -> bool> Judging for Quiet<Wanted> {
    fn leaves_out(&self, name: &str) -> bool {
        let id = name.split_once("::").map_or(name, |(_, id)| id);
        !(self.wanted)(id)
    }

    fn judge(&mut self, stand: &Stand<'_>) {
        let (work, turns) = stand.work(self.at_once.map_or(usize::MAX, |n| n as usize));
        std::thread::scope(|scope| {
            for (one, step) in &work {
                let turns = &turns;
                scope.spawn(move || {
                    let turn = turns.wait_for(*step);
                    let session = stand.lanes[turn.lane()].clone();
                    let hold = Hold::in_order(one.check.isolation);
                    stand.handle.block_on(run_one(stand.lanes, session.clone(), one, hold));
                    if session.gone().is_some() {
                        turn.loses_its_lane();
                    }
                });
            }
        });
    }
}
