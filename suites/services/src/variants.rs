//! The options that a Service can set for its load balancer, one at a time: honoured, or visibly refused
//! (contract SVC-CREATE, CAP-08).

use super::needs::{FOREIGN, LB, LB_TO_NODES, RANGES};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-CREATE-09", |cx| Box::pin(checks_health(cx))).without_machines().needs(LB_TO_NODES),
    Check::of("SVC-CREATE-10.annotation", |cx| Box::pin(restricts_by_annotation(cx)))
        .without_machines()
        .needs(RANGES),
    Check::of("SVC-CREATE-10.spec", |cx| Box::pin(restricts_by_spec(cx)))
        .by_calls()
        .without_machines()
        .needs(RANGES),
    Check::of("SVC-CREATE-10.none", |cx| Box::pin(admits_everybody(cx))).without_machines().needs(RANGES),
    Check::of("SVC-CREATE-11", |cx| Box::pin(honours_affinity_or_warns(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB),
    Check::of("SVC-CREATE-12", |cx| Box::pin(does_without_node_ports(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB)
        .served_since(22, "Service spec.allocateLoadBalancerNodePorts"),
    Check::of("SVC-CREATE-16", |cx| Box::pin(leaves_the_users_fields_alone(cx))).without_machines().needs(LB),
    Check::of("SVC-CREATE-18", |cx| Box::pin(carries_both_protocols_or_tells(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB)
        .served_since(26, "load balancer Services of two protocols"),
];

async fn checks_health(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let checked = one_balancer("has a health check", |lb| lb.health_check.is_some());
    web.balancer().becomes(checked.expecting("a health check of whatever kind")).await
}

/// Two ranges, as a user writes them.
const RANGES_WRITTEN: &str = "192.0.2.0/24, 198.51.100.0/24";
const RANGES_MEANT: [&str; 2] = ["192.0.2.0/24", "198.51.100.0/24"];
/// The annotation that the shared code reads.
const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// The ranges that the cloud admits: the firewall's if there is one, otherwise those of the load balancer;
/// `None` if there is no restriction.
pub(super) fn admitted(held: &Inventory) -> Option<BTreeSet<String>> {
    let of_firewalls = held.auxiliaries.iter().filter_map(|aux| aux.spec["source_ranges"].as_array());
    let words = of_firewalls.flatten().filter_map(|range| range.as_str().map(str::to_owned));
    let of_balancers = held.load_balancers.iter().flat_map(|lb| lb.source_ranges.iter().cloned());
    let all: BTreeSet<String> = words.chain(of_balancers).collect();
    let everybody = all.iter().any(|range| range == "0.0.0.0/0" || range == "::/0");
    (!all.is_empty() && !everybody).then_some(all)
}

async fn restricts_by_annotation(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).annotation(ANNOTATION, RANGES_WRITTEN)).await?;
    let restricted = admits_only("is restricted as the annotation says", &RANGES_MEANT);
    let limit = cx.limits().load_balancer();
    web.balancer().becomes(restricted).within(limit).await?;
    web.provisioned().await?;
    Ok(())
}

/// Matches a cloud that admits exactly these ranges.
fn admits_only(claim: &str, meant: &[&str]) -> Matcher<Inventory> {
    let expected = format!("{} and no other", meant.join(", "));
    let meant: BTreeSet<String> = meant.iter().map(|range| (*range).to_owned()).collect();
    holds(claim, move |held: &Inventory| admitted(held).is_some_and(|ranges| ranges == meant))
        .expecting(expected)
}

/// A range that the annotation does not contain.
const OF_THE_SPEC: &str = "203.0.113.0/24";

async fn restricts_by_spec(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").port(80).annotation(ANNOTATION, RANGES_WRITTEN);
    let plan = plan.with(|s| s.load_balancer_source_ranges = Some(vec![OF_THE_SPEC.to_owned()]));
    let web = cx.service(plan).await?;
    let restricted = || admits_only("is restricted as the spec says", &[OF_THE_SPEC]);
    let limit = cx.limits().load_balancer();
    web.balancer().becomes(restricted()).within(limit).when("next to an annotation").await?;
    let web = web.provisioned().await?;
    web.rests().await?;
    web.balancer().keeps(restricted()).when("next to an annotation").await
}

async fn admits_everybody(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let open = holds("admits everybody", |held: &Inventory| admitted(held).is_none());
    web.balancer().keeps(open.expecting("no range, or 0.0.0.0/0")).await
}

/// The cloud's objects of a Service, and the Events about it.
type CloudAndEvents = (Inventory, Vec<core::Event>);

/// Matches one active load balancer for which `honours` holds, or Events for which `warned` holds.
fn or_warns(
    claim: &'static str,
    honours: impl Fn(&LoadBalancer) -> bool + 'static,
    warned: Matcher<Vec<core::Event>>,
) -> Matcher<CloudAndEvents> {
    let serves = one_active();
    matcher(claim, move |(held, events): &CloudAndEvents| match serves.matches(held) {
        Observation::Matched(lb) if honours(&lb) => Observation::Matched(()),
        _ => warned.matches(events),
    })
}

/// Matches a load balancer with session affinity, or a warning that mentions it. A warning about something
/// else, such as a failed update, does not tell users that sessions get lost.
fn sticky_or_warns() -> Matcher<CloudAndEvents> {
    let speaks = |event: &core::Event| {
        let said: String =
            event.reason.iter().chain(&event.message).map(|text| text.to_lowercase()).collect();
        ["affinity", "session", "sticky", "persist", "clientip"].iter().any(|word| said.contains(word))
    };
    let warned = holds("warn of lost sessions", move |events: &Vec<core::Event>| {
        events.iter().any(|event| event.type_.as_deref() == Some("Warning") && speaks(event))
    });
    or_warns("keeps clients, or warns", |lb| lb.session_affinity == "ClientIP", warned)
        .expecting("session affinity ClientIP, or an Event of type Warning that speaks of it")
}

/// How long a load balancer or an Event may take.
fn reporting_limit(cx: &CheckCx) -> Duration {
    cx.limits().event().max(cx.limits().load_balancer())
}

async fn honours_affinity_or_warns(cx: &CheckCx) -> Verdict {
    let sticky = load_balancer("web").port(80).with(|s| s.session_affinity = Some("ClientIP".to_owned()));
    let web = cx.service(sticky).await?;
    let (balancer, events) = (web.balancer(), web.events());
    let limit = reporting_limit(cx);
    (&balancer, &events).becomes(sticky_or_warns()).within(limit).await
}

async fn does_without_node_ports(cx: &CheckCx) -> Verdict {
    let direct = load_balancer("web").port(80).with(|s| s.allocate_load_balancer_node_ports = Some(false));
    let web = cx.service(direct).await?;
    let (balancer, events) = (web.balancer(), web.events());
    let limit = reporting_limit(cx);
    let fulfilled = or_warns(
        "sends traffic somewhere, or warns",
        |lb| !lb.frontends.is_empty() && lb.frontends.iter().all(|f| f.node_port != 0),
        warns(),
    );
    (&balancer, &events)
        .becomes(
            fulfilled.expecting("a load balancer with ports, none of them 0, or an Event of type Warning"),
        )
        .within(limit)
        .await?;
    if cx.balancers_target() != Targets::Pods {
        let nowhere = holds("sends nothing to port 0", |held: &Inventory| {
            held.load_balancers.iter().all(|lb| lb.frontends.iter().all(|f| f.node_port != 0))
        });
        balancer.keeps(nowhere).await?;
    }
    let before = balancer.read(ReadSource::Origin).await?.load_balancers.into_iter().next();
    web.patch(&json!({"spec": {"allocateLoadBalancerNodePorts": true}})).await?;
    // The refused call is repeated after a back-off, or at once because the node port has been assigned.
    let limit = cx.limits().service_after(2) + cx.limits().load_balancer_work();
    let lb = balancer.becomes(one_active()).within(limit).when("with node ports").await?;
    if lb.frontends.is_empty() {
        let carries = one_balancer("has the Service's port", |lb| !lb.frontends.is_empty());
        balancer.becomes(carries.expecting("one frontend")).within(limit).when("with node ports").await?;
    }
    match before.filter(|before| !before.addresses.is_empty()) {
        Some(before) => balancer.has_shown(
            &balancer.read(ReadSource::Origin).await?,
            no_other_than(&before, "is the same", |_| true),
        ),
        None => Ok(()),
    }
}

/// The key of a label and an annotation of the user.
const MARK: &str = "example.com/mark";

/// What of a Service is the user's, by its place; these finalizers are not.
fn of_the_user(of_the_ccm: &[String], service: &core::Service) -> BTreeMap<String, Value> {
    let mut users = BTreeMap::new();
    if let Value::Object(spec) = json!(service.spec) {
        users.extend(spec.into_iter().map(|(field, value)| (format!("spec.{field}"), value)));
    }
    let labels = service.labels().iter();
    users.extend(labels.map(|(label, value)| (format!("label {label}"), json!(value))));
    users.insert(format!("annotation {MARK}"), json!(service.annotations().get(MARK)));
    let all = service.finalizers().iter();
    let finalizers: Vec<&String> = all.filter(|one| !of_the_ccm.contains(*one)).collect();
    users.insert("finalizers".to_owned(), json!(finalizers));
    users
}

/// Where two Services differ in what is the user's, with both values.
fn altered(made: &BTreeMap<String, Value>, seen: &BTreeMap<String, Value>) -> Vec<String> {
    let places: BTreeSet<&String> = made.keys().chain(seen.keys()).collect();
    let value = |of: &BTreeMap<String, Value>, place: &String| {
        of.get(place).map_or_else(|| "absent".to_owned(), Value::to_string)
    };
    let differs = places.into_iter().filter(|place| made.get(*place) != seen.get(*place));
    differs
        .map(|place| format!("{place} is {}, and was {}", value(seen, place), value(made, place)))
        .collect()
}

async fn leaves_the_users_fields_alone(cx: &CheckCx) -> Verdict {
    let own = cx.finalizers_of_the_ccm();
    let plan = load_balancer("web").port(80).label(MARK, "1").annotation(MARK, "1").finalizer(FOREIGN);
    let web = cx.service(plan).await?.provisioned().await?;
    web.keeps(unchanged(own.clone(), web.as_made())).when("once it is provisioned").await?;
    let edit = json!({"spec": {"ports": [{"name": "alt", "port": 8080, "protocol": "TCP"}]}});
    let edited = web.patched(&edit).await?;
    let followed = one_balancer("follows an edit", |lb| lb.frontends.iter().any(|f| f.port == 8080));
    web.balancer().becomes(followed).await?;
    web.keeps(unchanged(own.clone(), &edited)).when("once an edit is followed").await?;
    let kept: Vec<&String> = edited.finalizers().iter().filter(|one| own.contains(one)).collect();
    web.patch(&json!({"metadata": {"finalizers": kept}})).await
}

fn unchanged(of_the_ccm: Vec<String>, made: &core::Service) -> Matcher<Option<Arc<core::Service>>> {
    let users = of_the_user(&of_the_ccm, made);
    matcher("keeps what is the user's", move |seen: &Option<Arc<core::Service>>| {
        let Some(service) = seen else { return Observation::Pending(String::new()) };
        match altered(&users, &of_the_user(&of_the_ccm, service)).as_slice() {
            [] => Observation::Matched(()),
            altered => Observation::Pending(altered.join("; ")),
        }
    })
    .expecting("spec, labels, annotation and finalizers of the user as they were")
}

async fn carries_both_protocols_or_tells(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").named_port("tcp", 53, "TCP").named_port("udp", 53, "UDP");
    let web = cx.service(plan).await?;
    let (balancer, events): (_, EventsOf<'_>) = (web.balancer(), web.events());
    let both = |lb: &LoadBalancer| {
        let carried: BTreeSet<&str> = lb.frontends.iter().map(|f| f.protocol.as_str()).collect();
        carried == BTreeSet::from(["TCP", "UDP"])
    };
    let carried = or_warns("carries both protocols, or warns", both, warns());
    let fulfilled = matcher(
        "carries both protocols, or its CCM reports that it does not",
        move |(cloud, service): &(CloudAndEvents, Option<Arc<core::Service>>)| match has_ports_error(
            service.as_deref(),
        ) {
            true => Observation::Matched(()),
            false => carried.matches(cloud),
        },
    );
    let expected = "53/TCP and 53/UDP, condition LoadBalancerPortsError, or an Event of type Warning";
    let limit = reporting_limit(cx);
    (&(&balancer, &events), &web).becomes(fulfilled.expecting(expected)).within(limit).await
}

fn has_ports_error(service: Option<&core::Service>) -> bool {
    let conditions = service.and_then(|s| s.status.as_ref()).and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "LoadBalancerPortsError" && one.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn held(ranges: Value, firewall: Option<Value>) -> Inventory {
        let lb = json!({"id": "a", "name": "a", "frontends": [], "backends": [], "state": "active",
                        "addresses": [{"ip": "203.0.113.1"}], "source_ranges": ranges});
        let firewalls: Vec<Value> = firewall
            .into_iter()
            .map(|ranges| json!({"id": "f", "kind": "firewall", "name": "f", "spec": {"source_ranges": ranges}}))
            .collect();
        let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": firewalls, "routes": []});
        serde_json::from_value(all).expect("an inventory")
    }

    #[test]
    fn source_ranges_are_on_the_balancer_or_on_a_firewall() {
        let one = || json!(["192.0.2.0/24"]);
        for (ranges, firewall, open) in [
            (json!([]), None, true),
            (json!(["0.0.0.0/0"]), None, true),
            (one(), None, false),
            (json!([]), Some(one()), false),
            (json!([]), Some(json!(["0.0.0.0/0"])), true),
            (one(), Some(json!(["192.0.2.0/24", "::/0"])), true),
        ] {
            let held = held(ranges, firewall);
            assert_eq!(admitted(&held).is_none(), open, "{held:?}");
        }
        let only = admits_only("", &["192.0.2.0/24"]);
        assert_eq!(only.matches(&held(one(), Some(one()))), Observation::Matched(()));
        assert_eq!(only.matches(&held(one(), Some(json!([OF_THE_SPEC])))), Observation::when(false));
        assert_eq!(only.matches(&held(json!([]), None)), Observation::when(false));
    }

    #[test]
    fn settings_that_are_not_honoured_must_be_reported() {
        let event = |kind: &str, message: &str| -> core::Event {
            let value = json!({"metadata": {}, "involvedObject": {}, "type": kind, "reason": "SyncLoadBalancerFailed",
                               "message": message});
            serde_json::from_value(value).expect("an Event")
        };
        let of = |events: Vec<core::Event>| (held(json!([]), None), events);
        let failed = || event("Warning", "the cloud answered 503");
        let any = or_warns("", |_| false, warns());
        assert_eq!(any.matches(&of(Vec::new())), Observation::when(false));
        assert_eq!(any.matches(&of(vec![failed()])), Observation::Matched(()));
        let sticky = sticky_or_warns();
        let lost = "sessionAffinity ClientIP is not supported";
        assert!(!matches!(
            sticky.matches(&of(vec![failed(), event("Normal", lost)])),
            Observation::Matched(())
        ));
        assert_eq!(sticky.matches(&of(vec![failed(), event("Warning", lost)])), Observation::Matched(()));
    }

    #[test]
    fn the_users_fields_are_spec_labels_annotations_and_finalizers() {
        let of = |value: Value| -> core::Service { serde_json::from_value(value).expect("a Service") };
        const OWN: &str = "vendor.example/a";
        let made = json!({"metadata": {"labels": {"a": "b"}, "annotations": {MARK: "1"}, "finalizers": [FOREIGN]},
                          "spec": {"type": "LoadBalancer"}});
        let matcher = unchanged(vec![F_LB.to_owned(), OWN.to_owned()], &of(made.clone()));
        let after = |change: &dyn Fn(&mut Value)| {
            let mut value = made.clone();
            change(&mut value);
            matcher.matches(&Some(Arc::new(of(value))))
        };
        for of_the_ccm in [json!([FOREIGN, F_LB]), json!([F_LB, OWN, FOREIGN])] {
            assert_eq!(
                after(&|s| s["metadata"]["finalizers"] = of_the_ccm.clone()),
                Observation::Matched(())
            );
        }
        assert_eq!(
            after(&|s| s["metadata"]["annotations"]["vendor.example/id"] = json!("lb-1")),
            Observation::Matched(())
        );
        for (field, value) in [
            ("labels", json!({})),
            ("annotations", json!({})),
            ("finalizers", json!([F_LB])),
            ("finalizers", json!([FOREIGN, "vendor.example/b"])),
        ] {
            let seen = after(&|s| s["metadata"][field] = value.clone());
            assert!(matches!(seen, Observation::Pending(_)), "{field}");
        }
        let altered = after(&|s| s["spec"]["externalIPs"] = json!(["192.0.2.1"]));
        assert_eq!(
            altered,
            Observation::Pending(r#"spec.externalIPs is ["192.0.2.1"], and was absent"#.to_owned())
        );
    }

    #[test]
    fn altered_settings_are_shown_with_both_values() {
        let service = |policy: &str, labels: Value| -> BTreeMap<String, Value> {
            let metadata = json!({"labels": labels, "finalizers": [F_LB, FOREIGN]});
            let spec = json!({"externalTrafficPolicy": policy});
            let service = serde_json::from_value(json!({"metadata": metadata, "spec": spec}));
            of_the_user(&[F_LB.to_owned()], &service.expect("a Service"))
        };
        let made = service("Cluster", json!({"a": "1"}));
        assert!(altered(&made, &made).is_empty());
        assert_eq!(
            altered(&made, &service("Local", json!({}))),
            [
                r#"label a is absent, and was "1""#,
                r#"spec.externalTrafficPolicy is "Local", and was "Cluster""#
            ]
        );
    }
}
