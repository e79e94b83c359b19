//! Updates (contract SVC-UPD).

use super::needs::{LB, LB_TO_NODES, LB_UDP, RANGES};
use futures::future::try_join;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::ServiceSpec;
use serde_json::{Value, json};

/// An edit of a Service, and how the cloud shows that it has arrived.
struct Edit {
    name: &'static str,
    needs: &'static [Capability],
    patch: fn() -> Value,
    /// Whether the edit has arrived, from the cloud's objects and the spec in the API server after the edit.
    shows: fn(&Inventory, &ServiceSpec) -> bool,
    /// The expected state, as text for failures.
    expected: &'static str,
}

static EDITS: [Edit; 4] = [
    Edit {
        name: "port",
        needs: LB,
        patch: || json!({"spec": {"ports": [{"name": "alt", "port": 8080, "protocol": "TCP"}]}}),
        shows: |held, _| {
            only(held).is_some_and(|lb| matches!(lb.frontends.as_slice(), [f] if f.port == 8080))
        },
        expected: "one frontend, on port 8080",
    },
    Edit {
        name: "source-ranges",
        needs: RANGES,
        patch: || json!({"spec": {"loadBalancerSourceRanges": [RANGE]}}),
        shows: restricted,
        expected: "source ranges [192.0.2.0/24] on the balancer or its firewall",
    },
    Edit {
        name: "affinity",
        needs: &[Capability::LoadBalancer, Capability::Affinity],
        patch: || json!({"spec": {"sessionAffinity": "ClientIP"}}),
        shows: |held, _| only(held).is_some_and(|lb| lb.session_affinity == "ClientIP"),
        expected: "session affinity ClientIP",
    },
    Edit {
        name: "traffic-policy",
        needs: LB_TO_NODES,
        patch: || json!({"spec": {"externalTrafficPolicy": "Local"}}),
        shows: |held, spec| {
            let check = only(held).and_then(|lb| lb.health_check.as_ref());
            check.is_some_and(|h| {
                (h.protocol.as_str(), h.path.as_str()) == ("HTTP", "/healthz")
                    && Some(i32::from(h.port)) == spec.health_check_node_port
            })
        },
        expected: "health check HTTP /healthz on the Service's healthCheckNodePort",
    },
];

pub(super) const RANGE: &str = "192.0.2.0/24";

fn only(held: &Inventory) -> Option<&LoadBalancer> {
    match held.load_balancers.as_slice() {
        [lb] => Some(lb),
        _ => None,
    }
}

/// Whether the ranges are in effect, either on the load balancer itself or on a separate firewall, as the
/// provider does it.
pub(super) fn restricted(held: &Inventory, _: &ServiceSpec) -> bool {
    let on_balancer = held.load_balancers.iter().any(|lb| lb.source_ranges == [RANGE]);
    on_balancer || held.auxiliaries.iter().any(|aux| aux.spec["source_ranges"] == json!([RANGE]))
}

/// For each edit, a check that it arrives.
pub(super) const FOLLOWS: [Check; EDITS.len()] = {
    let (mut checks, mut at) = ([follows(0); EDITS.len()], 1);
    while at < EDITS.len() {
        checks[at] = follows(at);
        at += 1;
    }
    checks
};

const fn follows(at: usize) -> Check {
    let id = CheckId::of_claim("SVC-UPD-01", EDITS[at].name);
    let check = Check::row(id, |cx, at| Box::pin(follows_edit(cx, &EDITS[at])), at);
    check.without_machines().needs(EDITS[at].needs).by_calls()
}

/// For each edit, a check that the load balancer is kept.
pub(super) const KEEPS: [Check; EDITS.len()] = {
    let (mut checks, mut at) = ([keeps(0); EDITS.len()], 1);
    while at < EDITS.len() {
        checks[at] = keeps(at);
        at += 1;
    }
    checks
};

