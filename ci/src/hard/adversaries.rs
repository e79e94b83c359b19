//! Hostile CCMs: each fails only the checks about what it breaks, in limited time; the harness's memory stays
//! limited, and nothing of the CCM is left.

use super::kills::left_in;
use super::watched::{peak_memory, until_it_ends};
use crate::process::{root, say};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The list of all hostile CCMs.
const LIST: &str = "fixtures/ccms/mutants/adversaries.yaml";
/// The most memory in MiB that the harness may use, including API servers and clouds in its process.
const MEMORY: u64 = 1024;
/// How often the memory is read.
const LOOK: Duration = Duration::from_millis(100);
/// After this time it is considered stuck: each CCM has its own limit of a few minutes.
const LIMIT: Duration = Duration::from_secs(3600);

pub(super) fn measure(program: &Path, count: Option<usize>, seed: u64) -> Result<Vec<String>> {
    let all = ids()?;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.args(["controls", "--cluster", "embedded", "--out"]).arg(folder.path().join("out"));
    let from = usize::try_from(seed)? % all.len();
    let step = (all.len() / count.unwrap_or(all.len()).max(1)).max(1);
    for id in all.iter().cycle().skip(from).step_by(step).take(count.unwrap_or(all.len()).min(all.len())) {
        command.args(["--adversary", id]);
    }
    let console = folder.path().join("out.txt");
    let mut child = command
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&console)?)
        .stderr(std::fs::File::create(folder.path().join("out.err"))?)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut memory = 0_u64;
    let look = |process| memory = memory.max(peak_memory(process) >> 10);
    let Some(status) = until_it_ends(&mut child, LOOK, LIMIT, look)? else {
        bail!("controls went on for more than {} s", LIMIT.as_secs());
    };
    let said = [console, folder.path().join("out.err")]
        .map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let said = said.concat();
    let Some((endured, asked)) = said.lines().find_map(endured) else {
        bail!("controls ended with {status} without printing its figures:\n{said}");
    };
    let left: Vec<String> =
        left_in(folder.path())?.into_iter().filter(|name| !name.starts_with("out.")).collect();
    let mut wrong = Vec::new();
    if endured != asked {
        wrong.push(format!("adversaries: {} of {asked} were not endured:\n{said}", asked - endured));
    }
    if memory > MEMORY {
        wrong.push(format!("adversaries: the harness took {memory} MiB"));
    }
    wrong.extend(left.iter().map(|what| format!("adversaries: left behind: {what}")));
    say(&format!(
        "hostile    {asked} CCMs of {}: {} not endured as they should be, {} things left; the harness took {memory} MiB",
        all.len(),
        asked - endured,
        left.len()
    ));
    Ok(wrong)
}

/// The ids in the list.
fn ids() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root().join(LIST)).context(LIST)?;
    let ids = text.lines().filter_map(|line| line.strip_prefix("- adversary: "));
    Ok(ids.map(|id| id.trim().to_owned()).collect())
}

/// How many CCMs were endured of how many, from the last line of `controls`.
fn endured(line: &str) -> Option<(usize, usize)> {
    let (before, _) = line.split_once(" adversaries endured")?;
    let mut words = before.rsplit(' ');
    let (all, _, endured) = (words.next()?, words.next()?, words.next()?);
    Some((endured.parse().ok()?, all.parse().ok()?))
}
