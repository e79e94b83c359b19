//! Without a change that concerns a load balancer, the CCM does not write to it (contract SVC-UPD-03,
//! SVC-NODES-05, -06, -07, SCALE-03; for -10 see [`super::noise`]). While Nodes of other checks come and go,
//! a write could always have a reason. Therefore these checks run in a calm environment.

use super::needs::{LB, NODES_BEHIND_LB};
use super::nodes::{eligible, has_backend, of_each_policy};
use futures::future::{try_join, try_join_all};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use kube::ResourceExt;
use serde_json::json;
use std::cell::RefCell;
use std::time::Duration;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-UPD-03", |cx| Box::pin(ignores_what_says_nothing(cx)))
        .by_calls()
        .in_quiet()
        .without_machines()
        .needs(LB)
        .takes(46),
    Check::of("SVC-NODES-07.alone", |cx| Box::pin(leaves_condemned_nodes_for_later(cx)))
        .by_calls()
        .in_quiet()
        .without_machines()
        .needs(NODES_BEHIND_LB)
        .takes(62),
    Check::of("SVC-NODES-05", |cx| Box::pin(keeps_unready_nodes(cx)))
        .by_calls()
        .in_quiet()
        .needs(NODES_BEHIND_LB)
        .takes(62),
    Check::of("SVC-NODES-06", |cx| Box::pin(keeps_cordoned_nodes(cx)))
        .by_calls()
        .in_quiet()
        .needs(NODES_BEHIND_LB)
        .takes(62),
    Check::of("SCALE-03", |cx| Box::pin(rests_when_all_is_done(cx)))
        .by_calls()
        .in_quiet()
        .without_machines()
        .needs(LB)
        .takes(46),
];

/// For how long after a change of the eligible Nodes a write may still be caused by it.
pub(super) const LATE: Duration = Duration::from_secs(15);
/// How much later than a write the harness may learn of the change that caused it: it watches Nodes as the
/// CCM does, and may get an event after the CCM. Therefore the last writes of a window are not judged.
const HEARD: Duration = Duration::from_secs(3);

/// The shortest time without an explanation for writes, so that the absence of writes proves something.
const LEAST: Duration = Duration::from_secs(10);

/// Calls that change the cloud's objects of a Service and that no change of Nodes explains. Nodes of other
/// checks come and go, and each may be a reason to write to every load balancer.
struct Unexplained<'a> {
    writes: Calls<'a>,
    seen: RefCell<Writes>,
}

/// The writes that were seen.
#[derive(Debug, Default)]
struct Writes {
    count: usize,
    /// Writes that may still get an explanation, and when they were first seen.
    open: Vec<(Instant, Entry)>,
    /// Writes without an explanation.
    unexplained: Vec<Entry>,
    /// When the check looked last, and for how long nothing would have explained a write.
    looked: Option<Instant>,
    judged: Duration,
}

impl Writes {
    /// Adds the writes that exist by now. `changed` tells whether Nodes changed after a moment.
    fn look(
        &mut self,
        all: &[Entry],
        now: Instant,
        changed: impl Fn(Instant) -> Result<bool, ReadError>,
    ) -> Result<(), ReadError> {
        self.open.extend(all.iter().skip(self.count).map(|write| (now, write.clone())));
        self.count = all.len();
        if !changed(now.checked_sub(LATE).unwrap_or(now))? {
            self.judged += self.looked.map_or(Duration::ZERO, |before| now - before);
        }
        self.looked = Some(now);
        let explained = |(at, _): &(Instant, Entry)| changed(at.checked_sub(LATE).unwrap_or(*at));
        let explained: Vec<bool> = self.open.iter().map(explained).collect::<Result<_, _>>()?;
        let rest = std::mem::take(&mut self.open).into_iter().zip(explained).filter(|(_, is)| !is);
        for ((at, write), _) in rest {
            match now - at < HEARD {
                true => self.open.push((at, write)),
                false => self.unexplained.push(write),
            }
        }
        Ok(())
    }
}

impl<'a> Unexplained<'a> {
    /// Starts to collect the calls of a Service.
    fn of(web: &Service<'a>) -> Result<Unexplained<'a>, ReadError> {
        let mark = web.cx().cloud().mark()?;
        Ok(Unexplained { writes: web.calls().writes().since(mark), seen: RefCell::default() })
    }
}

/// The parts of a Node that decide whether load balancers may use it, and how they reach it
/// (k8s.io/cloud-provider service/controller.go, predicates). The autoscaler's taint is not included, because
/// it alone does not require an update.
pub(super) fn reasons(node: &core::Node) -> impl PartialEq + use<> {
    let excluded = node.labels().get(L_EXCL).cloned();
    let going = node.metadata.deletion_timestamp.is_some();
    (has_taint(node, T_UNINIT), excluded, provider_id(node), addresses(node), going)
}

impl Subject for Unexplained<'_> {
    type Snapshot = Vec<Entry>;

