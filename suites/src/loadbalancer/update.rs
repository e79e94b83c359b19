//! Updates (contract SVC-UPD).

use super::needs::{LB, LB_TO_NODES};
use harness::check::{Capability, CheckId, Facility, Verdict};
use harness::cloud::{Inventory, LoadBalancer, Op};
use harness::cx::matchers::{keeps_finalizer, lacks_finalizer, no_other_than, nothing_left, publishes};
use harness::cx::{Check, CheckCx, Subject, load_balancer};
use harness::probe::holds;
use k8s_openapi::api::core::v1::ServiceSpec;
use serde_json::{Value, json};

const NEEDS_UPDATE: &str =
    "k8s.io/cloud-provider service/controller.go needsUpdate; kubernetes test/e2e/network/loadbalancer.go";
const SAME: &str = "kubernetes test/e2e/network/loadbalancer.go";

/// An edit of a Service, and how what the cloud holds for it shows that it arrived.
struct Edit {
    name: &'static str,
    needs: &'static [Capability],
    /// The title of the check that the edit arrives.
    arrives: &'static str,
    /// The title of the check that the edit keeps the load balancer.
    keeps: &'static str,
    patch: fn() -> Value,
    /// Given what the cloud holds and the spec as the API server has it after the edit.
    shows: fn(&Inventory, &ServiceSpec) -> bool,
    /// What is expected, in words.
    expected: &'static str,
}

static EDITS: [Edit; 4] = [
    Edit {
        name: "port",
        needs: LB,
        arrives: "the load balancer follows an edit of the ports",
        keeps: "an edit of the ports keeps the load balancer and its address",
        patch: || json!({"spec": {"ports": [{"name": "alt", "port": 8080, "protocol": "TCP"}]}}),
        shows: |held, _| {
            only(held).is_some_and(|lb| matches!(lb.frontends.as_slice(), [f] if f.port == 8080))
        },
        expected: "one frontend, on port 8080",
    },
    Edit {
        name: "source-ranges",
        needs: &[Capability::LoadBalancer, Capability::SourceRanges],
        arrives: "the load balancer follows an edit of the source ranges",
        keeps: "an edit of the source ranges keeps the load balancer and its address",
        patch: || json!({"spec": {"loadBalancerSourceRanges": [RANGE]}}),
        shows: restricted,
        expected: "source ranges [192.0.2.0/24] on the balancer or its firewall",
    },
    Edit {
        name: "affinity",
        needs: &[Capability::LoadBalancer, Capability::Affinity],
        arrives: "the load balancer follows an edit of the session affinity",
        keeps: "an edit of the session affinity keeps the load balancer and its address",
        patch: || json!({"spec": {"sessionAffinity": "ClientIP"}}),
        shows: |held, _| only(held).is_some_and(|lb| lb.session_affinity == "ClientIP"),
        expected: "session affinity ClientIP",
    },
    Edit {
        name: "traffic-policy",
        needs: LB_TO_NODES,
        arrives: "the load balancer follows an edit of the traffic policy",
        keeps: "an edit of the traffic policy keeps the load balancer and its address",
        patch: || json!({"spec": {"externalTrafficPolicy": "Local"}}),
        shows: |held, spec| {
            let asked = only(held).and_then(|lb| lb.health_check.as_ref()).map(|h| i32::from(h.port));
            asked.is_some() && asked == spec.health_check_node_port
        },
        expected: "a health check on the Service's healthCheckNodePort",
    },
];

const RANGE: &str = "192.0.2.0/24";

fn only(held: &Inventory) -> Option<&LoadBalancer> {
    match held.load_balancers.as_slice() {
        [lb] => Some(lb),
        _ => None,
    }
}

/// The ranges stand on the balancer itself or on a firewall of its own, as the provider does it.
fn restricted(held: &Inventory, _: &ServiceSpec) -> bool {
    let on_balancer = held.load_balancers.iter().any(|lb| lb.source_ranges == [RANGE]);
    on_balancer || held.auxiliaries.iter().any(|aux| aux.spec["source_ranges"] == json!([RANGE]))
}

/// A check for each edit: it arrives.
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
    let check =
        Check::row(id, EDITS[at].arrives, NEEDS_UPDATE, |cx, at| Box::pin(follows_edit(cx, &EDITS[at])), at);
    check.needs(EDITS[at].needs)
}

/// A check for each edit: it keeps the load balancer.
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
    let check = Check::row(id, EDITS[at].keeps, SAME, |cx, at| Box::pin(keeps_identity(cx, &EDITS[at])), at);
    check.needs(EDITS[at].needs)
}

pub(super) const CHECKS: &[Check] = &[Check::must(
    "SVC-UPD-05",
    "a Service that is no longer of type LoadBalancer loses balancer and auxiliaries, then its finalizer",
    "k8s.io/cloud-provider service/controller.go; kubernetes service/strategy.go dropTypeDependentFields",
    |cx| Box::pin(cleans_up_on_type_change(cx)),
)
.needs(LB)
.with(&[Facility::Barriers])];

async fn follows_edit(cx: &CheckCx, edit: &'static Edit) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.patch(&(edit.patch)()).await?;
    let spec = web.spec().await?;
    let arrived = holds(format!("follows an edit of the {}", edit.name), move |held: &Inventory| {
        (edit.shows)(held, &spec)
    });
    web.balancer().becomes(arrived.expecting(edit.expected)).await
}

async fn keeps_identity(cx: &CheckCx, edit: &'static Edit) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    web.patch(&(edit.patch)()).await?;
    let spec = web.spec().await?;
    let claim = format!("is the same after an edit of the {}, with {}", edit.name, edit.expected);
    let same = no_other_than(&before, claim, move |held| (edit.shows)(held, &spec));
    web.balancer().becomes(same).await?;
    web.becomes(publishes(&before)).when("as before the edit").await
}

async fn cleans_up_on_type_change(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let deletion = web.cloud().holds(&[Op::LbDelete]).await?;
    web.patch(&json!({"spec": {"type": "ClusterIP"}})).await?;
    deletion.is_reached().await?;
    web.keeps(keeps_finalizer()).when("while the cloud has the load balancer").await?;
    deletion.release().await?;
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
        let firewall =
            json!({"id": "f", "kind": "firewall", "name": "f", "spec": {"source_ranges": [RANGE]}});
        let mut on_firewall = held(json!({}));
        on_firewall.auxiliaries.push(serde_json::from_value(firewall).expect("a firewall"));
        assert!(restricted(&on_firewall, &spec));
    }
}
