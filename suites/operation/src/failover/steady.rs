//! Without a disturbance: one replica writes, the Lease is renewed, the standbys are quiet (HA-01, -02, -06).

use super::needs::{ELECTION, ELECTION_AND_LB};
use harness_testkit::prelude::*;
use k8s_openapi::api::coordination::v1 as core;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use suites_common::joining::joined;

pub(super) const CHECKS: &[Check] = &[
    Check::of(Blocker::Elects.check(), |cx| Box::pin(elects(cx)))
        .needs(&[Capability::LeaderElection])
        .of_the_cloud(&[]),
    Check::of("HA-01", |cx| Box::pin(has_one_writer(cx))).by_calls().needs(ELECTION_AND_LB),
    Check::of("HA-02", |cx| Box::pin(keeps_a_proper_lease(cx))).needs(ELECTION).takes(10),
    Check::of("HA-06", |cx| Box::pin(standbys_stay_quiet(cx)))
        .by_calls()
        .needs(ELECTION_AND_LB)
        .with(&[Facility::Standby])
        .takes(15),
];

async fn elects(cx: &CheckCx) -> Verdict {
    let lease = cx.lease();
    lease.becomes(held()).await?;
    let renewals = Renewals { lease: &lease, before: lease.renewals()? };
    let renewed = holds("is renewed", |count: &usize| *count >= 1).expecting("a renewal");
    renewals.becomes(renewed).within(cx.limits().lease().renew_deadline).await
}

/// Matches calls that one replica has made.
fn of_one_replica() -> Matcher<Vec<Entry>> {
    matcher("come from exactly one replica", |calls: &Vec<Entry>| match callers(calls) {
        who if who.len() == 1 => Observation::Matched(()),
        who => Observation::Pending(format!("replicas {}", json!(who))),
    })
}

async fn has_one_writer(cx: &CheckCx) -> Verdict {
    cx.lease().becomes(held()).await?;
    let mark = cx.cloud().mark()?;
    for name in ["one", "two", "three"] {
        cx.service(load_balancer(name).port(80)).await?.provisioned().await?;
    }
    let nodes = initialised_nodes(cx).await?;
    let work = cx.cloud().calls().since(mark).that(move |call| call.write || is_about(&nodes, call));
    work.is(of_one_replica()).await
}

/// Creates Nodes and waits until they are initialised. The replica that looked their machines up has worked
/// on them; writes to Nodes do not show which replica made them.
async fn initialised_nodes(cx: &CheckCx) -> Result<Vec<Node<'_>>, CheckError> {
    let mut nodes = Vec::new();
    for suffix in ["one", "two", "three"] {
        nodes.push(joined(cx, machine(suffix)).await?.1);
    }
    Ok(nodes)
}

fn is_about(nodes: &[Node<'_>], call: &Entry) -> bool {
    nodes.iter().any(|node| node.concerns(call))
}

/// Matches a Lease as the framework writes it, with a duration of this many seconds. HOSTNAME_UUID: the part
/// after the last underscore is a UUID of 36 characters.
fn proper(seconds: i32) -> Matcher<Option<Arc<core::Lease>>> {
    matcher("is as the framework writes it", move |lease: &Option<Arc<core::Lease>>| {
        let Some(spec) = lease.as_ref().and_then(|l| l.spec.as_ref()) else {
            return Observation::Pending("no Lease".to_owned());
        };
        let identity = spec.holder_identity.as_deref().and_then(|h| h.rsplit_once('_'));
        let named = identity.is_some_and(|(host, uuid)| {
            !host.is_empty() && uuid.len() == 36 && uuid.matches('-').count() == 4
        });
        let complete =
            spec.acquire_time.is_some() && spec.renew_time.is_some() && spec.lease_transitions.is_some();
        Observation::when(named && complete && spec.lease_duration_seconds == Some(seconds))
    })
    .expecting(format!(
        "holder HOSTNAME_UUID, leaseDurationSeconds {seconds}, renewTime, acquireTime and leaseTransitions set"
    ))
}

/// The number of renewals of a Lease since some moment.
struct Renewals<'a> {
    lease: &'a Lease<'a>,
    before: BTreeSet<String>,
}

