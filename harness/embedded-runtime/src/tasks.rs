//! The tasks of one running set of controllers: started together, stopped together.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Starts tasks and keeps track of them until they have ended.
#[derive(Clone, Default)]
pub struct Tasks {
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    /// Runs the task until it ends or all are stopped, whichever is first.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Runs the task to its end: it watches [`Tasks::stopping`] itself, because it has something to clean up.
    pub fn spawn_to_the_end(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(task);
    }

    /// A token that is cancelled when everything has to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks every task to stop, without waiting.
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    /// Stops every task and waits until all have ended, at most this long. Returns whether all did.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait()).await.is_ok()
    }
}
