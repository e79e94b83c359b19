//! The requests that the CCM sends to the API server (SCALE-07).

use super::nodes::{begin, join};
use harness_testkit::prelude::*;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

pub(super) const CHECKS: &[Check] = &[Check::of("SCALE-07", |cx| Box::pin(keeps_within_its_rate(cx)))
    .needs(&[Capability::Instances, Capability::LoadBalancer, Capability::FrameworkFlags])
    .with(&[Facility::CcmControl, Facility::AuditLog])
    .on_a_fresh_cluster()
    .takes(5)];

const NODES: usize = 40;
const SERVICES: usize = 5;
/// The default values of the flags.
const QPS: f64 = 20.0;
const BURST: f64 = 30.0;
/// The tolerance, worth one second: on a busy machine, requests arrive closer together than they were sent.
const SLACK: f64 = QPS;
/// How often one client may list a kind during the check: at its start, and when a watch has to be restarted.
const LISTS: usize = 4;

/// By how many requests a client exceeded its rate at the worst moment. `at` has the times of its requests,
/// in milliseconds and in order. The model is a token bucket that is full at the start.
fn ahead(at: &[i64]) -> f64 {
    let (mut level, mut last, mut worst): (f64, Option<i64>, f64) = (0.0, None, 0.0);
    for now in at {
        #[allow(clippy::cast_precision_loss)]
        let passed = last.map_or(0.0, |last| (now - last).max(0) as f64 / 1000.0);
        level = (level - passed * QPS).max(0.0) + 1.0;
        worst = worst.max(level - BURST);
        last = Some(*now);
    }
    worst
}

/// Describes the clients that were too fast.
fn too_fast(asked: &[Asked]) -> Vec<String> {
    let mut clients: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for one in asked {
        clients.entry(&one.user_agent).or_default().push(one.at_ms);
    }
    let too_fast = clients.into_iter().filter(|(_, at)| ahead(at) > SLACK);
    too_fast.map(|(client, at)| format!("'{client}' was {:.0} requests ahead", ahead(&at))).collect()
}

/// Describes the kinds that one client listed again and again.
fn polled(asked: &[Asked]) -> Vec<String> {
    let mut lists: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in asked.iter().filter(|one| one.verb == "list") {
        *lists.entry((&one.user_agent, &one.resource)).or_default() += 1;
    }
    let often = lists.into_iter().filter(|(_, count)| *count > LISTS);
    often.map(|((client, resource), count)| format!("'{client}' listed {resource} {count} times")).collect()
}

async fn keeps_within_its_rate(cx: &CheckCx) -> Verdict {
    let since = Timestamp::now().as_millisecond();
    let alone = begin(cx, &["--kube-api-qps=20", "--kube-api-burst=30"]).await?;
    join(cx, "asked", NODES).await?;
    for number in 0..SERVICES {
        cx.service(load_balancer(&format!("asked-{number}")).port(80)).await?.provisioned().await?;
    }
    pause(cx.limits().settle()).await;
    let asked = cx.asked_since(&alone.account()?, since).await?;
    cx.record("requests", asked.len());
    let wrong: Vec<String> = too_fast(&asked).into_iter().chain(polled(&asked)).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let expected = format!(
        "of each client {QPS} requests a second after {BURST} at once, and lists only to begin a watch"
    );
    Err(alone.breaks("the API server is asked within its rate", &expected, &wrong.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_fine_and_more_than_that_is_not() {
        assert!(ahead(&[0; 30]) <= 0.0);
        assert!((ahead(&[0; 40]) - 10.0).abs() < 0.01);
        let steady: Vec<i64> = (0..200).map(|number| number * 50).collect();
        assert!(ahead(&steady) <= 0.0);
        let fast: Vec<i64> = (0..200).map(|number| number * 10).collect();
        assert!(ahead(&fast) > 100.0);
    }

    #[test]
    fn a_kind_that_is_listed_again_and_again_is_polled() {
        let list =
            |resource: &str| Asked { verb: "list".into(), resource: resource.into(), ..Asked::default() };
        let asked: Vec<Asked> = std::iter::repeat_n(list("nodes"), 5).chain([list("services")]).collect();
        assert_eq!(polled(&asked), ["'' listed nodes 5 times"]);
    }
}
