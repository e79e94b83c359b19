//! What a load balancer has for each port of its Service: a listener, an opening in the firewall, a health check. Pure, except
//! for reading the Service.

use harness_testkit::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// Port and node port of each port of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct Ports(Vec<(u16, u16)>);

impl Ports {
    /// Those that it has now.
    ///
    /// # Errors
    /// The Service cannot be read.
    pub async fn of(web: &Service<'_>) -> Result<Ports, CheckError> {
        let number = |port: Option<i32>| port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
        let ports = web.spec().await?.ports.unwrap_or_default();
        Ok(Ports(ports.iter().map(|port| (number(Some(port.port)), number(port.node_port))).collect()))
    }

    /// The ports that clients connect to.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.0.iter().map(|(port, _)| *port).collect()
    }

    /// The ports of Nodes behind them.
    pub fn node_ports(&self) -> BTreeSet<u16> {
        self.0.iter().map(|(_, node_port)| *node_port).filter(|port| *port != 0).collect()
    }

    /// The node ports that are no longer there.
    pub fn gone(&self, new: &Ports) -> BTreeSet<u16> {
        self.node_ports().difference(&new.node_ports()).copied().collect()
    }

    fn node_port_of(&self, port: u16) -> Option<u16> {
        self.0.iter().find(|(own, _)| *own == port).map(|(_, node_port)| *node_port)
    }
}

/// Ports, for a reader.
pub fn listed(ports: &BTreeSet<u16>) -> String {
    let texts: Vec<String> = ports.iter().map(u16::to_string).collect();
    if texts.is_empty() { "no port".to_owned() } else { texts.join(", ") }
}

/// The ports that the firewalls of a load balancer open.
pub fn openings(held: &Inventory) -> BTreeSet<u16> {
    let of_firewalls = held.auxiliaries.iter().filter(|aux| aux.kind.contains("firewall"));
    let ports = of_firewalls.flat_map(|aux| aux.spec["ports"].as_array().into_iter().flatten());
    let number = |port: &Value| port.as_u64().or_else(|| port["port"].as_u64());
    ports.filter_map(number).filter_map(|port| u16::try_from(port).ok()).collect()
}

/// The ports on which its load balancers listen.
pub fn listens(held: &Inventory) -> BTreeSet<u16> {
    held.load_balancers.iter().flat_map(|lb| lb.frontends.iter().map(|port| port.port)).collect()
}

/// The ports at which health checks ask and should not: a node port that is gone, or that of another port.
pub fn misdirected(held: &Inventory, old: &Ports, new: &Ports) -> Vec<u16> {
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

/// What a load balancer has to be like after an edit of its Service's ports.
pub struct Edited {
    old: Ports,
    new: Ports,
    openings: BTreeSet<u16>,
}

impl Edited {
    /// `before` is what the cloud held for the Service when it had its `old` ports.
    pub fn of(before: &Inventory, old: Ports, new: Ports) -> Edited {
        // A firewall opens the ports that clients connect to, or those of the Nodes behind.
        let opened = openings(before);
        let openings = match (opened.is_empty(), opened.is_subset(&old.node_ports())) {
            (true, _) => BTreeSet::new(),
            (false, true) => new.node_ports(),
            (false, false) => new.ports(),
        };
        Edited { old, new, openings }
    }

    /// The ports that its firewall opens, where one lists ports.
    pub fn openings(&self) -> &BTreeSet<u16> {
        &self.openings
    }

    /// Listeners, firewall and health checks follow the edit; all that does not is named.
    pub fn is_followed(self, claim: impl Into<String>) -> Matcher<Inventory> {
        let expected = format!(
            "frontends {}, {}, and no health check at {}",
            listed(&self.new.ports()),
            match self.openings.is_empty() {
                true => "no firewall that lists ports".to_owned(),
                false => format!("a firewall that opens {}", listed(&self.openings)),
            },
            listed(&self.old.gone(&self.new)),
        );
        matcher(claim, move |held: &Inventory| match self.wrong(held).as_slice() {
            [] => Observation::Matched(()),
            wrong => Observation::Pending(wrong.join("; ")),
        })
        .expecting(expected)
    }

    fn wrong(&self, held: &Inventory) -> Vec<String> {
        let (listens, opened) = (listens(held), openings(held));
        let astray = misdirected(held, &self.old, &self.new);
        let mut wrong = Vec::new();
        if listens != self.new.ports() {
            wrong.push(format!("it listens on {}", listed(&listens)));
        }
        if opened != self.openings {
            wrong.push(format!("the firewall opens {}", listed(&opened)));
        }
        wrong.extend(astray.iter().map(|port| format!("a health check asks at {port}")));
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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

    #[test]
    fn each_part_that_does_not_follow_an_edit_is_named() {
        let (old, new) = (Ports(vec![(80, 30080)]), Ports(vec![(8080, 30090)]));
        let before = held(json!([port(80, 30080, Some(30080))]), json!(null), json!([80]));
        let edited = Edited::of(&before, old.clone(), new.clone());
        let wrong = "it listens on 80; the firewall opens 80; a health check asks at 30080".to_owned();
        let followed = held(json!([port(8080, 30090, Some(30090))]), json!(null), json!([8080]));
        assert!(edited.wrong(&followed).is_empty());
        assert_eq!(edited.is_followed("follows").matches(&before), Observation::Pending(wrong));
        let by_node_port = held(json!([port(80, 30080, None)]), json!(null), json!([30080]));
        let edited = Edited::of(&by_node_port, old, new);
        assert_eq!(edited.openings(), &BTreeSet::from([30090]));
    }
}
