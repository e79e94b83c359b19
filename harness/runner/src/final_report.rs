//! The reports of a run whose process is ended early. Either the run writes them or the code that ends the process,
//! whichever comes first.

use std::fmt;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A function that writes the reports.
type Word = Box<dyn FnOnce() + Send>;

/// The shared state of who writes the reports, and whether they are written. Clones share one state.
#[derive(Clone, Default)]
pub struct FinalReport {
    state: Arc<Mutex<State>>,
    written: CancellationToken,
}

#[derive(Default)]
enum State {
    /// There is nothing to report yet.
    #[default]
    Nothing,
    Due(Word),
    Taken,
}

/// What the code that ends the process has to do for the reports.
pub enum Due {
    /// There is nothing to report.
    Nothing,
    /// Write them, with this function.
    Write(Box<dyn FnOnce() + Send>),
    /// Wait for this notification: the run is writing them.
    Wait(CancellationToken),
}

impl FinalReport {
    /// Registers `word`, which has to be called before the process ends.
    pub fn set(&self, word: impl FnOnce() + Send + 'static) {
        *self.state.lock().expect("no holder of this lock panics") = State::Due(Box::new(word));
    }

    /// Whether the run itself writes the reports, after which it calls [`FinalReport::written`]. If not, the code that
    /// ends the process is writing them.
    pub fn take(&self) -> bool {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        let free = !matches!(*state, State::Taken);
        *state = State::Taken;
        free
    }

    /// Records that the reports are written: the process may end.
    pub fn written(&self) {
        self.written.cancel();
    }

    /// Returns what is left to do for the code that ends the process.
    pub fn due(&self) -> Due {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        match std::mem::replace(&mut *state, State::Taken) {
            State::Nothing => Due::Nothing,
            State::Due(word) => Due::Write(word),
            State::Taken => Due::Wait(self.written.clone()),
        }
    }
}

impl fmt::Debug for FinalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastWord")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_written_once_and_waited_for() {
        let last = FinalReport::default();
        last.set(|| ());
        assert!(last.take(), "the run comes first");
        let Due::Wait(written) = last.due() else { panic!("the process has to wait for the run") };
        assert!(!written.is_cancelled());
        last.written();
        assert!(written.is_cancelled());
    }

    #[test]
    fn a_run_whose_reports_are_written_for_it_does_not_write_them() {
        let last = FinalReport::default();
        last.set(|| ());
        assert!(matches!(last.due(), Due::Write(_)));
        assert!(!last.take());
        assert!(matches!(FinalReport::default().due(), Due::Nothing));
    }
}
