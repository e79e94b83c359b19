//! How objects of the cloud and calls to it are shown in a failure.

use crate::probe::Observed;
use fake_cloud_driver::{Entry, Inventory, LbState, LoadBalancer, Outcome, Route};

impl Observed for Entry {
    fn observed(&self) -> String {
        show_entry(self)
    }
}

/// An entry in one line, as in failures and evidence.
pub fn show_entry(entry: &Entry) -> String {
    let outcome = show_outcome(&entry.outcome);
    let by = entry.credential.as_deref().unwrap_or("unknown credential");
    let unknown = entry.unknown.as_ref().map(|what| format!(", unknown to the cloud: {what}"));
    let (seconds, unknown) = (entry.at_ms as f64 / 1000.0, unknown.unwrap_or_default());
    format!("#{} {seconds:.3}s {by}: {} -> {outcome}{unknown}", entry.seq, entry.request)
}

/// The result of a call, as text.
pub fn show_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered { status } => status.to_string(),
        Outcome::Faulted { status: Some(status), .. } => format!("{status} (fault)"),
        Outcome::Faulted { status: None, .. } => "no answer (fault)".to_owned(),
        Outcome::UnderWay => "under way".to_owned(),
        Outcome::Abandoned => "abandoned by the caller".to_owned(),
    }
}

impl Observed for Route {
    fn observed(&self) -> String {
        let to = match (&self.target_instance, self.blackhole) {
            (Some(machine), false) => format!("to {machine}"),
            (Some(machine), true) => format!("to {machine}, a black hole"),
            (None, _) => "into a black hole".to_owned(),
        };
        format!("route {} to {} leads {to}", self.id, self.destination)
    }
}

impl Observed for LoadBalancer {
    fn observed(&self) -> String {
        let frontends: Vec<String> = self
            .frontends
            .iter()
            .map(|f| {
                let to =
                    f.backends.as_ref().map(|own| format!(" of [{}]", own.join(", "))).unwrap_or_default();
                let probe = f
                    .health_check
                    .as_ref()
                    .map(|h| format!(" checked by {} {}:{}", h.protocol, h.path, h.port));
                let probe = probe.unwrap_or_default();
                format!("{}/{} to {}{to}{probe}", f.port, f.protocol, f.node_port)
            })
            .collect();
        let addresses: Vec<String> = self
            .addresses
            .iter()
            .map(|a| a.ip.map(|ip| ip.to_string()).or_else(|| a.hostname.clone()).unwrap_or_default())
            .collect();
        let probe = self.health_check.as_ref().map(|h| format!("{} {}:{}", h.protocol, h.path, h.port));
        format!(
            "load balancer {} {}, addresses [{}], frontends [{}], backends [{}], health check {}, affinity {}, ranges [{}]",
            self.id,
            match self.state {
                LbState::Provisioning => "provisioning",
                LbState::Active => "active",
                LbState::Deleting => "being deleted",
            },
            addresses.join(", "),
            frontends.join(", "),
            self.backends.join(", "),
            probe.unwrap_or_else(|| "none".to_owned()),
            self.session_affinity,
            self.source_ranges.join(", "),
        )
    }
}

impl Observed for Inventory {
    fn observed(&self) -> String {
        let auxiliaries: Vec<String> =
            self.auxiliaries.iter().map(|a| format!("{} {}: {}", a.kind, a.id, a.spec)).collect();
        format!("load balancers {}; auxiliaries [{}]", self.load_balancers.observed(), auxiliaries.join("; "))
    }
}
