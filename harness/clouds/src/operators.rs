//! Objects of an operator of the cloud, which no CCM has created.

use super::{Frontend, LbAddress, LbState, LoadBalancer};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

/// The address of a load balancer that no CCM has created.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 250));

/// A load balancer that no CCM has created: one TCP port, no backend, no health check. `driver check` and the
/// run write the same one.
pub fn operators_balancer(id: String, name: String, owner: String) -> LoadBalancer {
    LoadBalancer {
        id,
        name,
        owner,
        frontends: vec![Frontend::new(80, "TCP", 30_080)],
        backends: Vec::new(),
        health_check: None,
        source_ranges: Vec::new(),
        session_affinity: "None".to_owned(),
        addresses: vec![LbAddress { ip: Some(ADDRESS), hostname: None }],
        state: LbState::Active,
        details: Value::Null,
    }
}