    fn cx(&self) -> &CheckCx {
        self.writes.cx()
    }

    fn name(&self) -> SubjectName {
        self.writes.name()
    }

    async fn read(&self, reach: ReadSource) -> Result<Vec<Entry>, ReadError> {
        let writes = self.writes.read(reach).await?;
        let changed = |since| Ok(self.cx().node_changes_since(since, reasons)? > 0);
        let mut seen = self.seen.borrow_mut();
        seen.look(&writes, Instant::now(), changed)?;
        Ok(seen.unexplained.clone())
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.writes.concerns(call)
    }
}

/// How long to wait at most until no Node has changed for a while, and how often to look.
const UNREST: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(250);

/// Waits until no Node has changed for so long that load balancers would have been updated. Gives up after
/// `UNREST`.
pub(super) async fn nodes_are_still_for(cx: &CheckCx, still: Duration) -> Verdict {
    let began = Instant::now();
    while began.elapsed() < UNREST {
        let now = Instant::now();
        if cx.node_changes_since(now.checked_sub(still).unwrap_or(now), reasons)? == 0 {
            break;
        }
        pause(LOOK).await;
    }
    Ok(())
}

/// Waits until no write can have an earlier reason: what happens after that is judged.
async fn nodes_are_still(cx: &CheckCx) -> Verdict {
    let began = Instant::now();
    nodes_are_still_for(cx, LATE).await?;
    cx.record("still_after_ms", began.elapsed().as_millis());
    Ok(())
}

/// Checks that nothing is written for any of these Services while `noise` is made, and after it until the window is over.
pub(super) async fn nothing_is_written(
    cx: &CheckCx,
    all: &[Service<'_>],
    noise: impl Future<Output = Verdict>,
    when: &'static str,
) -> Verdict {
    nodes_are_still(cx).await?;
    let unexplained = all.iter().map(Unexplained::of).collect::<Result<Vec<_>, _>>()?;
    let window = cx.limits().quiet_services();
    let quiet = unexplained.iter().map(async |one| one.keeps(no_calls()).within(window).when(when).await);
    try_join(noise, try_join_all(quiet)).await?;
    let judged = unexplained.iter().map(|one| one.seen.borrow().judged).min().unwrap_or_default();
    cx.record("judged_ms", judged.as_millis());
    if judged < LEAST {
        let why = format!(
            "Nodes came and went all the while, each a reason to write: {:.1} s are left of {:.1} s",
            judged.as_secs_f64(),
            window.as_secs_f64()
        );
        return Err(CheckError::NotObservable(why));
    }
    Ok(())
}

async fn ignores_what_says_nothing(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let edits = async {
        for round in 1..=3 {
            let value = round.to_string();
            web.patch(&json!({"metadata": {"labels": {"example.com/edited": value}}})).await?;
            web.patch(&json!({"spec": {"selector": {"app": format!("web-{value}")}}})).await?;
        }
        web.patch(&json!({"spec": {"publishNotReadyAddresses": true}})).await
    };
    let when = "that changes its load balancer after edits that say nothing about it";
    nothing_is_written(cx, std::slice::from_ref(&web), edits, when).await
}

/// Creates a load balancer for each traffic policy with a Node of this check behind them, and waits until the CCM is done.
pub(super) async fn with_a_backend<'a>(
    cx: &'a CheckCx,
    suffix: &str,
) -> Result<(Vec<Service<'a>>, Node<'a>), CheckError> {
    let (machine, node) = eligible(cx, suffix).await?;
    Ok((behind_balancers(cx, &machine).await?, node))
}

async fn behind_balancers<'a>(
    cx: &'a CheckCx,
    machine: &Machine<'a>,
) -> Result<Vec<Service<'a>>, CheckError> {
    let all = of_each_policy(cx).await?;
    for web in &all {
        web.balancer().becomes(has_backend(machine)).await?;
    }
    try_join_all(all.iter().map(Service::rests)).await?;
    Ok(all)
}

async fn leaves_condemned_nodes_for_later(cx: &CheckCx) -> Verdict {
    let (all, node) = with_a_backend(cx, "condemned").await?;
    let condemn = node.adds_taint(taint(T_TO_BE_DELETED, "1", "NoSchedule"));
    let when = "that changes its load balancer while a Node has the autoscaler's taint";
    nothing_is_written(cx, &all, condemn, when).await
}

