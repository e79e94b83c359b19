//! A load balancer with its listeners, pools, members and monitors, in the form of the model's `details`.

use super::parts::{Fields, Kind, objects, part_id, port, text};
use super::services::{conflict, invalid, not_found};
use fake_cloud_driver::{Frontend, HealthCheck, LoadBalancer};
use fake_cloud_kit::Error;
use fake_cloud_model::LbSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// See the module.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Tree {
    /// The fields of the load balancer itself.
    pub(super) own: Fields,
    pub(super) listeners: Vec<Fields>,
    pub(super) pools: Vec<Pool>,
    /// The number of its last part.
    parts: u16,
}

/// A pool.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Pool {
    pub(super) own: Fields,
    pub(super) members: Vec<Fields>,
    pub(super) monitor: Option<Fields>,
}

impl Tree {
    /// The tree of a load balancer. Invalid details that a test has set are ignored.
    pub(super) fn of(lb: &LoadBalancer) -> Tree {
        Tree::deserialize(&lb.details).ok().filter(Tree::is_whole).unwrap_or_default()
    }

    fn is_whole(&self) -> bool {
        let pool = |pool: &Pool| {
            Kind::Pool.is_whole(&pool.own)
                && pool.members.iter().all(|member| Kind::Member.is_whole(member))
                && pool.monitor.iter().all(|monitor| Kind::Monitor.is_whole(monitor))
        };
        self.listeners.iter().all(|listener| Kind::Listener.is_whole(listener)) && self.pools.iter().all(pool)
    }

    /// The requested load balancer, with all parts in the request. The ids of its parts are not final yet:
    /// see [`Tree::belongs_to`].
    ///
    /// # Errors
    /// When a part of it is invalid.
    pub(super) fn new(request: &Fields) -> Result<Tree, Error> {
        let mut tree = Tree { own: Kind::LoadBalancer.make("", request)?, ..Tree::default() };
        for listener in objects(request, "listeners") {
            tree.add_listener("", &listener)?;
        }
        Ok(tree)
    }

    /// Sets the load balancer of all parts.
    pub(super) fn belongs_to(&mut self, balancer: &str) {
        let mine = |id: &mut Value| {
            if let Some(number) = id.as_str().and_then(|id| id.strip_prefix('.')?.parse().ok()) {
                *id = json!(part_id(balancer, number));
            }
        };
        let pools = self
            .pools
            .iter_mut()
            .flat_map(|pool| pool.members.iter_mut().chain(pool.monitor.as_mut()).chain([&mut pool.own]));
        for part in self.listeners.iter_mut().chain(pools) {
            part.get_mut("id").map(mine);
            part.get_mut("default_pool_id").map(mine);
        }
    }

    fn next(&mut self, balancer: &str) -> String {
        self.parts = self.parts.saturating_add(1);
        part_id(balancer, self.parts)
    }

    /// Adds a listener with all parts in the request; returns its id.
    ///
    /// # Errors
    /// When a part of it is invalid, or its port is taken.
    pub(super) fn add_listener(&mut self, balancer: &str, request: &Fields) -> Result<String, Error> {
        let id = self.next(balancer);
        let listener = Kind::Listener.make(&id, request)?;
        let (number, protocol) = (port(&listener, "protocol_port")?, protocol_of(&listener)?);
        let taken = |other: &Fields| {
            other["protocol_port"] == number && protocol_of(other).is_ok_and(|other| other == protocol)
        };
        if self.listeners.iter().any(taken) {
            let text =
                format!("Another Listener on this Load Balancer is already using protocol_port {number}");
            return Err(conflict(text));
        }
        check_ranges(&listener)?;
        self.listeners.push(listener);
        for pool in objects(request, "default_pool") {
            self.add_pool(balancer, Some(&id), &pool)?;
        }
        Ok(id)
    }

    /// Adds a pool, to a listener if one is named; returns its id.
    ///
    /// # Errors
    /// When a part of it is invalid, or the listener does not exist or already has a pool.
    pub(super) fn add_pool(
        &mut self,
        balancer: &str,
        listener: Option<&str>,
        request: &Fields,
    ) -> Result<String, Error> {
        let id = self.next(balancer);
        let own = Kind::Pool.make(&id, request)?;
        if let Some(listener) = listener {
            let listener = self.listener(listener)?;
            if listener["default_pool_id"].is_string() {
                return Err(conflict("This listener already has a default pool".to_owned()));
            }
            listener.insert("default_pool_id".to_owned(), json!(id));
        }
        let (mut members, mut monitor) = (Vec::new(), None);
        for member in objects(request, "members") {
            members.push(made_member(&self.next(balancer), &member)?);
        }
        for wanted in objects(request, "healthmonitor") {
            monitor = Some(made_monitor(&self.next(balancer), &wanted)?);
        }
        self.pools.push(Pool { own, members, monitor });
        Ok(id)
    }

