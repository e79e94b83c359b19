//! One Pod whose containers are programs: the actions of its kubelet, step by step.
//!
//! A worker is woken by notes (the Pod changed, a program ended, a probe has a result) and by its own
//! deadlines. Each time it compares the current state with the desired one and does the next step. While its
//! node's kubelet is stopped, it does nothing. While the node is cut off, it continues with its last data and
//! sends no reports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use rustix::process::Signal;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::logs::Log;
use super::note::{Note, Slot};
use super::setup::Setup;
use super::shared::Shared;
use super::status::{Ended, Phase};
use embedded_runtime::cache::Key;
use embedded_runtime::events::Weight;

/// The default time that a Pod has to end, in seconds.
const DEFAULT_GRACE: i64 = 30;
/// The pause before a failed request to the API server is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// The worker of one Pod.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) node: String,
    pub(crate) pod: Arc<Pod>,
    pub(crate) folder: PathBuf,
    pub(crate) slots: Vec<Slot>,
    pub(crate) setup: Setup,
    pub(crate) notes: mpsc::UnboundedSender<Note>,
    pub(crate) since: Timestamp,
    pub(crate) posted: Option<Value>,
    pub(crate) said: Option<String>,
}

/// Whether the worker continues.
enum Step {
    Until(Option<Instant>),
    Finished,
}

impl Worker {
    /// A worker for this Pod, with the sender of its notes.
    pub(crate) fn new(
        shared: Arc<Shared>,
        pod: Arc<Pod>,
        folder: PathBuf,
    ) -> (Worker, mpsc::UnboundedReceiver<Note>) {
        let (notes, received) = mpsc::unbounded_channel();
        let spec = pod.spec.as_ref();
        let init = spec.and_then(|spec| spec.init_containers.clone()).unwrap_or_default();
        let main = spec.map(|spec| spec.containers.clone()).unwrap_or_default();
        let limit = shared.world.settings.log_limit_bytes;
        let all = init
            .into_iter()
            .map(|container| (container, true))
            .chain(main.into_iter().map(|one| (one, false)));
        let has_init =
            spec.and_then(|spec| spec.init_containers.as_ref()).is_some_and(|init| !init.is_empty());
        let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
        let slots = all
            .map(|(container, init)| Slot {
                container,
                init,
                phase: Phase::Waiting { reason: reason.to_owned(), message: None },
                last: None,
                restarts: 0,
                started: false,
                ready: false,
                backoff: Backoff::default(),
                restart_at: None,
                run: 0,
                group: None,
                kill_at: None,
                lost: false,
                overran: None,
                probes: CancellationToken::new(),
                log: Log::new(limit),
            })
            .collect();
        let worker = Worker {
            key: Key::of(pod.as_ref()),
            uid: pod.uid().unwrap_or_default(),
            node: spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            setup: Setup::new(&shared, &pod),
            shared,
            pod,
            folder,
            slots,
            notes,
            since: Timestamp::now(),
            posted: None,
            said: None,
        };
        (worker, received)
    }

