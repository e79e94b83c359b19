//! What a person sees while waiting: a moving line on a terminal, plain lines elsewhere. Always on standard error, so
//! that standard output is the tests' own.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows stages.
#[derive(Clone, Debug)]
pub struct Progress {
    terminal: bool,
}

/// A stage under way.
#[derive(Debug)]
pub struct Stage {
    name: String,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// On standard error, moving when that is a terminal.
    pub fn on_stderr() -> Progress {
        Progress { terminal: std::io::stderr().is_terminal() }
    }

    /// Begins a stage.
    pub fn stage(&self, name: &str) -> Stage {
        let bar = self.terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Stage { name: name.to_owned(), began: Instant::now(), bar }
    }

    /// One line.
    pub fn say(&self, line: &str) {
        // A closed standard error is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

impl Stage {
    /// Ends the stage and says how long it took.
    pub fn end(self, ok: bool) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let word = if ok { "done" } else { "FAILED" };
        let _ = writeln!(
            std::io::stderr(),
            "  {:<28} {word} in {:.1} s",
            self.name,
            self.began.elapsed().as_secs_f64()
        );
    }
}
