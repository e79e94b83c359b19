//! Interfaces of the provider that are not asked where another one is there (CAP-05, -06).

use harness_testkit::prelude::*;
use suites_common::joining::joined;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CAP-05", |cx| Box::pin(asks_for_no_zone(cx))).by_calls().needs(&[Capability::InstancesV2]),
    Check::of("CAP-06", |cx| Box::pin(tells_of_clusters(cx))).by_calls().needs(&[Capability::Instances]),
];

/// What clouds call a zone or a region in their paths.
const PLACES: [&str; 5] = ["zone", "region", "location", "datacenter", "availability"];

/// Whether a call asks for something that paths name so, or for all of them, and for no object that a CCM works on. What such a
/// name stands before is in that place, and not about it: `/zones/a/servers/1`.
fn is_about(call: &Entry, words: &[&str]) -> bool {
    call.op == Op::Other && asks_for(&call.request, words)
}

fn asks_for(request: &str, words: &[&str]) -> bool {
    let path = request.split_once(' ').map_or("", |(_, path)| path);
    let path = path.split('?').next().unwrap_or_default().to_ascii_lowercase();
    path.rsplit('/')
        .filter(|part| !part.is_empty())
        .take(2)
        .any(|part| words.iter().any(|word| part.contains(word)))
}

async fn asks_for_no_zone(cx: &CheckCx) -> Verdict {
    joined(cx, machine("placed")).await?;
    let places = cx.cloud().calls().that(|call| is_about(call, &PLACES));
    places.is(no_calls()).await
}

async fn tells_of_clusters(cx: &CheckCx) -> Verdict {
    joined(cx, machine("clustered")).await?;
    let calls = cx.cloud().calls().that(|call| is_about(call, &["cluster"]));
    cx.record("calls", calls.list().await?.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_asked_for_at_the_end_of_a_path() {
        for place in
            ["GET /v1/zones", "GET /v1/zones/a", "GET /v2/regions?page=2", "GET /availability-zones/"]
        {
            assert!(asks_for(place, &PLACES), "{place}");
        }
        for other in [
            "GET /instance/v1/zones/a/servers/1",
            "GET /ipam/v1/regions/fr/ips?resource=1",
            "GET /v1/servers",
        ] {
            assert!(!asks_for(other, &PLACES), "{other}");
        }
    }
}
