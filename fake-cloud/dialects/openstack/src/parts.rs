//! The parts of a load balancer, as JSON objects with the API's fields: those of a request, the others with
//! their defaults, and an id.
//!
//! The id of a part contains its load balancer, so that a call about the part is one about the load balancer.

use super::services::invalid;
use fake_cloud_kit::Error;
use serde_json::{Map, Value, json};

/// An object of the API.
pub(super) type Fields = Map<String, Value>;

/// A kind of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    LoadBalancer,
    Listener,
    Pool,
    Member,
    Monitor,
}

/// The part number of each load balancer's port.
const VIP_PORT: u16 = u16::MAX;
/// The position of the part's number in an id: the second group, which is 0 if the id is not that of a part.
const GROUP: std::ops::Range<usize> = 9..13;

/// The id of a part of a load balancer.
pub(super) fn part_id(balancer: &str, number: u16) -> String {
    match (balancer.get(..GROUP.start), balancer.get(GROUP.end..)) {
        (Some(head), Some(tail)) => format!("{head}{number:04x}{tail}"),
        _ => format!("{balancer}.{number}"),
    }
}

/// The id of the port with a load balancer's address.
pub(super) fn vip_port(balancer: &str) -> String {
    part_id(balancer, VIP_PORT)
}

/// The load balancer of a part.
pub(super) fn balancer_of(part: &str) -> String {
    match (part.get(..GROUP.start), part.get(GROUP.end..)) {
        (Some(head), Some(tail)) => format!("{head}0000{tail}"),
        _ => part.split('.').next().unwrap_or_default().to_owned(),
    }
}

impl Kind {
    /// The key of one part in requests and answers.
    pub(super) fn one(self) -> &'static str {
        match self {
            Kind::LoadBalancer => "loadbalancer",
            Kind::Listener => "listener",
            Kind::Pool => "pool",
            Kind::Member => "member",
            Kind::Monitor => "healthmonitor",
        }
    }

    /// The fields that its creator sets, with their defaults.
    fn defaults(self) -> Value {
        match self {
            Kind::LoadBalancer => json!({
                "name": "", "description": "", "provider": "amphora", "admin_state_up": true, "tags": [],
                "vip_subnet_id": null, "vip_network_id": null, "vip_address": null, "flavor_id": null,
                "availability_zone": null, "vip_qos_policy_id": null, "project_id": null,
            }),
            Kind::Listener => json!({
                "name": "", "description": "", "protocol": "TCP", "protocol_port": 0, "connection_limit": -1,
                "timeout_client_data": 50_000, "timeout_member_connect": 5000, "timeout_member_data": 50_000,
                "timeout_tcp_inspect": 0, "allowed_cidrs": null, "insert_headers": {},
                "default_tls_container_ref": null, "default_pool_id": null, "admin_state_up": true, "tags": [],
            }),
            Kind::Pool => json!({
                "name": "", "description": "", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
                "session_persistence": null, "admin_state_up": true, "tags": [],
            }),
            Kind::Member => json!({
                "name": "", "address": "", "protocol_port": 0, "subnet_id": null, "weight": 1, "backup": false,
                "monitor_port": null, "monitor_address": null, "admin_state_up": true, "tags": [],
            }),
            Kind::Monitor => json!({
                "name": "", "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3,
                "url_path": "/", "http_method": "GET", "expected_codes": "200", "admin_state_up": true, "tags": [],
            }),
        }
    }

    /// Whether a part is complete, as those created here: it has an id and all fields.
    pub(super) fn is_whole(self, part: &Fields) -> bool {
        let defaults = self.defaults();
        let keys = defaults.as_object().into_iter().flat_map(|defaults| defaults.keys().map(String::as_str));
        keys.chain(["id"]).all(|key| part.contains_key(key))
    }

    /// The keys of references to other parts, or of parts inside it.
    fn links(self) -> &'static [&'static str] {
        match self {
            Kind::LoadBalancer => &["listeners"],
            Kind::Listener => &["loadbalancer_id", "default_pool"],
            Kind::Pool => &["listener_id", "loadbalancer_id", "members", "healthmonitor"],
            Kind::Member => &["id"],
            Kind::Monitor => &["pool_id"],
        }
    }

    /// A new part.
    ///
    /// # Errors
    /// When a field has a wrong type.
    pub(super) fn make(self, id: &str, request: &Fields) -> Result<Fields, Error> {
        let mut made: Fields = self.defaults().as_object().cloned().unwrap_or_default();
        self.change(&mut made, request)?;
        made.insert("id".to_owned(), json!(id));
        Ok(made)
    }

    /// Makes the changes in the request.
    ///
    /// # Errors
    /// When a field has a wrong type.
    pub(super) fn change(self, present: &mut Fields, request: &Fields) -> Result<(), Error> {
        let defaults = self.defaults();
        for (key, value) in request {
            let Some(usual) = defaults.get(key) else { continue };
            if !same_type(usual, value) {
                return Err(invalid(format!(
                    "Invalid input for field/attribute {key}. Value: '{:.80}'",
                    value.to_string()
                )));
            }
            present.insert(key.clone(), value.clone());
        }
        Ok(())
    }

    /// The first unknown field of a request, at any depth.
    pub(super) fn unknown_in(self, request: &Fields) -> Option<String> {
        let defaults = self.defaults();
        let known = |key: &str| defaults.get(key).is_some() || self.links().contains(&key);
        let own = request
            .keys()
            .find(|key| !known(key))
            .map(|key| format!("of the body: {}.{key:.40}", self.one()));
        let inner = [
            ("listeners", Kind::Listener),
            ("default_pool", Kind::Pool),
            ("members", Kind::Member),
            ("healthmonitor", Kind::Monitor),
        ];
        own.or_else(|| {
            inner.into_iter().find_map(|(key, kind)| {
                let value = request.get(key)?;
                let many = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
                many.iter().filter_map(Value::as_object).find_map(|fields| kind.unknown_in(fields))
            })
        })
    }
}

