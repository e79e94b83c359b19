//! Leader-election failover: one replica works, another takes over when it is gone, and never do two work at once
//! (contract HA).

use crate::judges::initialised;
use crate::loadbalancer::{RESTART, provisioned};
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cloud::Entry;
use harness::cx::{Check, CheckCx, End, NodePlan, Suite, load_balancer};
use harness::probe::{Observed, ReadError, Seen, holds, judge};
use harness::session::{Crash, show_entry};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "leader-election-failover",
    proves: "one replica works, a standby takes over when it is gone, and never do two work at once",
    tables: &[CHECKS],
};

const ELECTION: &[Capability] = &[Capability::LeaderElection, Capability::Instances];
const KILL: &[Facility] = &[Facility::ProcessControl];
const ELECTOR: &str = "k8s.io/client-go tools/leaderelection";

const CHECKS: &[Check] = &[
    Check::must(
        "HA-01",
        "leader election is on, and exactly one replica makes mutating requests",
        "k8s.io/component-base config/v1alpha1/defaults.go; k8s.io/client-go tools/leaderelection",
        |cx| Box::pin(has_one_writer(cx)),
    )
    .needs(&[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer]),
    Check::must(
        "HA-02",
        "the Lease names its holder as HOSTNAME_UUID and is renewed about every retry period",
        "k8s.io/cloud-provider app/controllermanager.go Run; k8s.io/client-go tools/leaderelection",
        |cx| Box::pin(keeps_a_proper_lease(cx)),
    )
    .needs(ELECTION)
    .of_the_framework()
    .takes(10),
    Check::must("HA-03", "when the leader crashes another replica takes over", ELECTOR, |cx| {
        Box::pin(fails_over(cx))
    })
    .needs(ELECTION)
    .with(KILL)
    .at_the_crash()
    .takes(10),
    Check::must(
        "HA-04",
        "the old leader's last mutating request precedes the new leader's first",
        "k8s.io/client-go tools/leaderelection: old stops before new starts",
        |cx| Box::pin(never_overlaps(cx)),
    )
    .needs(&[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer])
    .with(KILL)
    .at_the_crash()
    .takes(10),
    Check::must(
        "HA-05",
        "a leader that cannot renew its Lease ends itself and comes back as a standby",
        "k8s.io/cloud-provider app/controllermanager.go OnStoppedLeading",
        |cx| Box::pin(gives_up_when_it_cannot_renew(cx)),
    )
    .needs(ELECTION)
    .with(&[Facility::CcmControl])
    .alone()
    .takes(12),
    Check::must(
        "HA-06",
        "standbys make no mutating request to the cloud",
        "k8s.io/cloud-provider app/controllermanager.go: the cloud is initialised after the election",
        |cx| Box::pin(standbys_stay_quiet(cx)),
    )
    .needs(&[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer])
    .takes(5),
    RESTART,
];

/// Names of replicas whose credential has made mutating requests since `mark`.
fn writers_since(cx: &CheckCx, mark: u64) -> Result<BTreeSet<String>, ReadError> {
    let writes = cx.session().journal().since(mark, |entry| entry.write)?;
    Ok(writes.into_iter().map(|entry| entry.credential.unwrap_or_else(|| "unknown".to_owned())).collect())
}

/// A read of the Lease for waits.
fn lease(cx: &CheckCx) -> impl AsyncFnMut() -> Result<Option<Arc<Lease>>, ReadError> {
    async move || Ok(cx.find_lease())
}

/// More transitions than before: somebody has taken the Lease over.
fn taken_over(before: i32) -> harness::probe::Judge<Option<Arc<Lease>>, Arc<Lease>> {
    judge(format!("a Lease with more than {before} transitions"), move |lease: &Option<Arc<Lease>>| {
        let Some(lease) = lease else { return Seen::NotYet("no Lease".to_owned()) };
        let now = lease.spec.as_ref().and_then(|s| s.lease_transitions).unwrap_or(0);
        if now > before { Seen::Yes(lease.clone()) } else { Seen::NotYet(String::new()) }
    })
}

