//! Watches whether the environment works. When the cluster or the cloud is gone, all waits end at once. Failures while
//! one of them was away, or while the machine was too slow for a reliable result, are not attributed to the CCM.

use super::journal::Journal;
use futures::FutureExt;
use futures::future::select_all;
use harness_clouds::Cloud;
use harness_clusters::Cluster;
use harness_core::check::chain;
use harness_core::probe::pause;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Interval between two requests.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum time for one answer.
const ANSWER: Duration = Duration::from_secs(10);
/// A component that needs this long for one answer was away, not just slow; so was one that refused a request. Nothing
/// could happen in that time.
const AWAY_AFTER: Duration = Duration::from_millis(1500);
/// A silence of at least this length is recorded: too short to fail a check's wait, but long enough for a leader that
/// must renew its Lease within seconds.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// A cloud that has not answered for this long is gone, not just away.
const CLOUD_GONE_AFTER: Duration = Duration::from_secs(30);
/// The same for an API server. Its kubelet restarts it, with pauses of up to 20 s after the first exits, and on a busy
/// machine a start takes half a minute.
const SERVER_GONE_AFTER: Duration = Duration::from_secs(120);

/// How long after an absence a process may still exit because of it: until its Lease has expired and its kubelet has
/// reported the exit.
const OUTLIVED: Duration = Duration::from_secs(15);

/// A component with this average answer time is too slow for the contract's limits: a CCM makes dozens of calls within
/// one, and the contract assumes that a call is answered in milliseconds.
const SLOW_FROM: Duration = Duration::from_millis(300);
/// An answer that takes this long leaves too little of a renew deadline of a few seconds: a leader that exits then could
/// not renew its Lease in time.
const LATE_FROM: Duration = Duration::from_secs(1);
/// Minimum length of the time before a failure over which answers are averaged.
const SLOW_OVER: Duration = Duration::from_secs(10);
/// Number of recorded answers.
const REMEMBERED: usize = 1 << 12;

/// Monitors the API server and the cloud as long as it lives.
#[derive(Debug)]
pub(super) struct EnvironmentWatch {
    gone: CancellationToken,
    why: Arc<OnceLock<String>>,
    parts: Vec<Arc<Part>>,
    task: JoinHandle<()>,
}