/// Checks that a Node of this check stays behind its load balancer and that nothing is written, after
/// `change` has changed the Node.
async fn keeps_its_backend<'a>(
    cx: &'a CheckCx,
    suffix: &str,
    change: impl AsyncFnOnce(Node<'a>) -> Verdict,
    when: &'static str,
) -> Verdict {
    let (machine, node) = eligible(cx, suffix).await?;
    let all = behind_balancers(cx, &machine).await?;
    let noise = async {
        change(node).await?;
        let window = cx.limits().quiet_services();
        let kept = all.iter().map(async |web| {
            let balancer = web.balancer();
            balancer.keeps(has_backend(&machine)).within(window).when(when).await
        });
        try_join_all(kept).await.map(drop)
    };
    nothing_is_written(cx, &all, noise, when).await
}

async fn keeps_unready_nodes(cx: &CheckCx) -> Verdict {
    let change = async |node: Node<'_>| node.set_ready(Ready::False).await;
    keeps_its_backend(cx, "unready", change, "though the Node is not Ready").await
}

async fn keeps_cordoned_nodes(cx: &CheckCx) -> Verdict {
    let change = async |node: Node<'_>| node.patch(&json!({"spec": {"unschedulable": true}})).await;
    keeps_its_backend(cx, "cordoned", change, "though the Node is cordoned").await
}

async fn rests_when_all_is_done(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).port(443)).await?.provisioned().await?;
    web.rests().await?;
    let when = "that changes a load balancer which is as it should be";
    nothing_is_written(cx, std::slice::from_ref(&web), async { Ok(()) }, when).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn node(change: impl FnOnce(&mut Value)) -> core::Node {
        let mut value =
            json!({"metadata": {"name": "n", "labels": {}}, "spec": {"taints": []}, "status": {}});
        change(&mut value);
        serde_json::from_value(value).expect("a Node")
    }

    #[test]
    fn changes_relevant_to_load_balancers_explain_a_write_and_noise_does_not() {
        let plain = || reasons(&node(|_| ()));
        let taint = |key: &str| json!([{"key": key, "effect": "NoSchedule"}]);
        for changed in [
            node(|n| n["spec"]["providerID"] = json!("p://1")),
            node(|n| n["metadata"]["labels"][L_EXCL] = json!("")),
            node(|n| n["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
            node(|n| n["spec"]["taints"] = taint(T_UNINIT)),
        ] {
            assert!(reasons(&changed) != plain(), "{changed:?}");
        }
        for noise in [
            node(|n| n["spec"]["taints"] = taint(T_TO_BE_DELETED)),
            node(|n| n["spec"]["unschedulable"] = json!(true)),
            node(|n| n["metadata"]["labels"]["a"] = json!("b")),
        ] {
            assert!(reasons(&noise) == plain(), "{noise:?}");
        }
    }

    #[test]
    fn a_write_is_unexplained_once_its_reason_would_have_been_heard() {
        let entry = serde_json::from_value(json!({
            "seq": 1, "at_ms": 0, "took_ms": 1, "peer": "127.0.0.1", "credential": "a", "op": "lb.update", "write": true,
            "resource": "lb-1", "owner": "uid", "request": "PUT /v1/load-balancers/lb-1/backends",
            "outcome": {"kind": "answered", "status": 200},
        }));
        let write: [Entry; 1] = [entry.expect("an entry")];
        let began = Instant::now() + LATE;
        // At each of these moments: the last change of Nodes that the harness knows of, in milliseconds.
        let unexplained = |looks: [(u64, Option<u64>); 2]| {
            let mut writes = Writes::default();
            for (at, changed) in looks {
                let after = |since| Ok(changed.is_some_and(|at| began + Duration::from_millis(at) > since));
                writes.look(&write, began + Duration::from_millis(at), after).expect("nothing fails");
            }
            writes.unexplained.len()
        };
        assert_eq!(unexplained([(20_000, None), (22_000, None)]), 0, "one may come yet");
        assert_eq!(unexplained([(20_000, None), (23_000, None)]), 1);
        assert_eq!(unexplained([(20_000, None), (23_000, Some(20_004))]), 0, "heard of late");
        assert_eq!(unexplained([(20_000, Some(6_000)), (23_000, Some(6_000))]), 0, "it was late");
        assert_eq!(unexplained([(20_000, Some(4_000)), (23_000, Some(4_000))]), 1, "no timer is so late");
    }
}
