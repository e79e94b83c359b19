//! A stage of creating an environment, with its events.

use harness_core::events::Events;

/// Runs a stage and records its result when it has ended.
pub(super) async fn stage<T, E>(
    events: &Events,
    name: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let stage = events.stage(name);
    let outcome = work.await;
    stage.end(outcome.is_ok());
    outcome
}
