//! Another program that takes the port which was chosen for a cluster's API server, before Docker can take it.

use anyhow::{Context, Result};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A script in front of kind on the path. At the first request to create a cluster it writes the port
/// (`$0.port`) and waits until the port is taken (`$0.taken`).
const BEFORE_KIND: &str = r#"#!/bin/sh
if [ "$1 $2" = "create cluster" ] && mkdir "$0.once" 2> /dev/null; then
  for argument; do
    [ "$last" = --config ] && sed -n 's/^ *apiServerPort: *//p' "$argument" > "$0.port.new" && mv "$0.port.new" "$0.port"
    last=$argument
  done
  for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e "$0.taken" ] && break; sleep 1; done
fi
exec "$KIND" "$@"
"#;

/// The other program: a thread of this one.
pub(super) struct TakenPort {
    times: Arc<AtomicUsize>,
}

impl TakenPort {
    /// Puts the script in front of kind on the run's path.
    pub(super) fn begin(folder: &Path, run: &mut Command) -> Result<TakenPort> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let kind = std::env::split_paths(&path).map(|folder| folder.join("kind")).find(|kind| kind.is_file());
        let programs = folder.join("out.programs");
        std::fs::create_dir(&programs)?;
        let before = programs.join("kind");
        std::fs::write(&before, BEFORE_KIND)?;
        std::fs::set_permissions(&before, std::fs::Permissions::from_mode(0o755))?;
        let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
        run.env("PATH", std::env::join_paths(paths)?);
        run.env("KIND", kind.context("there is no kind on the path")?);
        let times = Arc::new(AtomicUsize::new(0));
        let count = times.clone();
        std::thread::spawn(move || take(&before, &count));
        Ok(TakenPort { times })
    }

    /// How many ports were taken.
    pub(super) fn times(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }
}

/// Takes the port in the file, and keeps it for as long as this program runs.
#[expect(clippy::disallowed_methods, reason = "the arrival of a file causes no event")]
fn take(kind: &Path, count: &AtomicUsize) {
    let marker = |end: &str| PathBuf::from(format!("{}.{end}", kind.display()));
    let port = loop {
        match std::fs::read_to_string(marker("port")) {
            Ok(port) => break port,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let Some(taken) =
        port.trim().parse().ok().and_then(|port: u16| TcpListener::bind(("127.0.0.1", port)).ok())
    else {
        return;
    };
    count.fetch_add(1, Ordering::SeqCst);
    let _ = std::fs::write(marker("taken"), "");
    std::mem::forget(taken);
}
