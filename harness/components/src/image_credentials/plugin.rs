//! One execution of a plugin: as a kubelet executes it, but with limits on its output, and without leftover processes.

use super::leftovers::{MARK, ProcessGroupGuard};
use harness_core::files;
use harness_core::probe::{pause, poll};
use rustix::io::ioctl_fionread;
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::time::timeout;

/// The time limit after which a kubelet kills a plugin (kubernetes pkg/credentialprovider/plugin/plugin.go).
pub const KUBELET_LIMIT: Duration = Duration::from_secs(60);
/// Maximum size of standard output, in bytes; a larger one is not a response.
const MOST_ANSWERED: usize = 1 << 20;
/// Maximum size of standard error, in bytes; a larger one would fill the disk of a node.
const MOST_LOGGED: usize = 16 << 20;
/// Delay between the reading of a piece of a request and the next piece.
const BETWEEN_PIECES: Duration = Duration::from_millis(50);
/// Time limit for reading a piece; then the next one is sent anyway.
const UNREAD_LIMIT: Duration = Duration::from_secs(20);
/// Interval at which it is checked whether a piece was read.
const UNREAD_AGAIN: Duration = Duration::from_millis(5);
/// How much of standard error is shown.
const SHOWN: usize = 600;

/// The command of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// The program and its arguments.
    pub line: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal, which the harness did not send.
    Signal(i32),
    /// It could not be started.
    NotStarted(String),
    /// It was killed after the limit.
    Late(Duration),
    /// It exited, but a process that it had started kept its output open until the limit: a kubelet waits for that.
    HeldOpen(Duration),
    /// It was killed because it wrote too much.
    Flooded(&'static str, usize),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "it exited with code {code}"),
            Ended::Signal(signal) => write!(f, "it was killed by signal {signal}"),
            Ended::NotStarted(why) => write!(f, "it cannot be executed: {why}"),
            Ended::Late(limit) => {
                write!(f, "it was still running after {} s and was killed", limit.as_secs())
            }
            Ended::HeldOpen(limit) => write!(
                f,
                "it exited, but a process that it had started kept its output open for {} s, and a kubelet waits for \
                 that",
                limit.as_secs()
            ),
            Ended::Flooded(stream, bytes) => {
                write!(f, "it wrote more than {} MiB to {stream} and was killed", bytes >> 20)
            }
        }
    }
}

/// The result of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// How it ended.
    pub ended: Ended,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Its duration.
    pub took: Duration,
}

impl Execution {
    /// Whether it exited successfully.
    pub fn succeeded(&self) -> bool {
        self.ended == Ended::Code(0)
    }

    /// Its standard error as text.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// How it ended, with the end of its log.
    pub fn shown(&self) -> String {
        let log = self.log();
        let log = log.trim();
        let start = log.len().saturating_sub(SHOWN);
        let end = &log[log.ceil_char_boundary(start)..];
        let said = if end.is_empty() {
            "it wrote nothing to standard error".to_owned()
        } else {
            format!("its standard error: {end}")
        };
        format!("{} after {:.1} s; {said}", self.ended, self.took.as_secs_f64())
    }
}

/// A number that no other execution of this process has.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Plugin {
    /// Executes it: sends the pieces to its standard input, one after the other, then closes it. Kills it after `limit`.
    pub async fn execute(&self, pieces: &[&[u8]], limit: Duration) -> Execution {
        let began = Instant::now();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let ended = self.ended(pieces, limit, &mut stdout, &mut stderr).await;
        Execution { ended, stdout, stderr, took: began.elapsed() }
    }

    async fn ended(
        &self,
        pieces: &[&[u8]],
        limit: Duration,
        stdout: &mut Vec<u8>,
        stderr: &mut Vec<u8>,
    ) -> Ended {
        let Some((program, arguments)) = self.line.split_first() else {
            return Ended::NotStarted("there is no program".to_owned());
        };
        // A shell might run such a file, but a kubelet does not.
        if let Some(why) = no_program(Path::new(program)) {
            return Ended::NotStarted(format!("{program}: {why}"));
        }
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(program);
        command.args(arguments).current_dir("/").env_clear().envs(&self.environment).env(MARK, &mark);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.process_group(0).kill_on_drop(true).spawn() {
            Ok(child) => child,
            Err(error) => return Ended::NotStarted(format!("{program}: {}", files::why_not_started(&error))),
        };
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let _guard = ProcessGroupGuard { group, mark };
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut code = None;
        let all = async {
            let streams = async {
                let reading = async {
                    tokio::try_join!(
                        collect(out, stdout, "standard output", MOST_ANSWERED),
                        collect(err, stderr, "standard error", MOST_LOGGED)
                    )
                };
                let writing = async {
                    write(stdin, pieces).await;
                    std::future::pending().await
                };
                // A plugin that has closed its output cannot respond any more.
                tokio::select! {
                    read = reading => read,
                    never = writing => never,
                }
            };
            let waited = async {
                code = child.wait().await.ok();
                Ok(())
            };
            tokio::try_join!(streams, waited).map(drop)
        };
        let outcome = timeout(limit, all).await;
        match (outcome, code) {
            (Ok(Err(flooded)), _) => flooded,
            (Ok(Ok(())), Some(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, signal) => Ended::Signal(signal.unwrap_or_default()),
            },
            (Ok(Ok(())), None) => Ended::NotStarted("waiting for it failed".to_owned()),
            (Err(_), Some(_)) => Ended::HeldOpen(limit),
            (Err(_), None) => Ended::Late(limit),
        }
    }
}

