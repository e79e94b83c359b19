//! Load balancers and what belongs to them: provisioning and deletion take the time the settings say.

use super::{Millis, Model, Refusal};
use crate::admin::{Auxiliary, Frontend, HealthCheck, LbAddress, LbState, LoadBalancer};
use std::net::{IpAddr, Ipv4Addr};

/// A load balancer with the moments its state changes at.
#[derive(Clone, Debug)]
pub(super) struct Held {
    lb: LoadBalancer,
    active_at: Millis,
    gone_at: Option<Millis>,
    address: LbAddress,
}

impl Held {
    pub(super) fn load_balancer(&self) -> &LoadBalancer {
        &self.lb
    }

    /// As restored from an inventory: no transition pending but those its state says.
    pub(super) fn settled(lb: LoadBalancer, now: Millis) -> Held {
        let address = lb.addresses.first().cloned().unwrap_or(LbAddress { ip: None, hostname: None });
        let gone_at = (lb.state == LbState::Deleting).then_some(now);
        Held { lb, active_at: now, gone_at, address }
    }

    fn advance(&mut self, now: Millis) {
        if self.lb.state == LbState::Provisioning && now >= self.active_at {
            self.lb.state = LbState::Active;
            self.lb.addresses = vec![self.address.clone()];
        }
    }
}

/// What a client says of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LbRequest {
    /// Name.
    pub name: String,
    /// Owner.
    pub owner: String,
    /// What it listens on.
    pub frontends: Vec<Frontend>,
    /// Instance ids.
    pub backends: Vec<String>,
    /// How backends are probed.
    pub health_check: Option<HealthCheck>,
    /// Client address ranges let in.
    pub source_ranges: Vec<String>,
    /// `None` or `ClientIP`.
    pub session_affinity: String,
}

impl Model {
    /// Load balancers that are there at `now`, by id.
    pub fn list_load_balancers(&mut self, now: Millis) -> Vec<LoadBalancer> {
        self.advance(now);
        self.load_balancers.values().map(|held| held.lb.clone()).collect()
    }

    /// One load balancer.
    ///
    /// # Errors
    /// When there is none of that id at `now`.
    pub fn load_balancer(&mut self, id: &str, now: Millis) -> Result<LoadBalancer, Refusal> {
        self.advance(now);
        self.load_balancers.get(id).map(|held| held.lb.clone()).ok_or_else(|| absent(id))
    }

    /// Creates a load balancer.
    ///
    /// # Errors
    /// When its name is taken or the request makes no sense.
    pub fn create_load_balancer(&mut self, request: LbRequest, now: Millis) -> Result<LoadBalancer, Refusal> {
        self.advance(now);
        check(&request)?;
        if self.load_balancers.values().any(|held| held.lb.name == request.name) {
            return Err(Refusal::Conflict(format!("a load balancer named {} exists already", request.name)));
        }
        self.known_backends(&request.backends)?;
        self.last_lb += 1;
        let id = format!("lb-{}", self.last_lb);
        let address = LbAddress { ip: Some(self.next_address()), hostname: None };
        let lb = LoadBalancer {
            id: id.clone(),
            name: request.name,
            owner: request.owner,
            frontends: request.frontends,
            backends: sorted(request.backends),
            health_check: request.health_check,
            source_ranges: request.source_ranges,
            session_affinity: request.session_affinity,
            addresses: Vec::new(),
            state: LbState::Provisioning,
        };
        let mut held = Held { lb, active_at: now + self.timing.provisioning, gone_at: None, address };
        held.advance(now);
        let created = held.lb.clone();
        self.load_balancers.insert(id, held);
        Ok(created)
    }

    /// Replaces what a client may say of a load balancer; name and owner stay.
    ///
    /// # Errors
    /// When there is none of that id, it is being deleted, or the request makes no sense.
    pub fn update_load_balancer(&mut self, id: &str, request: LbRequest, now: Millis) -> Result<LoadBalancer, Refusal> {
        self.advance(now);
        check(&request)?;
        self.known_backends(&request.backends)?;
        let held = self.changeable(id)?;
        held.lb.frontends = request.frontends;
        held.lb.backends = sorted(request.backends);
        held.lb.health_check = request.health_check;
        held.lb.source_ranges = request.source_ranges;
        held.lb.session_affinity = request.session_affinity;
        Ok(held.lb.clone())
    }

    /// Replaces a load balancer's backends.
    ///
    /// # Errors
    /// When there is none of that id, it is being deleted, or a backend does not exist.
    pub fn set_backends(&mut self, id: &str, backends: Vec<String>, now: Millis) -> Result<LoadBalancer, Refusal> {
        self.advance(now);
        self.known_backends(&backends)?;
        let held = self.changeable(id)?;
        held.lb.backends = sorted(backends);
        Ok(held.lb.clone())
    }