impl Subject for Renewals<'_> {
    type Snapshot = usize;

    fn cx(&self) -> &CheckCx {
        self.lease.cx()
    }

    fn name(&self) -> SubjectName {
        self.lease.name()
    }

    async fn read(&self, _: ReadSource) -> Result<usize, ReadError> {
        Ok(self.lease.renewals()?.difference(&self.before).count())
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.lease.concerns(call)
    }
}

async fn keeps_a_proper_lease(cx: &CheckCx) -> Verdict {
    let (lease, timing) = (cx.lease(), cx.limits().lease());
    lease.becomes(proper(i32::try_from(timing.duration.as_secs()).unwrap_or(15))).await?;
    let renewals = Renewals { lease: &lease, before: lease.renewals()? };
    // Three more renewals in four and a half periods: about one per period, whatever the jitter.
    let limit = timing.retry_period * 4 + timing.retry_period / 2 + Duration::from_secs(1);
    let often = holds("is renewed about every retry period", |count: &usize| *count >= 3);
    let began = Instant::now();
    renewals.becomes(often.expecting("three renewals")).within(limit).await?;
    // Three within a very short time are too often; twice as often is still acceptable.
    let (took, least) = (began.elapsed(), timing.retry_period * 3);
    let periods = took.max(least).as_millis().div_ceil(timing.retry_period.as_millis().max(1));
    let allowed = usize::try_from(2 * periods).unwrap_or(usize::MAX);
    let most = holds("is renewed no more often", move |count: &usize| *count <= allowed)
        .expecting(format!("at most {allowed} renewals"));
    renewals.keeps(most).within(least.saturating_sub(took)).await
}

async fn standbys_stay_quiet(cx: &CheckCx) -> Verdict {
    let mark = cx.cloud().mark()?;
    // Several Services: with two replicas that race for one Service, the same replica may win every time.
    let mut services = Vec::new();
    for name in ["one", "two", "three"] {
        services.push(cx.service(load_balancer(name).port(80)).await?.provisioned().await?);
    }
    let leader = cx.active_replica().await?;
    let nodes = initialised_nodes(cx).await?;
    for service in &services {
        service.delete().await?;
        service.becomes(gone()).within(cx.limits().load_balancer()).await?;
    }
    // The leader looks up the machine of a Node that is not Ready.
    nodes[0].set_ready(Ready::False).await?;
    let stays = nodes[0].keeps(present()).within(cx.limits().life_of_machine());
    stays.when("not Ready, while its machine runs").await?;
    for standby in cx.replicas().into_iter().filter(|replica| replica.name() != leader.name()) {
        standby.is(runs()).await?;
        let nodes = nodes.clone();
        let work = standby.calls().since(mark).that(move |call| call.write || is_about(&nodes, call));
        work.keeps(no_calls()).when("that change the cloud or look up the machine of a Node").await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn lease(holder: &str, seconds: i32, more: Value) -> Option<Arc<core::Lease>> {
        let mut spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds});
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        serde_json::from_value(json!({"spec": spec})).ok().map(Arc::new)
    }

    #[test]
    fn a_lease_is_proper_only_when_all_of_it_is() {
        const HOLDER: &str = "host_8b9c7a52-0000-4000-8000-000000000000";
        let time = "2026-01-01T00:00:00.000000Z";
        let times = || json!({"acquireTime": time, "renewTime": time, "leaseTransitions": 0});
        let is = |seen| proper(6).matches(&seen) == Observation::Matched(());
        assert!(is(lease(HOLDER, 6, times())));
        assert!(!is(lease(HOLDER, 15, times())));
        assert!(!is(lease(HOLDER, 6, json!({"renewTime": time}))));
        for holder in ["", "host", "host_1", "_8b9c7a52-0000-4000-8000-000000000000"] {
            assert!(!is(lease(holder, 6, times())), "{holder}");
        }
        assert!(!is(None));
    }
}