    /// Works until the Pod is gone or everything is stopped.
    pub(crate) async fn work(mut self, mut notes: mpsc::UnboundedReceiver<Note>) {
        let stopping = self.shared.world.tasks.stopping();
        loop {
            let deadline = match self.step().await {
                Ok(Step::Finished) => break,
                Ok(Step::Until(deadline)) => deadline,
                Err(error) => {
                    tracing::debug!(pod = ?self.key, %error, "will be tried again");
                    Some(Instant::now() + RETRY)
                }
            };
            let pause = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stopping.cancelled() => break,
                Some(note) = notes.recv() => self.take(note),
                () = pause => {}
            }
        }
        for slot in &self.slots {
            slot.probes.cancel();
            match slot.group {
                Some(group) => group.signal(Signal::KILL),
                // The log of a container without a program ends here, so that no reader waits any longer.
                None => slot.log.end(),
            }
        }
        self.shared.gone(&self.key, &self.uid);
        if let Err(error) = std::fs::remove_dir_all(&self.folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.folder.display(), %error, "a Pod's folder was not removed");
        }
    }

    pub(super) fn grace(&self) -> Duration {
        let chosen = self.pod.metadata.deletion_grace_period_seconds;
        let described = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = chosen.or(described).unwrap_or(DEFAULT_GRACE);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// Does what is due, and returns the time until there is more to do.
    async fn step(&mut self) -> Result<Step, kube::Error> {
        let Some(machine) = self.shared.fleet.state(&self.node) else {
            // The machine is gone, together with everything that ran there.
            return Ok(Step::Finished);
        };
        let acts = machine.power == crate::nodes::fleet::Power::On && machine.kubelet_runs;
        let mut gone = false;
        if machine.speaks() {
            match self.shared.world.pods.get(&self.key).filter(|pod| pod.uid().as_deref() == Some(&self.uid))
            {
                Some(pod) => self.pod = pod,
                None => gone = true,
            }
        }
        if !acts {
            return Ok(Step::Until(None));
        }
        self.kill_what_is_due();
        let ended = matches!(
            self.pod.status.as_ref().and_then(|status| status.phase.as_deref()),
            Some("Failed" | "Succeeded")
        );
        if gone || ended || self.pod.metadata.deletion_timestamp.is_some() {
            // An object that is gone was removed by force: its programs get no time to end.
            if self.end_all(if gone { Duration::ZERO } else { self.grace() }) {
                if gone {
                    return Ok(Step::Finished);
                }
                if machine.speaks() {
                    self.post().await?;
                    if self.pod.metadata.deletion_timestamp.is_some() {
                        self.remove().await?;
                        return Ok(Step::Finished);
                    }
                }
            }
        } else {
            self.advance().await?;
        }
        if machine.speaks() && !gone {
            self.post().await?;
        }
        let deadlines = self.slots.iter().flat_map(|slot| [slot.kill_at, slot.restart_at]).flatten();
        Ok(Step::Until(deadlines.chain(self.setup.refresh_at).min()))
    }

    fn kill_what_is_due(&mut self) {
        let now = Instant::now();
        for slot in &mut self.slots {
            if slot.kill_at.is_some_and(|at| at <= now) {
                slot.kill_at = None;
                slot.group.iter().for_each(|group| group.signal(Signal::KILL));
            }
        }
    }

    /// Ends every program, gracefully first, and within this time even if it was granted more before. Returns
    /// whether all have ended.
    fn end_all(&mut self, grace: Duration) -> bool {
        let mut messages = Vec::new();
        for slot in &mut self.slots {
            slot.restart_at = None;
            slot.probes.cancel();
            match slot.group {
                Some(group) if slot.kill_at.is_none() => {
                    slot.kill_at = Some(Instant::now() + grace);
                    group.signal(if grace.is_zero() { Signal::KILL } else { Signal::TERM });
                    // A frozen program cannot handle the signal.
                    group.signal(Signal::CONT);
                    messages.push(format!("Stopping container {}", slot.container.name));
                }
                Some(_) => slot.kill_at = slot.kill_at.map(|at| at.min(Instant::now() + grace)),
                None => {
                    if let Phase::Running { since, id } = &slot.phase {
                        // A simulated container has no program that could ignore it.
                        slot.phase = Phase::Ended(Ended {
                            code: 0,
                            reason: "Completed".to_owned(),
                            message: None,
                            started: Some(*since),
                            finished: Timestamp::now(),
                            id: id.clone(),
                        });
                    }
                    slot.ready = false;
                }
            }
        }
        for text in messages {
            self.tell(Weight::Normal, "Killing", text);
        }
        self.slots.iter().all(|slot| slot.group.is_none())
    }

    /// Brings the Pod one step closer to running.
    async fn advance(&mut self) -> Result<(), kube::Error> {
        if let Err(refusal) = self.set_up().await? {
            self.say_once(Weight::Warning, refusal.reason, refusal.message);
            return Ok(());
        }
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get(index) else { break };
            let due = slot.restart_at.is_none_or(|at| at <= Instant::now());
            let starts = match &slot.phase {
                Phase::Waiting { .. } => due,
                Phase::Running { .. } => false,
                Phase::Ended(_) => slot.lost || (slot.restart_at.is_some() && due),
            };
            let init = slot.init;
            if starts {
                self.start_container(index).await;
            }
            let Some(slot) = self.slots.get(index) else { break };
            let done = matches!(&slot.phase, Phase::Ended(ended) if ended.code == 0);
            let sidecar = slot.container.restart_policy.as_deref() == Some("Always");
            if init && !(done || (sidecar && slot.started)) {
                // The next container waits for this one.
                break;
            }
        }
        Ok(())
    }
}