/// Whether a value has the type of the usual one; null is always allowed.
fn same_type(usual: &Value, value: &Value) -> bool {
    match (usual, value) {
        (Value::Null, _) | (_, Value::Null) => true,
        (Value::Number(_), Value::Number(number)) => number.is_i64(),
        _ => std::mem::discriminant(usual) == std::mem::discriminant(value),
    }
}

/// A field with text; empty if there is none.
pub(super) fn text<'a>(fields: &'a Fields, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A field with a port.
///
/// # Errors
/// When it is not a port.
pub(super) fn port(fields: &Fields, key: &str) -> Result<u16, Error> {
    let port = fields.get(key).and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
    port.filter(|port| *port > 0).ok_or_else(|| {
        invalid(format!("Invalid input for field/attribute {key}. Value should be from 1 to 65535"))
    })
}

/// The objects in a field that is a list, or a single object.
pub(super) fn objects(fields: &Fields, key: &str) -> Vec<Fields> {
    match fields.get(key) {
        Some(Value::Array(list)) => list.iter().filter_map(|item| item.as_object().cloned()).collect(),
        Some(Value::Object(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LB: &str = "fa4ec10d-0000-8000-8000-000000000007";

    #[test]
    fn the_id_of_a_part_says_whose_it_is() {
        let part = part_id(LB, 0x1f);
        assert_eq!(part, "fa4ec10d-001f-8000-8000-000000000007");
        assert_eq!((balancer_of(&part), balancer_of(&vip_port(LB))), (LB.to_owned(), LB.to_owned()));
        assert_eq!(balancer_of(&part_id("mine", 2)), "mine");
        assert_eq!(balancer_of(""), "");
    }

    #[test]
    fn omitted_fields_have_defaults_and_types_are_kept() {
        let request = |value: Value| value.as_object().cloned().expect("an object");
        let made =
            Kind::Listener.make("l", &request(json!({"protocol_port": 80, "allowed_cidrs": ["::/0"]})));
        let made = made.expect("sound");
        assert_eq!((&made["protocol"], &made["allowed_cidrs"]), (&json!("TCP"), &json!(["::/0"])));
        for wrong in [json!({"protocol_port": "80"}), json!({"tags": "x"}), json!({"connection_limit": 1.5})]
        {
            assert!(Kind::Listener.make("l", &request(wrong.clone())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_fields_are_found_at_any_depth() {
        let tree = json!({"name": "a", "listeners": [{"protocol_port": 80, "default_pool": {"members": [{"colour": 1}]}}]});
        let found = Kind::LoadBalancer.unknown_in(tree.as_object().expect("an object"));
        assert_eq!(found.as_deref(), Some("of the body: member.colour"));
    }
}
