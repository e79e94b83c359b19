//! Detects whether the CCM itself overloads the API server.

use harness_clusters::{Asked, AuditQuery, Cluster};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// Service accounts: nearly all of their requests are the CCM's.
const ACCOUNTS: &str = "system:serviceaccount:";
/// The average number of requests per second that counts as a flood if answers are slow: thirty clients that wait for
/// each answer can make this many. The framework allows each client 20.
const FLOOD: u64 = 100;

/// Whether the CCM has flooded the API server since then; false if that is unknown.
pub(super) async fn has_come_since(began: Instant, cluster: &Cluster) -> bool {
    let within_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let since_ms = Timestamp::now().as_millisecond().saturating_sub_unsigned(within_ms);
    let query = AuditQuery { user: ACCOUNTS.to_owned(), since_ms, refused: false, distinct: false };
    cluster.asked(&query).await.is_ok_and(|asked| is_flood(&asked, within_ms))
}

/// Whether this many requests of service accounts in this many milliseconds are a flood.
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
