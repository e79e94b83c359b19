//! Everything that the body of a check needs: `use harness_testkit::prelude::*;`.
//!
//! Every item has an example, where it is defined or here. It is here if the documentation of the item is also part of a
//! schema, or if the item is defined in a crate that does not know checks. `cargo xtask tidy` reports items without one.
//!
//! Suites of image credential providers, network proxies and CSI migration begin with the prelude of
//! `harness-component-testkit`, which has all of this and more.

pub use crate::matchers::{
    addressed, at_least_one, expected_labels, has_addresses, has_labels, initialised, initialised_as,
    keeps_finalizer, lacks_finalizer, no_other_than, nothing_left, one_active, one_balancer, publishes,
    publishes_nothing, reaches, targets, untouched, waits_to_be_deleted,
};
pub use crate::{
    Account, Barrier, Calls, Check, CheckCx, Destination, EventsOf, Fault, FaultPlan, Frozen, Grant, Lease,
    Loss, Machine, MachinePlan, Node, NodePlan, OwnMachine, Reader, Ready, Replica, Right, Rollout,
    SecurePort, StepDown, Subject, Suite, Trial, Tried, address, all_stay, answers, as_before, begun,
    callers, can_be_read, departs, ends, failing, has_ended, has_no_route, held, holder_of, is_back,
    is_placed, is_unplaced, is_up, keeps_route, keeps_running, leads_to, machine, met_by, no_calls, none,
    nothing_lost, refused, refuses, reported_only_by, rolled_out, runs, runs_on_two_machines, serves, shows,
    shows_nothing, some_calls, started, stays_up, still_runs, taint, taken_over, tells, tells_by, tells_of,
    transitions_of, uninitialised, uninitialized, unless_it_ends, warns,
};
pub use harness_core::check::{
    Blocker, Body, Capability, CheckError, CheckId, Environment, Facility, Party, SubjectName, Verdict,
    Violation, assert_unique_ids,
};
pub use harness_core::probe::{
    Matcher, Observation, Observed, ReadError, ReadSource, both, gone, holds, matcher, pause, poll, present,
};
pub use harness_core::secrets;
pub use harness_session::ccm::Release;
pub use harness_session::k8s::{
    A_NODEIP, B_REGION, B_TYPE, B_ZONE, C_NET, F_LB, L_EXCL, L_REGION, L_TYPE, L_ZONE, T_NOT_READY, T_SHUT,
    T_TO_BE_DELETED, T_UNINIT, addresses, condition, has_taint, ingress, ip_modes, label, pod_cidrs,
    provider_id, ready, show_addresses, taints,
};

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let web: Service<'_> = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
/// web.delete().await?;
/// web.becomes(gone()).within(cx.limits().load_balancer()).await
/// # }
/// ```
#[doc(inline)]
pub use crate::Service;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let plan: ServicePlan = load_balancer("web").named_port("dns", 53, "UDP").label("tier", "front");
/// let web = cx.service(plan).await?.provisioned().await?;
/// web.rests().await
/// # }
/// ```
#[doc(inline)]
pub use crate::ServicePlan;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let web = cx.service(load_balancer("web").port(80).port(443)).await?;
/// web.balancer().becomes(one_active()).await?;
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use crate::load_balancer;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let balancer = web.balancer();
/// balancer.vanishes().await?;
/// balancer.becomes(one_active()).when("after its load balancer was deleted").await?;
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use crate::Balancer;