    /// Replaces the members of a pool. A member with the address and port of an existing one keeps its id.
    ///
    /// # Errors
    /// When a part of them is invalid.
    pub(super) fn set_members(&mut self, balancer: &str, pool: &str, wanted: &[Fields]) -> Result<(), Error> {
        let present = self.pool(pool)?.members.clone();
        let mut members: Vec<Fields> = Vec::new();
        for request in wanted {
            let same = |member: &&Fields| {
                ["address", "protocol_port"].iter().all(|key| member.get(*key) == request.get(*key))
            };
            let id = match present.iter().find(same) {
                Some(known) => text(known, "id").to_owned(),
                None => self.next(balancer),
            };
            let member = made_member(&id, request)?;
            if members.iter().any(|other| {
                other["address"] == member["address"] && other["protocol_port"] == member["protocol_port"]
            }) {
                return Err(conflict(format!(
                    "Another member on this pool is already using ip {}",
                    member["address"]
                )));
            }
            members.push(member);
        }
        self.pool(pool)?.members = members;
        Ok(())
    }

    /// Adds a monitor to a pool; returns its id.
    ///
    /// # Errors
    /// When a part of it is invalid, or the pool already has one.
    pub(super) fn add_monitor(
        &mut self,
        balancer: &str,
        pool: &str,
        request: &Fields,
    ) -> Result<String, Error> {
        let id = self.next(balancer);
        let monitor = made_monitor(&id, request)?;
        let pool = self.pool(pool)?;
        if pool.monitor.is_some() {
            return Err(conflict("This pool already has a health monitor".to_owned()));
        }
        pool.monitor = Some(monitor);
        Ok(id)
    }

    /// A listener as a mutable reference.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn listener(&mut self, id: &str) -> Result<&mut Fields, Error> {
        let found = self.listeners.iter_mut().find(|listener| text(listener, "id") == id);
        found.ok_or_else(|| not_found("Listener", id))
    }

    /// A pool as a mutable reference.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn pool(&mut self, id: &str) -> Result<&mut Pool, Error> {
        let found = self.pools.iter_mut().find(|pool| text(&pool.own, "id") == id);
        found.ok_or_else(|| not_found("Pool", id))
    }

    /// The pool with this monitor.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn monitored(&mut self, monitor: &str) -> Result<&mut Pool, Error> {
        let has = |pool: &&mut Pool| pool.monitor.as_ref().is_some_and(|own| text(own, "id") == monitor);
        self.pools.iter_mut().find(has).ok_or_else(|| not_found("Health Monitor", monitor))
    }

    /// Removes a listener; its pool stays without one.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn remove_listener(&mut self, id: &str) -> Result<(), Error> {
        self.listener(id)?;
        self.listeners.retain(|listener| text(listener, "id") != id);
        Ok(())
    }

    /// Removes a pool with its members and its monitor.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn remove_pool(&mut self, id: &str) -> Result<(), Error> {
        self.pool(id)?;
        self.pools.retain(|pool| text(&pool.own, "id") != id);
        for listener in self.listeners.iter_mut().filter(|listener| text(listener, "default_pool_id") == id) {
            listener.insert("default_pool_id".to_owned(), Value::Null);
        }
        Ok(())
    }

    /// The listener's default pool.
    fn pool_behind(&self, listener: &Fields) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.own["id"] == listener["default_pool_id"])
    }

    fn frontend(&self, listener: &Fields) -> Option<Frontend> {
        let pool = self.pool_behind(listener)?;
        let members = &pool.members;
        let node_port = port(members.first()?, "protocol_port").ok()?;
        let backends = Some(addresses(members).into_iter().collect());
        let port = port(listener, "protocol_port").ok()?;
        let health_check = health_check(pool);
        Some(Frontend {
            backends,
            health_check,
            ..Frontend::new(port, protocol_of(listener).ok()?, node_port)
        })
    }

    /// The data for the model, which has one health check: that of the first pool with a member.
    ///
    /// # Errors
    /// When the details cannot be written, which never happens.
    pub(super) fn into_spec(self) -> Result<LbSpec, Error> {
        let backends = addresses(self.pools.iter().flat_map(|pool| &pool.members));
        let ranges: BTreeSet<String> = self.listeners.iter().flat_map(ranges).collect();
        let by_client = |pool: &Pool| pool.own["session_persistence"]["type"] == "SOURCE_IP";
        Ok(LbSpec {
            name: text(&self.own, "name").to_owned(),
            owner: owner(text(&self.own, "description")),
            frontends: self.listeners.iter().filter_map(|listener| self.frontend(listener)).collect(),
            backends: backends.into_iter().collect(),
            health_check: self.pools.iter().find_map(health_check),
            source_ranges: ranges.into_iter().collect(),
            session_affinity: if self.pools.iter().any(by_client) { "ClientIP" } else { "" }.to_owned(),
            details: serde_json::to_value(&self)?,
        })
    }
}

