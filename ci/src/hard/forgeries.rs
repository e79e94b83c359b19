//! Submitted reports that are forged line by line: `verify` of the built program refuses each.

use crate::process::{root, say};
use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of this many events that only describe what happened is kept, so that a stream is read quickly.
const KEPT: usize = 250;
/// The types of such events.
const TELLING: [&str; 4] = ["object-changed", "cloud-call", "promise-began", "promise-met"];

/// A report and its stream, as lines.
struct Genuine {
    name: String,
    report: Vec<String>,
    events: Vec<String>,
    /// The line of the event that ends the run.
    end: usize,
}

/// The change of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Changes,
    Goes,
    Repeats,
    Moves,
    /// For an event only: it is written with an additional space, as no run writes it.
    IsSpaced,
    /// For an event only: it is repeated at the end of the stream.
    Follows,
}

const OF_REPORT: [Does; 4] = [Does::Changes, Does::Goes, Does::Repeats, Does::Moves];
const OF_EVENTS: [Does; 6] =
    [Does::Changes, Does::Goes, Does::Repeats, Does::Moves, Does::IsSpaced, Does::Follows];

/// One forgery.
#[derive(Clone, Copy)]
struct Forgery<'a> {
    of: &'a Genuine,
    is_report: bool,
    at: usize,
    does: Does,
}

/// Tries this many forgeries; returns those that were not refused.
///
/// # Errors
/// A genuine report is refused, or the program cannot be run.
pub(super) fn measure(program: &Path, count: usize, seed: u64) -> Result<Vec<String>> {
    let scratch = tempfile::tempdir()?;
    let mut genuine = Vec::new();
    for folder in submitted()? {
        genuine.push(Genuine::of(program, &folder, scratch.path())?);
    }
    let mut all = Vec::new();
    for of in &genuine {
        let mut add = |is_report, lines: usize, does: &[Does]| {
            let one = |at| does.iter().map(move |does| Forgery { of, is_report, at, does: *does });
            all.extend((0..lines).flat_map(one));
        };
        add(true, of.report.len(), &OF_REPORT);
        add(false, of.events.len(), &OF_EVENTS);
    }
    let step = (all.len() / count.max(1)).max(1);
    let first = usize::try_from(seed)? % step;
    let chosen: Vec<Forgery<'_>> = all.into_iter().skip(first).step_by(step).collect();
    let (next, tried, excepted) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (wrong, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let work = || -> Result<()> {
                    let folder = tempfile::tempdir_in(scratch.path())?;
                    while let Some(forgery) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Some(lines) = forgery.lines() else { continue };
                        tried.fetch_add(1, Ordering::Relaxed);
                        if let Some(why) = not_refused(program, folder.path(), forgery, &lines)? {
                            if forgery.means_nothing() {
                                excepted.fetch_add(1, Ordering::Relaxed);
                            } else {
                                wrong
                                    .lock()
                                    .expect("no code panics while it holds the lock")
                                    .push(format!("{}: {why}", forgery.name()));
                            }
                        }
                    }
                    Ok(())
                };
                if let Err(error) = work() {
                    *failed.lock().expect("no code panics while it holds the lock") = Some(error);
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().expect("no code panics while it holds the lock") {
        return Err(error);
    }
    let wrong = wrong.into_inner().expect("no code panics while it holds the lock");
    say(&format!(
        "forgeries  {} of {} reports, {} accepted; {} more change nothing that the report states",
        tried.into_inner() - excepted.load(Ordering::Relaxed),
        genuine.len(),
        wrong.len(),
        excepted.into_inner()
    ));
    Ok(wrong)
}

/// The folders of the submitted reports.
fn submitted() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for minor in fs::read_dir(root().join("docs/reports"))? {
        let minor = minor?.path();
        if minor.is_dir() {
            found.extend(fs::read_dir(minor)?.collect::<Result<Vec<_>, _>>()?.iter().map(fs::DirEntry::path));
        }
    }
    found.sort();
    if found.is_empty() { bail!("docs/reports holds no report") } else { Ok(found) }
}

