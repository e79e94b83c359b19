//! Failed creations (contract SVC-ERR).

use super::edits::{EDIT_CALLS, follows_8080, moves_to_8080, serves_8080};
use super::idle::nodes_are_still_for;
use super::needs::LB;
use super::pacing::{Call, attempts, failed, hurry, too_early};
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::{self as core, Node};
use kube::ResourceExt;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-ERR-05", |cx| Box::pin(completes_what_was_begun(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(6),
    BACK_OFF,
    Check::of("SVC-ERR-03", |cx| Box::pin(forgets_old_failures(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(31),
    Check::of("SVC-ERR-04", |cx| Box::pin(one_failure_starves_no_other(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        // The fault concerns all workers.
        .alone()
        .takes(3),
    Check::of("SVC-ERR-06.announced", |cx| Box::pin(honours_retry_after(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .in_quiet()
        .takes(5),
    Check::of("SVC-ERR-06.unannounced", |cx| Box::pin(spares_who_throttles(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .in_quiet()
        .takes(36),
];

const BACK_OFF: Check = Check::of("SVC-ERR-01", |cx| Box::pin(retries_with_backoff(cx)))
    .by_calls()
    .without_machines()
    .needs(LB)
    .with(&[Facility::Faults])
    // Each Node of another check would allow one more attempt.
    .in_quiet()
    .takes(36);

/// For how long no Node has changed when creations begin to fail.
const STILL: Duration = Duration::from_secs(5);
/// For how long attempts are watched: retries come after 5, 10 and 20 s.
const WINDOW: Duration = Duration::from_secs(16);

/// How long after a call the harness has certainly seen the changes of Nodes that the CCM had seen before it. On a busy
/// machine it has been 0.3 s behind.
const LAG: Duration = Duration::from_secs(1);

/// Calls that are repeated. Each is stored with the number of changes of Nodes at the time when it was seen, and is judged
/// once it is certain how many the CCM can have seen.
pub(super) struct Attempts<'a> {
    calls: &'a Calls<'a>,
    since: Instant,
    seen: RefCell<Vec<SeenCall>>,
}

struct SeenCall {
    call: Call,
    at: Instant,
    is_certain: bool,
}

impl<'a> Attempts<'a> {
    /// Starts to collect the calls.
    pub(super) fn of(calls: &'a Calls<'a>) -> Attempts<'a> {
        Attempts { calls, since: Instant::now(), seen: RefCell::default() }
    }
}

impl Subject for Attempts<'_> {
    type Snapshot = Vec<Call>;

    fn cx(&self) -> &CheckCx {
        self.calls.cx()
    }

    fn name(&self) -> SubjectName {
        self.calls.name()
    }

    /// A Node counts as changed if it came or went, or if a part changed that decides whether it is eligible
    /// (k8s.io/cloud-provider service/controller.go, predicates).
    async fn read(&self, reach: ReadSource) -> Result<Vec<Call>, ReadError> {
        let made = self.calls.read(reach).await?;
        let changes = self.cx().node_changes_since(self.since, |node: &Node| {
            let held_back = [has_taint(node, T_UNINIT), has_taint(node, T_TO_BE_DELETED)];
            let excluded = node.labels().contains_key(L_EXCL);
            let going = node.metadata.deletion_timestamp.is_some();
            (held_back, excluded, ready(node), provider_id(node), addresses(node), going)
        })?;
        let mut seen = self.seen.borrow_mut();
        let known = seen.len();
        seen.extend(made.iter().skip(known).map(|call| SeenCall {
            call: Call { at_ms: call.at_ms, changes, changes_later: changes },
            at: Instant::now(),
            is_certain: false,
        }));
        for one in seen.iter_mut().filter(|one| !one.is_certain) {
            one.call.changes_later = changes;
            one.is_certain = one.at.elapsed() >= LAG;
        }
        Ok(seen.iter().filter(|one| one.is_certain).map(|one| one.call).collect())
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.calls.concerns(call)
    }
}

impl Observed for Call {
    fn observed(&self) -> String {
        format!(
            "at {}.{:03} s after {} changes of Nodes",
            self.at_ms / 1000,
            self.at_ms % 1000,
            self.changes_later
        )
    }
}

pub(super) fn backed_off() -> Matcher<Vec<Call>> {
    matcher("are paced by a back-off", |calls: &Vec<Call>| match hurry(calls) {
        None => Observation::Matched(()),
        Some((at, pause)) => {
            Observation::Pending(format!("a pause of {pause} ms at {at} ms with no change of Nodes"))
        }
    })
    .expecting("pauses of 5 s and more, or of what the provider asks for, at least 1.5 s")
}

async fn retries_with_backoff(cx: &CheckCx) -> Verdict {
    // The Nodes of checks that begin at the same time join in this pause.
    pause(STILL).await;
    nodes_are_still_for(cx, STILL).await?;
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let fault = web.cloud().fails().to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    fault.hits_unless(1, web.is_served()).await?;
    web.becomes(keeps_finalizer()).when("while its creation fails").await?;
    let watched = Instant::now();
    let attempts = web.calls().of(&[Op::LbCreate]);
    let paced = Attempts::of(&attempts);
    paced.keeps(backed_off()).within(WINDOW).await?;
    fault.clear().await?;
    // The next try may be as far away as the last pause was long, and each change of Nodes has added a try.
    let tries = u32::try_from(attempts.list().await?.len()).unwrap_or(u32::MAX).min(5);
    let limit = cx.limits().services_after(watched.elapsed()).max(cx.limits().service_after(tries));
    let limit = limit + cx.limits().load_balancer_work();
    web.balancer().becomes(one_active()).within(limit).when("after the failures, without a restart").await?;
    let at: Vec<u64> = attempts.list().await?.iter().map(|call| call.at_ms).collect();
    cx.record("attempts_after_ms", json!(at.iter().map(|t| t - at[0]).collect::<Vec<_>>()));
    Ok(())
}

/// For how long calls fail, so that an attempt has failed whatever its client repeats.
pub(super) const HELD: Duration = Duration::from_secs(7);

/// Waits until this many attempts have failed by a fault. If the end of an attempt cannot be seen, waits for as
/// long as that takes.
pub(super) async fn fails_for(
    web: &Service<'_>,
    fault: &Fault<'_>,
    ops: &'static [Op],
    tries: usize,
    most: Duration,
) -> Verdict {
    fault.hits(1).await?;
    let since = Instant::now();
    let looks = web.looks();
    let over = holds(format!("show {tries} failed attempts"), move |calls: &Vec<Entry>| {
        let faulted =
            |call: &Entry| ops.contains(&call.op) && matches!(call.outcome, Outcome::Faulted { .. });
        since.elapsed() >= most || failed(calls.iter().map(faulted)) >= tries
    });
    looks.becomes(over).within(most + web.cx().limits().watch()).when("while they fail").await
}

/// The time within which the failed call is repeated and succeeds: as many tries as there were calls, since a
/// change of Nodes may have added some, and at least three.
async fn limit_after(web: &Service<'_>, ops: &'static [Op]) -> Result<Duration, CheckError> {
    let tries = web.calls().of(ops).list().await?.len();
    let limits = web.cx().limits();
    let tries = u32::try_from(tries).unwrap_or(u32::MAX).clamp(FAILURES, MOST);
    Ok(limits.service_after(tries) + limits.load_balancer_work())
}

/// The number of failures that a time to recover allows for: the pause after this many failures is 160 s.
const MOST: u32 = 6;
/// How often a creation fails before it succeeds: the pauses after these failures are 5, 10 and 20 s, and the
/// next would be 40 s.
const FAILURES: u32 = 3;
/// How long these failures last, although a client may repeat calls by itself: they end between the third
/// attempt and the fourth.
const FAILING: Duration = Duration::from_secs(24);

async fn forgets_old_failures(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let first = web.cloud().fails().to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    let failing = fails_for(&web, &first, &[Op::LbCreate], 3, FAILING).await;
    first.unless_needless(failing, web.is_served()).await?;
    let waited = Instant::now();
    first.clear().await?;
    let limit = limit_after(&web, &[Op::LbCreate]).await?;
    let lb = web.balancer().becomes(one_active()).within(limit).await?;
    web.becomes(publishes(&lb)).within(limit).when("after three failures").await?;
    web.rests().await?;
    cx.record("recovered_after_ms", waited.elapsed().as_millis());
    // One more failure, of an edit; and a second one if the call is repeated while calls fail.
    follows_an_edit_in(&web, web.cloud().fails(), "after a failure that followed a success").await
}

/// Checks that an edit is followed although the calls for it meet this fault for a while.
pub(super) async fn follows_an_edit_in(
    web: &Service<'_>,
    trouble: FaultPlan<'_>,
    when: &'static str,
) -> Verdict {
    let fault = trouble.to(EDIT_CALLS).await?;
    moves_to_8080(web).await?;
    let failing = fails_for(web, &fault, EDIT_CALLS, 1, HELD).await;
    fault.unless_needless(failing, follows_8080(web)).await?;
    fault.clear().await?;
    let followed = one_balancer("follows the edit", serves_8080).expecting("one frontend, on port 8080");
    web.balancer().becomes(followed).within(web.cx().limits().service_after(2)).when(when).await
}

/// The names of as many Services as there are workers. A CCM that blocks a worker with a failing Service has
/// none left.
pub(super) fn broken_names(cx: &CheckCx) -> Vec<String> {
    (0..cx.workers().clamp(1, 16)).map(|n| format!("broken-{n}")).collect()
}

async fn one_failure_starves_no_other(cx: &CheckCx) -> Verdict {
    let names = broken_names(cx);
    let broken = names.iter().map(|name| cx.service(load_balancer(name).port(80).not_yet()));
    let broken = try_join_all(broken).await?;
    let refusals = broken.iter().map(async |one| one.cloud().fails().to(&[Op::LbCreate]).await);
    let refusals = try_join_all(refusals).await?;
    let began = Instant::now();
    try_join_all(broken.iter().map(Service::wants_a_balancer)).await?;
    // A CCM that limits its rate of calls needs this time.
    let limit = cx.limits().service_after(2);
    try_join_all(broken.iter().zip(&refusals).map(async |(service, one)| {
        let met = one.becomes(met_by(1)).within(limit).await;
        one.unless_needless(met, service.is_served()).await
    }))
    .await?;
    let limit = cx.limits().load_balancer() + HELD + 3 * began.elapsed();
    for name in ["first", "second"] {
        let other = cx.service(load_balancer(name).port(80)).await?;
        let lb = other.balancer().becomes(one_active()).within(limit).await?;
        other.becomes(publishes(&lb)).within(limit).when("while others fail for ever").await?;
    }
    try_join_all(broken.iter().map(|one| one.is(keeps_finalizer()))).await.map(drop)
}

/// The announced pause in seconds: less than the controller's first pause, so that a CCM that backs off
/// anyway waits long enough, and more than a client pauses by itself.
const RETRY_AFTER_S: u64 = 4;

/// Matches if no call came within the time that the first answer announced, with a tolerance for truncated clocks.
fn waited_as_announced() -> Matcher<Vec<Call>> {
    matcher("wait as long as the answer says", |calls: &Vec<Call>| {
        match too_early(calls, RETRY_AFTER_S * 1000 - 200) {
            None => Observation::Matched(()),
            Some(after_ms) => Observation::Pending(format!("again after {after_ms} ms")),
        }
    })
    .expecting(format!(
        "no call within {RETRY_AFTER_S} s of the first, which was answered 429 with Retry-After"
    ))
}

async fn honours_retry_after(cx: &CheckCx) -> Verdict {
    if !cx.cloud().tells_when_to_come_back() {
        let why = "the cloud's API never says when to retry".to_owned();
        return Err(CheckError::NotObservable(why));
    }
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let limited = Effect::Status { status: 429, retry_after_s: Some(RETRY_AFTER_S) };
    let refusals = web.cloud().meets("answers 429 with Retry-After", &[limited]).to(&[Op::LbCreate]).await?;
    let calls = web.calls().of(&[Op::LbCreate]);
    let paced = Attempts::of(&calls);
    web.wants_a_balancer().await?;
    refusals.hits_unless(1, web.is_served()).await?;
    paced.keeps(waited_as_announced()).within(Duration::from_secs(RETRY_AFTER_S)).await?;
    refusals.clear().await?;
    // Changes of Nodes cause attempts, too, and each that fails lengthens the pause before the next one.
    let limit = cx.limits().service_after(2) + cx.limits().load_balancer_work();
    let limit = limit.max(limit_after(&web, &[Op::LbCreate]).await?);
    web.balancer().becomes(one_active()).within(limit).when("once it is let in again").await.map(drop)
}

/// For how long attempts are counted, and how many there may be.
const THROTTLED: Duration = Duration::from_secs(30);
const TRIES: usize = 5;

/// Matches calls with few attempts, apart from those that changes of Nodes excuse.
fn few() -> Matcher<Vec<Call>> {
    matcher("are few", |calls: &Vec<Call>| {
        let (tries, changes) = (attempts(calls), calls.last().map_or(0, |last| last.changes_later));
        match tries <= TRIES + changes {
            true => Observation::Matched(()),
            false => Observation::Pending(format!("{tries} attempts, and {changes} changes of Nodes")),
        }
    })
    .expecting(format!(
        "at most {TRIES} attempts in {} s, each with what a client repeats of it by itself after shorter pauses",
        THROTTLED.as_secs()
    ))
}

async fn spares_who_throttles(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let refusals = web.cloud().answers(429).to(&[Op::LbCreate]).await?;
    let (began, calls) = (Instant::now(), web.calls().of(&[Op::LbCreate]));
    let paced = Attempts::of(&calls);
    web.wants_a_balancer().await?;
    refusals.hits_unless(1, web.is_served()).await?;
    paced
        .keeps(few())
        .within(THROTTLED)
        .when("while the cloud answers 429 and does not say for how long")
        .await?;
    cx.record("attempts", attempts(&paced.read(ReadSource::Origin).await?));
    refusals.clear().await?;
    let limit = cx.limits().services_after(began.elapsed()) + cx.limits().load_balancer_work();
    let limit = limit.max(limit_after(&web, &[Op::LbCreate]).await?);
    web.balancer().becomes(one_active()).within(limit).when("once it is let in again").await.map(drop)
}

/// Matches when a call has met the fault, or when the Service publishes an address without such a call.
fn met_or_published() -> Matcher<(u64, Option<Arc<core::Service>>), bool> {
    matcher(
        "is met by a call, or by none until the Service has its load balancer",
        |seen: &(u64, Option<Arc<core::Service>>)| match seen {
            (1.., _) => Observation::Matched(true),
            (0, Some(service)) if !ingress(service).is_empty() => Observation::Matched(false),
            _ => Observation::Pending(String::new()),
        },
    )
}

/// The calls after the creation of a load balancer fail for two attempts: those for its resources, or for its
/// frontends and backends where a cloud takes them in separate calls. A CCM that creates everything in one
/// call is not affected.
async fn completes_what_was_begun(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let fault = web.cloud().fails().to(PARTS).await?;
    web.wants_a_balancer().await?;
    if (&fault, &web).becomes(met_or_published()).within(cx.limits().load_balancer()).await? {
        fails_for(&web, &fault, PARTS, 2, HELD).await?;
    }
    cx.record("failures", fault.read(ReadSource::Origin).await?);
    fault.clear().await?;
    let limit = limit_after(&web, PARTS).await?;
    let lb = web.balancer().becomes(one_active()).within(limit).await?;
    let published = web.becomes(publishes(&lb)).within(limit);
    published.when("though a part of its load balancer failed twice").await?;
    web.rests().await?;
    web.balancer().is(whole(&lb)).await
}

/// The calls that add what the creation of a load balancer does not include.
const PARTS: &[Op] = &[Op::AuxCreate, Op::LbUpdate];

/// Matches a cloud with one load balancer and exactly one set of the resources that belong to it.
fn whole(lb: &LoadBalancer) -> Matcher<Inventory> {
    let id = lb.id.clone();
    holds("is one, with everything that belongs to it once", move |held: &Inventory| {
        let own = held.auxiliaries.iter().all(|aux| aux.load_balancer.as_ref().is_none_or(|lb| *lb == id));
        let kinds: BTreeSet<(&str, &str)> =
            held.auxiliaries.iter().map(|aux| (aux.kind.as_str(), aux.name.as_str())).collect();
        own && kinds.len() == held.auxiliaries.len()
            && matches!(held.load_balancers.as_slice(), [lb] if lb.id == id)
    })
    .expecting(format!("load balancer {}, and nothing twice or of another", lb.id))
}
