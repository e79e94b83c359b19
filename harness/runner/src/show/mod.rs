//! Judges in this process, and shows what happens in the form that the user chose.

mod board;
mod json;
mod started;
mod tap;
mod text;

use super::evidence_path::with_openable_path;
use super::forecast::Forecast;
use super::planned::{Planned, selected};
use super::ready_environment::{Judging, Stand, is_trouble};
use super::run_check::{Hold, run_one};
use board::Board;
use harness_core::check::Isolation;
use harness_core::events::Payload;
use harness_core::ledger::{Entry, Ledger, Outcome, SkipReason};
use harness_core::output;
use harness_core::progress::Verbosity;
use harness_core::screen;
use harness_report::outcome_word;
use harness_session::Session;
use harness_session::ccm::Form;
use started::Started;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The form in which checks are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownAs {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object in each line of standard output.
    Json,
    /// Lines for people, with groups and annotations of GitHub Actions.
    Github,
    /// The Test Anything Protocol on standard output.
    Tap,
}

/// Judges in this process, with a thread for each check, and shows each check as it starts and ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// How many checks run at the same time on each cluster.
    pub at_once: usize,
    /// The form.
    pub form: ShownAs,
    /// How much is shown.
    pub verbosity: Verbosity,
    /// From this number of failures on no further check starts.
    pub max_fail: Option<usize>,
}

impl Judging for Shown {
    fn judge(&mut self, stand: &Stand<'_>) {
        let (work, turns) = stand.work(self.at_once);
        let plan = stand.session().plan();
        let forecast = Forecast {
            checks: selected(stand.planned),
            lanes: stand.lanes.len(),
            at_once: self.at_once,
            workers: plan.profile.workers,
            backend: plan.cluster.backend(),
        };
        let board = Arc::new(Board::new(forecast, self.max_fail, Instant::now()));
        let started = Started { planned: stand.planned, total: work.len() };
        self.show(match self.form {
            ShownAs::Text | ShownAs::Github => text::began(&started, self.verbosity),
            ShownAs::Json => json::began(&started),
            ShownAs::Tap => tap::began(&started),
        });
        if screen::moves() {
            let board = board.clone();
            screen::show_status(Some(Box::new(move |columns| board.line(columns, Instant::now()))));
        }
        let (aborted, shown) = (AtomicBool::new(false), *self);
        std::thread::scope(|scope| {
            for (one, step) in &work {
                let (turns, board, aborted) = (&turns, &board, &aborted);
                scope.spawn(move || {
                    let turn = turns.wait_for(*step);
                    let session = stand.lanes[turn.lane()].clone();
                    shown.judge_one(stand, &session, one, board);
                    if let Some(broken) = output::broken().filter(|_| !aborted.swap(true, Ordering::Relaxed))
                    {
                        stand.session().events().say(format!("error: {}: the run is aborted", broken.why));
                        stand.session().interrupt();
                    }
                    if session.gone().is_some() {
                        turn.loses_its_lane();
                    }
                    if turn.ends_the_work_of_its_lane() {
                        // Checks of the whole run expect the CCM there. If it does not start, that is reported then.
                        let returns = session.unless_interrupted(session.ensure_ccm(Form::Replicas));
                        let _ = stand.handle.block_on(returns);
                    }
                });
            }
        });
        screen::show_status(None);
    }

    fn cannot(&mut self, why: &str) {
        self.show(match self.form {
            ShownAs::Text | ShownAs::Github => String::new(),
            ShownAs::Json => json::failed(why),
            ShownAs::Tap => tap::failed(why),
        });
    }

    fn ended(&mut self, ledger: &Ledger, code: u8) {
        self.show(match self.form {
            ShownAs::Text | ShownAs::Github => String::new(),
            ShownAs::Json => json::ended(ledger, code),
            ShownAs::Tap => tap::ended(ledger),
        });
    }

    fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    fn annotates(&self) -> bool {
        self.form == ShownAs::Github
    }
}

impl Shown {
    fn judge_one(&self, stand: &Stand<'_>, session: &Arc<Session>, one: &Planned, board: &Board) {
        let (id, title) = (one.check.id.as_str(), one.check.claim.title);
        let entry = match board.stopped() {
            Some(why) => leave_out(session, one, why),
            None => {
                board.begin(id);
                self.show(match self.form {
                    ShownAs::Text | ShownAs::Github => text::check_began(id, title, self.verbosity),
                    ShownAs::Json => json::check_began(id, one.suite),
                    ShownAs::Tap => String::new(),
                });
                let hold = Hold::in_order(one.check.isolation);
                stand.handle.block_on(run_one(stand.lanes, session.clone(), one, hold))
            }
        };
        // The lines of a check stay together, and "see above" is below what it is about.
        let _turn = board.turn_to_show();
        let number = board.end(&entry, Instant::now());
        let entry = with_openable_path(&entry, &session.plan().output);
        let shown = text::check_ended(&entry, self.verbosity, board.unjudged_before(&entry));
        match self.form {
            ShownAs::Github if is_trouble(&entry.outcome) && !shown.trim().is_empty() => {
                output::workflow_commands(&format!("::group::{} {}", entry.id, outcome_word(&entry.outcome)));
                output::out_styled(&format!("{}\n", shown.trim_end()));
                output::workflow_commands("::endgroup::");
            }
            ShownAs::Text | ShownAs::Github => self.show(shown),
            ShownAs::Json => self.show(json::check_ended(&entry)),
            ShownAs::Tap => self.show(tap::check_ended(&entry, number)),
        }
    }

    /// Writes to standard output.
    fn show(&self, text: String) {
        if text.is_empty() {
            return;
        }
        match self.form {
            ShownAs::Text | ShownAs::Github => output::out_styled(&text),
            ShownAs::Json | ShownAs::Tap => output::out(&text),
        }
    }
}

/// Ends a check that does not start.
fn leave_out(session: &Session, one: &Planned, why: String) -> Entry {
    // Checks that wait for others to watch a crash with them do not wait for this one.
    let takes_part = one.check.isolation == Isolation::SharedCrash;
    drop(takes_part.then(|| session.crashes().participant()));
    let outcome = Outcome::Skip { reason: SkipReason::Deselected, detail: why };
    session.events().of_check(one.check.id.as_str()).emit(Payload::CheckEnded {
        ended: outcome.clone(),
        duration_ms: 0,
        budget_used_percent: None,
        facts: BTreeMap::new(),
    });
    one.entry(outcome)
}
