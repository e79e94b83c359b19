//! Routes of the cloud's network, each identified by its destination network.

use super::cloud::absent_is_fine;
use super::undo_steps::Undo;
use super::{CheckCx, Machine, Subject, Target};
use harness_clouds::{Entry, Instance, Op, Route};
use harness_clusters::Operation;
use harness_config::RouteTrigger;
use harness_core::check::{CheckError, SubjectName, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, holds, matcher};
use harness_session::POD_NETWORKS;
use ipnet::IpNet;
use std::net::IpAddr;

/// How much longer the prefix of a check's own pod network is than that of the enclosing network.
const PART: u8 = 12;
/// How many of these a check has for itself while others run.
const PARTS_OF_A_CHECK: u32 = 4;
/// This many of the 2048 parts are for regular checks; the rest is for a check that runs alone.
const PARTS_OF_ALL: u32 = 1536;

/// A network that can be the destination of routes. Reads as the routes to it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.machine(machine("a")).await?;
/// let network = cx.pod_network(0)?;
/// cx.node(machine.node().pod_cidrs(&[&network.cidr()])).await?;
/// network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Destination<'a> {
    cx: &'a CheckCx,
    network: IpNet,
}

impl<'a> Destination<'a> {
    /// It in CIDR notation.
    pub fn cidr(&self) -> String {
        self.network.to_string()
    }

    /// The target of faults and barriers for calls that name it.
    pub fn cloud(&self) -> Target<'a> {
        Target { cx: self.cx, about: self.name(), names: vec![self.cidr()] }
    }

    /// Creates a route to it in the cloud, without a CCM: to a machine, or into a black hole. It is removed when the
    /// check ends.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn is_routed(&self, to: Option<&Machine<'_>>) -> Result<Route, CheckError> {
        let machine = to.map(Machine::instance);
        let addresses = machine.iter().flat_map(|machine| &machine.addresses);
        let internal = addresses.filter(|address| address.kind == "InternalIP");
        let route = Route {
            id: String::new(),
            destination: self.cidr(),
            target_addresses: internal.map(|address| address.address.clone()).collect(),
            target_instance: machine.as_ref().map(|machine| machine.id.clone()),
            blackhole: machine.is_none(),
        };
        let put = self.cx.cloud.put_route(&route).await?;
        self.cx.on_end(Undo::Route(put.id.clone()));
        Ok(put)
    }

    /// Whether it is the destination of a route.
    fn is_of(&self, route: &Route) -> bool {
        route.destination.parse::<IpNet>().is_ok_and(|network| network.trunc() == self.network)
    }
}

impl Subject for Destination<'_> {
    type Snapshot = Vec<Route>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the network", name: self.cidr(), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<Vec<Route>, ReadError> {
        let mut routes = self.cx.inventory().await?.routes;
        routes.retain(|route| self.is_of(route));
        Ok(routes)
    }

    fn concerns(&self, call: &Entry) -> bool {
        matches!(call.op, Op::RouteList | Op::RouteCreate | Op::RouteDelete)
    }
}

/// There is one route to it, and it targets that machine; returns the route.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, network: &Destination<'_>, machine: &Machine<'_>) -> Verdict {
/// let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
/// let route = leads.when("once its Node has joined").await?;
/// cx.record("route", route.id);
/// # Ok(()) }
/// ```
pub fn leads_to(machine: &Instance) -> Matcher<Vec<Route>, Route> {
    let id = machine.id.clone();
    let expected = format!("one route, to instance {id}");
    matcher("targets its Node's machine", move |routes: &Vec<Route>| match routes.as_slice() {
        [route] if route.target_instance.as_ref() == Some(&id) && !route.blackhole => {
            Observation::Matched(route.clone())
        }
        _ => Observation::Pending(String::new()),
    })
    .expecting(expected)
}

/// There is one route to it, and it is this one, unchanged.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, network: &Destination<'_>, machine: &Machine<'_>) -> Verdict {
/// let route = network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
/// network.keeps(keeps_route(&route)).within(cx.limits().quiet_routes()).await
/// # }
/// ```
pub fn keeps_route(route: &Route) -> Matcher<Vec<Route>> {
    let (route, expected) = (route.clone(), route.observed());
    holds("keeps its route", move |routes: &Vec<Route>| matches!(routes.as_slice(), [one] if *one == route))
        .expecting(expected)
}

