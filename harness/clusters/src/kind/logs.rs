//! The machines' own logs, saved before the machines are removed.

use super::condense::condense;
use super::exec::{Stdin, exec};
use crate::images::Engine;
use crate::record::Machine;
use bollard::query_parameters::LogsOptionsBuilder;
use futures::StreamExt;
use futures::future::join_all;
use harness_core::bounded::Beginning;
use harness_core::check::chain;
use std::path::Path;
use std::time::Duration;

/// How long reading one machine's log may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Lines of the kubelet's log that an error shows.
const LINES_SHOWN: usize = 8;
/// Maximum size of a machine's console output, in bytes.
const CONSOLE: usize = 16 << 20;

/// The commands whose output is saved, by the name of the file.
const SOURCES: &[(&str, &str)] = &[
    ("kubelet.log", "journalctl --no-pager --lines 2000 --unit kubelet.service"),
    ("containerd.log", "journalctl --no-pager --lines 2000 --unit containerd.service"),
    ("units.log", "systemctl --no-pager --failed; journalctl --no-pager --lines 200 --priority warning"),
    (
        "pods.log",
        "cd /var/log/pods && for file in */*/*.log; do echo \"== $file\"; tail -n 200 \"$file\"; done",
    ),
    ("network.log", "ip address; ip route; iptables-save; ls -l /etc/cni/net.d"),
];

/// Writes each machine's logs to a folder with its name, as far as possible: for a machine that does not answer, a note
/// replaces its log.
pub(super) async fn collect(engine: &Engine, machines: &[Machine], folder: &Path) {
    join_all(machines.iter().map(|machine| async move {
        let folder = folder.join(&machine.name);
        if let Err(error) = tokio::fs::create_dir_all(&folder).await {
            tracing::warn!(%error, folder = %folder.display(), "no folder for a machine's logs");
            return;
        }
        write(&folder.join("machine.log"), &console(engine, machine).await).await;
        for (file, script) in SOURCES {
            let text = match exec(engine, machine, &["sh", "-c", script], Stdin::Empty, LIMIT).await {
                Ok(output) => format!("{}{}", output.stdout, output.stderr),
                Err(error) => format!("could not be read: {}\n", chain(&error)),
            };
            write(&folder.join(file), &text).await;
        }
    }))
    .await;
}

/// The end of a machine's kubelet log, if it can be read.
pub(super) async fn kubelet_tail(engine: &Engine, machine: &Machine) -> Option<String> {
    let command =
        ["journalctl", "--no-pager", "--output", "cat", "--lines", "200", "--unit", "kubelet.service"];
    let output = exec(engine, machine, &command, Stdin::Empty, LIMIT).await.ok()?;
    let text = condense(&output.stdout, LINES_SHOWN);
    (!text.is_empty()).then_some(text)
}

/// The console output of a machine.
async fn console(engine: &Engine, machine: &Machine) -> String {
    let options = LogsOptionsBuilder::new().stdout(true).stderr(true).tail("2000").build();
    let mut log = engine.docker().logs(&machine.container_id, Some(options));
    let mut kept = Beginning::of(CONSOLE);
    let reading = async {
        while let Some(piece) = log.next().await {
            let continues = match piece {
                Ok(piece) => kept.push(&piece.into_bytes()),
                Err(error) => {
                    kept.push(format!("could not be read: {}\n", chain(&error)).as_bytes());
                    false
                }
            };
            if !continues {
                break;
            }
        }
    };
    if tokio::time::timeout(LIMIT, reading).await.is_err() {
        kept.push(b"was not read in time\n");
    }
    kept.into_text()
}

async fn write(path: &Path, text: &str) {
    if let Err(error) = harness_core::output::file(path, text.to_owned()) {
        tracing::warn!(%error, path = %path.display(), "a log was not written");
    }
}
