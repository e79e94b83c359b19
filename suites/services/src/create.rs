//! Creation and status (contract SVC-CREATE).

use super::needs::{LB, LB_SCTP, LB_TO_NODES, LB_UDP, NODES_BEHIND_LB};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-CREATE-01", |cx| Box::pin(persists_the_finalizer_first(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
    Check::of("SVC-CREATE-02", |cx| Box::pin(publishes_addresses(cx))).without_machines().needs(LB),
    Check::of("SVC-CREATE-03", |cx| Box::pin(waits_for_an_address(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(8),
    Check::of("SVC-CREATE-05", |cx| Box::pin(has_every_port(cx))).without_machines().needs(LB),
    Check::of("SVC-CREATE-05.udp", |cx| Box::pin(has_udp_port(cx))).without_machines().needs(LB_UDP),
    Check::of("SVC-CREATE-05.sctp", |cx| Box::pin(has_sctp_port(cx))).without_machines().needs(LB_SCTP),
    Check::of("SVC-CREATE-06", |cx| Box::pin(has_eligible_backends(cx))).needs(NODES_BEHIND_LB),
    Check::of("SVC-CREATE-08", |cx| Box::pin(checks_local_health(cx))).without_machines().needs(LB_TO_NODES),
];

async fn persists_the_finalizer_first(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let creation = web.cloud().holds(&[Op::LbCreate, Op::AuxCreate]).await?;
    web.wants_a_balancer().await?;
    creation.is_reached_unless(web.is_served()).await?;
    web.is(keeps_finalizer()).await?;
    creation.release().await?;
    web.provisioned().await?;
    Ok(())
}

async fn publishes_addresses(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let lb = web.gets_published().await?;
    web.keeps(publishes(&lb)).await
}

/// Matches a Service that publishes no ingress while its load balancer has no address.
fn published_in_time() -> Matcher<(Option<Arc<Service>>, Inventory)> {
    let nothing = publishes_nothing();
    matcher("publishes nothing before the load balancer has an address", {
        move |(service, held): &(Option<Arc<Service>>, Inventory)| {
            let addressed = held.load_balancers.iter().any(|lb| !lb.addresses.is_empty());
            if addressed { Observation::Matched(()) } else { nothing.matches(service) }
        }
    })
}

async fn waits_for_an_address(cx: &CheckCx) -> Verdict {
    let provisioning = Duration::from_secs(6);
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    web.cloud().provisions_for(provisioning).to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    let balancer = web.balancer();
    balancer.becomes(at_least_one()).await?;
    (&web, &balancer).keeps(published_in_time()).within(provisioning - Duration::from_secs(1)).await?;
    // The next try comes after a back-off or after a pause that the provider requests (contract SVC-ERR-02).
    let limit = provisioning + cx.limits().service_after(3);
    let lb = balancer.becomes(one_active()).within(limit).await?;
    web.becomes(publishes(&lb)).within(limit).when("without anybody's help").await
}

async fn has_every_port(cx: &CheckCx) -> Verdict {
    has_all(cx, &[("http", 80, "TCP"), ("tls", 443, "TCP"), ("alt", 8443, "TCP")]).await
}

async fn has_udp_port(cx: &CheckCx) -> Verdict {
    has_all(cx, &[("dns", 53, "UDP")]).await
}

async fn has_sctp_port(cx: &CheckCx) -> Verdict {
    has_all(cx, &[("signals", 2905, "SCTP")]).await
}

async fn has_all(cx: &CheckCx, ports: &[(&str, u16, &str)]) -> Verdict {
    let plan = ports
        .iter()
        .fold(load_balancer("web"), |plan, (name, port, protocol)| plan.named_port(name, *port, protocol));
    let web = cx.service(plan).await?;
    let ports = web.spec().await?.ports.unwrap_or_default();
    let targets = cx.balancers_target();
    // The Pods decide which of their ports is behind a port of a Service.
    let target = |port: u16, node_port: u16| match targets {
        Targets::NodePorts | Targets::Pool => Some(node_port),
        Targets::ServicePorts => Some(port),
        Targets::Pods => None,
    };
    let number = |port: i32| u16::try_from(port).unwrap_or_default();
    let wanted: BTreeSet<(u16, String, Option<u16>)> = ports
        .into_iter()
        .map(|p| {
            (number(p.port), p.protocol.unwrap_or_default(), p.node_port.map(number).unwrap_or_default())
        })
        .map(|(port, protocol, node_port)| (port, protocol, target(port, node_port)))
        .collect();
    let shown = wanted.iter().map(|(port, protocol, to)| match to {
        Some(to) => format!("{port}/{protocol} to {to}"),
        None => format!("{port}/{protocol}"),
    });
    let expected = format!("frontends {}", shown.collect::<Vec<_>>().join(", "));
    let every_port =
        one_balancer("has every port of the Service as a frontend, and nothing else", move |lb| {
            let seen = |f: &Frontend| {
                (f.port, f.protocol.clone(), (targets != Targets::Pods).then_some(f.node_port))
            };
            lb.frontends.iter().map(seen).collect::<BTreeSet<_>>() == wanted
        });
    web.balancer().becomes(every_port.expecting(expected)).within(cx.limits().load_balancer()).await
}

/// The ids of all machines whose Nodes load balancers may use.
fn eligible_machines(nodes: &[Arc<Node>], machines: &[Instance]) -> BTreeSet<String> {
    let eligible = nodes.iter().filter(|node| {
        let going = node.metadata.deletion_timestamp.is_some();
        // How a label that reads as false is treated is checked by SVC-NODES-04.
        let reads_as_false = ["false", "False", "FALSE", "f", "F", "0"];
        let excluded =
            node.labels().get(L_EXCL).is_some_and(|value| !reads_as_false.contains(&value.as_str()));
        !going && !excluded && !has_taint(node, T_TO_BE_DELETED)
    });
    let of_node = |node: &Arc<Node>| {
        let (name, id) = (node.name_any(), provider_id(node));
        let its = |machine: &&Instance| machine.name == name || (id.is_some() && machine.provider_id == id);
        machines.iter().filter(its).map(|machine| machine.id.clone()).collect::<Vec<String>>()
    };
    eligible.flat_map(of_node).collect()
}

async fn has_eligible_backends(cx: &CheckCx) -> Verdict {
    // Three Nodes of the check's own: an ordinary one, one excluded by label, and one that is cordoned and
    // NotReady but still eligible.
    let usual = cx.machine(machine("usual")).await?;
    let excluded = cx.machine(machine("excluded")).await?;
    let cordoned = cx.machine(machine("cordoned")).await?;
    let unfit = cordoned.node().backend().unschedulable().ready(Ready::False);
    for plan in [usual.node().backend(), excluded.node().label(L_EXCL, "true"), unfit] {
        cx.node(plan).await?.becomes(initialised()).await?;
    }
    let stable = cx.framework_has(27);
    let web = cx.service(load_balancer("web").port(80)).await?;
    let (yes, also, no) = (usual.instance(), cordoned.instance(), excluded.instance());
    let expected = format!("backends with {} and {}, without {}", yes.id, also.id, no.id);
    let eligible = one_balancer("has the eligible Nodes as backends", move |lb| {
        targets(lb, &yes) && (!stable || targets(lb, &also)) && !reaches(lb, &no)
    });
    web.balancer().becomes(eligible.expecting(expected)).within(cx.limits().load_balancer()).await?;
    let strays = Strays { balancer: web.balancer() };
    let none = holds("has no other backends", |strays: &Vec<String>| strays.is_empty());
    strays.becomes(none.expecting("machines of eligible Nodes and nothing else")).await
}

/// Backends that are not machines of eligible Nodes. Nodes of other checks come and go, so the load balancer
/// may lag behind.
struct Strays<'a> {
    balancer: Balancer<'a>,
}

impl Subject for Strays<'_> {
    type Snapshot = Vec<String>;

    fn cx(&self) -> &CheckCx {
        self.balancer.cx()
    }

    fn name(&self) -> SubjectName {
        self.balancer.name()
    }

    async fn read(&self, reach: ReadSource) -> Result<Vec<String>, ReadError> {
        let machines = self.cx().cloud().read(reach).await?.instances;
        let held = self.balancer.read(reach).await?;
        let eligible = eligible_machines(&self.cx().all_nodes()?, &machines);
        let backends = held.load_balancers.into_iter().flat_map(|lb| lb.backends);
        // A backend may be given as the address of a machine.
        let addresses = machines.iter().filter(|machine| eligible.contains(&machine.id));
        let addresses: BTreeSet<String> =
            addresses.flat_map(|machine| machine.addresses.iter().map(|a| a.address.clone())).collect();
        Ok(backends.filter(|one| !eligible.contains(one) && !addresses.contains(one)).collect())
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.balancer.concerns(call)
    }
}