/// There is no route to it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, network: &Destination<'_>, node: &Node<'_>) -> Verdict {
/// node.delete().await?;
/// network.becomes(has_no_route()).within(cx.limits().route()).when("once its Node is gone").await
/// # }
/// ```
pub fn has_no_route() -> Matcher<Vec<Route>> {
    holds("has no route", |routes: &Vec<Route>| routes.is_empty()).expecting("none")
}

impl CheckCx {
    /// A network in CIDR notation, as a destination of routes.
    ///
    /// # Errors
    /// When the text is not a network.
    pub fn destination(&self, cidr: &str) -> Result<Destination<'_>, CheckError> {
        let network: IpNet = cidr
            .parse()
            .map_err(|_| CheckError::Error(format!("'{cidr}' is not a network in CIDR notation")))?;
        Ok(Destination { cx: self, network: network.trunc() })
    }

    /// The smallest network around the first of the CCM's cluster networks that does not begin or end within one of them,
    /// if there is one.
    ///
    /// # Errors
    /// When the CCM's arguments name none.
    pub fn around_pod_networks(&self) -> Result<Option<Destination<'_>>, CheckError> {
        let all = self.cluster_networks()?;
        let around = all.first().and_then(|first| around(*first, &all));
        Ok(around.map(|network| Destination { cx: self, network }))
    }

    /// This check's own pod network with this number, counted from 0: a part of the first of the CCM's cluster networks
    /// that the cluster assigns to no Node. The first 4 are its own. A check that runs alone has 512 more, separate from
    /// the first ones of later checks: the CCM may still be removing their routes.
    ///
    /// # Errors
    /// When the CCM's arguments name none.
    pub fn pod_network(&self, nth: u32) -> Result<Destination<'_>, CheckError> {
        let all = self.cluster_networks()?;
        let first =
            all.first().ok_or_else(|| CheckError::Error("--cluster-cidr of the CCM is empty".to_owned()))?;
        self.part_of(*first, nth)
    }

    /// Like [`CheckCx::pod_network`], with one of each IP family.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] if the CCM manages routes of only one family.
    pub fn pod_networks_of_both_families(&self) -> Result<Vec<Destination<'_>>, CheckError> {
        let all = self.cluster_networks()?;
        let has = |v4: bool| all.iter().any(|network| network.addr().is_ipv4() == v4);
        if !has(true) || !has(false) {
            let why = "--cluster-cidr of the CCM names networks of one IP family only".to_owned();
            return Err(CheckError::NotObservable(why));
        }
        all.into_iter().map(|network| self.part_of(network, 0)).collect()
    }

    /// Prevents the cluster from assigning pod networks to new Nodes until the check ends. This affects all new Nodes, so
    /// a check that uses it must run alone.
    ///
    /// # Errors
    /// When the cluster does not do it.
    pub async fn pod_networks_are_withheld(&self) -> Result<(), CheckError> {
        self.on_end(Undo::PodCidrs);
        let withheld = self.session.cluster().operate(Operation::PodCidrs { withheld: true }).await;
        withheld.map_err(|error| CheckError::Error(chain(&error)))
    }

    pub(super) async fn undo_pod_cidrs(&self) -> Result<(), String> {
        let given = self.session.cluster().operate(Operation::PodCidrs { withheld: false }).await;
        given.map_err(|error| chain(&error))
    }

    /// Triggers a reconciliation of the CCM's routes.
    pub fn route_trigger(&self) -> RouteTrigger {
        self.session.plan().profile.capabilities.route_trigger
    }

    /// The CCM's cluster networks, as its arguments say; without a deployed CCM, those that the harness would fill in.
    fn cluster_networks(&self) -> Result<Vec<IpNet>, CheckError> {
        let said = self.session.ccm().flag("cluster-cidr");
        let said = match &said {
            Some(said) => said.split(',').collect(),
            None => POD_NETWORKS.to_vec(),
        };
        let networks = said.into_iter().map(|cidr| cidr.trim().parse::<IpNet>());
        networks
            .collect::<Result<_, _>>()
            .map_err(|error| CheckError::Error(format!("--cluster-cidr of the CCM: {error}")))
    }

    fn part_of(&self, whole: IpNet, nth: u32) -> Result<Destination<'_>, CheckError> {
        let number = match nth.checked_sub(PARTS_OF_A_CHECK) {
            None => self.network.number() * PARTS_OF_A_CHECK % PARTS_OF_ALL + nth,
            Some(more) => PARTS_OF_ALL + more,
        };
        let network = part(whole, number).ok_or_else(|| {
            CheckError::Error(format!("--cluster-cidr of the CCM: {whole} has no free range"))
        })?;
        Ok(Destination { cx: self, network })
    }

    pub(super) async fn undo_route(&self, id: &str) -> Result<(), String> {
        absent_is_fine(self.cloud.remove_route(id).await)
    }
}