impl Drop for EnvironmentWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EnvironmentWatch {
    /// Starts to monitor the served cluster, the management cluster if there is one, and the cloud. All of them answer at
    /// this moment. Without a `journal` the cloud's inventory is requested instead. When one of `machines` ends, the
    /// environment is gone.
    pub(super) fn watch(
        [served, management]: [Option<Client>; 2],
        machines: Vec<Cluster>,
        cloud: Cloud,
        journal: Option<Journal>,
    ) -> EnvironmentWatch {
        let (gone, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let (is_gone, reason) = (gone.clone(), why.clone());
        let server = Part::server("the API server");
        let other = Part::server("the API server of the management cluster");
        let part = Part::cloud();
        let servers = served.iter().map(|_| server.clone()).chain(management.iter().map(|_| other.clone()));
        let parts = servers.chain([part.clone()]).collect();
        let task = tokio::spawn(async move {
            let of_the_cloud = async {
                match &journal {
                    Some(journal) => part.lost(|| heard(journal)).await,
                    None => part.lost(|| held(&cloud)).await,
                }
            };
            let of_a_server = async |client: &Option<Client>, part: &Part| match client {
                Some(client) => part.lost(|| server_answers(client)).await,
                // Without a cluster there is none to lose.
                None => std::future::pending().await,
            };
            let of_machines = async {
                match machines.is_empty() {
                    true => std::future::pending().await,
                    false => {
                        select_all(machines.iter().map(|cluster| cluster.lost_machine().boxed())).await.0
                    }
                }
            };
            let lost = tokio::select! {
                lost = of_machines => lost,
                lost = of_a_server(&served, &server) => lost,
                lost = of_a_server(&management, &other) => lost,
                lost = of_the_cloud => lost,
            };
            let _ = reason.set(lost);
            is_gone.cancel();
        });
        EnvironmentWatch { gone, why, parts, task }
    }

    /// Why the environment is gone, if it is.
    pub(super) fn gone(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Returns when the environment is gone, with the reason.
    pub(super) async fn until_gone(&self) -> String {
        self.gone.cancelled().await;
        self.gone().unwrap_or_default().to_owned()
    }

    /// Runs a future until it ends, or the environment is gone.
    ///
    /// # Errors
    /// The future's own, or why the environment is gone.
    pub(super) async fn unless_gone<T>(
        &self,
        future: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        tokio::select! {
            biased;
            why = self.until_gone() => Err(why),
            outcome = future => outcome,
        }
    }

    /// Runs a future that makes the API server unavailable for a while, and waits until all components answer again. This
    /// neither ends the environment nor excuses failures in that time. Earlier silences still count as excuses.
    pub(super) async fn through_absence<T>(&self, future: impl Future<Output = T>) -> T {
        self.parts.iter().for_each(|part| _ = part.meant.fetch_add(1, Ordering::SeqCst));
        let (meant, since) = (Meant(&self.parts), Instant::now());
        let outcome = future.await;
        // A component that does not come back is gone.
        drop(meant);
        for part in &self.parts {
            tokio::select! {
                biased;
                _ = self.until_gone() => {}
                () = part.answers_again() => part.forget(since),
            }
        }
        outcome
    }

    /// A message about the component that is away, or was silent at that moment or shortly before; `None` if there is
    /// none. Makes new requests, so that a continuing silence is noticed.
    pub(super) async fn absence_at(&self, at: Instant) -> Option<String> {
        for part in &self.parts {
            if part.is_meant_to_be_away() {
                return Some(format!("{} is unavailable on purpose", part.who));
            }
            tokio::select! {
                biased;
                why = self.until_gone() => return Some(why),
                () = part.answers_again() => {}
            }
        }
        self.silent_about(at, Duration::ZERO)
    }

    /// A message about a component that was silent for this long at that moment or shortly before; `None` if there is
    /// none.
    pub(super) fn silent_about(&self, at: Instant, time: Duration) -> Option<String> {
        self.parts.iter().find_map(|part| part.silent_about(at, time))
    }

    /// Which component answered late in the time before that moment, as text; `None` if there is none.
    pub(super) fn late_before(&self, at: Instant, time: Duration) -> Option<String> {
        self.parts.iter().find_map(|part| part.late_before(at, time))
    }

    /// Whether all components have answered since `began` and still do, and fast enough. Makes new requests, and returns
    /// when all have answered or one is gone.
    ///
    /// # Errors
    /// The component that was away or slow, and for how long.
    pub(super) async fn throughout(&self, began: Instant) -> Result<(), EnvironmentCause> {
        for part in &self.parts {
            tokio::select! {
                biased;
                why = self.until_gone() => return Err(EnvironmentCause::Away(why)),
                () = part.answers_again() => {}
            }
            let away = part.away_since(began).map(EnvironmentCause::Away);
            if let Some(excuse) = away.or_else(|| part.slow_since(began).map(EnvironmentCause::Slow)) {
                return Err(excuse);
            }
        }
        Ok(())
    }
}

/// Why a failure is not evidence against the CCM, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EnvironmentCause {
    /// A component was away.
    Away(String),
    /// Everything was too slow, whatever the cause.
    Slow(String),
}

/// A component without which nothing can be judged.
#[derive(Debug)]
struct Part {
    who: &'static str,
    /// How often it has answered, and the time of the last answer.
    heard: watch::Sender<(u64, Instant)>,
    /// Triggers a request before it is due.
    hurry: Notify,
    silences: Mutex<Vec<Silence>>,
    /// The answer time above which it counts as slow, if answer times are significant.
    slow_from: Option<Duration>,
    /// The time without an answer after which it is gone.
    gone_after: Duration,
    /// The times and durations of its last answers, oldest first.
    answers: Mutex<VecDeque<(Instant, Duration)>>,
    /// The number of futures that keep it away on purpose.
    meant: AtomicUsize,
}

/// A time without an answer.
#[derive(Clone, Debug)]
struct Silence {
    /// The time of the last answer before it.
    from: Instant,
    /// The time of the first answer after it.
    until: Instant,
    /// The error instead of an answer; `None` if the answer was only late.
    failure: Option<String>,
}

/// Marks a component as away on purpose while this lives.
struct Meant<'a>(&'a [Arc<Part>]);