    /// Deletes a load balancer; `None` when it is gone at once, else it as it is while being deleted.
    ///
    /// # Errors
    /// When there is none of that id, or an auxiliary object still refers to it.
    pub fn delete_load_balancer(&mut self, id: &str, now: Millis) -> Result<Option<LoadBalancer>, Refusal> {
        self.advance(now);
        if !self.load_balancers.contains_key(id) {
            return Err(absent(id));
        }
        if let Some(aux) = self.auxiliaries.values().find(|aux| aux.load_balancer.as_deref() == Some(id)) {
            return Err(Refusal::Conflict(format!("load balancer {id} is in use by {} {}", aux.kind, aux.id)));
        }
        let deletion = self.timing.deletion;
        if deletion == 0 {
            self.load_balancers.remove(id);
            return Ok(None);
        }
        let held = self.load_balancers.get_mut(id).ok_or_else(|| absent(id))?;
        held.lb.state = LbState::Deleting;
        held.gone_at.get_or_insert(now + deletion);
        Ok(Some(held.lb.clone()))
    }

    /// Puts a load balancer as it is, behind everybody's back.
    pub fn force_load_balancer(&mut self, lb: LoadBalancer, now: Millis) {
        self.load_balancers.insert(lb.id.clone(), Held::settled(lb, now));
    }

    /// Takes a load balancer away behind everybody's back, with its auxiliary objects or without.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn erase_load_balancer(&mut self, id: &str, cascade: bool) -> Result<(), Refusal> {
        self.load_balancers.remove(id).ok_or_else(|| absent(id))?;
        if cascade {
            self.auxiliaries.retain(|_, aux| aux.load_balancer.as_deref() != Some(id));
        }
        Ok(())
    }

    /// Auxiliary objects, by id.
    pub fn auxiliaries(&self) -> impl Iterator<Item = &Auxiliary> {
        self.auxiliaries.values()
    }

    /// Creates an auxiliary object; its id is given here, from `prefix`.
    ///
    /// # Errors
    /// When its name is taken or its load balancer does not exist.
    pub fn create_auxiliary(&mut self, mut aux: Auxiliary, prefix: &str, now: Millis) -> Result<Auxiliary, Refusal> {
        self.advance(now);
        if aux.name.is_empty() {
            return Err(Refusal::Invalid(format!("a {} needs a name", aux.kind)));
        }
        if self.auxiliaries.values().any(|other| other.kind == aux.kind && other.name == aux.name) {
            return Err(Refusal::Conflict(format!("a {} named {} exists already", aux.kind, aux.name)));
        }
        if let Some(lb) = aux.load_balancer.as_deref().filter(|id| !self.load_balancers.contains_key(*id)) {
            return Err(Refusal::Invalid(format!("load balancer {lb} does not exist")));
        }
        self.last_aux += 1;
        aux.id = format!("{prefix}-{}", self.last_aux);
        self.auxiliaries.insert(aux.id.clone(), aux.clone());
        Ok(aux)
    }

    /// Replaces an auxiliary object's content.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn update_auxiliary(&mut self, id: &str, spec: serde_json::Value) -> Result<Auxiliary, Refusal> {
        let aux = self.auxiliaries.get_mut(id).ok_or_else(|| Refusal::NotFound(id.to_owned()))?;
        aux.spec = spec;
        Ok(aux.clone())
    }

    /// Deletes an auxiliary object.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn delete_auxiliary(&mut self, id: &str) -> Result<(), Refusal> {
        self.auxiliaries.remove(id).map(|_| ()).ok_or_else(|| Refusal::NotFound(id.to_owned()))
    }

    pub(super) fn forget_backend(&mut self, id: &str) {
        for held in self.load_balancers.values_mut() {
            held.lb.backends.retain(|backend| backend != id);
        }
    }

    fn advance(&mut self, now: Millis) {
        self.load_balancers.retain(|_, held| held.gone_at.is_none_or(|at| now < at));
        self.load_balancers.values_mut().for_each(|held| held.advance(now));
    }

    fn changeable(&mut self, id: &str) -> Result<&mut Held, Refusal> {
        let held = self.load_balancers.get_mut(id).ok_or_else(|| absent(id))?;
        if held.lb.state == LbState::Deleting {
            return Err(Refusal::Conflict(format!("load balancer {id} is being deleted")));
        }
        Ok(held)
    }

    fn known_backends(&self, backends: &[String]) -> Result<(), Refusal> {
        match backends.iter().find(|id| !self.instances.contains_key(*id)) {
            Some(id) => Err(Refusal::Invalid(format!("backend {id} does not exist"))),
            None => Ok(()),
        }
    }

    /// The next public address nobody has: documentation ranges first, then the benchmarking range.
    fn next_address(&mut self) -> IpAddr {
        const RANGES: [(u32, u32); 3] = [(0xCB00_7101, 254), (0xC633_6401, 199), (0xC612_0001, 131_000)];
        let total: u32 = RANGES.iter().map(|(_, size)| size).sum();
        loop {
            let mut offset = self.last_address % total;
            self.last_address = self.last_address.wrapping_add(1);
            let mut bits = RANGES[0].0;
            for (base, size) in RANGES {
                if offset < size {
                    bits = base + offset;
                    break;
                }
                offset -= size;
            }
            let ip = IpAddr::V4(Ipv4Addr::from_bits(bits));
            if self.load_balancers.len() as u32 >= total || !self.load_balancers.values().any(|h| h.address.ip == Some(ip)) {
                return ip;
            }
        }
    }
}

