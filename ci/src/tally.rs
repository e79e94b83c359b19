//! `cargo xtask tally`: full runs of the reference CCM, one after another, and how they ended. A correct CCM passes each of
//! them, on a busy machine as well, and no check has to be judged again.

use crate::process::say;
use crate::run_figures::{RunFigures, figures};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The runs, and what they have to put up with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The program [default: the one that `cargo test` builds]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Kind of cluster
    #[arg(long, value_name = "KIND", default_value = "embedded")]
    cluster: String,
    /// Number of runs
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 50)]
    runs: usize,
    /// Number of runs at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    at_once: usize,
    /// Number of threads that keep the processors busy during the second half of the runs
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0)]
    busy: usize,
    /// Folder for the reports of runs that did not end well
    #[arg(long, value_name = "DIR", default_value = "target/tally")]
    out: PathBuf,
    /// More options of each run, such as '--kubernetes 1.35'
    #[arg(last = true, value_name = "OPTION")]
    more: Vec<String>,
}

/// The exit code of an interrupted run.
const INTERRUPTED: i32 = 130;

/// How a run ended.
struct Ended {
    code: i32,
    took: Duration,
    figures: RunFigures,
}

impl Ended {
    /// Whether checks were judged, and none failed, was blocked or could not be judged.
    fn is_good(&self) -> bool {
        let figures = &self.figures;
        self.code == 0 && figures.ended > 0 && figures.errors.is_empty() && figures.held_against.is_empty()
    }

    fn in_words(&self) -> String {
        let figures = &self.figures;
        format!(
            "exit code {}, {} s, {} checks, {} judged again, {} not judged, {} failed or blocked",
            self.code,
            self.took.as_secs(),
            figures.ended,
            figures.judged_again.len(),
            figures.errors.len(),
            figures.held_against.len()
        )
    }
}

/// Carries out the runs and prints how each of them ended, and the sums.
///
/// # Errors
/// A run did not end well, or could not be started.
pub(crate) fn tally(options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => crate::process::program("ccm-conformance")?,
    };
    ensure!(options.runs > 0 && options.at_once > 0, "--runs and --at-once must be at least 1");
    std::fs::create_dir_all(&options.out).with_context(|| options.out.display().to_string())?;
    let quiet = if options.busy == 0 { options.runs } else { options.runs.div_ceil(2) };
    let first = Mutex::new(None);
    let mut all = several(options, &program, 0..quiet, "", &first)?;
    if quiet < options.runs {
        let _busy = Busy::begin(options.busy);
        all.extend(several(options, &program, quiet..options.runs, ", busy", &first)?);
    }
    let good = all.iter().filter(|run| run.is_good()).count();
    let again: usize = all.iter().map(|run| run.figures.judged_again.len()).sum();
    let mut seconds: Vec<u64> = all.iter().map(|run| run.took.as_secs()).collect();
    seconds.sort_unstable();
    say(&format!(
        "tally      {good} of {} runs on {} ended well, {again} checks judged again, {} to {} s each, median {} s",
        all.len(),
        options.cluster,
        seconds.first().copied().unwrap_or_default(),
        seconds.last().copied().unwrap_or_default(),
        seconds.get(seconds.len() / 2).copied().unwrap_or_default(),
    ));
    if good < all.len() {
        bail!("{} runs did not end well; see {}", all.len() - good, options.out.display())
    }
    Ok(())
}

/// These runs, some of them at the same time. How the checks of the very first one ended is compared with each later one.
fn several(
    options: &Options,
    program: &Path,
    numbers: std::ops::Range<usize>,
    how: &str,
    first: &Mutex<Option<RunFigures>>,
) -> Result<Vec<Ended>> {
    let (next, ended) = (AtomicUsize::new(numbers.start), Mutex::new(Vec::<Ended>::new()));
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            let run = one(options, program, number)?;
            say(&format!("run        {} of {}{how}: {}", number + 1, options.runs, run.in_words()));
            run.figures.reasons().for_each(|reason| say(&format!("           {reason}")));
            ensure!(run.code != INTERRUPTED, "run {} was interrupted", number + 1);
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            let first = first.get_or_insert_with(|| run.figures.clone());
            run.figures.differences(first).for_each(|one| say(&format!("           {one}")));
            ended.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..options.at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a run panicked")))
    })?;
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// One run. Its report stays if it did not end well, or if a check was judged again.
fn one(options: &Options, program: &Path, number: usize) -> Result<Ended> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("out");
    let began = Instant::now();
    let output = Command::new(program)
        .args(["run", "--cluster", &options.cluster, "--out"])
        .arg(&out)
        .args(&options.more)
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let figures = figures(&out.join("events.jsonl")).with_context(|| format!("the run said:\n{said}"))?;
    let run = Ended { code: output.status.code().unwrap_or(-1), took: began.elapsed(), figures };
    if !run.is_good() || !run.figures.judged_again.is_empty() {
        let kept = options.out.join(format!("{}-{}-{}", options.cluster, std::process::id(), number + 1));
        std::fs::create_dir_all(&kept)?;
        std::fs::write(kept.join("console.txt"), said)?;
        for file in ["report.yaml", "events.jsonl", "report.html"] {
            // A run that was cut short has not written all of them.
            let _ = std::fs::copy(out.join(file), kept.join(file));
        }
    }
    Ok(run)
}

/// Threads that do nothing but keep processors busy, until this is dropped.
struct Busy {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn begin(count: usize) -> Busy {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |ends: Arc<AtomicBool>| {
            move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| thread::spawn(spin(ends.clone()))).collect();
        Busy { ends, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_well_without_failures_and_without_errors() {
        let run = |code, change: fn(&mut RunFigures)| {
            let mut figures = RunFigures { ended: 3, ..RunFigures::default() };
            change(&mut figures);
            Ended { code, took: Duration::from_secs(9), figures }
        };
        assert!(run(0, |_| ()).is_good());
        assert!(!run(3, |_| ()).is_good(), "the environment failed");
        assert!(!run(0, |figures| figures.ended = 0).is_good(), "nothing was judged");
        assert!(!run(0, |figures| figures.errors.push("A-01: no cluster".to_owned())).is_good());
        assert!(!run(0, |figures| figures.held_against.push("A-01: no".to_owned())).is_good());
        let again = run(0, |figures| figures.judged_again = vec!["A-01: no cluster".to_owned(); 2]);
        assert_eq!(
            again.in_words(),
            "exit code 0, 9 s, 3 checks, 2 judged again, 0 not judged, 0 failed or blocked"
        );
    }
}
