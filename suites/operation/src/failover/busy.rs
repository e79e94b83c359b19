//! A Service that keeps the leader writing, and the check that two replicas did not write in turn (HA-04).

use super::order::overlap;
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;

/// How often a Service is edited to make the leader write.
const EDIT_EVERY: Duration = Duration::from_millis(250);

/// Edits a Service for ever: each edit causes a mutating request of the leader. Ends only when an edit fails.
pub(crate) async fn edits(web: &Service<'_>) -> CheckError {
    let mut round = 0;
    loop {
        round += 1;
        // Never the previous value: a CCM that sees only every other edit still has to write.
        let ports = json!([{"port": 80 + round % 1000, "protocol": "TCP"}]);
        if let Err(stop) = web.patch(&json!({"spec": {"ports": ports}})).await {
            return stop;
        }
        pause(EDIT_EVERY).await;
    }
}

/// How long a new leader may take to process every Service, one after the other.
pub(crate) fn time_to_take_up(cx: &CheckCx) -> Duration {
    cx.limits().service_after(1) + cx.limits().load_balancer_work()
}

/// Waits until another replica than `old` has written.
pub(super) async fn another_writes(cx: &CheckCx, old: &str, mark: u64) -> Verdict {
    let old = old.to_owned();
    let others = cx.cloud().calls().writes().since(mark);
    let others = others.that(move |call: &Entry| call.credential.as_deref() != Some(&old));
    others.becomes(some_calls()).within(time_to_take_up(cx)).when("by the new leader").await.map(drop)
}

/// Checks that all writes of `leader` since `mark` came before those of other replicas.
pub(crate) async fn in_order(cx: &CheckCx, mark: u64, leader: &str) -> Verdict {
    let writes = cx.cloud().calls().writes().since(mark);
    match overlap(&writes.list().await?, leader) {
        None => Ok(()),
        Some(overlap) => Err(writes.breaks(
            "the old leader's last write precedes the new one's first",
            &format!("replica {leader} silent before replica {} writes", overlap.early),
            &overlap.around.iter().map(Observed::observed).collect::<Vec<_>>().join("; "),
        )),
    }
}
