//! Foreign load balancers, which belong to an operator and which no CCM may touch.

use super::CheckCx;
use super::cloud::absent_is_fine;
use super::undo_steps::Undo;
use harness_clouds::{Frontend, LbAddress, LbState, LoadBalancer};
use harness_core::check::CheckError;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

/// The address of a foreign load balancer.
const FOREIGN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 250));

impl CheckCx {
    /// Creates a foreign load balancer in the cloud, which is removed when the check ends. Returns it as the cloud shows
    /// it.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn foreign_balancer(&self, suffix: &str) -> Result<LoadBalancer, CheckError> {
        let name = self.name(suffix);
        let lb = LoadBalancer {
            id: self.cloud.ids().make(&name),
            owner: format!("somebody-elses-{name}"),
            name,
            frontends: vec![Frontend::new(80, "TCP", 30_080)],
            backends: Vec::new(),
            health_check: None,
            source_ranges: Vec::new(),
            session_affinity: "None".to_owned(),
            addresses: vec![LbAddress { ip: Some(FOREIGN), hostname: None }],
            state: LbState::Active,
            details: Value::Null,
        };
        self.on_end(Undo::LoadBalancer(lb.id.clone()));
        self.cloud.put_load_balancer(&lb).await?;
        Ok(lb)
    }

    pub(super) async fn undo_load_balancer(&self, id: &str) -> Result<(), String> {
        absent_is_fine(self.cloud.remove_load_balancer(id).await)
    }
}