impl Genuine {
    /// A submitted report, which has to be valid; then a part of its stream, and the report that the program
    /// makes from it.
    fn of(program: &Path, folder: &Path, scratch: &Path) -> Result<Genuine> {
        let name = folder.file_name().context("a folder has a name")?.to_string_lossy().into_owned();
        let whole = verify(program, &folder.join("report.yaml"))?;
        if !whole.starts_with("VERIFIED") {
            bail!("{name}, as it was submitted: {whole}");
        }
        let mut text = String::new();
        GzDecoder::new(fs::File::open(folder.join("events.jsonl.gz"))?).read_to_string(&mut text)?;
        let is = |line: &str, kind: &str| line.contains(&format!("\"event\":{{\"type\":\"{kind}\""));
        let tells = |line: &str| TELLING.iter().any(|kind| is(line, kind));
        let kept = text.lines().enumerate().filter(|(at, line)| at % KEPT == 0 || !tells(line));
        let events: Vec<String> = kept.map(|(_, line)| line.to_owned()).collect();
        let end = events.iter().position(|line| is(line, "run-ended")).context("the run did not end")?;
        let part = scratch.join(&name);
        fs::create_dir_all(&part)?;
        fs::write(part.join("events.jsonl"), joined(&events))?;
        // Its exit code is that of the run.
        Command::new(program)
            .arg("replay")
            .arg(part.join("events.jsonl"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let said = verify(program, &part.join("report.yaml"))?;
        if !said.starts_with("VERIFIED") {
            bail!("{name}, a part of its stream: {said}");
        }
        let report = fs::read_to_string(part.join("report.yaml"))?.lines().map(str::to_owned).collect();
        Ok(Genuine { name, report, events, end })
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// The output of `verify` for a report with a stream next to it.
fn verify(program: &Path, report: &Path) -> Result<String> {
    let output = Command::new(program).arg("verify").arg(report).stdin(Stdio::null()).output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The reason why a forgery was not refused, if it was not.
fn not_refused(
    program: &Path,
    folder: &Path,
    forgery: &Forgery<'_>,
    lines: &[String],
) -> Result<Option<String>> {
    let (report, events) = if forgery.is_report {
        (lines, forgery.of.events.as_slice())
    } else {
        (forgery.of.report.as_slice(), lines)
    };
    fs::write(folder.join("report.yaml"), joined(report))?;
    fs::write(folder.join("events.jsonl"), joined(events))?;
    let said = verify(program, &folder.join("report.yaml"))?;
    let is_refused = said.starts_with("REFUSED, ") || said.starts_with("error: ");
    let first = said.lines().next().unwrap_or_default().to_owned();
    Ok((!is_refused || said.contains("panicked")).then_some(first))
}

impl Forgery<'_> {
    fn own_lines(&self) -> &[String] {
        if self.is_report { &self.of.report } else { &self.of.events }
    }

    fn name(&self) -> String {
        let file = if self.is_report { "report.yaml" } else { "events.jsonl" };
        let line: String = self.own_lines()[self.at].chars().take(100).collect();
        format!("{}/{file}:{} {:?} ({line})", self.of.name, self.at + 1, self.does)
    }

    /// The lines with the forgery; `None` if it changes nothing.
    fn lines(&self) -> Option<Vec<String>> {
        let (own, at) = (self.own_lines(), self.at);
        let mut lines = own.to_vec();
        match self.does {
            Does::Changes if self.is_report => lines[at] = other_value(&own[at]),
            Does::Changes => lines[at] = own[at].replacen("\"at_ms\":", "\"at_ms\":1", 1),
            Does::Goes => drop(lines.remove(at)),
            Does::Repeats => lines.insert(at, own[at].clone()),
            Does::Moves => (at + 1 < lines.len()).then(|| lines.swap(at, at + 1))?,
            Does::IsSpaced => lines[at] = own[at].replacen(':', ": ", 1),
            Does::Follows => lines.push(own[at].clone()),
        }
        (lines != own).then_some(lines)
    }

    /// Whether it may be accepted, because it does not change the meaning.
    fn means_nothing(&self) -> bool {
        let (own, at) = (self.own_lines(), self.at);
        if !self.is_report {
            // Messages after the end of the run are in no report and on no page. A repeated message is
            // allowed there, too.
            let is_message = own[at].contains("\"event\":{\"type\":\"said\"");
            return is_message
                && (at > self.of.end || self.does == Does::Follows)
                && self.does != Does::IsSpaced;
        }
        match self.does {
            // The order of keys in a mapping has no meaning in YAML.
            Does::Moves => {
                let indent = |line: &str| line.len() - line.trim_start().len();
                let is_entry = |line: &str| line.contains(": ") && !line.trim_start().starts_with("- ");
                let (one, other) = (&own[at], &own[at + 1]);
                is_entry(one) && is_entry(other) && indent(one) == indent(other)
            }
            // Neither do empty lines at the end of a text whose end is stripped.
            Does::Goes | Does::Repeats => own[at].trim().is_empty(),
            Does::Changes | Does::IsSpaced | Does::Follows => false,
        }
    }
}

/// A line of YAML with a changed value.
fn other_value(line: &str) -> String {
    match line.strip_suffix('"') {
        Some(rest) => format!("{rest}x\""),
        None => format!("{line}x"),
    }
}
