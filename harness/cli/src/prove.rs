//! `bootstrap prove`: compares the predictions of the boot model with real clusters.

use super::arguments::{ProofCluster, ProveOptions};
use harness_core::events::Events;
use harness_core::files;
use harness_core::output;
use harness_core::progress::Terminal;
use harness_proof::{
    EmbeddedBench, KindBench, Measured, Question, Row, given, questions, random, sample, show, tally,
};
use harness_report::exit;
use harness_runner::{FinalReport, INTERRUPTED, ORDERLY, guard};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Measures, prints the table, and judges it.
pub(super) fn prove(options: &ProveOptions) -> ExitCode {
    let events = Terminal::alone();
    let is_wanted = |question: &Question| {
        let cluster = &question.cell.cluster;
        (options.topology.is_empty() || options.topology.contains(&cluster.topology))
            && (options.cni.is_empty() || options.cni.contains(&cluster.cni))
    };
    let is_shown = |question: &Question| match options.cluster {
        ProofCluster::Embedded => EmbeddedBench::hidden(question).is_none(),
        ProofCluster::Kind => KindBench::hidden(question).is_none(),
    };
    let asked = match options.random {
        Some(count) => {
            let admission = options.cluster == ProofCluster::Kind;
            let chosen = |question: &Question| is_wanted(question) && is_shown(question);
            random(options.seed, usize::from(count), admission, chosen)
        }
        None if !options.manifests.is_empty() => given(&options.manifests),
        None => questions(&options.case),
    };
    let mut questions = match asked {
        Ok(questions) => questions,
        Err(why) => return refuse(&events, exit::USAGE, &why),
    };
    questions.retain(is_wanted);
    if options.sample {
        questions = sample(questions, is_shown);
    }
    if questions.is_empty() {
        return refuse(&events, exit::USAGE, "no variant has such a cell; leave --topology or --cni out");
    }
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            return refuse(
                &events,
                exit::ENVIRONMENT,
                &format!("cannot start the async runtime: {}", files::why(&error)),
            );
        }
    };
    let began = Instant::now();
    let (total, done) = (questions.len(), AtomicUsize::new(0));
    let print_row = |row: &Row| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        // A cell on kind takes as long as twenty-five in this process.
        let often = if options.cluster == ProofCluster::Kind { 1 } else { 25 };
        if row.agrees() == Some(false) || done % often == 0 || done == total {
            let mark = if row.agrees() == Some(false) { ": DISAGREES" } else { "" };
            let cluster = &row.question.cell.cluster;
            let name = &row.question.case.name;
            events
                .say(format!("{done} of {total}: {name} on {} with {}{mark}", cluster.topology, cluster.cni));
        }
    };
    let cancel = CancellationToken::new();
    guard(runtime.handle(), cancel.clone(), ORDERLY, FinalReport::default());
    let measured = runtime.block_on(async {
        match options.cluster {
            ProofCluster::Kind => {
                let kubernetes = options.kubernetes.clone();
                let bench = KindBench::new(kubernetes, events.clone(), cancel.clone());
                bench.measure_all(questions, print_row).await
            }
            ProofCluster::Embedded => Ok(EmbeddedBench::new()?
                .measure_all(questions, usize::from(options.jobs), &cancel, print_row)
                .await),
        }
    });
    let rows = match measured {
        Err(why) => return refuse(&events, exit::ENVIRONMENT, &why),
        // What was interrupted was not measured.
        Ok(rows) => rows.into_iter().filter(|row| !row.is_interrupted()).collect::<Vec<Row>>(),
    };
    let text = format!("{}measured in {:.0} s\n", show(&rows), began.elapsed().as_secs_f64());
    output::out(&text);
    if options.random.is_some()
        && let Err(why) = keep(&rows, &options.out, &events)
    {
        return refuse(&events, exit::USAGE, &why);
    }
    if cancel.is_cancelled() {
        return ExitCode::from(INTERRUPTED);
    }
    let tally = tally(&rows);
    ExitCode::from(match (tally.disagree, tally.failed) {
        (0, 0) => exit::CONFORMANT,
        (0, _) => exit::ENVIRONMENT,
        _ => exit::NOT_CONFORMANT,
    })
}

/// Writes the manifests about which model and cluster disagree, with what was expected and seen.
///
/// # Errors
/// A file that cannot be written.
fn keep(rows: &[Row], folder: &Path, events: &Events) -> Result<(), String> {
    for row in rows.iter().filter(|row| row.agrees() == Some(false)) {
        let Question { case, cell, manifests, .. } = &row.question;
        let seen = match &row.measured {
            Measured::Seen { outcome, missing, .. } => {
                format!("{outcome}; {}", missing.as_deref().unwrap_or("nothing was missing"))
            }
            Measured::NotObservable { why } | Measured::Failed { why } => why.clone(),
        };
        let (topology, cni, model) = (cell.cluster.topology, cell.cluster.cni, cell.outcome);
        let head = format!(
            "# {}\n# {topology} with CNI {cni}: the model says '{model}', the cluster '{}'\n",
            case.what,
            seen.replace('\n', " ")
        );
        let file = folder.join(format!("{}.yaml", case.name));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, format!("{head}{manifests}")))
            .map_err(|error| format!("--out {}: {}", file.display(), files::why_not_written(&error)))?;
        events.say(format!("wrote {}", file.display()));
    }
    Ok(())
}

fn refuse(events: &Events, code: u8, why: &str) -> ExitCode {
    events.say(format!("error: {why}"));
    ExitCode::from(code)
}
