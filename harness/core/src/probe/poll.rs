//! Waiting for facts of the machinery itself.

use super::ReadError;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Waits for a fact of the machinery itself (a pod gone, a container up), outside any check.
///
/// `read` answers `Ok(Some(value))` when the fact is there, `Ok(None)` when not yet; its words of what it last saw are
/// kept in `seen`.
///
/// # Errors
/// The text says what was waited for, how long, and what was last seen.
pub async fn poll<T>(
    what: &str,
    limit: Duration,
    interval: Duration,
    mut read: impl AsyncFnMut(&mut String) -> Result<Option<T>, ReadError>,
) -> Result<T, ReadError> {
    let began = Instant::now();
    let mut seen = String::from("nothing");
    let mut errors = 0_u64;
    loop {
        let left = (began + limit).saturating_duration_since(Instant::now());
        match timeout(left.max(Duration::from_secs(1)), read(&mut seen)).await {
            Ok(Ok(Some(value))) => return Ok(value),
            Ok(Ok(None)) => {}
            Ok(Err(error)) if error.fatal => return Err(error),
            Ok(Err(error)) => {
                errors += 1;
                seen = format!("read error {errors}: {error}");
            }
            Err(_) => seen = format!("the read was not answered in time; before: {seen}"),
        }
        if began.elapsed() >= limit {
            return Err(ReadError::passing(format!(
                "{what} did not come true in {}s: last seen: {seen}",
                limit.as_secs()
            )));
        }
        super::pause(interval.min((began + limit).saturating_duration_since(Instant::now()))).await;
    }
}