async fn has_one_writer(cx: &CheckCx) -> Verdict {
    let held = judge("a Lease with a holder", |lease: &Option<Arc<Lease>>| match lease {
        Some(lease) if holder(lease).is_some() => Seen::Yes(()),
        _ => Seen::NotYet(String::new()),
    });
    cx.eventually("leader election is on", cx.limits().watch(), lease(cx), held).await?;
    let mark = cx.session().journal().mark()?;
    for name in ["one", "two", "three"] {
        provisioned(cx, load_balancer(name).port(80)).await?;
    }
    cx.session().journal().catch_up().await?;
    let writers = writers_since(cx, mark)?;
    if writers.len() != 1 {
        return Err(Stop::unmet("exactly one replica writes", "one credential", format!("{writers:?}")));
    }
    Ok(())
}

fn holder(lease: &Lease) -> Option<String> {
    lease.spec.as_ref()?.holder_identity.clone().filter(|h| !h.is_empty())
}

async fn keeps_a_proper_lease(cx: &CheckCx) -> Verdict {
    let timing = cx.limits().lease();
    let seconds = i32::try_from(timing.duration.as_secs()).unwrap_or(15);
    // HOSTNAME_UUID: the part after the last underscore is a UUID of 36 characters.
    let proper = judge(
        format!(
            "holder HOSTNAME_UUID, leaseDurationSeconds {seconds}, renewTime, acquireTime and leaseTransitions set"
        ),
        move |lease: &Option<Arc<Lease>>| {
            let Some(spec) = lease.as_ref().and_then(|l| l.spec.as_ref()) else {
                return Seen::NotYet("no Lease".to_owned());
            };
            let identity = spec.holder_identity.as_deref().and_then(|h| h.rsplit_once('_'));
            let named = identity.is_some_and(|(host, uuid)| {
                !host.is_empty() && uuid.len() == 36 && uuid.matches('-').count() == 4
            });
            let complete =
                spec.acquire_time.is_some() && spec.renew_time.is_some() && spec.lease_transitions.is_some();
            Seen::when(named && complete && spec.lease_duration_seconds == Some(seconds))
        },
    );
    cx.eventually("the Lease is as the framework writes it", cx.limits().watch(), lease(cx), proper).await?;
    let window = timing.retry_period * 4;
    let key = cx.session().ccm().lease_key().cloned();
    let Some(key) = key else { return Err(Stop::Error("the profile names no Lease".to_owned())) };
    let renewals = || {
        let history = cx.session().world().leases.history(&key.namespace, &key.name);
        history
            .iter()
            .filter_map(|v| v.object.spec.as_ref()?.renew_time.as_ref().map(|t| t.0.to_string()))
            .collect::<BTreeSet<_>>()
    };
    let before = renewals();
    // Three more renewals in four periods and a half: about one a period, whatever the jitter.
    cx.eventually(
        "the Lease is renewed about every retry period",
        window + timing.retry_period / 2 + Duration::from_secs(1),
        async || Ok(renewals().difference(&before).count()),
        holds("three renewals", |count: &usize| *count >= 3),
    )
    .await
}

async fn fails_over(cx: &CheckCx) -> Verdict {
    let crash = cx.leader_crash().await?;
    let before = crash.transitions;
    let now = cx
        .eventually("another replica takes the Lease", cx.limits().failover(), lease(cx), taken_over(before))
        .await?;
    cx.record("failover_ms", crash.at.elapsed().as_millis());
    if holder(&now) == crash.holder {
        return Err(Stop::unmet(
            "the holder is another",
            format!("not {}", crash.holder.unwrap_or_default()),
            now.observed(),
        ));
    }
    let transitions = now.spec.as_ref().and_then(|s| s.lease_transitions).unwrap_or(0);
    if transitions != before + 1 {
        return Err(Stop::unmet(
            "one crash is one transition",
            format!("{} transitions", before + 1),
            now.observed(),
        ));
    }
    // The successor works: a Node that joins now is initialised.
    let instance = cx.instance("after");
    cx.put_instance(&instance).await?;
    cx.create_node(NodePlan::new(&instance.name)).await?;
    let read = async || Ok(cx.find_node(&instance.name));
    let limit = cx.limits().watch() + cx.limits().watch();
    cx.eventually("the new leader initialises a new Node", limit, read, initialised()).await?;
    Ok(())
}

