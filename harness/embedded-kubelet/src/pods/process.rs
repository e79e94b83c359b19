//! One program: started in a process group of its own, signalled as a whole, waited for.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::sandbox::Prepared;

/// Starts programs on a thread of its own.
///
/// The kernel kills a program when the thread that started it ends (`PR_SET_PDEATHSIG`, set by `setpriv`).
/// Threads of an async runtime come and go; this one exists exactly as long as the controllers.
#[derive(Clone)]
pub(crate) struct Spawner {
    orders: mpsc::Sender<Order>,
}

struct Order {
    prepared: Prepared,
    answer: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// Starts the thread. It ends, and every program with it, when the last copy of the spawner is gone.
    pub(crate) fn start() -> io::Result<Spawner> {
        let (orders, received) = mpsc::channel::<Order>();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("program-spawner".to_owned()).spawn(move || {
            let _inside = runtime.enter();
            for order in received {
                // The caller may be gone by now; the program is killed when its handle is dropped.
                let _ = order.answer.send(spawn(&order.prepared));
            }
        })?;
        Ok(Spawner { orders })
    }

    /// Starts a program.
    pub(crate) async fn spawn(&self, prepared: Prepared) -> io::Result<Child> {
        let (answer, answered) = oneshot::channel();
        let ended = || io::Error::other("the thread that starts programs has ended");
        self.orders.send(Order { prepared, answer }).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

fn spawn(prepared: &Prepared) -> io::Result<Child> {
    let Some((program, arguments)) = prepared.line.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
    };
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&prepared.environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// A running program's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group(Pid);

impl Group {
    /// The group of a child that was started by [`Spawner::spawn`].
    pub(crate) fn of(child: &Child) -> Option<Group> {
        let id = i32::try_from(child.id()?).ok()?;
        Pid::from_raw(id).map(Group)
    }

    /// Sends a signal to every process of the group. Ignores that it has already ended.
    pub(crate) fn signal(self, signal: Signal) {
        // The only errors are that the group is gone, or that its number was reused after that.
        let _ = kill_process_group(self.0, signal);
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The exit code, or 128 and the signal's number.
    pub(crate) code: i32,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Exit {
        Exit { code: status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255) }
    }
}
