//! A stage of bringing an environment up, as the stream of events tells of it.

use harness_core::events::Events;

/// Does the work of a stage. How it ends is told when it has ended.
pub(super) async fn stage<T, E>(
    events: &Events,
    name: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let told = events.stage(name);
    let outcome = work.await;
    told.end(outcome.is_ok());
    outcome
}