/// Why a file is not a program of this machine, if it can be read and is not one
/// (<https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html>).
fn no_program(file: &Path) -> Option<&'static str> {
    const MAGIC: &[u8] = b"\x7fELF";
    /// The position of the architecture in the header.
    const MACHINE: std::ops::Range<usize> = 18..20;
    let head = |file: &Path| {
        let mut head = Vec::new();
        File::open(file).ok()?.take(MACHINE.end as u64).read_to_end(&mut head).ok().map(|_| head)
    };
    let (theirs, own) = (head(file)?, head(Path::new("/proc/self/exe"))?);
    match theirs.starts_with(MAGIC) {
        true if theirs.get(MACHINE) == own.get(MACHINE) => None,
        true => Some("it is a program for another architecture than this machine's"),
        false if theirs.starts_with(b"#!") => None,
        false => Some("it is neither a program nor a script that begins with '#!'"),
    }
}

/// Writes one piece when the one before it has been read. A plugin need not read its request.
async fn write(stdin: Option<ChildStdin>, pieces: &[&[u8]]) {
    let Some(mut stdin) = stdin else { return };
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            let read = async |_: &mut String| Ok((ioctl_fionread(&stdin).unwrap_or(0) == 0).then_some(()));
            let _ = poll("the piece before is read", UNREAD_LIMIT, UNREAD_AGAIN, read).await;
            pause(BETWEEN_PIECES).await;
        }
        if stdin.write_all(piece).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn collect(
    stream: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    name: &'static str,
    most: usize,
) -> Result<(), Ended> {
    let Some(stream) = stream else { return Ok(()) };
    // A broken pipe means that it has ended.
    let _ = stream.take(most as u64 + 1).read_to_end(into).await;
    if into.len() > most { Err(Ended::Flooded(name, most)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn shell(script: &str) -> Plugin {
        let line = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let environment = std::env::var("PATH").map(|path| BTreeMap::from([("PATH".to_owned(), path)]));
        Plugin { line, environment: environment.unwrap_or_default() }
    }

    async fn ended(script: &str, limit: Duration) -> Ended {
        shell(script).execute(&[b"request"], limit).await.ended
    }

    #[tokio::test]
    async fn it_gets_its_request_in_pieces_and_then_the_end() {
        let echo = shell("cat; echo done >&2; exit 3").execute(&[b"one ", b"two"], KUBELET_LIMIT).await;
        assert_eq!((echo.stdout.as_slice(), echo.ended.clone()), (b"one two".as_slice(), Ended::Code(3)));
        assert!(
            echo.shown().contains("code 3") && echo.shown().ends_with("its standard error: done"),
            "{}",
            echo.shown()
        );
        assert_eq!(ended("exit 0", KUBELET_LIMIT).await, Ended::Code(0), "it need not read");
    }

    #[tokio::test]
    async fn a_piece_comes_when_the_one_before_it_has_been_read() {
        let once = "sleep 0.3; dd bs=4096 count=1 2>/dev/null";
        let execution = shell(once).execute(&[b"one ", b"two"], KUBELET_LIMIT).await;
        assert_eq!(execution.stdout, b"one ");
        let deaf = shell("sleep 0.3; echo done").execute(&[b"one ", b"two"], KUBELET_LIMIT).await;
        assert_eq!((deaf.ended.clone(), deaf.stdout.as_slice()), (Ended::Code(0), b"done\n".as_slice()));
        assert!(deaf.took < UNREAD_LIMIT / 2, "{}", deaf.shown());
    }

    #[tokio::test]
    async fn a_plugin_always_ends() {
        let short = Duration::from_millis(300);
        assert_eq!(ended("sleep 60", short).await, Ended::Late(short));
        assert_eq!(ended("sleep 60 & exit 0", short).await, Ended::HeldOpen(short));
        assert_eq!(ended("kill -9 $$", KUBELET_LIMIT).await, Ended::Signal(9));
        let flooded = Ended::Flooded("standard output", MOST_ANSWERED);
        assert_eq!(ended("cat /dev/zero", KUBELET_LIMIT).await, flooded);
        let flooded = Ended::Flooded("standard error", MOST_LOGGED);
        assert_eq!(ended("cat /dev/zero >&2", KUBELET_LIMIT).await, flooded);
    }

    #[tokio::test]
    async fn files_that_cannot_be_executed_are_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("plugin");
        let plugin = Plugin { line: vec![file.display().to_string()], environment: BTreeMap::new() };
        let outcome_of = async |content: &[u8], mode| {
            std::fs::write(&file, content).expect("written");
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("its mode");
            plugin.execute(&[], KUBELET_LIMIT).await.ended.to_string()
        };
        for (content, mode, why) in [
            (b"#!/bin/sh\n".as_slice(), 0o644, "it may not be executed"),
            (b"\x7fELF of another machine", 0o755, "a program for another architecture"),
            (b"echo hello", 0o755, "neither a program nor a script"),
            (b"", 0o755, "neither a program nor a script"),
            (b"#!/nowhere/sh\n", 0o755, "or not the interpreter"),
        ] {
            let said = outcome_of(content, mode).await;
            assert!(said.contains(why), "{why} is not in {said}");
        }
        assert_eq!(outcome_of(b"#!/bin/sh\n", 0o755).await, Ended::Code(0).to_string());
    }
}
