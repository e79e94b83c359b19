//! Progress for the user: a moving line on a terminal, plain lines elsewhere. Always on standard error, so that standard
//! output contains only the tests.

use crate::events::{Event, Events, Payload, Sink};
use crate::output;
use crate::screen;
use std::time::Duration;

/// Shows stages and messages.
#[derive(Debug, Default)]
pub struct Terminal {
    /// The stages in progress that the moving line shows.
    stages: Vec<String>,
}

impl Terminal {
    /// On standard error, with a moving line if that is a terminal.
    pub fn on_stderr() -> Terminal {
        Terminal::default()
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
            Payload::Said { text } => output::err(text),
            Payload::StageBegan { stage } => {
                self.stages.extend(screen::begin(stage).then(|| stage.clone()));
            }
            Payload::StageEnded { stage, took_ms, ok } => {
                if let Some(at) = self.stages.iter().position(|one| one == stage) {
                    screen::end(&self.stages.remove(at));
                }
                let word = if *ok { "done" } else { "FAILED" };
                let seconds = Duration::from_millis(*took_ms).as_secs_f64();
                output::err(&format!("  {stage:<28} {word} in {seconds:.1} s"));
            }
            _ => {}
        }
    }
}