impl Drop for Meant<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|part| _ = part.meant.fetch_sub(1, Ordering::SeqCst));
    }
}

impl Part {
    /// An API server.
    fn server(who: &'static str) -> Arc<Part> {
        Part::new(who, Some(SLOW_FROM), SERVER_GONE_AFTER)
    }

    /// The cloud. The time for receiving all calls of a busy cloud does not depend on the machine's speed.
    fn cloud() -> Arc<Part> {
        Part::new("the cloud", None, CLOUD_GONE_AFTER)
    }

    fn new(who: &'static str, slow_from: Option<Duration>, gone_after: Duration) -> Arc<Part> {
        let heard = watch::Sender::new((0, Instant::now()));
        let (silences, answers) = (Mutex::default(), Mutex::default());
        let meant = AtomicUsize::new(0);
        Arc::new(Part { who, heard, hurry: Notify::new(), silences, slow_from, gone_after, answers, meant })
    }

    /// Monitors forever; returns a message when it has not answered for too long.
    async fn lost<F: Future<Output = Result<(), String>>>(&self, answers: impl Fn() -> F) -> String {
        let mut failure = None;
        loop {
            let (answers_so_far, last) = *self.heard.borrow();
            let asked = Instant::now();
            match answers().await {
                Ok(()) => {
                    let now = Instant::now();
                    self.answered(now, now - asked);
                    let failure = failure.take();
                    if failure.is_some() || now - last >= SILENT_AFTER {
                        self.was_silent(Silence { from: last, until: now, failure });
                    }
                    self.heard.send_replace((answers_so_far + 1, now));
                }
                Err(_) if self.is_meant_to_be_away() => {
                    _ = self.heard.send_replace((answers_so_far, Instant::now()))
                }
                Err(why) if last.elapsed() >= self.gone_after => {
                    return format!(
                        "{} has not answered for {} s: {why}",
                        self.who,
                        last.elapsed().as_secs()
                    );
                }
                Err(why) => failure = Some(why),
            }
            tokio::select! {
                () = pause(EVERY) => {}
                () = self.hurry.notified() => {}
            }
        }
    }

    /// Returns when it has answered after this moment.
    async fn answers_again(&self) {
        let mut heard = self.heard.subscribe();
        let before = heard.borrow().0;
        self.hurry.notify_one();
        // The sender lives as long as this, so it does not end.
        let _ = heard.wait_for(|(answers, _)| *answers > before).await;
    }

    fn is_meant_to_be_away(&self) -> bool {
        self.meant.load(Ordering::SeqCst) > 0
    }

    /// As if it had always answered fast since then.
    fn forget(&self, since: Instant) {
        let mut silences = self.silences.lock().expect("no holder of this lock panics");
        silences.retain(|silence| silence.until <= since);
        let mut answers = self.answers.lock().expect("no holder of this lock panics");
        answers.retain(|(at, _)| *at <= since);
    }

    fn answered(&self, now: Instant, after: Duration) {
        let mut answers = self.answers.lock().expect("no holder of this lock panics");
        answers.push_back((now, after));
        if answers.len() > REMEMBERED {
            answers.pop_front();
        }
    }

