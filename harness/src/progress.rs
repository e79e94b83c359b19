//! What a person sees while waiting: a moving line on a terminal, plain lines elsewhere. Always on standard error, so
//! that standard output is the tests' own.

use crate::events::{Event, Events, Payload, Sink};
use crate::output;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shows stages and what is said.
#[derive(Debug)]
pub struct Terminal {
    /// The moving lines; `None` where there is no terminal.
    lines: Option<MultiProgress>,
    /// One for each stage under way, by name.
    bars: BTreeMap<String, ProgressBar>,
}

impl Terminal {
    /// On standard error, moving when that is a terminal.
    pub fn on_stderr() -> Terminal {
        let lines = output::err_is_terminal().then(MultiProgress::new);
        Terminal { lines, bars: BTreeMap::new() }
    }

    /// A stream that only this terminal takes in: for what is no run.
    pub fn alone() -> Events {
        Events::unrecorded(vec![Box::new(Terminal::on_stderr())])
    }

    fn say(&self, line: &str) {
        match &self.lines {
            // A closed standard error is no reason to stop.
            Some(lines) => drop(lines.println(output::shown(line))),
            None => output::err(line),
        }
    }
}

impl Sink for Terminal {
    fn take(&mut self, event: &Event) {
        match &event.event {
            Payload::Said { text } => self.say(text),
            Payload::StageBegan { stage } => {
                if let Some(lines) = &self.lines {
                    let bar = lines.add(ProgressBar::new_spinner());
                    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                        bar.set_style(style);
                    }
                    bar.set_message(stage.clone());
                    bar.enable_steady_tick(Duration::from_millis(120));
                    self.bars.insert(stage.clone(), bar);
                }
            }
            Payload::StageEnded { stage, took_ms, ok } => {
                if let Some(bar) = self.bars.remove(stage) {
                    bar.finish_and_clear();
                }
                let word = if *ok { "done" } else { "FAILED" };
                let seconds = Duration::from_millis(*took_ms).as_secs_f64();
                self.say(&format!("  {stage:<28} {word} in {seconds:.1} s"));
            }
            _ => {}
        }
    }
}
