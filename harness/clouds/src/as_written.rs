//! Compares what a cloud shows with what was written to it. `driver check` and a run use the same comparison.

use super::{Frontend, Instance, LoadBalancer, Route};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::net::IpAddr;

/// Brings a load balancer into the form for comparisons: backends of a port that equal those of the load
/// balancer are removed, and backends are sorted.
pub(crate) fn in_one_form(lb: &mut LoadBalancer) {
    lb.backends.sort();
    for Frontend { backends, .. } in &mut lb.frontends {
        if let Some(own) = backends {
            own.sort();
        }
        if backends.as_ref() == Some(&lb.backends) {
            *backends = None;
        }
    }
}

/// Describes the parts of a load balancer that were written and are missing; empty if it has all of them.
pub(crate) fn lost_of_load_balancer(written: &LoadBalancer, seen: &LoadBalancer) -> Vec<String> {
    let (mut written, mut seen) = (written.clone(), seen.clone());
    in_one_form(&mut written);
    in_one_form(&mut seen);
    lost(&written, &seen)
}

/// Describes the parts of a route that were written and are missing.
pub(crate) fn lost_of_route(written: &Route, seen: &Route) -> Vec<String> {
    let mut seen = seen.clone();
    if written.id.is_empty() {
        seen.id.clear();
    }
    if written.target_addresses.is_empty() {
        // A cloud may add the addresses of the machine.
        seen.target_addresses.clear();
    }
    lost(written, &seen)
}

/// Describes the parts of a machine that were written and are missing. Addresses are compared by value, not
/// by spelling.
pub(crate) fn lost_of_instance(written: &Instance, seen: &Instance, shows_provider_ids: bool) -> Vec<String> {
    let in_one_spelling = |instance: &Instance| {
        let mut instance = instance.clone();
        for address in &mut instance.addresses {
            if let Ok(ip) = address.address.parse::<IpAddr>() {
                address.address = ip.to_string();
            }
        }
        if !shows_provider_ids {
            instance.provider_id = None;
        }
        // Not every cloud has labels.
        instance.labels.clear();
        instance
    };
    lost(&in_one_spelling(written), &in_one_spelling(seen))
}

/// The fields that were written and are different now. Fields that were left out (null) may have any value,
/// and an object may have more fields than were written.
fn lost(written: &impl Serialize, seen: &impl Serialize) -> Vec<String> {
    let (written, seen) = (fields(written), fields(seen));
    let differs = |(name, value): (&String, &Value)| {
        let now = seen.get(name).unwrap_or(&Value::Null);
        (!has(now, value)).then(|| format!("{name}: expected {value}, saw {now}"))
    };
    written.iter().filter_map(differs).collect()
}

fn fields(of: &impl Serialize) -> Map<String, Value> {
    match json!(of) {
        Value::Object(fields) => fields,
        // Our own structures are always objects.
        _ => Map::new(),
    }
}

/// Whether `seen` contains everything in `written`.
fn has(seen: &Value, written: &Value) -> bool {
    match (written, seen) {
        (Value::Null, _) => true,
        (Value::Object(written), Value::Object(seen)) => {
            written.iter().all(|(name, value)| has(seen.get(name).unwrap_or(&Value::Null), value))
        }
        (Value::Array(written), Value::Array(seen)) => {
            written.len() == seen.len() && written.iter().zip(seen).all(|(written, seen)| has(seen, written))
        }
        _ => written == seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balancer(more: Value) -> LoadBalancer {
        let mut whole = json!({
            "id": "lb-1", "name": "web", "owner": "o", "backends": ["b", "a"], "state": "active",
            "frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080}],
            "session_affinity": "None", "addresses": [{"ip": "192.0.2.1"}],
        });
        whole.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        serde_json::from_value(whole).expect("a load balancer")
    }

    #[test]
    fn additions_of_a_cloud_are_allowed_and_changes_are_named() {
        let written = balancer(json!({}));
        let more = json!({"health_check": {"protocol": "TCP", "port": 30080}, "details": {"size": "small"}});
        assert_eq!(lost_of_load_balancer(&written, &balancer(more)), [""; 0]);
        let other = balancer(json!({"source_ranges": ["10.0.0.0/8"], "name": "wob"}));
        assert_eq!(
            lost_of_load_balancer(&written, &other),
            [r#"name: expected "web", saw "wob""#, r#"source_ranges: expected [], saw ["10.0.0.0/8"]"#]
        );
        let detailed = balancer(json!({"details": {"size": "small"}}));
        let lost = lost_of_load_balancer(&detailed, &written);
        assert_eq!(lost, [r#"details: expected {"size":"small"}, saw null"#]);
    }

    #[test]
    fn backends_of_a_port_that_equal_those_of_the_balancer_mean_the_same_as_none() {
        let port = |backends: Value| json!({"frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080, "backends": backends}]});
        let (none, equal) = (balancer(json!({})), balancer(port(json!(["a", "b"]))));
        assert_eq!(lost_of_load_balancer(&none, &equal), [""; 0]);
        assert_eq!(lost_of_load_balancer(&equal, &none), [""; 0]);
        let one = lost_of_load_balancer(&balancer(port(json!(["a"]))), &none);
        assert_eq!(one.len(), 1, "{one:?}");
        let mut form = equal;
        in_one_form(&mut form);
        assert_eq!((form.frontends[0].backends.clone(), form.backends), (None, vec!["a".into(), "b".into()]));
    }

    #[test]
    fn addresses_of_machines_are_compared_by_value() {
        let machine = |address: &str| -> Instance {
            let addresses = json!([{"type": "InternalIP", "address": address}]);
            serde_json::from_value(json!({"id": "i", "name": "n", "addresses": addresses}))
                .expect("a machine")
        };
        let (long, short) = (machine("2001:db8:0:0:0:0:0:a"), machine("2001:db8::a"));
        assert_eq!(lost_of_instance(&long, &short, true), [""; 0]);
        assert_eq!(lost_of_instance(&long, &machine("2001:db8::b"), true).len(), 1);
        let named = Instance { provider_id: Some("x://i".into()), ..long.clone() };
        assert_eq!(lost_of_instance(&named, &long, false), [""; 0]);
        assert_eq!(lost_of_instance(&named, &long, true), [r#"provider_id: expected "x://i", saw null"#]);
    }
}
