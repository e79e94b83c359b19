//! Requests to the engine that continue after their caller is gone.
//!
//! An engine that was asked to create a container does so even if the connection breaks: the container appears some time
//! later. So requests that create something are not dropped half-way, and a cleanup waits for them first.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::task::TaskTracker;

static UNDER_WAY: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Runs work to its end even if the caller is gone. The work must have a time limit.
pub(crate) fn begin<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send {
    let task = UNDER_WAY.spawn(work);
    async move {
        match task.await.map_err(JoinError::try_into_panic) {
            Ok(outcome) => outcome,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, so the result is not needed.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}

/// Waits until all of this work has ended, or `limit` has passed.
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
    async fn started_work_continues_without_its_caller() {
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
