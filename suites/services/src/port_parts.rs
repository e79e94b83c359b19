//! After each edit of the ports, the firewall and the health checks of the load balancer follow, as its
//! listeners do (contract SVC-UPD-12). The checks form a matrix of edits and of parts that are examined.

use super::needs::LB_TO_NODES;
use super::update::{TRIES, other_node_port};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::ServicePort;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An edit of the ports of a Service that has 80 and 443.
#[derive(Clone, Copy)]
pub(super) enum Edit {
    /// 80 becomes 8080.
    Port,
    /// The node port behind 80 becomes another one.
    NodePort,
    /// 8443 is added.
    More,
    /// 443 is removed.
    Fewer,
}

/// The part that is examined.
#[derive(Clone, Copy)]
enum Look {
    Firewall,
    HealthCheck,
}

struct Cell {
    claim: &'static str,
    edit: Edit,
    look: Look,
}

const fn cell(claim: &'static str, edit: Edit, look: Look) -> Cell {
    Cell { claim, edit, look }
}

static MATRIX: [Cell; 7] = [
    cell("firewall-port", Edit::Port, Look::Firewall),
    cell("firewall-node-port", Edit::NodePort, Look::Firewall),
    cell("firewall-more", Edit::More, Look::Firewall),
    cell("firewall-fewer", Edit::Fewer, Look::Firewall),
    cell("check-port", Edit::Port, Look::HealthCheck),
    cell("check-node-port", Edit::NodePort, Look::HealthCheck),
    cell("check-more", Edit::More, Look::HealthCheck),
];

pub(super) const CHECKS: [Check; MATRIX.len()] = {
    let (mut checks, mut at) = ([check(0); MATRIX.len()], 1);
    while at < MATRIX.len() {
        checks[at] = check(at);
        at += 1;
    }
    checks
};

const fn check(at: usize) -> Check {
    let id = CheckId::of_claim("SVC-UPD-12", MATRIX[at].claim);
    let check = Check::row(id, |cx, at| Box::pin(follows(cx, &MATRIX[at])), at);
    check.without_machines().needs(LB_TO_NODES).by_calls()
}