async fn never_overlaps(cx: &CheckCx) -> Verdict {
    let (service, _) = provisioned(cx, load_balancer("busy").port(80)).await?;
    cx.crash_is_near().await?;
    let mark = cx.session().journal().mark()?;
    // Steady work: every edit is a mutating request of whoever leads, before, during and after the crash.
    let edits = async {
        let mut round = 0;
        loop {
            round += 1;
            let ports = json!([{"port": 80 + round % 2, "protocol": "TCP"}]);
            let patch = json!({"spec": {"ports": ports}});
            if let Err(stop) = cx.patch_service(&service, &patch).await {
                return stop;
            }
            harness::probe::pause(Duration::from_millis(250)).await;
        }
    };
    let crash = async {
        let wrote = holds("a mutating request of the leader", |writers: &Vec<String>| !writers.is_empty());
        let writers = async || Ok(writers_since(cx, mark)?.into_iter().collect::<Vec<_>>());
        cx.eventually("the leader writes", cx.limits().watch(), writers, wrote).await?;
        let Crash { replica, transitions, .. } = cx.leader_crash().await?;
        cx.eventually(
            "another replica takes the Lease",
            cx.limits().failover(),
            lease(cx),
            taken_over(transitions),
        )
        .await?;
        let other = replica.clone();
        let succeeded = holds("a mutating request of another replica", move |writers: &Vec<String>| {
            writers.iter().any(|writer| *writer != other)
        });
        let writers = async || Ok(writers_since(cx, mark)?.into_iter().collect::<Vec<_>>());
        cx.eventually("the new leader writes", cx.limits().watch(), writers, succeeded).await?;
        Ok::<String, Stop>(replica)
    };
    let leader = tokio::select! {
        stop = edits => return Err(stop),
        outcome = crash => outcome?,
    };
    let writes = cx.session().journal().since_now(mark, |entry: &Entry| entry.write).await?;
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    for entry in &writes {
        let who = entry.credential.clone().unwrap_or_default();
        first.entry(who.clone()).or_insert(entry.seq);
        last.insert(who, entry.seq);
    }
    let old_last = last.get(&leader).copied().unwrap_or(0);
    let early = first.iter().find(|(who, seq)| **who != leader && **seq < old_last);
    match early {
        None => Ok(()),
        Some((who, seq)) => {
            let around: Vec<String> = writes
                .iter()
                .filter(|e| e.seq + 5 > *seq && e.seq < old_last + 5)
                .take(12)
                .map(show_entry)
                .collect();
            Err(Stop::unmet(
                "the old leader's last write precedes the new one's first",
                format!("replica {leader} silent before replica {who} writes"),
                around.join("; "),
            ))
        }
    }
}

