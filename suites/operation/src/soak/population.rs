//! The Nodes and Services of a soak, and the expected state of each.

use super::plan::{Change, NODES, SERVICES};
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;

/// A machine that comes and goes, and its Node while it exists.
struct Seat<'a> {
    machine: Machine<'a>,
    node: Option<Node<'a>>,
}

/// A Service that comes and goes, by its name.
struct Stall<'a> {
    name: String,
    service: Option<Service<'a>>,
    port: u16,
}

/// The state that is expected.
enum Expected<'a> {
    Joined(&'a CheckCx, Node<'a>),
    LeftObjects(Node<'a>),
    Serves(Service<'a>, u16),
    Gone(Service<'a>),
}

/// All Nodes and Services.
pub(super) struct Population<'a> {
    cx: &'a CheckCx,
    seats: Vec<Seat<'a>>,
    stalls: Vec<Stall<'a>>,
    expected: Vec<Expected<'a>>,
}

impl<'a> Population<'a> {
    /// An empty population.
    pub(super) fn of(cx: &'a CheckCx) -> Population<'a> {
        let seats = (0..NODES).map(|number| {
            let machine = cx.absent_machine(machine(&format!("soak-{number}")));
            Seat { machine, node: None }
        });
        let stalls =
            (0..SERVICES).map(|number| Stall { name: format!("soak-{number}"), service: None, port: 80 });
        Population { cx, seats: seats.collect(), stalls: stalls.collect(), expected: Vec::new() }
    }

    /// Makes a change; its result is waited for later.
    pub(super) async fn meets(&mut self, change: Change) -> Result<(), CheckError> {
        let expected = match change {
            Change::Node(at) => self.seats[at].turns(self.cx).await?,
            Change::Service(at) => self.stalls[at].turns(self.cx).await?,
            Change::Port(at, port) => match self.stalls[at].moves_to(port).await? {
                Some(expected) => expected,
                None => return Ok(()),
            },
        };
        self.expected.push(expected);
        Ok(())
    }

    /// Gives a Service another port, an existing Service or a new one, so that the leader has to write.
    pub(super) async fn gives_work(&mut self, port: u16) -> Result<(), CheckError> {
        let at = self.stalls.iter().position(|stall| stall.service.is_some());
        let change = at.map_or(Change::Service(0), |at| {
            let served = self.stalls[at].port == port;
            Change::Port(at, if served { port + 1 } else { port })
        });
        self.meets(change).await
    }

    /// Waits until every change so far has had its effect, within `limit`.
    pub(super) async fn settles(&mut self, limit: Duration) -> Verdict {
        let expected = std::mem::take(&mut self.expected);
        futures::future::try_join_all(expected.iter().map(|one| one.comes_true(limit))).await.map(drop)
    }

    /// Waits until the CCM has finished all its work on these objects.
    pub(super) async fn rests(&self) -> Verdict {
        for service in self.stalls.iter().filter_map(|stall| stall.service.as_ref()) {
            service.rests().await?;
        }
        Ok(())
    }

    /// Checks that everything that exists is as expected.
    pub(super) async fn stands(&self, limit: Duration) -> Verdict {
        for seat in &self.seats {
            if let Some(node) = &seat.node {
                node.becomes(initialised()).within(limit).await?;
            }
        }
        for stall in &self.stalls {
            if let Some(service) = &stall.service {
                serves(service, stall.port, limit).await?;
                if self.cx.declares(Capability::NodeTargets) {
                    service.balancer().becomes(self.reaches_who_is_there()).within(limit).await?;
                }
            }
        }
        Ok(())
    }

    /// Matches load balancers that send traffic to the machines that exist, and to none that is gone.
    fn reaches_who_is_there(&self) -> Matcher<Inventory> {
        let all = self.seats.iter().map(|seat| (seat.machine.instance(), seat.node.is_some()));
        let all: Vec<(Instance, bool)> = all.collect();
        let there = all.iter().filter(|(_, there)| *there).map(|(machine, _)| machine.id.as_str());
        let expected =
            format!("backends {}, and no machine that is gone", there.collect::<Vec<_>>().join(", "));
        one_balancer("reaches the machines that are there and no other", move |lb| {
            all.iter()
                .all(|(machine, there)| if *there { targets(lb, machine) } else { !reaches(lb, machine) })
        })
        .expecting(expected)
    }
}

impl<'a> Seat<'a> {
    async fn turns(&mut self, cx: &'a CheckCx) -> Result<Expected<'a>, CheckError> {
        match self.node.take() {
            None => {
                self.machine.appears().await?;
                let plan = self.machine.node();
                let node = cx.node(if is_backend_at_once(cx) { plan.backend() } else { plan }).await?;
                self.node = Some(node.clone());
                Ok(Expected::Joined(cx, node))
            }
            Some(node) => {
                self.machine.delete().await?;
                node.set_ready(Ready::Unknown).await?;
                Ok(Expected::LeftObjects(node))
            }
        }
    }
}

impl<'a> Stall<'a> {
    async fn turns(&mut self, cx: &'a CheckCx) -> Result<Expected<'a>, CheckError> {
        match self.service.take() {
            None => {
                let service = cx.service(load_balancer(&self.name).port(self.port)).await?;
                self.service = Some(service.clone());
                Ok(Expected::Serves(service, self.port))
            }
            Some(service) => {
                service.delete().await?;
                Ok(Expected::Gone(service))
            }
        }
    }

    async fn moves_to(&mut self, port: u16) -> Result<Option<Expected<'a>>, CheckError> {
        let Some(service) = &self.service else { return Ok(None) };
        let ports = json!([{"name": "web", "port": port, "protocol": "TCP"}]);
        service.patch(&json!({"spec": {"ports": ports}})).await?;
        self.port = port;
        Ok(Some(Expected::Serves(service.clone(), port)))
    }
}

impl Expected<'_> {
    async fn comes_true(&self, limit: Duration) -> Verdict {
        match self {
            Expected::Joined(cx, node) => {
                node.becomes(initialised()).within(limit).await?;
                if !is_backend_at_once(cx) {
                    node.label(L_EXCL, None).await?;
                }
                Ok(())
            }
            Expected::LeftObjects(node) => {
                node.becomes(gone()).within(limit).when("after its machine was taken away").await
            }
            Expected::Serves(service, port) => serves(service, *port, limit).await,
            Expected::Gone(service) => {
                service.becomes(gone()).within(limit).await?;
                service.balancer().becomes(nothing_left()).within(limit).await
            }
        }
    }
}

/// Whether a Node that is initialised later becomes a backend at once: before framework 1.28 nothing looks at
/// it again.
fn is_backend_at_once(cx: &CheckCx) -> bool {
    cx.framework_has(28)
}

/// Waits until the Service has one published load balancer with this port only.
async fn serves(service: &Service<'_>, port: u16, limit: Duration) -> Verdict {
    let follows = one_balancer("is one and serves the port", move |lb| {
        matches!(lb.frontends.as_slice(), [only] if only.port == port) && !lb.addresses.is_empty()
    });
    let expected = format!("one load balancer with an address and one frontend, on port {port}");
    let balancer = service.balancer();
    balancer.becomes(follows.expecting(expected)).within(limit).await?;
    let inventory = balancer.read(ReadSource::Origin).await?;
    match inventory.load_balancers.first() {
        Some(lb) => service.becomes(publishes(lb)).within(limit).await,
        None => balancer.is(one_active()).await.map(drop),
    }
}