/// The addresses of members of pools.
fn addresses<'a>(members: impl IntoIterator<Item = &'a Fields>) -> BTreeSet<String> {
    members.into_iter().map(|member| text(member, "address").to_owned()).collect()
}

/// The owner of a load balancer or a floating IP, from its description: the CCM writes the Service into it.
pub(super) fn owner(description: &str) -> String {
    let named = description.split_once("Kubernetes external service ").map(|(_, rest)| rest);
    named
        .and_then(|rest| rest.split_once(" from cluster "))
        .map(|(service, _)| service.to_owned())
        .unwrap_or_default()
}

/// The protocol of a listener in the model.
fn protocol_of(listener: &Fields) -> Result<&'static str, Error> {
    match text(listener, "protocol") {
        "UDP" => Ok("UDP"),
        "SCTP" => Ok("SCTP"),
        "TCP" | "HTTP" | "HTTPS" | "TERMINATED_HTTPS" | "PROMETHEUS" => Ok("TCP"),
        other => Err(invalid(format!("Invalid input for field/attribute protocol. Value: '{other:.40}'"))),
    }
}

/// The client ranges that a listener admits; empty if it admits all clients.
fn ranges(listener: &Fields) -> Vec<String> {
    let listed = listener.get("allowed_cidrs").and_then(Value::as_array).into_iter().flatten();
    let listed: Vec<String> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
    if listed.iter().any(|range| range == "0.0.0.0/0" || range == "::/0") { Vec::new() } else { listed }
}

/// Checks the client ranges of a listener.
pub(super) fn check_ranges(listener: &Fields) -> Result<(), Error> {
    match ranges(listener).into_iter().find(|range| fake_cloud_model::parse_cidr(range).is_none()) {
        None => Ok(()),
        Some(range) => {
            Err(invalid(format!("Invalid input for field/attribute allowed_cidrs. Value: '{range:.80}'")))
        }
    }
}

fn made_member(id: &str, request: &Fields) -> Result<Fields, Error> {
    let member = Kind::Member.make(id, request)?;
    port(&member, "protocol_port")?;
    let address = text(&member, "address");
    if address.parse::<IpAddr>().is_err() {
        return Err(invalid(format!("Invalid input for field/attribute address. Value: '{address:.80}'")));
    }
    Ok(member)
}

fn made_monitor(id: &str, request: &Fields) -> Result<Fields, Error> {
    let monitor = Kind::Monitor.make(id, request)?;
    match text(&monitor, "type") {
        "TCP" | "UDP-CONNECT" | "HTTP" | "HTTPS" | "PING" | "SCTP" | "TLS-HELLO" => Ok(monitor),
        other => Err(invalid(format!("Invalid input for field/attribute type. Value: '{other:.40}'"))),
    }
}

fn health_check(pool: &Pool) -> Option<HealthCheck> {
    let (monitor, member) = (pool.monitor.as_ref()?, pool.members.first()?);
    let port = port(member, "monitor_port").or_else(|_| port(member, "protocol_port")).ok()?;
    let (protocol, path) = match text(monitor, "type") {
        "HTTP" | "HTTPS" => ("HTTP", text(monitor, "url_path")),
        "PING" => return None,
        _ => ("TCP", ""),
    };
    Some(HealthCheck { protocol: protocol.to_owned(), path: path.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_says_whose_it_is() {
        for text in [
            "Kubernetes external service default/web from cluster kubernetes",
            "Floating IP for Kubernetes external service default/web from cluster kubernetes",
        ] {
            assert_eq!(owner(text), "default/web");
        }
        assert_eq!(owner("mine"), "");
    }

    #[test]
    fn parts_that_lack_something_are_none() {
        let tree = |details: Value| {
            let lb = json!({"id": "a", "name": "a", "frontends": [], "backends": [], "addresses": [], "state": "active",
                "details": details});
            Tree::of(&serde_json::from_value(lb).expect("a load balancer"))
        };
        let mut made = Tree::new(&Fields::new()).expect("nothing is asked for");
        made.add_listener("a", &Fields::from_iter([("protocol_port".to_owned(), json!(80))]))
            .expect("a listener");
        assert_eq!(tree(serde_json::to_value(&made).expect("JSON")), made);
        assert_eq!(tree(json!({"listeners": [{}]})), Tree::default());
        assert_eq!(tree(json!({"pools": [{"own": {}, "members": [], "monitor": null}]})), Tree::default());
    }
}
