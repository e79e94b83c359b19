//! `docs/run.svg`: a picture of a terminal in which the program has found a bug, for README and book.
//!
//! The run is a real one: the reference CCM with an injected bug, in a folder as a vendor has it.

use crate::process::{program, root, say};
use anstyle_svg::Term;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The picture.
const PICTURE: &str = "docs/run.svg";
/// The injected bug: a Service's new node port is ignored.
const MUTANT: &str = "M-SV-26b";
/// What is typed, after the name of the program.
const TYPED: [&str; 9] = [
    "run",
    "--cluster",
    "embedded",
    "--profile",
    "./acme",
    "--binary",
    "./acme-ccm",
    "--only",
    "SVC-UPD-01*",
];
/// Columns of the terminal.
const COLUMNS: &str = "110";

/// Runs the program and writes the picture.
pub(crate) fn draw() -> Result<()> {
    let folder = tempfile::tempdir_in(root().join("target")).context("a folder in target")?;
    let program = program("ccm-conformance")?;
    prepare(folder.path(), &program)?;
    let mut command = Command::new(&program);
    command.args(TYPED).current_dir(folder.path()).stdin(Stdio::null());
    command.env("CLICOLOR_FORCE", "1").env("COLUMNS", COLUMNS).env_remove("NO_COLOR");
    let (mut reader, writer) = std::io::pipe().context("a pipe")?;
    command.stdout(writer.try_clone().context("a pipe")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
    // The other end of the pipe must be closed here, or reading does not end.
    drop(command);
    let text = std::io::read_to_string(&mut reader).context("reading what the program writes")?;
    let ended = child.wait().context("waiting for the program")?;
    if ended.code() != Some(1) || !text.contains("NOT CONFORMANT") {
        bail!("a run that finds a bug was expected, and it ended with {ended}:\n{text}");
    }
    let typed = TYPED.map(|word| if word.contains('*') { format!("'{word}'") } else { word.to_owned() });
    let whole = format!("\u{1b}[1m$ ccm-conformance {}\u{1b}[0m\n{text}", typed.join(" "));
    let svg = Term::new().render_svg(&whole);
    let picture = root().join(PICTURE);
    fs::write(&picture, svg).with_context(|| format!("writing {}", picture.display()))?;
    say(&format!("wrote {PICTURE}"));
    Ok(())
}

/// A vendor's folder: a profile with its manifests, and the CCM.
fn prepare(folder: &Path, program: &Path) -> Result<()> {
    let (ours, acme) = (root().join("fixtures/ccms"), folder.join("acme"));
    fs::create_dir_all(acme.join("manifests"))?;
    let profile =
        fs::read_to_string(ours.join("mutants/profile.yaml")).context("reading the mutants' profile")?;
    let profile =
        profile.replace("name: mutants", "name: acme").replace("../reference/manifests", "manifests");
    fs::write(acme.join("profile.yaml"), profile)?;
    for entry in
        fs::read_dir(ours.join("reference/manifests")).context("reading the reference CCM's manifests")?
    {
        let path = entry?.path();
        fs::copy(&path, acme.join("manifests").join(path.file_name().unwrap_or_default()))?;
    }
    let ccm = folder.join("acme-ccm");
    let script = format!(
        "#!/bin/sh\nexec \"$(dirname \"$0\")/program\" reference-ccm-mutant --mutant={MUTANT} \"$@\"\n"
    );
    fs::write(&ccm, script)?;
    fs::set_permissions(&ccm, PermissionsExt::from_mode(0o755))?;
    fs::copy(program, folder.join("program")).context("copying the program")?;
    Ok(())
}