/// In a check:
///
/// ```
/// use harness_testkit::prelude::*;
///
/// const CHECK: Check = Check::own("ACME-LB-01", "restricts its clients", "Acme handbook", |cx| Box::pin(body(cx)))
///     .binds(Level::Should);
/// # async fn body(_: &CheckCx) -> Verdict { Ok(()) }
/// ```
#[doc(inline)]
pub use harness_core::check::Level;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, machine: &Machine<'_>) -> Verdict {
/// let of = |kind: &str| machine.instance().addresses.into_iter().find(|one: &Address| one.kind == kind);
/// cx.record("internal", of("InternalIP").map(|one| one.address).unwrap_or_default());
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_clouds::Address;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let held = web.balancer().read(ReadSource::Origin).await?;
/// let kind = |one: &Auxiliary| one.kind.clone();
/// cx.record("auxiliaries", held.auxiliaries.iter().map(kind).collect::<Vec<_>>().join(", "));
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_clouds::Auxiliary;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let slow = Effect::Latency { ms: 500 };
/// let fault = cx.cloud().anything().meets("slow answers", &[slow]).to(&[Op::InstanceList]).await?;
/// fault.hits(1).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::Effect;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, node: &Node<'_>) -> Verdict {
/// let by_name = |call: &Entry| call.request.contains("name=");
/// let calls = node.looks().that(by_name).list().await?;
/// cx.record("searches_by_name", calls.len());
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_clouds::Entry;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let wanted = Frontend::new(80, "TCP", 30080);
/// let listens = one_balancer("listens on port 80", move |lb| lb.frontends.contains(&wanted));
/// web.balancer().becomes(listens).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::Frontend;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let of_port = |check: &HealthCheck| check.protocol == "HTTP" && check.path == "/healthz";
/// let checked = one_balancer("checks /healthz", move |lb| lb.health_check.as_ref().is_some_and(of_port));
/// web.balancer().becomes(checked).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::HealthCheck;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
/// let typeless = Instance { instance_type: String::new(), ..machine.as_reported() };
/// node.becomes(initialised_as("has everything but a type", &typeless)).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::Instance;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let empty = holds("has no load balancers", |held: &Inventory| held.load_balancers.is_empty());
/// cx.cloud().keeps(empty).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::Inventory;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// web.delete().await?;
/// let goes = one_balancer("is being deleted", |lb| lb.state == LbState::Deleting);
/// web.balancer().becomes(goes).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::LbState;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let lb: LoadBalancer = web.balancer().becomes(one_active()).await?;
/// cx.record("backends", lb.backends.len());
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_clouds::LoadBalancer;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let mark = cx.cloud().mark()?;
/// let changes = web.calls().of(&[Op::LbCreate, Op::LbUpdate, Op::LbDelete]).since(mark);
/// changes.keeps(no_calls()).when("as nothing was edited").await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::Op;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let failed = |call: &Entry| matches!(call.outcome, Outcome::Answered { status: 500.. });
/// let calls = web.calls().that(failed).list().await?;
/// cx.record("failed_calls", calls.len());
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_clouds::Outcome;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, network: &Destination<'_>, machine: &Machine<'_>) -> Verdict {
/// let route: Route = network.is_routed(Some(machine)).await?;
/// network.keeps(keeps_route(&route)).within(cx.limits().quiet_routes()).await
/// # }
/// ```
#[doc(inline)]
pub use harness_clouds::Route;

/// In a check:
///
/// ```
/// use harness_testkit::prelude::*;
///
/// assert!(is_nameless("Go-http-client/2.0") && !is_nameless("acme-ccm/v1.2"));
/// ```
#[doc(inline)]
pub use harness_clouds::is_nameless;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let writes = |asked: &&Asked| ["create", "update", "patch", "delete"].contains(&asked.verb.as_str());
/// let asked = cx.asked_by(&cx.ccm_account()?, false).await?;
/// cx.record("writes", asked.iter().filter(writes).count());
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_clusters::Asked;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// for (annotation, effect) in cx.annotation_effects() {
///     let AnnotationEffect { values: [first, second], at, .. } = effect;
///     cx.record(annotation, format!("{first} or {second}, shown at {at}"));
/// }
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_config::AnnotationEffect;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, node: &Node<'_>) -> Verdict {
/// let limit = Limits::STATUS_PERIOD + cx.limits().instance_cache();
/// node.becomes(addressed()).within(limit).await
/// # }
/// ```
#[doc(inline)]
pub use harness_config::Limits;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, network: &Destination<'_>) -> Verdict {
/// let window = match cx.route_trigger() {
///     RouteTrigger::Period => 2 * cx.limits().route_period(),
///     RouteTrigger::NodeChanges => cx.limits().settle(),
/// };
/// network.keeps(has_no_route()).within(window).await
/// # }
/// ```
#[doc(inline)]
pub use harness_config::RouteTrigger;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, machine: Instance, web: &Service<'_>) -> Verdict {
/// if cx.balancers_target() != Targets::Pods {
///     let wanted = one_balancer("sends traffic to the Node", move |lb| targets(lb, &machine));
///     web.balancer().becomes(wanted).await?;
/// }
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_config::Targets;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let Crash { replica, transitions, .. } = cx.leader_crash().await?;
/// cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await?;
/// cx.record("crashed", replica);
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_session::Crash;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let cold = cx.cold_cluster(Network::Absent).await?;
/// cx.none_is_ready(&cold).await?;
/// cx.apply_as_shipped().await?;
/// cx.all_initialised(&cold).await?;
/// cx.pod_network_comes().await
/// # }
/// ```
#[doc(inline)]
pub use harness_session::Network;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(web: &Service<'_>) -> Verdict {
/// let losses = web.losses_since(tokio::time::Instant::now(), &[Rule::Backends, Rule::Firewall]);
/// losses.can_be_seen().await?;
/// losses.keeps(nothing_lost()).await
/// # }
/// ```
#[doc(inline)]
pub use harness_session::Rule;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, web: &Service<'_>) -> Verdict {
/// let history = web.history()?;
/// let deletions = history.iter().filter(|version| version.change == Change::Deleted).count();
/// cx.record("deletions", deletions);
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_session::k8s::Change;

/// In a check:
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, node: &Node<'_>) -> Verdict {
/// let history: Vec<Version<k8s_openapi::api::core::v1::Node>> = node.history()?;
/// let clean = history.iter().position(|version| !has_taint(&version.object, T_UNINIT));
/// cx.record("versions_until_initialised", clean.unwrap_or_default());
/// # Ok(()) }
/// ```
#[doc(inline)]
pub use harness_session::k8s::Version;
