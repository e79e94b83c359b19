//! Single keys from the terminal.

use super::event::Event;
use harness_core::output;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read};
use std::sync::mpsc::{Receiver, Sender};

/// The keyboard of the terminal in which the program runs.
pub(super) struct Keyboard {
    usual: Termios,
}

impl Keyboard {
    /// Begins to send what is typed; `None` if standard input is not a terminal.
    pub(super) fn begin(sender: Sender<Event>) -> Option<Keyboard> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let usual = tcgetattr(std::io::stdin()).ok()?;
        let reader = std::thread::Builder::new().name("keys".to_owned());
        let spawned = reader.spawn(move || {
            let mut key = [0];
            while std::io::stdin().read(&mut key).is_ok_and(|read| read == 1) {
                if sender.send(Event::Key(key[0])).is_err() {
                    return;
                }
            }
        });
        spawned.ok().map(|_| Keyboard { usual })
    }

    /// Sends each key at once and does not show it, until the result is dropped. Ctrl-C stays a signal.
    pub(super) fn one_by_one(&self) -> Mode<'_> {
        self.begin_single_keys();
        Mode(&self.usual)
    }

    fn begin_single_keys(&self) {
        let mut mode = self.usual.clone();
        mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        set(&mode);
        // Keys that were typed during a run are not commands.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }

    /// A line of text, with the keys of the terminal for editing, while it sends single keys; `None` if the user interrupts.
    pub(super) fn line(&self, events: &Receiver<Event>) -> Option<String> {
        output::err(
            "which checks? (ids or patterns with *, separated by commas; Enter alone repeats the last ones)",
        );
        set(&self.usual);
        let mut line = Vec::new();
        let is_complete = loop {
            match events.recv() {
                Ok(Event::Key(b'\n')) => break true,
                Ok(Event::Key(byte)) => line.push(byte),
                // The program is built again after each entry.
                Ok(Event::Changed(_) | Event::Ended(_)) => {}
                Ok(Event::Interrupted) | Err(_) => break false,
            }
        };
        self.begin_single_keys();
        is_complete.then(|| String::from_utf8_lossy(&line).trim().to_owned())
    }
}

fn set(mode: &Termios) {
    // A terminal that refuses keeps its mode.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, mode);
}

/// The terminal sends single keys; it is set back when this is dropped.
pub(super) struct Mode<'a>(&'a Termios);

impl Drop for Mode<'_> {
    fn drop(&mut self) {
        set(self.0);
    }
}