async fn gives_up_when_it_cannot_renew(cx: &CheckCx) -> Verdict {
    let leader = cx.active_replica().await?;
    cx.disturbs(&leader);
    let restarts = cx.restarts_of(&leader);
    let Some(key) = cx.session().ccm().lease_key().cloned() else {
        return Err(Stop::Error("the profile names no Lease".to_owned()));
    };
    // Somebody else holds the Lease and keeps renewing it: for the leader that is a renewal that never succeeds.
    let stolen = crate::stolen_lease::StolenLease::take(cx, &key).await?;
    let (stolen_at, since) = (Timestamp::now(), Instant::now());
    let limit = cx.limits().step_down();
    let read = async || Ok(cx.end_of(&leader, restarts));
    let ended = judge(format!("the process of replica {leader} ended"), |end: &Option<End>| match end {
        Some(end) => Seen::Yes(*end),
        None => Seen::NotYet(String::new()),
    });
    let promise = "the leader ends itself";
    let outcome = cx.eventually(promise, limit + cx.limits().kubelet_report(), read, ended).await;
    let seen_after = since.elapsed();
    stolen.let_go().await?;
    let reported = outcome?.at.and_then(|at| Duration::try_from(at.duration_since(stolen_at)).ok());
    if let Some(took) = too_late(reported, seen_after, limit) {
        return Err(Stop::unmet(
            promise,
            format!("within {limit:?} of the loss of its Lease"),
            format!("it ended after {took:?}"),
        ));
    }
    let led = judge("a Lease held by a replica again", |lease: &Option<Arc<Lease>>| match lease {
        Some(lease) if holder(lease).is_some_and(|h| h != crate::stolen_lease::THIEF) => Seen::Yes(()),
        _ => Seen::NotYet(String::new()),
    });
    cx.eventually("a replica leads again", cx.limits().failover() + cx.limits().watch(), lease(cx), led)
        .await?;
    let back = holds(format!("replica {leader} restarted and running"), |back: &bool| *back);
    let read = async || Ok(cx.is_back(&leader, restarts));
    cx.eventually("the former leader comes back", cx.limits().start(), read, back).await
}

/// How long a leader took to end, if that was too long. What counts is when it ended, not when its kubelet came round to
/// saying so; but a node's clock may be another than ours, and what was seen in time was in time.
fn too_late(reported: Option<Duration>, seen_after: Duration, limit: Duration) -> Option<Duration> {
    reported.map(|reported| reported.min(seen_after)).filter(|took| *took > limit)
}

async fn standbys_stay_quiet(cx: &CheckCx) -> Verdict {
    let mark = cx.session().journal().mark()?;
    let (service, _) = provisioned(cx, load_balancer("web").port(80)).await?;
    let leader = cx.active_replica().await?;
    cx.delete_service(&service).await?;
    let gone = harness::probe::absent("Service");
    cx.eventually("the Service goes", cx.limits().watch(), async || Ok(cx.find_service(&service)), gone)
        .await?;
    let standbys: Vec<String> =
        cx.session().ccm().replicas().iter().map(|r| r.name.clone()).filter(|name| *name != leader).collect();
    if standbys.is_empty() {
        return Err(Stop::NotObservable("the profile runs a single replica: there is no standby".to_owned()));
    }
    for standby in &standbys {
        let running = cx
            .pods_of_replica(standby)
            .iter()
            .any(|p| p.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running"));
        if !running {
            let pods: Vec<String> = cx.pods_of_replica(standby).iter().map(|p| p.name_any()).collect();
            return Err(Stop::unmet(
                "the standby runs",
                format!("replica {standby} Running"),
                format!("{pods:?}"),
            ));
        }
    }
    let wrote = |cx: &CheckCx| -> Result<Vec<String>, ReadError> {
        let by_standby = |e: &Entry| e.write && e.credential.as_ref().is_some_and(|c| standbys.contains(c));
        Ok(cx.session().journal().since(mark, by_standby)?.iter().map(show_entry).collect())
    };
    let none = holds("no mutating request by a standby", |list: &Vec<String>| list.is_empty());
    cx.consistently("standbys stay quiet", cx.limits().settle(), async || wrote(cx), none).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_late_only_when_it_ended_late() {
        let s = Duration::from_secs;
        assert_eq!(too_late(Some(s(9)), s(10), s(7)), Some(s(9)), "it ended late");
        assert_eq!(too_late(Some(s(4)), s(10), s(7)), None, "its kubelet said so late");
        assert_eq!(too_late(Some(s(60)), s(5), s(7)), None, "the node's clock is ahead");
        assert_eq!(too_late(None, s(10), s(7)), None, "nobody says when");
    }
}
