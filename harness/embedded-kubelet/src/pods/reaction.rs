//! How a Pod's containers react to an event: a program ended, a probe has a result, a signal came.

use std::time::Duration;

use jiff::Timestamp;
use rustix::process::Signal;
use tokio::time::Instant;

use super::backoff::go_text;
use super::bounds::Overrun;
use super::note::{Note, Slot};
use super::probe::Purpose;
use super::process::Exit;
use super::status::{Ended, Phase, Restarts};
use super::worker::Worker;
use embedded_runtime::cache::Key;
use embedded_runtime::events::Weight;

impl Worker {
    /// Handles a note.
    pub(super) fn take(&mut self, note: Note) {
        match note {
            Note::PathAccess => {}
            Note::Overrun { slot, run, overrun } => self.overran(slot, run, overrun),
            Note::Exited { slot, run, exit } => self.exited(slot, run, exit),
            Note::Probed { slot, run, purpose, verdict } => self.probed(slot, run, purpose, verdict),
            Note::Signal { container, run, signal } => {
                let meant = |slot: &&Slot| {
                    container.as_ref().is_none_or(|name| slot.container.name == *name)
                        && run.is_none_or(|run| slot.run == run)
                };
                for slot in self.slots.iter().filter(meant) {
                    if let Some(group) = slot.group {
                        group.signal(signal);
                    }
                }
            }
            Note::PowerLost => {
                for slot in &mut self.slots {
                    if matches!(slot.phase, Phase::Running { .. }) {
                        slot.lost = true;
                        slot.probes.cancel();
                        slot.group.iter().for_each(|group| group.signal(Signal::KILL));
                    }
                }
            }
        }
    }

    fn exited(&mut self, index: usize, run: u64, exit: Exit) {
        let restarts = Restarts::of(&self.pod);
        let ending = self.pod.metadata.deletion_timestamp.is_some();
        let pace = self.shared.world.settings.pace.clone();
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.run == run) else { return };
        slot.probes.cancel();
        slot.group = None;
        slot.kill_at = None;
        slot.ready = false;
        slot.started = false;
        let overran = slot.overran.take();
        let (code, reason) = match (slot.lost, exit.code, &overran) {
            (true, ..) => (255, "Unknown"),
            (false, code, Some(Overrun::Memory(_))) => (code, "OOMKilled"),
            (false, 0, _) => (0, "Completed"),
            (false, code, _) => (code, "Error"),
        };
        let message = overran.map(|overrun| overrun.to_string());
        let (started, id) = match &slot.phase {
            Phase::Running { since, id } => (Some(*since), id.clone()),
            _ => (None, String::new()),
        };
        let ended =
            Ended { code, reason: reason.to_owned(), message, started, finished: Timestamp::now(), id };
        slot.phase = Phase::Ended(ended.clone());
        if slot.lost || ending || !restarts.again(code) || (slot.init && code == 0) {
            return;
        }
        let pause = slot.backoff.pause_after(Instant::now(), &pace);
        slot.restart_at = Some(Instant::now() + pause);
        if !pause.is_zero() {
            let name = slot.container.name.clone();
            slot.last = Some(ended);
            let Key { namespace, name: pod } = &self.key;
            let message = format!(
                "back-off {} restarting failed container={name} pod={pod}_{namespace}({})",
                go_text(pause),
                self.uid
            );
            slot.phase = Phase::Waiting { reason: "CrashLoopBackOff".to_owned(), message: Some(message) };
            let message =
                format!("Back-off restarting failed container {name} in pod {pod}_{namespace}({})", self.uid);
            self.tell(Weight::Warning, "BackOff", message);
        }
    }

    fn overran(&mut self, index: usize, run: u64, overrun: Overrun) {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.run == run && slot.group.is_some())
        else {
            return;
        };
        let text = format!("Container {}: {overrun}", slot.container.name);
        tracing::warn!(pod = ?self.key, "{text}");
        if !matches!(overrun, Overrun::Processor(_)) {
            slot.overran = Some(overrun);
        }
        self.tell(Weight::Warning, "Overrun", text);
    }

    fn probed(&mut self, index: usize, run: u64, purpose: Purpose, verdict: bool) {
        let grace = self.grace();
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.run == run && slot.group.is_some())
        else {
            return;
        };
        match (purpose, verdict) {
            (Purpose::Startup, true) => {
                slot.started = true;
                slot.ready = slot.container.readiness_probe.is_none();
            }
            (Purpose::Readiness, verdict) => slot.ready = verdict,
            (Purpose::Liveness, true) => {}
            (Purpose::Startup | Purpose::Liveness, false) => {
                let probe = match purpose {
                    Purpose::Startup => slot.container.startup_probe.as_ref(),
                    _ => slot.container.liveness_probe.as_ref(),
                };
                let own = probe.and_then(|probe| probe.termination_grace_period_seconds);
                let own = own.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
                slot.kill_at = Some(Instant::now() + own.unwrap_or(grace));
                slot.group.iter().for_each(|group| group.signal(Signal::TERM));
                let words = purpose.words().to_lowercase();
                let text =
                    format!("Container {} failed {words} probe, will be restarted", slot.container.name);
                self.tell(Weight::Normal, "Killing", text);
            }
        }
    }
}