    /// Whether its answers since `began` took too long on average.
    fn slow_since(&self, began: Instant) -> Option<String> {
        let slow_from = self.slow_from?;
        let answers = self.answers.lock().expect("no holder of this lock panics");
        let from = began.min(Instant::now().checked_sub(SLOW_OVER)?);
        let took: Vec<Duration> =
            answers.iter().filter(|(at, _)| *at > from).map(|(_, took)| *took).collect();
        let mean = took.iter().sum::<Duration>() / u32::try_from(took.len()).ok().filter(|n| *n > 0)?;
        (mean > slow_from).then(|| {
            let worst = took.iter().max().copied().unwrap_or_default();
            format!(
                "the machine is too slow for a reliable result: {} needed {:.1} s per answer on average, {:.1} s at \
                 worst; run with fewer 'jobs' and 'clusters', or stop other programs",
                self.who,
                mean.as_secs_f64(),
                worst.as_secs_f64()
            )
        })
    }

    /// Its latest answer within `time` before that moment, as text, if it was late.
    fn late_before(&self, at: Instant, time: Duration) -> Option<String> {
        self.slow_from?;
        let from = at.checked_sub(time)?;
        let answers = self.answers.lock().expect("no holder of this lock panics");
        let within = answers.iter().filter(|(heard, took)| *heard > from && *heard - *took <= at);
        let worst = within.map(|(_, took)| *took).max().filter(|worst| *worst >= LATE_FROM)?;
        Some(format!("{} needed {:.1} s for an answer shortly before", self.who, worst.as_secs_f64()))
    }

    /// The component that was away after `began`, as text.
    fn away_since(&self, began: Instant) -> Option<String> {
        self.silent(|silence| {
            let late = silence.until - silence.from >= EVERY + AWAY_AFTER;
            silence.until > began && (late || silence.failure.is_some())
        })
    }

    fn silent_about(&self, at: Instant, time: Duration) -> Option<String> {
        // There is no request for this long after an answer.
        let time = EVERY + time;
        self.silent(|silence| {
            silence.from <= at && silence.until + OUTLIVED >= at && silence.until - silence.from >= time
        })
    }

    fn was_silent(&self, silence: Silence) {
        let Silence { from, until, failure } = &silence;
        let seconds = (*until - *from).as_secs_f64();
        tracing::debug!(who = self.who, seconds, failure, "did not answer");
        self.silences.lock().expect("no holder of this lock panics").push(silence);
    }

    /// The first silence that fits, as text.
    fn silent(&self, fits: impl Fn(&Silence) -> bool) -> Option<String> {
        let silences = self.silences.lock().expect("no holder of this lock panics");
        let silence = silences.iter().find(|silence| fits(silence))?;
        let seconds = silence.until.duration_since(silence.from).as_secs_f64();
        Some(format!(
            "{} did not answer for {seconds:.0} s during the check ({}), so its failure may not be the CCM's",
            self.who,
            silence.failure.as_deref().unwrap_or("it was slow")
        ))
    }
}

/// Whether the API server answers a request that needs its store: it reports its version even when no Lease can be
/// renewed.
async fn server_answers(client: &Client) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match timeout(ANSWER, namespaces.get("kube-system")).await {
        Ok(Ok(_)) => Ok(()),
        // A server that refuses is up; one whose store fails is not.
        Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(unanswered()),
    }
}

/// The words for an answer that did not come in time.
fn unanswered() -> String {
    format!("no answer in {} s", ANSWER.as_secs_f64())
}

/// Whether the cloud answers, which is not the same as a long poll that has not failed yet.
async fn heard(journal: &Journal) -> Result<(), String> {
    match timeout(ANSWER, journal.catch_up()).await {
        Ok(read) => read.map_err(|error| error.text),
        Err(_) => Err(unanswered()),
    }
}

/// Whether the cloud returns its inventory.
async fn held(cloud: &Cloud) -> Result<(), String> {
    match timeout(ANSWER, cloud.inventory()).await {
        Ok(read) => read.map(drop).map_err(|error| chain(&error)),
        Err(_) => Err(unanswered()),
    }
}

#[cfg(test)]
mod tests;
