//! What the load balancer of a Service must be like.

use harness_clouds::{Instance, Inventory, LbState, LoadBalancer};
use harness_testkit::prelude::{Matcher, Observation, matcher, reaches, targets};
use k8s_openapi::api::core::v1::ServiceSpec;
use std::collections::BTreeSet;

/// What is known apart from the Service itself.
pub(crate) struct Wanted {
    /// Whether load balancers send traffic to node ports.
    pub(crate) by_node_port: bool,
    /// The machines that must get traffic, with their names in the scenario.
    pub(crate) backends: Vec<(String, Instance)>,
    /// The machines that must get none.
    pub(crate) others: Vec<(String, Instance)>,
    /// Whether the CCM declares that it supports session affinity.
    pub(crate) judges_affinity: bool,
}

impl Wanted {
    /// One active load balancer with the ports, the session affinity and the ranges of the Service, which sends traffic to
    /// the machines that must get some.
    pub(crate) fn of(self, spec: &ServiceSpec) -> Matcher<Inventory, LoadBalancer> {
        let number = |port: i32| u16::try_from(port).unwrap_or_default();
        let ports: BTreeSet<(u16, Option<u16>)> = spec
            .ports
            .iter()
            .flatten()
            .map(|port| (number(port.port), port.node_port.map(number).filter(|_| self.by_node_port)))
            .collect();
        let affinity = spec.session_affinity.clone().unwrap_or_else(|| "None".to_owned());
        let affinity = Some(affinity).filter(|_| self.judges_affinity);
        let ranges: BTreeSet<String> = spec.load_balancer_source_ranges.iter().flatten().cloned().collect();
        let expected = self.expected(&ports, affinity.as_deref(), &ranges);
        let wanted = matcher("is as the Service requires", move |held: &Inventory| {
            let [lb] = held.load_balancers.as_slice() else { return Observation::Pending(String::new()) };
            let shown: BTreeSet<(u16, Option<u16>)> =
                lb.frontends.iter().map(|f| (f.port, self.by_node_port.then_some(f.node_port))).collect();
            let lacks = self.backends.iter().find(|(_, machine)| !targets(lb, machine));
            let has = self.others.iter().find(|(_, machine)| reaches(lb, machine));
            match (lacks, has) {
                (Some((name, _)), _) => Observation::Pending(format!("no traffic for machine {name}")),
                (_, Some((name, _))) => Observation::Pending(format!("still traffic for machine {name}")),
                _ if shown != ports => Observation::Pending("other ports".to_owned()),
                _ if affinity
                    .as_deref()
                    .is_some_and(|affinity| (affinity == "ClientIP") != keeps_clients(lb)) =>
                {
                    Observation::Pending(format!("session affinity '{}'", lb.session_affinity))
                }
                _ if !ranges.is_empty() && admitted(held) != ranges => Observation::Pending(format!(
                    "admits {}",
                    admitted(held).into_iter().collect::<Vec<_>>().join(" and ")
                )),
                _ if lb.state != LbState::Active || lb.addresses.is_empty() => {
                    Observation::Pending("not active".to_owned())
                }
                _ => Observation::Matched(lb.clone()),
            }
        });
        wanted.expecting(expected)
    }

    fn expected(
        &self,
        ports: &BTreeSet<(u16, Option<u16>)>,
        affinity: Option<&str>,
        ranges: &BTreeSet<String>,
    ) -> String {
        let ports: Vec<String> = ports
            .iter()
            .map(|(port, node_port)| match node_port {
                Some(node_port) => format!("{port} to {node_port}"),
                None => port.to_string(),
            })
            .collect();
        let names = |all: &[(String, Instance)]| {
            all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ")
        };
        let mut text = format!("one active load balancer on {}", ports.join(", "));
        if affinity == Some("ClientIP") {
            text.push_str(", with session affinity by client address");
        }
        if !ranges.is_empty() {
            let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
            text.push_str(&format!(", for clients from {}", ranges.join(" and ")));
        }
        if !self.backends.is_empty() {
            text.push_str(&format!(", with traffic for {}", names(&self.backends)));
        }
        if !self.others.is_empty() {
            text.push_str(&format!(", without traffic for {}", names(&self.others)));
        }
        text
    }
}

fn keeps_clients(lb: &LoadBalancer) -> bool {
    lb.session_affinity == "ClientIP"
}

/// The ranges that the load balancers and their firewalls name.
fn admitted(held: &Inventory) -> BTreeSet<String> {
    let of_balancers = held.load_balancers.iter().flat_map(|lb| lb.source_ranges.iter().cloned());
    let of_firewalls = held.auxiliaries.iter().filter_map(|aux| aux.spec["source_ranges"].as_array());
    let named = of_firewalls.flatten().filter_map(|range| range.as_str().map(str::to_owned));
    of_balancers.chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn held(over: &Value) -> Inventory {
        let mut lb = json!({"id": "lb-1", "name": "a", "frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080}],
            "backends": [], "addresses": [{"ip": "192.0.2.1"}], "state": "active", "session_affinity": "ClientIP"});
        for (key, value) in over.as_object().expect("an object") {
            lb[key] = value.clone();
        }
        let firewall =
            json!({"id": "f", "kind": "firewall", "name": "f", "spec": {"source_ranges": ["192.0.2.0/24"]}});
        let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [firewall], "routes": []});
        serde_json::from_value(all).expect("an inventory")
    }

    fn why(over: &Value) -> Option<String> {
        let spec = json!({"ports": [{"port": 80, "nodePort": 30080}], "sessionAffinity": "ClientIP",
            "loadBalancerSourceRanges": ["192.0.2.0/24"]});
        let spec: ServiceSpec = serde_json::from_value(spec).expect("a spec");
        let wanted =
            Wanted { by_node_port: true, backends: Vec::new(), others: Vec::new(), judges_affinity: true };
        match wanted.of(&spec).matches(&held(over)) {
            Observation::Matched(_) => None,
            Observation::Pending(why) | Observation::Impossible(why) => Some(why),
        }
    }

    #[test]
    fn each_property_of_the_service_counts() {
        assert_eq!(why(&json!({})), None);
        let other = json!([{"port": 80, "protocol": "TCP", "node_port": 30081}]);
        assert_eq!(why(&json!({"frontends": other})).as_deref(), Some("other ports"));
        assert_eq!(why(&json!({"session_affinity": "None"})).as_deref(), Some("session affinity 'None'"));
        let wide = why(&json!({"source_ranges": ["0.0.0.0/0"]}));
        assert_eq!(wide.as_deref(), Some("admits 0.0.0.0/0 and 192.0.2.0/24"));
        assert_eq!(why(&json!({"addresses": []})).as_deref(), Some("not active"));
    }
}
