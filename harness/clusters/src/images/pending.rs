//! Work at the engine that goes on although nobody waits for it any more.
//!
//! An engine that was asked to make a container makes it, even when the connection breaks: the container appears some
//! time later. So requests that make something are not dropped half-way, and whoever cleans up waits for them first.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::task::TaskTracker;

static UNDER_WAY: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Does work that goes on to its end even when the caller is gone. The work must be bounded.
pub(crate) fn begin<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send {
    let task = UNDER_WAY.spawn(work);
    async move {
        match task.await.map_err(JoinError::try_into_panic) {
            Ok(outcome) => outcome,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down and nobody will ask again.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}

/// Waits until everything that was begun has ended, or `limit` has passed.
pub(crate) async fn settled(limit: Duration) {
    UNDER_WAY.close();
    if tokio::time::timeout(limit, UNDER_WAY.wait()).await.is_err() {
        tracing::warn!(tasks = UNDER_WAY.len(), "some requests to the Docker engine are still under way");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_was_begun_goes_on_without_its_caller() {
        let (go, going) = oneshot::channel::<()>();
        let (done, ended) = oneshot::channel();
        drop(begin(async move {
            let _ = going.await;
            let _ = done.send(());
        }));
        go.send(()).expect("the work still waits");
        settled(Duration::from_secs(10)).await;
        ended.await.expect("the work has ended");
    }
}
