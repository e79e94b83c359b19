//! The addresses that a run listens on: only addresses that no other machine reaches, and sockets in its own
//! folder.

use super::watched::until_it_ends;
use crate::process::say;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often the run is examined.
const LOOK: Duration = Duration::from_millis(50);
/// After this time the run of two checks is considered stuck.
const LIMIT: Duration = Duration::from_secs(300);
/// The state of a listening socket in the kernel's table.
const LISTENS: &str = "0A";

pub(super) fn measure(program: &Path) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let mut child = Command::new(program)
        .args([
            "run",
            "--watch",
            "--cluster",
            "embedded",
            "--only",
            "NODE-INIT-01",
            "--only",
            "SVC-CREATE-02",
            "--out",
        ])
        .arg(folder.path().join("out"))
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    let look = |process| {
        let own = sockets(process);
        let ours = listening().into_iter().filter(|(_, inode)| own.contains(inode));
        found.extend(ours.map(|(address, _)| address));
    };
    if until_it_ends(&mut child, LOOK, LIMIT, look)?.is_none() {
        bail!("the run went on for more than {} s", LIMIT.as_secs());
    }
    let open: Vec<&String> = found.iter().filter(|(_, shut)| !**shut).map(|(address, _)| address).collect();
    say(&format!(
        "access     a run listens at {} addresses, {} of them within reach of others",
        found.len(),
        open.len()
    ));
    let mut wrong: Vec<String> =
        open.iter().map(|address| format!("access: the run listens at {address}")).collect();
    // API server, cloud, driver of the cloud, the page of the run.
    if found.len() < 4 {
        wrong.push(format!("access: only {} addresses were seen at which the run listens", found.len()));
    }
    Ok(wrong)
}

/// The inodes of a process's sockets.
fn sockets(process: u32) -> BTreeSet<String> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let inode = |link: std::path::PathBuf| {
        Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    links.filter_map(inode).collect()
}

/// All listening sockets: the address as the kernel writes it, whether it is loopback, and the socket's inode.
fn listening() -> Vec<((String, bool), String)> {
    let mut all = Vec::new();
    for (table, is_loopback) in
        [("/proc/net/tcp", is_loopback_v4 as fn(&str) -> bool), ("/proc/net/tcp6", is_loopback_v6)]
    {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let (Some(address), Some(&LISTENS), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            {
                all.push((((*address).to_owned(), is_loopback(address)), (*inode).to_owned()));
            }
        }
    }
    all
}

/// Whether an address is in 127.0.0.0/8; its bytes are in reverse order.
fn is_loopback_v4(address: &str) -> bool {
    address.split(':').next().is_some_and(|host| host.ends_with("7F"))
}

/// Whether an address is `::1`, or 127.0.0.0/8 mapped to IPv6.
fn is_loopback_v6(address: &str) -> bool {
    let host = address.split(':').next().unwrap_or_default();
    host == "00000000000000000000000001000000"
        || (host.starts_with("0000000000000000FFFF0000") && host.ends_with("7F"))
}