const fn keeps(at: usize) -> Check {
    let id = CheckId::of_claim("SVC-UPD-02", EDITS[at].name);
    let check = Check::row(id, |cx, at| Box::pin(keeps_identity(cx, &EDITS[at])), at);
    check.without_machines().needs(EDITS[at].needs).by_calls().takes(7)
}

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-UPD-01.node-port", |cx| Box::pin(follows_node_port(cx)))
        .by_calls()
        .without_machines()
        .needs(LB),
    Check::of("SVC-UPD-01.protocol", |cx| Box::pin(follows_protocol(cx)))
        .by_calls()
        .without_machines()
        .needs(LB_UDP),
    Check::of("SVC-UPD-01.annotation", |cx| Box::pin(repairs_on_an_annotation(cx)))
        .on_objects()
        .by_calls()
        .without_machines()
        .needs(LB),
    Check::of("SVC-UPD-05.cluster-ip", |cx| Box::pin(cleans_up_on_type_change(cx, "ClusterIP")))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
    Check::of("SVC-UPD-05.node-port", |cx| Box::pin(cleans_up_on_type_change(cx, "NodePort")))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
    Check::of("SVC-UPD-05.auxiliaries", |cx| Box::pin(keeps_the_finalizer_for_auxiliaries(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
];

async fn follows_edit(cx: &CheckCx, edit: &'static Edit) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let arrived = make(&web, edit).await?;
    web.balancer().becomes(arrived.expecting(edit.expected)).await
}

/// Makes an edit after the CCM is done with the Service, so that the check does not see the effect of an
/// earlier change. Returns a matcher for its arrival in the cloud.
async fn make(web: &Service<'_>, edit: &'static Edit) -> Result<Matcher<Inventory>, CheckError> {
    web.rests().await?;
    web.patch(&(edit.patch)()).await?;
    let spec = web.spec().await?;
    Ok(holds(format!("follows an edit of the {}", edit.name), move |held: &Inventory| {
        (edit.shows)(held, &spec)
    }))
}

async fn keeps_identity(cx: &CheckCx, edit: &'static Edit) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    let arrived = make(&web, edit).await?;
    let claim = format!("is the same after an edit of the {}, with {}", edit.name, edit.expected);
    let same = no_other_than(&before, claim, move |held| arrived.matches(held) == Observation::Matched(()));
    web.balancer().becomes(same).await?;
    // Once more: a value that alternates may have been right by chance.
    let published = async || web.keeps(publishes(&before)).when("as before the edits").await;
    try_join(published(), looks_again(cx, &web)).await?;
    // There is no second load balancer either, whose address would be published later.
    web.rests().await?;
    let same = no_other_than(&before, "is the same after both edits", |_| true);
    try_join(published(), web.balancer().keeps(same).into_future()).await.map(drop)
}

/// Makes the CCM process a Service again, with an annotation that has no meaning.
async fn looks_again(cx: &CheckCx, web: &Service<'_>) -> Verdict {
    web.rests().await?;
    let mark = cx.cloud().mark()?;
    web.patch(&json!({"metadata": {"annotations": {"example.com/edited": "1"}}})).await?;
    web.calls().since(mark).becomes(some_calls()).when("after an edit of an annotation").await
}

/// How many node ports are tried: another Service may have one.
pub(super) const TRIES: i32 = 8;
/// The default range of node ports, and a stride through it: neighbouring ports may all be taken.
const FIRST_PORT: i32 = 30_000;
const PORTS: i32 = 2_768;
const STRIDE: i32 = 331;

/// Another node port than `old`, a different one at each step.
pub(super) const fn other_node_port(old: i32, step: i32) -> i32 {
    FIRST_PORT + (old - FIRST_PORT + step * STRIDE).rem_euclid(PORTS)
}

async fn follows_node_port(cx: &CheckCx) -> Verdict {
    if !cx.balancers_target().use_node_ports() {
        return Err(CheckError::NotObservable("its load balancers send no traffic to node ports".to_owned()));
    }
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let port = web.spec().await?.ports.unwrap_or_default().into_iter().next().unwrap_or_default();
    let old = port.node_port.unwrap_or_default();
    let mut refused = None;
    for step in 1..=TRIES {
        let other = other_node_port(old, step);
        let ports = json!([{"name": port.name, "port": 80, "protocol": "TCP", "nodePort": other}]);
        match web.patch(&json!({"spec": {"ports": ports}})).await {
            Ok(()) => {
                let wanted = u16::try_from(other).unwrap_or_default();
                let moved = one_balancer(
                    "follows an edit of the node port",
                    move |lb| matches!(lb.frontends.as_slice(), [f] if f.port == 80 && f.node_port == wanted),
                );
                return web.balancer().becomes(moved.expecting(format!("port 80 to {wanted}"))).await;
            }
            Err(stop) => refused = Some(stop),
        }
    }
    Err(refused.unwrap_or_else(|| CheckError::Error("no node port was tried".to_owned())))
}

async fn follows_protocol(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(53)).await?.provisioned().await?;
    web.rests().await?;
    web.patch(&json!({"spec": {"ports": [{"name": "p53", "port": 53, "protocol": "UDP"}]}})).await?;
    let udp = one_balancer(
        "follows an edit of the protocol",
        |lb| matches!(lb.frontends.as_slice(), [f] if f.port == 53 && f.protocol == "UDP"),
    );
    web.balancer().becomes(udp.expecting("one frontend, 53/UDP")).await
}

async fn repairs_on_an_annotation(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    web.balancer().vanishes().await?;
    looks_again(cx, &web).await?;
    let limit = cx.limits().service_after(1).max(cx.limits().load_balancer());
    let lb = web.balancer().becomes(one_active()).within(limit).await?;
    web.becomes(publishes(&lb)).within(limit).when("which is another one than before").await
}

async fn cleans_up_on_type_change(cx: &CheckCx, to: &str) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let deletion = web.cloud().holds(&[Op::LbDelete]).await?;
    web.patch(&json!({"spec": {"type": to}})).await?;
    deletion.is_reached_unless(web.is_cleaned_up()).await?;
    web.keeps(keeps_finalizer()).when("while the cloud has the load balancer").await?;
    deletion.release().await?;
    is_let_go(cx, &web).await
}

