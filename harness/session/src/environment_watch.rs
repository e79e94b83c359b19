//! Whether the environment still stands: a cluster or cloud that is gone ends every wait at once, and what failed while one
//! was away, or the machine too slow to judge anybody on it, is nobody's fault.

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

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// Whoever takes so long for one answer was away rather than slow, as is whoever refuses one: what was to happen meanwhile could not.
const AWAY_AFTER: Duration = Duration::from_millis(1500);
/// A silence of so long is remembered: too short to keep a check from what it waits for, and long enough for a leader that has
/// to renew its Lease within seconds.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// Who has not answered for so long is gone, rather than away: longer than any restart that a check makes.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// For how long after an absence a process may still end for it: until its Lease has run out, and its kubelet has said that it
/// has ended.
const OUTLIVED: Duration = Duration::from_secs(15);

/// Whose answers take so long on the average is too slow for the contract's bounds: a CCM makes dozens of calls within
/// one, and the contract takes a call to be answered in milliseconds.
const SLOW_FROM: Duration = Duration::from_millis(300);
/// An answer that takes so long leaves too little of a renew deadline of a few seconds: a leader that ends then could not renew its
/// Lease in time.
const LATE_FROM: Duration = Duration::from_secs(1);
/// Over how long before a failure answers are looked at, at least.
const SLOW_OVER: Duration = Duration::from_secs(10);
/// How many answers are remembered.
const REMEMBERED: usize = 1 << 12;

/// Looks at API server and cloud as long as it lives.
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
    /// Begins to look at the cluster that is served, the management cluster where there is one, and the cloud. All answer at
    /// this moment. `journal` is absent where the cloud keeps none: it is asked what it holds then. `machines` are those whose end
    /// is that of the environment.
    pub(super) fn watch(
        [served, management]: [Option<Client>; 2],
        machines: Vec<Cluster>,
        cloud: Cloud,
        journal: Option<Journal>,
    ) -> EnvironmentWatch {
        let (gone, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let (told, reason) = (gone.clone(), why.clone());
        let server = Part::new("the API server", Some(SLOW_FROM));
        let other = Part::new("the API server of the management cluster", Some(SLOW_FROM));
        // How long it takes to hear of all of a busy cloud's calls says nothing of the machine.
        let part = Part::new("the cloud", None);
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
                // Where there is no cluster none is lost.
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
            told.cancel();
        });
        EnvironmentWatch { gone, why, parts, task }
    }

    /// Why the environment is gone, if it is.
    pub(super) fn gone(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Ends when the environment is gone; yields why.
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

    /// Runs a future that has the API server be away for a while, and waits until all answer again: that is neither the end of
    /// the environment, nor an excuse for what fails then. What was silent before it stays an excuse.
    pub(super) async fn through_absence<T>(&self, future: impl Future<Output = T>) -> T {
        self.parts.iter().for_each(|part| _ = part.meant.fetch_add(1, Ordering::SeqCst));
        let (meant, since) = (Meant(&self.parts), Instant::now());
        let outcome = future.await;
        // Who does not come back is gone.
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

    /// Who is away, or was silent at that moment or shortly before, in words; `None` when nobody was. Asks anew, so that a
    /// silence that goes on is known.
    pub(super) async fn absence_at(&self, at: Instant) -> Option<String> {
        for part in &self.parts {
            if part.is_meant_to_be_away() {
                return Some(format!("{} is kept away on purpose", part.who));
            }
            tokio::select! {
                biased;
                why = self.until_gone() => return Some(why),
                () = part.answers_again() => {}
            }
        }
        self.silent_about(at, Duration::ZERO)
    }

    /// Who was silent for so long at that moment or shortly before, in words; `None` when nobody was.
    pub(super) fn silent_about(&self, at: Instant, time: Duration) -> Option<String> {
        self.parts.iter().find_map(|part| part.silent_about(at, time))
    }

    /// Which component answered late in the time before that moment, in words; `None` if none did.
    pub(super) fn late_before(&self, at: Instant, time: Duration) -> Option<String> {
        self.parts.iter().find_map(|part| part.late_before(at, time))
    }

    /// Whether everything has been there since `began` and still is, and fast enough: asks anew, and ends when all have
    /// answered or one is gone.
    ///
    /// # Errors
    /// Who was away or slow, and for how long.
    pub(super) async fn throughout(&self, began: Instant) -> Result<(), Excuse> {
        for part in &self.parts {
            tokio::select! {
                biased;
                why = self.until_gone() => return Err(Excuse::Away(why)),
                () = part.answers_again() => {}
            }
            let away = part.away_since(began).map(Excuse::Away);
            if let Some(excuse) = away.or_else(|| part.slow_since(began).map(Excuse::Slow)) {
                return Err(excuse);
            }
        }
        Ok(())
    }
}

/// Why a failure says nothing of the CCM, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Excuse {
    /// Somebody was away.
    Away(String),
    /// Everything was too slow, whoever has made it so.
    Slow(String),
}

