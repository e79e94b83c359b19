//! Judging without showing anything: for runs whose result is only counted.

use super::one::run_one;
use super::order::Phases;
use super::planned::{joint, selected};
use super::stand::{Judging, Stand};

/// Judges in this process, a thread for each check, and shows nothing: the events tell.
pub struct Quiet<Wanted> {
    /// Whether a check is wanted, by its id.
    pub wanted: Wanted,
}

impl<Wanted: Fn(&str) -> bool> Judging for Quiet<Wanted> {
    fn leaves_out(&self, name: &str) -> bool {
        let id = name.split_once("::").map_or(name, |(_, id)| id);
        !(self.wanted)(id)
    }

    fn judge(&mut self, stand: &Stand<'_>) {
        let chosen = selected(stand.planned);
        stand.session.crashes().expect_participants(joint(&chosen));
        let phases = Phases::of(chosen.iter().map(|one| one.check.sharing));
        std::thread::scope(|scope| {
            for one in &chosen {
                let (session, phases) = (stand.session.clone(), &phases);
                scope.spawn(move || {
                    let _turn = phases.wait_for(one.check.sharing);
                    stand.handle.block_on(run_one(session, one));
                });
            }
        });
    }
}
