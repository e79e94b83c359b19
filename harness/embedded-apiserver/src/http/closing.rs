//! The end of the server, for tasks that wait for something else at the same time.

use tokio::sync::watch;

/// Waits until the server stops.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    // If the sender is gone, the server is gone as well.
    drop(closing.wait_for(|closing| *closing).await);
}
