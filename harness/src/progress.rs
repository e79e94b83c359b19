//! What a person sees while waiting: a moving line on a terminal, plain lines elsewhere. Always on standard error, so
//! that standard output is the tests' own.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows stages.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The moving lines, one per stage under way; `None` where there is no terminal.
    lines: Option<MultiProgress>,
}

/// A stage under way.
#[derive(Debug)]
pub struct Stage {
    name: String,
    began: Instant,
    bar: Option<ProgressBar>,
    progress: Progress,
}

impl Progress {
    /// On standard error, moving when that is a terminal.
    pub fn on_stderr() -> Progress {
        Progress { lines: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Begins a stage.
    pub fn stage(&self, name: &str) -> Stage {
        let bar = self.lines.as_ref().map(|lines| {
            let bar = lines.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Stage { name: name.to_owned(), began: Instant::now(), bar, progress: self.clone() }
    }

    /// One line.
    pub fn say(&self, line: &str) {
        // A closed standard error is no reason to stop.
        let _ = match &self.lines {
            Some(lines) => lines.println(line),
            None => writeln!(std::io::stderr(), "{line}"),
        };
    }
}

impl Stage {
    /// Ends the stage and says how long it took.
    pub fn end(self, ok: bool) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let word = if ok { "done" } else { "FAILED" };
        let took = self.began.elapsed().as_secs_f64();
        self.progress.say(&format!("  {:<28} {word} in {took:.1} s", self.name));
    }
}