fn absent(id: &str) -> Refusal {
    Refusal::NotFound(format!("load balancer {id}"))
}

fn sorted(mut backends: Vec<String>) -> Vec<String> {
    backends.sort();
    backends.dedup();
    backends
}

fn check(request: &LbRequest) -> Result<(), Refusal> {
    let invalid = |why: String| Err(Refusal::Invalid(why));
    if request.name.is_empty() || request.name.chars().count() > 255 {
        return invalid("a load balancer's name has 1 to 255 characters".to_owned());
    }
    let mut listening = Vec::new();
    for frontend in &request.frontends {
        if frontend.port == 0 || frontend.node_port == 0 {
            return invalid("a frontend's ports are 1 to 65535".to_owned());
        }
        if !["TCP", "UDP", "SCTP"].contains(&frontend.protocol.as_str()) {
            return invalid(format!("protocol {} is none of TCP, UDP, SCTP", frontend.protocol));
        }
        let key = (frontend.port, frontend.protocol.as_str());
        if listening.contains(&key) {
            return invalid(format!("port {} {} is listened on twice", frontend.port, frontend.protocol));
        }
        listening.push(key);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Settings;

    fn request(name: &str) -> LbRequest {
        let frontend = Frontend { port: 80, protocol: "TCP".into(), node_port: 30_080 };
        LbRequest { name: name.into(), owner: "uid".into(), frontends: vec![frontend], ..LbRequest::default() }
    }

    #[test]
    fn is_provisioned_and_deleted_in_its_time() {
        let mut model = Model::default();
        model.set(&Settings { provisioning_ms: Some(100), deletion_ms: Some(50), ..Settings::default() });
        let lb = model.create_load_balancer(request("a"), 0).expect("fine");
        assert_eq!((lb.state, lb.addresses.len()), (LbState::Provisioning, 0));
        assert_eq!(model.load_balancer(&lb.id, 99).expect("there").state, LbState::Provisioning);
        assert_eq!(model.load_balancer(&lb.id, 100).expect("there").addresses.len(), 1);
        let deleting = model.delete_load_balancer(&lb.id, 200).expect("fine").expect("takes its time");
        assert_eq!(deleting.state, LbState::Deleting);
        assert!(matches!(model.update_load_balancer(&lb.id, request("a"), 210), Err(Refusal::Conflict(_))));
        assert!(model.load_balancer(&lb.id, 249).is_ok());
        assert!(matches!(model.load_balancer(&lb.id, 250), Err(Refusal::NotFound(_))));
    }

    #[test]
    fn names_are_unique_and_used_balancers_stay() {
        let mut model = Model::default();
        let lb = model.create_load_balancer(request("a"), 0).expect("fine");
        assert!(matches!(model.create_load_balancer(request("a"), 0), Err(Refusal::Conflict(_))));
        let aux = Auxiliary {
            id: String::new(),
            kind: "firewall".into(),
            name: "a".into(),
            owner: "uid".into(),
            load_balancer: Some(lb.id.clone()),
            spec: serde_json::Value::Null,
        };
        let aux = model.create_auxiliary(aux, "fw", 0).expect("fine");
        assert!(matches!(model.delete_load_balancer(&lb.id, 0), Err(Refusal::Conflict(_))));
        model.delete_auxiliary(&aux.id).expect("there");
        assert_eq!(model.delete_load_balancer(&lb.id, 0), Ok(None));
        let again = model.create_load_balancer(request("a"), 0).expect("the name is free");
        assert_ne!(again.id, lb.id, "ids are never given twice");
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        let mut model = Model::default();
        let twice = Frontend { port: 80, protocol: "TCP".into(), node_port: 1 };
        let cases = [
            LbRequest { name: String::new(), ..request("a") },
            LbRequest { backends: vec!["i-9".into()], ..request("a") },
            LbRequest { frontends: vec![twice.clone(), twice], ..request("a") },
        ];
        for case in cases {
            assert!(matches!(model.create_load_balancer(case, 0), Err(Refusal::Invalid(_))));
        }
    }
}
