//! A proxy in front of Docker's socket that makes every request slower.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The delay of every piece of a request.
const LATE: Duration = Duration::from_millis(300);
/// The socket of Docker.
const DOCKER: &str = "/var/run/docker.sock";

/// The proxy.
pub(super) struct SlowDocker {
    times: Arc<AtomicUsize>,
}

impl SlowDocker {
    /// Starts to pass requests on with a delay, and makes the run use this socket.
    pub(super) fn begin(folder: &Path, run: &mut Command) -> Result<SlowDocker> {
        let socket = folder.join("out.docker.sock");
        let listener = UnixListener::bind(&socket).with_context(|| socket.display().to_string())?;
        run.env("DOCKER_HOST", format!("unix://{}", socket.display()));
        let times = Arc::new(AtomicUsize::new(0));
        let count = times.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || pass_on(client));
            }
        });
        Ok(SlowDocker { times })
    }

    /// How many connections were delayed.
    pub(super) fn times(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }
}

/// Passes on the data of client and engine; the client's data is delayed.
fn pass_on(client: UnixStream) {
    let Ok(engine) = UnixStream::connect(DOCKER) else { return };
    let (Ok(answers), Ok(to_client)) = (engine.try_clone(), client.try_clone()) else { return };
    std::thread::spawn(move || copy(answers, to_client, Duration::ZERO));
    copy(client, engine, LATE);
}

#[expect(clippy::disallowed_methods, reason = "the time is what disturbs")]
fn copy(mut from: UnixStream, mut to: UnixStream, late: Duration) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if !late.is_zero() {
            std::thread::sleep(late);
        }
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
