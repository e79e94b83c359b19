//! `bootstrap`: lint and model of manifests, which is independent of the rest.

use ::bootstrap::BootstrapCommand;
use harness_core::output::{Log, Out, WrappedOut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Error, ErrorKind, Read, Result, Stdin, Write};
use std::process::ExitCode;

/// How many seconds the writer of standard input may pause.
const PATIENCE: i64 = 60;

/// Runs the command with the process's own streams.
pub(super) fn run(command: &BootstrapCommand) -> ExitCode {
    let out: &mut dyn Write = if command.is_for_people() { &mut WrappedOut } else { &mut Out };
    ExitCode::from(::bootstrap::run(command, &mut Patient(std::io::stdin()), out, &mut Log))
}

/// Standard input with a limit on waiting.
struct Patient(Stdin);

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let limit = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)) == Ok(0) {
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("nothing came for {PATIENCE} s, and it was not closed"),
            ));
        }
        self.0.read(into)
    }
}
