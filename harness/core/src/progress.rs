//! Progress for the user: a moving line on a terminal, plain lines elsewhere. Always on standard error, so that standard
//! output contains only the tests.

use crate::events::{Event, Events, Payload, Sink};
use crate::output;
use crate::screen;
use std::time::Duration;

/// How much of a run is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Failures, errors and the verdict.
    Quiet,
    /// Also stages, the outcome of each check and the summary.
    #[default]
    Normal,
    /// Also when each check starts, and why others are left out.
    Verbose,
}

/// Shows stages and messages.
#[derive(Debug, Default)]
pub struct Terminal {
    verbosity: Verbosity,
    /// The stages in progress that the moving line shows.
    stages: Vec<String>,
}

impl Terminal {
    /// On standard error, with a moving line if that is a terminal.
    pub fn on_stderr() -> Terminal {
        Terminal::default()
    }

    /// The same, showing so much.
    pub fn showing(verbosity: Verbosity) -> Terminal {
        Terminal { verbosity, stages: Vec::new() }
    }

    /// A stream that is only shown on this terminal: for work that is not a run.
    pub fn alone() -> Events {
        Events::unrecorded(vec![Box::new(Terminal::on_stderr())])
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stages.iter().for_each(|stage| screen::end(stage));
    }
}

impl Sink for Terminal {
    fn take(&mut self, event: &Event) {
        match &event.event {
            Payload::Said { detail: true, .. } if self.verbosity == Verbosity::Quiet => {}
            Payload::Said { text, .. } => output::err(text),
            Payload::StageBegan { stage } => {
                self.stages.extend(screen::begin(stage).then(|| stage.clone()));
            }
            Payload::StageEnded { stage, took_ms, ok } => {
                if let Some(at) = self.stages.iter().position(|one| one == stage) {
                    screen::end(&self.stages.remove(at));
                }
                if *ok && self.verbosity == Verbosity::Quiet {
                    return;
                }
                let how = if *ok { "done in" } else { "unfinished after" };
                let seconds = Duration::from_millis(*took_ms).as_secs_f64();
                output::err(&format!("  {stage:<28} {how} {seconds:.1} s"));
            }
            _ => {}
        }
    }
}
