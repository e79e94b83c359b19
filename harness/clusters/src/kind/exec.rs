//! Commands in a machine: a process in its container, with time limits inside and outside.

use crate::error::ClusterError;
use crate::images::{Engine, EngineError, last_lines};
use crate::record::Machine;
use bollard::container::LogOutput;
use bollard::errors::Error as BollardError;
use bollard::exec::{CreateExecOptions, StartExecResults};
use futures::StreamExt;
use harness_core::bounded::Beginning;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Maximum size of each output of a command, in bytes; an audit log is the largest.
const MOST: usize = 256 << 20;
/// Additional time until we stop listening: normally `timeout` in the machine ends the command first.
const GRACE: Duration = Duration::from_secs(10);
/// Status with which `timeout` reports that it had to end the command.
const TIMED_OUT: i64 = 124;
/// Status with which `timeout` reports that it had to kill the command.
const KILLED: i64 = 137;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExecOutput {
    /// Exit status; 128 plus the number of a signal if a signal ended it.
    pub(super) status: i64,
    /// Its standard output, with invalid UTF-8 replaced.
    pub(super) stdout: String,
    /// Its standard error.
    pub(super) stderr: String,
}

/// The standard input of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stdin<'a> {
    /// Nothing.
    Empty,
    /// A text.
    Text(&'a str),
    /// A file of this machine.
    File(&'a Path),
}

/// Runs a command as root and waits for its end, whatever its status.
pub(super) async fn exec(
    engine: &Engine,
    machine: &Machine,
    argv: &[&str],
    stdin: Stdin<'_>,
    limit: Duration,
) -> Result<ExecOutput, ClusterError> {
    let shown = argv.join(" ");
    let seconds = limit.as_secs().max(1).to_string();
    let mut bounded = vec!["timeout", "--kill-after=2", &seconds];
    bounded.extend(argv);
    let subject = format!("'{}' on machine {}", first_line(&shown), machine.name);
    let running = run(engine, machine, &bounded, stdin, &subject);
    let output = match tokio::time::timeout(limit + GRACE, running).await {
        Ok(output) => output?,
        Err(_) => {
            return Err(EngineError::TimedOut { operation: "run", subject, limit: limit + GRACE }.into());
        }
    };
    if matches!(output.status, TIMED_OUT | KILLED) {
        let what = format!("the end of {subject}");
        let seen = format!(
            "it was killed, its last output: {}",
            last_lines(&format!("{}\n{}", output.stdout, output.stderr), 5)
        );
        return Err(ClusterError::TimedOut { what, limit, seen });
    }
    Ok(output)
}

/// Like [`exec`], but a status other than 0 is an error.
pub(super) async fn exec_ok(
    engine: &Engine,
    machine: &Machine,
    argv: &[&str],
    stdin: Stdin<'_>,
    limit: Duration,
) -> Result<ExecOutput, ClusterError> {
    let output = exec(engine, machine, argv, stdin, limit).await?;
    if output.status == 0 {
        return Ok(output);
    }
    let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    Err(ClusterError::Command {
        machine: machine.name.clone(),
        command: first_line(&argv.join(" ")).to_owned(),
        status: output.status,
        stderr: last_lines(said, 10),
    })
}

async fn run(
    engine: &Engine,
    machine: &Machine,
    argv: &[&str],
    stdin: Stdin<'_>,
    subject: &str,
) -> Result<ExecOutput, ClusterError> {
    // The caller limits the whole; single calls need no shorter limit.
    let limit = Duration::from_secs(3600);
    let docker = engine.docker();
    let options = CreateExecOptions {
        attach_stdin: Some(!matches!(stdin, Stdin::Empty)),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(argv.to_vec()),
        ..Default::default()
    };
    let created =
        engine.call("run", subject, limit, docker.create_exec(&machine.container_id, options)).await?;
    let started = engine.call("run", subject, limit, docker.start_exec(&created.id, None)).await?;
    let StartExecResults::Attached { mut output, input } = started else {
        unreachable!("only a detached start is answered like that, and none is asked for");
    };
    let (mut stdout, mut stderr) = (Beginning::of(MOST), Beginning::of(MOST));
    let too_much =
        || BollardError::from(std::io::Error::other(format!("it wrote more than {} MiB", MOST >> 20)));
    let reading = async {
        while let Some(piece) = output.next().await {
            let kept = match piece? {
                LogOutput::StdErr { message } => stderr.push(&message),
                LogOutput::StdOut { message }
                | LogOutput::Console { message }
                | LogOutput::StdIn { message } => stdout.push(&message),
            };
            if !kept {
                return Err(too_much());
            }
        }
        Ok::<_, BollardError>(())
    };
    let (read, fed) = tokio::join!(reading, feed(input, stdin));
    engine.call("run", subject, limit, async { read }).await?;
    let status = engine.call("run", subject, limit, docker.inspect_exec(&created.id)).await?.exit_code;
    // A command that ends early leaves its input unread; its status matters more than the broken pipe.
    if let (Err(error), Some(0) | None) = (fed, status) {
        return Err(error);
    }
    Ok(ExecOutput { status: status.unwrap_or(-1), stdout: stdout.into_text(), stderr: stderr.into_text() })
}

async fn feed(mut input: impl AsyncWrite + Unpin, stdin: Stdin<'_>) -> Result<(), ClusterError> {
    let to_machine = |path: &Path| ClusterError::file("send to a machine", path);
    match stdin {
        Stdin::Empty => return Ok(()),
        Stdin::Text(text) => {
            input.write_all(text.as_bytes()).await.map_err(to_machine(Path::new("standard input")))?
        }
        Stdin::File(path) => {
            let mut file = tokio::fs::File::open(path).await.map_err(ClusterError::file("read", path))?;
            tokio::io::copy(&mut file, &mut input).await.map_err(to_machine(path))?;
        }
    }
    input.shutdown().await.map_err(to_machine(Path::new("the end of standard input")))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
