//! Interfaces of the provider that are not called if a newer one exists (CAP-05, -06).

use harness_testkit::prelude::*;
use suites_common::joining::joined;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CAP-05", |cx| Box::pin(asks_for_no_zone(cx))).by_calls().needs(&[Capability::InstancesV2]),
    Check::of("CAP-06", |cx| Box::pin(tells_of_clusters(cx))).by_calls().needs(&[Capability::Instances]),
];

/// Names of zones and regions in the paths of cloud APIs.
const PLACES: [&str; 5] = ["zone", "region", "location", "datacenter", "availability"];

/// Whether a call is about a zone or region itself, or lists all of them. A path that continues after such a
/// name is about an object in that place, not about the place: `/zones/a/servers/1`.
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