/// A small part of the upper half of a network; Nodes get networks from the lower half first. Numbers repeat after 2048.
fn part(whole: IpNet, number: u32) -> Option<IpNet> {
    let half = 1_u32 << (PART - 1);
    let prefix = whole.prefix_len().checked_add(PART)?;
    whole.subnets(prefix).ok()?.nth((half + number % half) as usize)
}

/// The smallest network around that one whose first and last address are not in any of these.
fn around(one: IpNet, all: &[IpNet]) -> Option<IpNet> {
    let is_within = |end: IpAddr| all.iter().any(|network| network.contains(&end));
    std::iter::successors(one.supernet(), IpNet::supernet)
        .take_while(|wide| wide.prefix_len() > 0)
        .find(|wide| !is_within(wide.network()) && !is_within(wide.broadcast()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn net(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    #[test]
    fn parts_are_of_the_upper_half_and_their_own() {
        for whole in ["10.244.0.0/16", "fd00:10:244::/56"].map(net) {
            let parts: BTreeSet<IpNet> =
                (0..2048).map(|number| part(whole, number).expect("a part")).collect();
            assert_eq!(parts.len(), 2048);
            let lower = whole.subnets(whole.prefix_len() + 1).expect("halves").next().expect("the lower one");
            assert!(parts.iter().all(|part| whole.contains(part) && !lower.contains(part)));
        }
        assert_eq!(part(net("10.244.0.0/16"), 0), Some(net("10.244.128.0/28")));
        assert_eq!(part(net("10.244.0.0/24"), 0), None);
    }

    #[test]
    fn an_enclosing_range_has_no_end_in_the_network() {
        let all = ["10.244.0.0/16", "fd00:10:244::/56"].map(net);
        assert_eq!(around(all[0], &all), Some(net("10.240.0.0/13")));
        assert_eq!(around(all[1], &all), Some(net("fd00:10:240::/45")));
        assert_eq!(around(net("10.0.0.0/8"), &[net("10.0.0.0/8")]), Some(net("8.0.0.0/6")));
        assert_eq!(around(net("0.0.0.0/8"), &[net("0.0.0.0/8")]), None);
    }

    fn route(to: Option<&str>, blackhole: bool) -> Route {
        let target_instance = to.map(str::to_owned);
        let (id, destination) = ("r-1".to_owned(), "10.244.0.0/24".to_owned());
        Route { id, destination, target_instance, target_addresses: Vec::new(), blackhole }
    }

    #[test]
    fn a_network_leads_to_a_machine_by_one_route_that_drops_nothing() {
        let machine = |id: &str| {
            let json = serde_json::json!({"id": id, "name": id, "instance_type": "", "addresses": [], "state": "running"});
            serde_json::from_value::<Instance>(json).expect("an instance")
        };
        let right = route(Some("a"), false);
        assert_eq!(
            leads_to(&machine("a")).matches(&vec![right.clone()]),
            Observation::Matched(right.clone())
        );
        for other in [
            vec![],
            vec![route(Some("a"), true)],
            vec![route(None, true)],
            vec![right.clone(), right.clone()],
        ] {
            assert_eq!(leads_to(&machine("a")).matches(&other), Observation::Pending(String::new()));
            assert_eq!(keeps_route(&right).matches(&other), Observation::when(false));
        }
        assert_eq!(
            leads_to(&machine("b")).matches(&vec![right.clone()]),
            Observation::Pending(String::new())
        );
        assert_eq!(keeps_route(&right).matches(&vec![right.clone()]), Observation::Matched(()));
        assert_eq!(has_no_route().matches(&vec![right]), Observation::when(false));
    }
}
