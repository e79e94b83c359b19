//! After each edit of the ports the firewall and the health checks of the load balancer follow, as its listeners do (contract
//! SVC-UPD-12). A matrix: what is edited, what is looked at, and whether the edit fails at first.

use super::edits::EDIT_CALLS;
use super::needs::LB_TO_NODES;
use super::update::{TRIES, other_node_port};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::ServicePort;
use serde_json::json;
use suites_common::port_parts::{Edited, Ports, listed, listens, misdirected, openings};

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
enum PortPart {
    Firewall,
    HealthCheck,
}

struct Cell {
    claim: &'static str,
    edit: Edit,
    look: PortPart,
    /// Whether calls for the edit fail at first.
    fails: bool,
}

const fn cell(claim: &'static str, edit: Edit, look: PortPart) -> Cell {
    Cell { claim, edit, look, fails: false }
}

const fn failing(claim: &'static str, edit: Edit, look: PortPart) -> Cell {
    Cell { claim, edit, look, fails: true }
}

static MATRIX: [Cell; 9] = [
    cell("firewall-port", Edit::Port, PortPart::Firewall),
    cell("firewall-node-port", Edit::NodePort, PortPart::Firewall),
    cell("firewall-more", Edit::More, PortPart::Firewall),
    cell("firewall-fewer", Edit::Fewer, PortPart::Firewall),
    cell("check-port", Edit::Port, PortPart::HealthCheck),
    cell("check-node-port", Edit::NodePort, PortPart::HealthCheck),
    cell("check-more", Edit::More, PortPart::HealthCheck),
    failing("firewall-failed", Edit::Port, PortPart::Firewall),
    failing("check-failed", Edit::NodePort, PortPart::HealthCheck),
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
    let check = check.without_machines().needs(LB_TO_NODES).by_calls();
    if MATRIX[at].fails { check.with(&[Facility::Faults]).takes(6) } else { check }
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
    let refusals = match cell.fails {
        true => Some(web.cloud().fails().to(EDIT_CALLS).times(1).await?),
        false => None,
    };
    edit(&web, cell.edit).await?;
    let new = Ports::of(&web).await?;
    let edited = Edited::of(&held, old.clone(), new.clone());
    let right = || match cell.look {
        PortPart::Firewall => {
            let wanted = edited.openings().clone();
            let expected =
                format!("a firewall that opens {} and nothing else, where one lists ports", listed(&wanted));
            no_other_than(&before, "opens the ports of its Service", move |held| openings(held) == wanted)
                .expecting(expected)
        }
        PortPart::HealthCheck => {
            let expected = format!(
                "frontends {}, no health check at {}, and a port's own health check at no other port's node port",
                listed(&new.ports()),
                listed(&old.gone(&new)),
            );
            let (old, new) = (old.clone(), new.clone());
            no_other_than(&before, "checks what its Service has", move |held| {
                listens(held) == new.ports() && misdirected(held, &old, &new).is_empty()
            })
            .expecting(expected)
        }
    };
    cx.record("firewall", if openings(&held).is_empty() { "none that lists ports" } else { "lists ports" });
    let Some(refusals) = refusals else { return web.balancer().becomes(right()).await };
    refusals.hits_unless(1, web.balancer().is(right())).await?;
    let limit = cx.limits().service_after(2);
    web.balancer().becomes(right()).within(limit).when("though the edit failed at first").await
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
