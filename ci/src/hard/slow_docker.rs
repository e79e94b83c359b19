//! A way to Docker's socket on which every request takes longer.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// By how much every piece of a request is late.
const LATE: Duration = Duration::from_millis(300);
/// Where Docker listens.
const DOCKER: &str = "/var/run/docker.sock";

/// The way.
pub(super) struct SlowDocker {
    times: Arc<AtomicUsize>,
}

impl SlowDocker {
    /// Begins to pass requests on, late, and has the run use this way.
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

    /// How many connections were late.
    pub(super) fn times(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }
}

/// Passes on what client and engine say to each other; what the client says is late.
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
