//! The stages of bringing an environment up: shown as they go, and how long each took.

use crate::events::Events;
use crate::ledger::StageTime;
use std::sync::Mutex;
use std::time::Instant;

/// The stages so far, in the order in which they ended. Some run side by side.
#[derive(Debug, Default)]
pub(super) struct Stages {
    ended: Mutex<Vec<StageTime>>,
}

impl Stages {
    pub(super) async fn run<T, E>(
        &self,
        events: &Events,
        name: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let began = Instant::now();
        let shown = events.stage(name);
        let outcome = work.await;
        shown.end(outcome.is_ok());
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut ended = self.ended.lock().expect("no holder of this lock panics");
        ended.push(StageTime { stage: name.to_owned(), took_ms });
        outcome
    }

    pub(super) fn ended(&self) -> Vec<StageTime> {
        self.ended.lock().expect("no holder of this lock panics").clone()
    }
}
