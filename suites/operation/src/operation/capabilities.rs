//! Declared and undeclared capabilities of a CCM (contract CAP).

use super::flags::TRIAL;
use super::serving::{REACHED, ports};
use super::status_pages::ELECTED_PORT;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::{Event, Node};
use std::collections::BTreeSet;
use std::sync::Arc;
use suites_common::joining::registered;
use suites_common::services::left_alone;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CAP-01", |cx| Box::pin(starts_what_it_declares(cx)))
        .needs(ELECTED_PORT)
        .of_the_cloud(&[])
        .with(REACHED),
    Check::of("CAP-02", |cx| Box::pin(leaves_nodes(cx))).lacks(&[Capability::Instances]).takes(30),
    Check::of("CAP-03", |cx| Box::pin(leaves_services(cx))).lacks(&[Capability::LoadBalancer]).takes(46),
    Check::of("CAP-04", |cx| Box::pin(continues_without_routes(cx)))
        .needs(&[Capability::FrameworkFlags, Capability::Instances])
        .lacks(&[Capability::Routes])
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(30),
    misreads(0),
    misreads(1),
    tells(0),
    tells(1),
];

/// Protocols, and the capabilities that declare them.
const PROTOCOLS: [(&str, &str, &[Capability]); 2] =
    [("udp", "UDP", &[Capability::Udp]), ("sctp", "SCTP", &[Capability::Sctp])];
const LB: &[Capability] = &[Capability::LoadBalancer];

const fn misreads(at: usize) -> Check {
    let run: for<'a> fn(&'a CheckCx, usize) -> Body<'a> = |cx, at| Box::pin(does_not_misread(cx, at));
    Check::row(CheckId::of_claim("CAP-08", PROTOCOLS[at].0), run, at)
        .needs(LB)
        .lacks(PROTOCOLS[at].2)
        .takes(10)
}

const fn tells(at: usize) -> Check {
    let run: for<'a> fn(&'a CheckCx, usize) -> Body<'a> = |cx, at| Box::pin(tells_of_it(cx, at));
    let id = [CheckId::of_claim("CAP-08", "udp-told"), CheckId::of_claim("CAP-08", "sctp-told")];
    Check::row(id[at], run, at).needs(LB).lacks(PROTOCOLS[at].2)
}

/// A controller of the framework: its name, its name before 1.28, and the capability that it needs.
const CONTROLLERS: [(&str, &str, Capability); 4] = [
    ("cloud-node-controller", "cloud-node", Capability::Instances),
    ("cloud-node-lifecycle-controller", "cloud-node-lifecycle", Capability::Instances),
    ("service-lb-controller", "service", Capability::LoadBalancer),
    ("node-route-controller", "route", Capability::Routes),
];

/// The names of the controllers in the CCM's version of the framework: those that are declared and those that
/// are not.
fn controllers(cx: &CheckCx) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let of = |declared: bool| {
        let fitting = CONTROLLERS.iter().filter(move |(.., needs)| cx.declares(*needs) == declared);
        fitting.map(|(now, before, _)| if cx.framework_has(28) { *now } else { *before }).collect()
    };
    (of(true), of(false))
}

/// The health checks that a verbose answer lists, whatever their result: `[+]name ok`, `[-]name failed: ...`.
fn listed(verbose: &str) -> BTreeSet<&str> {
    let name = |line| {
        str::split_whitespace(str::strip_prefix(line, "[+]").or(str::strip_prefix(line, "[-]"))?).next()
    };
    verbose.lines().filter_map(name).collect()
}

async fn starts_what_it_declares(cx: &CheckCx) -> Verdict {
    let (declared, undeclared) = controllers(cx);
    let mut leaders = Vec::new();
    for port in ports(cx).await? {
        let page = port.get("/healthz?verbose");
        let body = page.becomes(answers(200)).await?;
        let checks = listed(&body);
        let started: Vec<&str> =
            declared.iter().chain(&undeclared).filter(|name| checks.contains(**name)).copied().collect();
        if started.is_empty() {
            continue;
        }
        let more: Vec<&str> = started.iter().filter(|name| undeclared.contains(*name)).copied().collect();
        if !more.is_empty() {
            cx.record("more-than-declared", more.join(" "));
        }
        let missing: Vec<&str> = declared.iter().filter(|name| !checks.contains(**name)).copied().collect();
        if !missing.is_empty() {
            let expected = format!("[+]{} ok", missing.join(" ok, [+]"));
            return Err(page.breaks("the leader has started what is declared", &expected, body.trim_end()));
        }
        leaders.push(port.replica().to_owned());
    }
    match leaders.as_slice() {
        [_] => Ok(()),
        [] if declared.is_empty() => Ok(()),
        others => Err(cx.lease().breaks(
            "exactly one replica has started its controllers",
            "the one that leads",
            &format!("{}: {}", others.len(), others.join(", ")),
        )),
    }
}

async fn leaves_nodes(cx: &CheckCx) -> Verdict {
    cx.ccm_runs().await?;
    let (_, known) = registered(cx, machine("known")).await?;
    // Nothing looks up the machine of a Ready Node.
    let lost = cx.absent_machine(machine("lost"));
    let unknown = cx.node(lost.initialised_node().ready(Ready::False)).await?;
    let stays = holds("stays", |node: &Option<Arc<Node>>| node.is_some()).expecting("the Node");
    (&known, &unknown).keeps(both(untouched(), stays)).within(cx.limits().quiet_nodes()).await?;
    cx.ccm_runs().await
}