async fn keeps_the_finalizer_for_auxiliaries(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let made = web.balancer().read(ReadSource::Origin).await?.auxiliaries.len();
    cx.record("auxiliaries", made);
    let deletion = web.cloud().holds(&[Op::AuxDelete]).await?;
    web.patch(&json!({"spec": {"type": "ClusterIP"}})).await?;
    if made > 0 {
        deletion.is_reached_unless(web.is_cleaned_up()).await?;
        web.keeps(keeps_finalizer()).when("while the cloud has what belongs to its load balancer").await?;
    }
    deletion.release().await?;
    is_let_go(cx, &web).await
}

/// Waits until the cloud has removed everything of a Service that now has another type, and then until the
/// finalizer is gone.
async fn is_let_go(cx: &CheckCx, web: &Service<'_>) -> Verdict {
    let limit = cx.limits().load_balancer();
    web.balancer().becomes(nothing_left()).within(limit).await?;
    web.becomes(lacks_finalizer()).within(limit).when("once the cloud holds nothing for it").await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(fields: Value) -> Inventory {
        let mut lb = json!({"id": "a", "name": "a", "frontends": [], "backends": [], "addresses": [], "state": "active"});
        if let (Some(lb), Value::Object(fields)) = (lb.as_object_mut(), fields) {
            lb.extend(fields);
        }
        let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [], "routes": []});
        serde_json::from_value(all).expect("an inventory")
    }

    #[test]
    fn other_node_ports_are_others_and_of_the_range() {
        for old in [30_000, 30_097, 32_767] {
            let ports: Vec<i32> = (1..=TRIES).map(|step| other_node_port(old, step)).collect();
            assert!(ports.iter().all(|port| (30_000..=32_767).contains(port) && *port != old), "{ports:?}");
            assert!((1..ports.len()).all(|at| !ports[..at].contains(&ports[at])), "{ports:?}");
        }
    }

    #[test]
    fn each_edit_is_seen_when_and_only_when_it_arrived() {
        let spec = ServiceSpec { health_check_node_port: Some(30_001), ..ServiceSpec::default() };
        let frontend = |port| json!({"port": port, "protocol": "TCP", "node_port": 30_000});
        let check = |port| json!({"protocol": "HTTP", "path": "/healthz", "port": port});
        let arrived = [
            ("port", json!({"frontends": [frontend(8080)]}), json!({"frontends": [frontend(80)]})),
            ("source-ranges", json!({"source_ranges": [RANGE]}), json!({"source_ranges": ["0.0.0.0/0"]})),
            ("affinity", json!({"session_affinity": "ClientIP"}), json!({"session_affinity": "None"})),
            (
                "traffic-policy",
                json!({"health_check": check(30_001)}),
                json!({"health_check": check(30_002)}),
            ),
        ];
        for (edit, (name, yes, no)) in EDITS.iter().zip(arrived) {
            assert_eq!(edit.name, name);
            assert!((edit.shows)(&held(yes), &spec), "{name}");
            assert!(!(edit.shows)(&held(no), &spec), "{name}");
            assert!(!(edit.shows)(&held(json!({})), &spec), "{name}");
        }
        let connects = json!({"health_check": {"protocol": "TCP", "path": "", "port": 30_001}});
        assert!(!(EDITS[3].shows)(&held(connects), &spec), "any process answers that");
        let firewall =
            json!({"id": "f", "kind": "firewall", "name": "f", "spec": {"source_ranges": [RANGE]}});
        let mut on_firewall = held(json!({}));
        on_firewall.auxiliaries.push(serde_json::from_value(firewall).expect("a firewall"));
        assert!(restricted(&on_firewall, &spec));
    }
}