async fn follows(cx: &CheckCx, cell: &'static Cell) -> Verdict {
    let by_node_port = cx.balancers_target().use_node_ports();
    if matches!(cell.edit, Edit::NodePort) && !by_node_port {
        return Err(CheckError::NotObservable("its load balancers send no traffic to node ports".to_owned()));
    }
    let web = cx.service(load_balancer("web").port(80).port(443)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    let old = Ports::of(&web).await?;
    let held = web.balancer().read(ReadSource::Origin).await?;
    edit(&web, cell.edit).await?;
    let new = Ports::of(&web).await?;
    let right = match cell.look {
        Look::Firewall => {
            // A firewall opens either the ports that clients connect to, or those of the Nodes behind.
            let opened = openings(&held);
            let by_node_port = !opened.is_empty() && opened.is_subset(&old.node_ports());
            cx.record("firewall", if opened.is_empty() { "none that lists ports" } else { "lists ports" });
            let wanted = match (opened.is_empty(), by_node_port) {
                (true, _) => BTreeSet::new(),
                (false, true) => new.node_ports(),
                (false, false) => new.ports(),
            };
            let expected =
                format!("a firewall that opens {} and nothing else, where one lists ports", listed(&wanted));
            no_other_than(&before, "opens the ports of its Service", move |held| openings(held) == wanted)
                .expecting(expected)
        }
        Look::HealthCheck => {
            let expected = format!(
                "frontends {}, no health check at {}, and a port's own health check at no other port's node port",
                listed(&new.ports()),
                listed(&old.gone(&new)),
            );
            no_other_than(&before, "checks what its Service has", move |held| {
                listens(held) == new.ports() && misdirected(held, &old, &new).is_empty()
            })
            .expecting(expected)
        }
    };
    web.balancer().becomes(right).await
}

/// Port and node port of each port of a Service.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ports(Vec<(u16, u16)>);

impl Ports {
    pub(super) async fn of(web: &Service<'_>) -> Result<Ports, CheckError> {
        let number = |port: Option<i32>| port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
        let ports = web.spec().await?.ports.unwrap_or_default();
        Ok(Ports(ports.iter().map(|port| (number(Some(port.port)), number(port.node_port))).collect()))
    }

    pub(super) fn ports(&self) -> BTreeSet<u16> {
        self.0.iter().map(|(port, _)| *port).collect()
    }

    fn node_ports(&self) -> BTreeSet<u16> {
        self.0.iter().map(|(_, node_port)| *node_port).filter(|port| *port != 0).collect()
    }

    /// The node ports that no longer exist.
    fn gone(&self, new: &Ports) -> BTreeSet<u16> {
        self.node_ports().difference(&new.node_ports()).copied().collect()
    }

    fn node_port_of(&self, port: u16) -> Option<u16> {
        self.0.iter().find(|(own, _)| *own == port).map(|(_, node_port)| *node_port)
    }
}

/// Formats ports for a message.
pub(super) fn listed(ports: &BTreeSet<u16>) -> String {
    let texts: Vec<String> = ports.iter().map(u16::to_string).collect();
    if texts.is_empty() { "no port".to_owned() } else { texts.join(", ") }
}

/// The ports that the firewalls of a load balancer open.
fn openings(held: &Inventory) -> BTreeSet<u16> {
    let of_firewalls = held.auxiliaries.iter().filter(|aux| aux.kind.contains("firewall"));
    let ports = of_firewalls.flat_map(|aux| aux.spec["ports"].as_array().into_iter().flatten());
    let number = |port: &Value| port.as_u64().or_else(|| port["port"].as_u64());
    ports.filter_map(number).filter_map(|port| u16::try_from(port).ok()).collect()
}

pub(super) fn listens(held: &Inventory) -> BTreeSet<u16> {
    held.load_balancers.iter().flat_map(|lb| lb.frontends.iter().map(|port| port.port)).collect()
}

/// The wrong ports of health checks: a node port that is gone, or that of another port.
fn misdirected(held: &Inventory, old: &Ports, new: &Ports) -> Vec<u16> {
    let gone = old.gone(new);
    let mut wrong = Vec::new();
    for lb in &held.load_balancers {
        let stale = |check: &&HealthCheck| gone.contains(&check.port);
        wrong.extend(lb.health_check.iter().filter(stale).map(|check| check.port));
        for port in &lb.frontends {
            let own = new.node_port_of(port.port);
            let astray = |check: &&HealthCheck| {
                let of_some_port = new.node_ports().contains(&check.port);
                stale(check) || (of_some_port && Some(check.port) != own)
            };
            wrong.extend(port.health_check.iter().filter(astray).map(|check| check.port));
        }
    }
    wrong
}

/// Edits the ports of a Service.
pub(super) async fn edit(web: &Service<'_>, edit: Edit) -> Verdict {
    let mut ports: Vec<ServicePort> = web.spec().await?.ports.unwrap_or_default();
    let patch = |ports: &[ServicePort]| json!({"spec": {"ports": ports}});
    match edit {
        Edit::Port => {
            let port = ports.iter_mut().find(|port| port.port == 80);
            if let Some(port) = port {
                (port.port, port.node_port, port.target_port) = (8080, None, None);
                port.name = Some("alt".to_owned());
            }
        }
        Edit::More => ports.push(ServicePort {
            name: Some("more".to_owned()),
            port: 8443,
            protocol: Some("TCP".to_owned()),
            ..ServicePort::default()
        }),
        Edit::Fewer => ports.retain(|port| port.port != 443),
        Edit::NodePort => {
            // Another Service may have the node port that is tried.
            let mut refused = None;
            for step in 1..=TRIES {
                let mut moved = ports.clone();
                if let Some(port) = moved.iter_mut().find(|port| port.port == 80) {
                    port.node_port = port.node_port.map(|old| other_node_port(old, step));
                }
                match web.patch(&patch(&moved)).await {
                    Ok(()) => return Ok(()),
                    Err(stop) => refused = Some(stop),
                }
            }
            return Err(refused.unwrap_or_else(|| CheckError::Error("no node port was tried".to_owned())));
        }
    }
    web.patch(&patch(&ports)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(frontends: Value, check: Value, ports: Value) -> Inventory {
        let lb = json!({"id": "a", "name": "a", "frontends": frontends, "backends": [], "addresses": [],
                        "state": "active", "health_check": check});
        let firewall = json!({"id": "f", "kind": "firewall", "name": "f", "spec": {"ports": ports}});
        let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [firewall], "routes": []});
        serde_json::from_value(all).expect("an inventory")
    }

    fn check(port: u16) -> Value {
        json!({"protocol": "TCP", "path": "", "port": port})
    }

    fn port(port: u16, node_port: u16, checked: Option<u16>) -> Value {
        json!({"port": port, "protocol": "TCP", "node_port": node_port, "health_check": checked.map(check)})
    }

    #[test]
    fn a_health_check_may_ask_at_its_own_node_port_or_elsewhere_and_not_at_one_that_is_gone() {
        let (old, new) = (Ports(vec![(80, 30080), (443, 30443)]), Ports(vec![(80, 30090), (443, 30443)]));
        let wrong =
            |frontends: Value, check: Value| misdirected(&held(frontends, check, json!([])), &old, &new);
        let each = json!([port(80, 30090, Some(30090)), port(443, 30443, Some(30443))]);
        assert!(wrong(each, json!(null)).is_empty());
        assert!(wrong(json!([port(80, 30090, None)]), check(10256)).is_empty());
        assert_eq!(wrong(json!([port(80, 30090, Some(30080))]), json!(null)), [30080], "gone");
        assert_eq!(wrong(json!([port(443, 30443, Some(30090))]), json!(null)), [30090], "another port's");
        assert_eq!(wrong(json!([port(80, 30090, None)]), check(30080)), [30080], "gone");
    }

    #[test]
    fn a_firewall_lists_ports_by_number_or_as_objects() {
        let of = |ports: Value| openings(&held(json!([]), json!(null), ports));
        assert_eq!(of(json!([80, 443])), BTreeSet::from([80, 443]));
        assert_eq!(of(json!([{"port": 80, "protocol": "TCP"}])), BTreeSet::from([80]));
        assert_eq!(of(json!(null)), BTreeSet::new());
    }
}
