//! The end of the server, for whoever waits for something else beside it.

use tokio::sync::watch;

/// Waits until the server stops.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    // Without a sender there is no server any more, which is the same.
    drop(closing.wait_for(|closing| *closing).await);
}