async fn checks_local_health(cx: &CheckCx) -> Verdict {
    let local = load_balancer("web").port(80).with(|s| s.external_traffic_policy = Some("Local".to_owned()));
    let web = cx.service(local).await?;
    let port = web.spec().await?.health_check_node_port.unwrap_or_default() as u16;
    let asks = one_balancer("asks kube-proxy whether a Node has endpoints", move |lb| {
        lb.health_check
            .as_ref()
            .is_some_and(|h| h.protocol == "HTTP" && h.path == "/healthz" && h.port == port)
    });
    let asks = asks.expecting(format!("health check HTTP /healthz on port {port}"));
    web.balancer().becomes(asks).within(cx.limits().load_balancer()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_is_early_only_while_the_balancer_has_none() {
        let service = |ingress: serde_json::Value| {
            serde_json::from_value::<Service>(json!({"status": {"loadBalancer": {"ingress": ingress}}}))
                .ok()
                .map(Arc::new)
        };
        let held = |addresses: serde_json::Value| -> Inventory {
            let lb = json!({"id": "a", "name": "a", "frontends": [], "backends": [], "addresses": addresses, "state": "active"});
            let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [], "routes": []});
            serde_json::from_value(all).expect("an inventory")
        };
        let address = || json!([{"ip": "203.0.113.1"}]);
        for (published, has, expected) in [
            (json!([]), json!([]), true),
            (address(), address(), true),
            (json!([]), address(), true),
            (address(), json!([]), false),
        ] {
            let seen = (service(published), held(has));
            assert_eq!(published_in_time().matches(&seen), Observation::when(expected));
        }
        assert_eq!(published_in_time().matches(&(None, held(json!([])))), Observation::when(false));
    }

    #[test]
    fn machines_of_excluded_nodes_and_of_none_are_not_eligible() {
        let machine = |id: &str, name: &str| -> Instance {
            serde_json::from_value(json!({"id": id, "name": name, "provider_id": format!("p://{id}")}))
                .expect("an instance")
        };
        let node = |value| -> Arc<Node> { Arc::new(serde_json::from_value(value).expect("a Node")) };
        let nodes = [
            node(json!({"metadata": {"name": "by-name"}})),
            node(json!({"metadata": {"name": "n"}, "spec": {"providerID": "p://by-id"}})),
            node(json!({"metadata": {"name": "out", "labels": {L_EXCL: ""}}})),
            node(json!({"metadata": {"name": "in", "labels": {L_EXCL: "false"}}})),
            node(json!({"metadata": {"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        ];
        let machines = ["by-name", "by-id", "out", "in", "going", "nobody"]
            .map(|id| machine(id, &id.replace("by-id", "x")));
        let found: Vec<String> = eligible_machines(&nodes, &machines).into_iter().collect();
        assert_eq!(found, ["by-id", "by-name", "in"]);
    }
}
