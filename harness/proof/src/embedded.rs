//! Measures on embedded clusters: one for each cell and order, which is removed at its end.

use super::Row;
use super::bench::{Bench, Order};
use super::cells::hidden;
use super::means::Means;
use super::observe::outcome;
use super::question::Question;
use super::table::{INTERRUPTED, Measured};
use bootstrap::CloudEndpoint;
use futures::StreamExt;
use harness_clusters::images::own_program;
use harness_config::{Image, Profile};
use harness_core::files;
use std::num::NonZero;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Measures on embedded clusters with the reference CCM.
#[derive(Clone, Debug)]
pub struct EmbeddedBench {
    means: Means,
    /// Maximum number of clusters that work at the same time, so that they do not slow each other down enough to affect a
    /// verdict.
    turns: Arc<Semaphore>,
}

/// The result of one boot.
struct Boot {
    end: super::observe::End,
    /// Whether the CCM was evicted during the boot, if that was measured.
    evicted: Option<bool>,
    /// Whether there are other workloads, so that the order may matter.
    others: bool,
}

impl EmbeddedBench {
    /// Creates a bench for the built-in variants.
    ///
    /// # Errors
    /// The profile of the reference CCM cannot be read, or this program cannot be found.
    pub fn new() -> Result<EmbeddedBench, String> {
        let profile = Profile::load("reference").map_err(|problems| problems.to_string())?;
        let Some(Image::Command(command)) = &profile.image else {
            return Err("the profile 'reference' does not name a command of this program".to_owned());
        };
        let program =
            own_program().map_err(|error| format!("the program of this process: {}", files::why(&error)))?;
        let program = vec![program.to_string_lossy().into_owned(), command.to_string()];
        let busy = std::thread::available_parallelism().map_or(2, NonZero::get) * 2;
        let turns = Arc::new(Semaphore::new(busy));
        Ok(EmbeddedBench { means: Means { profile, program }, turns })
    }

    /// Measures all cells, several at the same time, and keeps their order; calls `on_row` for each when it ends. On
    /// cancellation, cells in progress fail at once.
    pub async fn measure_all(
        &self,
        questions: Vec<Question>,
        jobs: usize,
        cancel: &CancellationToken,
        on_row: impl Fn(&Row),
    ) -> Vec<Row> {
        let on_row = &on_row;
        let measured = questions.into_iter().enumerate().map(|(number, question)| async move {
            let (bench, asked, cancel) = (self.clone(), question.clone(), cancel.clone());
            // A thread for each: creating a cluster keeps one busy, and the others continue.
            let runtime = Handle::current();
            let work = move || {
                runtime.block_on(async {
                    tokio::select! {
                        measured = bench.measure(&asked) => measured,
                        () = cancel.cancelled() => Measured::Failed { why: INTERRUPTED.to_owned() },
                    }
                })
            };
            let measured = tokio::task::spawn_blocking(work).await;
            let failed = |error| Measured::Failed { why: format!("the measurement was aborted: {error}") };
            let row = Row { question, measured: measured.unwrap_or_else(failed) };
            on_row(&row);
            (number, row)
        });
        let ended = futures::stream::iter(measured).buffer_unordered(jobs.max(1));
        let mut rows: Vec<(usize, Row)> = ended.collect().await;
        rows.sort_by_key(|(number, _)| *number);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Why an embedded cluster cannot show this cell, if it cannot.
    pub fn hidden(question: &Question) -> Option<String> {
        hidden(question)
    }

    /// Measures one cell.
    pub async fn measure(&self, question: &Question) -> Measured {
        if let Some(why) = EmbeddedBench::hidden(question) {
            return Measured::NotObservable { why };
        }
        self.orders(question).await.unwrap_or_else(|why| Measured::Failed { why })
    }

    async fn orders(&self, question: &Question) -> Result<Measured, String> {
        let first = Box::pin(self.boot(question, Order::CcmFirst)).await?;
        let Some(Boot { end: first, evicted, others }) = first else {
            let why =
                "programs are not sandboxed on this machine, so none has its own name resolution".to_owned();
            return Ok(Measured::NotObservable { why });
        };
        let mut ends = vec![first];
        if others {
            let last = Box::pin(self.boot(question, Order::CcmLast)).await?;
            ends.extend(last.map(|boot| boot.end));
        }
        let (outcome, missing) = outcome(&ends);
        Ok(Measured::Seen { outcome, evicted, missing })
    }

    /// One boot; `None` if this machine cannot show it.
    async fn boot(&self, question: &Question, order: Order) -> Result<Option<Boot>, String> {
        let turn = self.turns.clone().acquire_owned().await.ok();
        let bench = Bench::start(&self.means, question).await?;
        let by_name = question.cell.cluster.cloud_endpoint == CloudEndpoint::Name;
        let end = if by_name && !bench.cluster.pods().have_namespaces() {
            Ok(None)
        } else {
            let others = !bench.variant.others.is_empty();
            bench.run(order, turn).await.map(|(end, evicted)| Some(Boot { end, evicted, others }))
        };
        bench.stop().await;
        end
    }
}