async fn leaves_services(cx: &CheckCx) -> Verdict {
    cx.ccm_runs().await?;
    let unserved = cx.service(load_balancer("unserved").port(80)).await?;
    let calls = unserved.calls();
    if cx.declares(Capability::Instances) {
        let (_, witness) = registered(cx, machine("witness")).await?;
        witness.becomes(initialised()).when("by a CCM that is at work").await?;
    }
    (&unserved, &calls).keeps(left_alone()).within(cx.limits().quiet_services()).await?;
    cx.ccm_runs().await
}

async fn continues_without_routes(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_alone(&["--configure-cloud-routes=true"]).await?;
    let routes = cx.cloud().calls().of(&[Op::RouteList, Op::RouteCreate, Op::RouteDelete]);
    let machine = cx.machine(machine("routed")).await?;
    let node = cx.node(machine.node().pod_cidrs(&["10.244.200.0/24"])).await?;
    let worked = node.becomes(initialised()).within(cx.limits().start());
    alone.while_it_runs(worked.when("by a CCM that keeps running")).await?;
    let both_of_it = (&alone, &routes);
    let none = holds("asks for no routes", |calls: &Vec<Entry>| calls.is_empty()).expecting(
        "no calls about routes (if the CCM implements Routes, the profile needs 'capabilities.routes: true')",
    );
    let still = both_of_it.keeps(both(keeps_running(), none)).within(cx.limits().quiet_routes());
    alone.explained(still.await).await
}

/// A port that every protocol has.
const PORT: u16 = 53;

async fn asking_for<'a>(cx: &'a CheckCx, at: usize) -> Result<Service<'a>, CheckError> {
    let (name, protocol, _) = PROTOCOLS[at];
    cx.service(load_balancer(name).named_port("odd", PORT, protocol)).await
}

/// The protocols for which load balancers have the port.
fn carried(held: &Inventory) -> impl Iterator<Item = &str> {
    let frontends = held.load_balancers.iter().flat_map(|lb| &lb.frontends);
    frontends.filter(|frontend| frontend.port == PORT).map(|frontend| frontend.protocol.as_str())
}

fn not_misread(protocol: &'static str) -> Matcher<Inventory> {
    holds(format!("carries a port of {protocol} as no other"), move |held: &Inventory| {
        carried(held).all(|other| other == protocol)
    })
    .expecting(format!("no frontend of port {PORT}, or one of {protocol}"))
}

async fn does_not_misread(cx: &CheckCx, at: usize) -> Verdict {
    cx.service(load_balancer("plain").port(80)).await?.provisioned().await?;
    let odd = asking_for(cx, at).await?;
    odd.balancer().keeps(not_misread(PROTOCOLS[at].1)).within(cx.limits().watch()).await?;
    odd.delete().await?;
    odd.becomes(gone()).within(cx.limits().load_balancer()).await?;
    odd.balancer().becomes(nothing_left()).await
}

/// Matches a warning, or a load balancer that has the port with this protocol.
fn reported_or_carried(protocol: &'static str) -> Matcher<(Vec<Event>, Inventory), bool> {
    matcher("are a warning", move |(events, held): &(Vec<Event>, Inventory)| {
        if carried(held).any(|known| known == protocol) {
            return Observation::Matched(true);
        }
        match warns().matches(events) {
            Observation::Matched(()) => Observation::Matched(false),
            Observation::Pending(why) => Observation::Pending(why),
            Observation::Impossible(why) => Observation::Impossible(why),
        }
    })
    .expecting(format!("an Event of type Warning, or a frontend of {protocol}"))
}

async fn tells_of_it(cx: &CheckCx, at: usize) -> Verdict {
    let odd = asking_for(cx, at).await?;
    let limit = cx.limits().event().max(cx.limits().load_balancer());
    let (events, balancer) = (odd.events(), odd.balancer());
    let outcome = reported_or_carried(PROTOCOLS[at].1);
    let more = (&events, &balancer).becomes(outcome).within(limit).await?;
    if more {
        cx.record("more-than-declared", PROTOCOLS[at].1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_verbose_answer_lists_health_checks_whether_they_are_well_or_not() {
        let text =
            "[+]leaderElection ok\n[-]service-lb-controller failed: reason withheld\nhealthz check failed\n";
        assert_eq!(listed(text), BTreeSet::from(["leaderElection", "service-lb-controller"]));
    }

    #[test]
    fn a_port_is_misread_only_as_another_protocol() {
        let held = |frontends: serde_json::Value| -> Inventory {
            let lb = json!({"id": "lb", "name": "lb", "owner": "o", "frontends": frontends, "backends": [], "addresses": [],
                            "source_ranges": [], "session_affinity": "None", "state": "active"});
            let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [], "routes": []});
            serde_json::from_value(all).expect("an inventory")
        };
        let frontend =
            |protocol: &str| held(json!([{"port": 53, "protocol": protocol, "node_port": 30_053}]));
        for fine in [held(json!([])), frontend("UDP")] {
            assert_eq!(not_misread("UDP").matches(&fine), Observation::Matched(()));
        }
        assert_eq!(not_misread("UDP").matches(&frontend("TCP")), Observation::when(false));
        assert_eq!(
            reported_or_carried("UDP").matches(&(Vec::new(), frontend("UDP"))),
            Observation::Matched(true)
        );
        assert_eq!(
            reported_or_carried("UDP").matches(&(Vec::new(), frontend("TCP"))),
            Observation::Pending(String::new())
        );
    }
}
