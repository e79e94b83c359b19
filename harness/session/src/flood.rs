//! Whether it is the CCM itself that keeps the API server from answering in time.

use harness_clusters::{Asked, AuditQuery, Cluster};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// Service accounts, of which all are the CCM's but for a few that ask little.
const ACCOUNTS: &str = "system:serviceaccount:";
/// From how many requests a second on, over all of the time, they are a flood, where answers take long: as many as thirty who wait for
/// each answer can ask then. The framework allows each client 20.
const FLOOD: u64 = 100;

/// Whether the CCM has flooded the API server since then; where nobody can tell it has not.
pub(super) async fn has_come_since(began: Instant, cluster: &Cluster) -> bool {
    let within_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let since_ms = Timestamp::now().as_millisecond().saturating_sub_unsigned(within_ms);
    let query = AuditQuery { user: ACCOUNTS.to_owned(), since_ms, refused: false, distinct: false };
    cluster.asked(&query).await.is_ok_and(|asked| is_flood(&asked, within_ms))
}

/// Whether what service accounts asked in so many milliseconds is a flood.
fn is_flood(asked: &[Asked], within_ms: u64) -> bool {
    let count = asked.iter().filter(|one| one.user.starts_with(ACCOUNTS)).count() as u64;
    count * 1000 >= FLOOD * within_ms.max(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_what_no_client_with_a_rate_can_ask() {
        let of = |user: &str, count: usize| vec![Asked { user: user.to_owned(), ..Asked::default() }; count];
        let ccm = "system:serviceaccount:kube-system:ccm";
        assert!(is_flood(&of(ccm, 1000), 10_000));
        assert!(!is_flood(&of(ccm, 900), 10_000), "clients in a hurry");
        assert!(!is_flood(&of("kubernetes-admin", 50_000), 10_000), "the harness's own");
        assert!(!is_flood(&of(ccm, 90), 1), "a burst is none");
    }
}
