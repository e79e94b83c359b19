//! The fake cloud's journal as this process has seen it: fed by a long poll, read without asking anybody.

use crate::probe::{Pulse, pause};
use fake_cloud::admin::{Client, Entry, Op, Outcome};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long one long poll stays open.
const LONG_POLL: Duration = Duration::from_secs(20);
/// How often entries under way are looked at again: their outcome is still to come.
const UNDER_WAY: Duration = Duration::from_millis(50);

/// A mirror of the journal.
#[derive(Debug)]
pub struct Journal {
    entries: Arc<RwLock<Vec<Entry>>>,
    task: JoinHandle<()>,
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Journal {
    /// Starts mirroring; beats `pulse` on each change.
    pub fn follow(cloud: Client, pulse: Pulse) -> Journal {
        let entries = Arc::new(RwLock::new(Vec::<Entry>::new()));
        let filled = entries.clone();
        let task = tokio::spawn(async move {
            loop {
                let (after, under_way) = position(&filled);
                let wait = if under_way { Duration::ZERO } else { LONG_POLL };
                match cloud.journal(after, wait).await {
                    Ok(fresh) => {
                        if merge(&filled, fresh) {
                            pulse.beat();
                        }
                        if under_way {
                            pause(UNDER_WAY).await;
                        }
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the journal cannot be read");
                        pause(Duration::from_millis(500)).await;
                    }
                }
            }
        });
        Journal { entries, task }
    }

    /// The last sequence number seen; marks a moment for [`Journal::since`].
    pub fn mark(&self) -> u64 {
        self.entries.read().expect("no holder of this lock panics").last().map_or(0, |entry| entry.seq)
    }

    /// Entries after `mark` that fit, in order of arrival.
    pub fn since(&self, mark: u64, fits: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let entries = self.entries.read().expect("no holder of this lock panics");
        let start = entries.partition_point(|entry| entry.seq <= mark);
        entries[start..].iter().filter(|entry| fits(entry)).cloned().collect()
    }
}

/// Where to read on: before the first entry under way, else after the last.
fn position(entries: &RwLock<Vec<Entry>>) -> (u64, bool) {
    let entries = entries.read().expect("no holder of this lock panics");
    match entries.iter().find(|entry| entry.outcome == Outcome::UnderWay) {
        Some(first) => (first.seq - 1, true),
        None => (entries.last().map_or(0, |entry| entry.seq), false),
    }
}

/// Takes fresh entries in; says whether anything is new.
fn merge(entries: &RwLock<Vec<Entry>>, fresh: Vec<Entry>) -> bool {
    let mut entries = entries.write().expect("no holder of this lock panics");
    let mut changed = false;
    for entry in fresh {
        match entries.binary_search_by_key(&entry.seq, |known| known.seq) {
            Ok(at) if entries[at] == entry => {}
            Ok(at) => {
                entries[at] = entry;
                changed = true;
            }
            Err(at) => {
                entries.insert(at, entry);
                changed = true;
            }
        }
    }
    changed
}

/// An entry in one line, as a failure or the evidence shows it.
pub fn show_entry(entry: &Entry) -> String {
    let outcome = match &entry.outcome {
        Outcome::Answered { status } => status.to_string(),
        Outcome::Faulted { status: Some(status), .. } => format!("{status} (fault)"),
        Outcome::Faulted { status: None, .. } => "no answer (fault)".to_owned(),
        Outcome::UnderWay => "under way".to_owned(),
        Outcome::Abandoned => "abandoned by the caller".to_owned(),
    };
    let by = entry.credential.as_deref().unwrap_or("unknown credential");
    let unknown = entry.unknown.as_ref().map(|what| format!(", unknown to the fake cloud: {what}"));
    let (seconds, unknown) = (entry.at_ms as f64 / 1000.0, unknown.unwrap_or_default());
    format!("#{} {seconds:.3}s {by}: {} -> {outcome}{unknown}", entry.seq, entry.request)
}

/// Whether the entry changed the load balancers or what belongs to them.
pub fn is_lb_write(entry: &Entry) -> bool {
    entry.write
        && matches!(
            entry.op,
            Op::LbCreate | Op::LbUpdate | Op::LbDelete | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete
        )
}
