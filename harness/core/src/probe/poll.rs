//! Waits for states of the harness's own environment.

use super::ReadError;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Waits for a state of the harness's own environment (a pod gone, a container up), outside of checks.
///
/// `read` returns `Ok(Some(value))` when the state is reached, `Ok(None)` before that; it stores what it last saw in
/// `seen`.
///
/// ```
/// use harness_core::probe::{ReadError, poll};
/// use std::time::Duration;
///
/// async fn is_written(file: &std::path::Path) -> Result<String, ReadError> {
///     let read = async |seen: &mut String| {
///         "no such file".clone_into(seen);
///         Ok(std::fs::read_to_string(file).ok())
///     };
///     poll("the file is written", Duration::from_secs(5), Duration::from_millis(100), read).await
/// }
/// ```
///
/// # Errors
/// The message says what was waited for, how long, and what was last seen.
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
            Err(_) => seen = format!("the read was not answered in time; last seen before: {seen}"),
        }
        if began.elapsed() >= limit {
            return Err(ReadError::passing(format!(
                "{what}: not reached within {}s; last seen: {seen}",
                limit.as_secs()
            )));
        }
        super::pause(interval.min((began + limit).saturating_duration_since(Instant::now()))).await;
    }
}
