//! Uses the released program without anything else: in a root folder with the program, `/tmp`, `/proc` and
//! the content of `/dev` in an empty container. There is no shell, no library, no certificate.

use crate::process::{root, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Mounts what an empty container has, and then runs the program. `$1`: the root folder; the rest: its arguments.
const ENTER: &str = r#"
set -e
root=$1
shift
for device in null zero random urandom; do mount --bind "/dev/${device}" "${root}/dev/${device}"; done
mount -t proc proc "${root}/proc"
exec chroot "${root}" /ccm-conformance "$@"
"#;

/// The commands of a new user, and the exit code of each.
const STEPS: &[(&[&str], i32)] = &[
    (&["--version"], 0),
    (&["doctor"], 0),
    // Without a container engine, kind is not available.
    (&["doctor", "--cluster", "kind"], 3),
    (&["init", "--manifests", "/work/manifests", "--name", "acme", "--out", "/work/acme"], 0),
    (&["run", "--cluster", "embedded", "--out", "/work/results"], 0),
    (&["verify", "/work/results/report.yaml"], 0),
    (&["replay", "/work/results/events.jsonl", "--out", "/work/again"], 0),
    (&["image", "--out", "/work/image.tar"], 0),
];

/// Runs the commands of a new user.
///
/// # Errors
/// A step ends with a wrong exit code, or a file is missing.
pub(super) fn try_out(program: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("making a root folder")?;
    let folder = place.path();
    for name in ["tmp", "proc", "dev", "work/manifests"] {
        fs::create_dir_all(folder.join(name))?;
    }
    for name in ["null", "zero", "random", "urandom"] {
        fs::write(folder.join("dev").join(name), "")?;
    }
    fs::copy(program, folder.join("ccm-conformance")).with_context(|| program.display().to_string())?;
    let manifests = root().join("fixtures/ccms/hcloud/manifests");
    for file in fs::read_dir(&manifests).with_context(|| manifests.display().to_string())? {
        let file = file?;
        fs::copy(file.path(), folder.join("work/manifests").join(file.file_name()))?;
    }
    for (arguments, expected) in STEPS {
        step(folder, arguments, *expected)?;
    }
    let read = |name: &str| {
        fs::read(folder.join("work").join(name)).with_context(|| format!("{name} was not written"))
    };
    if !read("results/report.html")?.starts_with(b"<!") {
        bail!("report.html is not a page");
    }
    if read("results/report.yaml")? != read("again/report.yaml")? {
        bail!("replay made another report.yaml than the run");
    }
    let left: Vec<_> = fs::read_dir(folder.join("tmp"))?.flatten().map(|entry| entry.file_name()).collect();
    if !left.is_empty() {
        bail!("left behind in /tmp: {left:?}");
    }
    Ok(())
}

fn step(folder: &Path, arguments: &[&str], expected: i32) -> Result<()> {
    let began = Instant::now();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new("unshare");
    command.args([
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--propagation",
        "private",
    ]);
    command.args(["sh", "-c", ENTER, "sh"]).arg(folder).args(arguments);
    let ended = command.env_clear().env("PATH", path).current_dir("/").stdin(Stdio::null()).output();
    let ended = ended.context("starting unshare (util-linux)")?;
    let (shown, took) = (arguments.join(" "), began.elapsed().as_secs_f64());
    if ended.status.code() == Some(expected) {
        say(&format!("  bare: {shown}: exit code {expected}, {took:.1} s"));
        return Ok(());
    }
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    bail!(
        "in an empty root folder, '{shown}' ended with {} instead of {expected}:\n{out}\n{err}",
        ended.status
    )
}