/// One of those without whom nothing can be judged.
#[derive(Debug)]
struct Part {
    who: &'static str,
    /// How often it has answered, and when last.
    heard: watch::Sender<(u64, Instant)>,
    /// Wakes who looks, before it is time.
    hurry: Notify,
    silences: Mutex<Vec<Silence>>,
    /// From when on its answers are slow, where that says something.
    slow_from: Option<Duration>,
    /// When it last answered, and how long that took it, oldest first.
    answers: Mutex<VecDeque<(Instant, Duration)>>,
    /// How many have it be away on purpose.
    meant: AtomicUsize,
}

/// A time without an answer.
#[derive(Clone, Debug)]
struct Silence {
    /// When the last answer before it came.
    from: Instant,
    /// When the first answer after it came.
    until: Instant,
    /// What was answered instead; `None` where the answer only came late.
    failure: Option<String>,
}

/// Somebody is away on purpose for as long as this lives.
struct Meant<'a>(&'a [Arc<Part>]);

impl Drop for Meant<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|part| _ = part.meant.fetch_sub(1, Ordering::SeqCst));
    }
}

impl Part {
    fn new(who: &'static str, slow_from: Option<Duration>) -> Arc<Part> {
        let heard = watch::Sender::new((0, Instant::now()));
        let (silences, answers) = (Mutex::default(), Mutex::default());
        let meant = AtomicUsize::new(0);
        Arc::new(Part { who, heard, hurry: Notify::new(), silences, slow_from, answers, meant })
    }

    /// Looks for ever; ends when it has not answered for too long, and says so.
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
                Err(why) if last.elapsed() >= GONE_AFTER => {
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

    /// Ends when it has answered after this moment.
    async fn answers_again(&self) {
        let mut heard = self.heard.subscribe();
        let before = heard.borrow().0;
        self.hurry.notify_one();
        // The sender is ours, so it does not end.
        let _ = heard.wait_for(|(answers, _)| *answers > before).await;
    }

    fn is_meant_to_be_away(&self) -> bool {
        self.meant.load(Ordering::SeqCst) > 0
    }

    /// As if it had always answered since then, and fast.
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

    /// Whether its answers since `began` took too long on the average.
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
                "the machine is too slow to tell a late CCM from a right one: {} took {:.1} s for an answer meanwhile, {:.1} s \
                 at worst; run with fewer 'jobs' and 'clusters', or with nothing beside it",
                self.who,
                mean.as_secs_f64(),
                worst.as_secs_f64()
            )
        })
    }

    /// Its latest answer within `time` before that moment, in words, if that was late.
    fn late_before(&self, at: Instant, time: Duration) -> Option<String> {
        self.slow_from?;
        let from = at.checked_sub(time)?;
        let answers = self.answers.lock().expect("no holder of this lock panics");
        let within = answers.iter().filter(|(heard, took)| *heard > from && *heard - *took <= at);
        let worst = within.map(|(_, took)| *took).max().filter(|worst| *worst >= LATE_FROM)?;
        Some(format!("{} took {:.1} s for an answer shortly before", self.who, worst.as_secs_f64()))
    }

    /// Who was away after `began`, in words.
    fn away_since(&self, began: Instant) -> Option<String> {
        self.silent(|silence| {
            let late = silence.until - silence.from >= EVERY + AWAY_AFTER;
            silence.until > began && (late || silence.failure.is_some())
        })
    }

    fn silent_about(&self, at: Instant, time: Duration) -> Option<String> {
        // For so long after an answer nothing is asked.
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

    /// In words, the first silence that fits.
    fn silent(&self, fits: impl Fn(&Silence) -> bool) -> Option<String> {
        let silences = self.silences.lock().expect("no holder of this lock panics");
        let silence = silences.iter().find(|silence| fits(silence))?;
        let seconds = silence.until.duration_since(silence.from).as_secs_f64();
        Some(format!(
            "{} did not answer for {seconds:.0} s meanwhile ({}): what failed cannot be told from that",
            self.who,
            silence.failure.as_deref().unwrap_or("it was slow")
        ))
    }
}

/// Whether the API server answers what its store has to be asked for: it tells its version while no Lease can be renewed.
async fn server_answers(client: &Client) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match timeout(ANSWER, namespaces.get("kube-system")).await {
        Ok(Ok(_)) => Ok(()),
        // Whoever refuses is there; whose store is not is not.
        Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(format!("no answer in {ANSWER:?}")),
    }
}

/// Whether the cloud answers, rather than whether its long poll has broken yet.
async fn heard(journal: &Journal) -> Result<(), String> {
    match timeout(ANSWER, journal.catch_up()).await {
        Ok(read) => read.map_err(|error| error.text),
        Err(_) => Err(format!("no answer in {ANSWER:?}")),
    }
}

/// Whether the cloud says what it holds.
async fn held(cloud: &Cloud) -> Result<(), String> {
    match timeout(ANSWER, cloud.inventory()).await {
        Ok(read) => read.map(drop).map_err(|error| chain(&error)),
        Err(_) => Err(format!("no answer in {ANSWER:?}")),
    }
}

#[cfg(test)]
mod tests;
