//! Load balancers and their states: provisioning, active, deleting, gone.

use super::Refusal;
use super::addresses::{AddressPool, counterpart};
use super::checks::{check_name, check_port, check_protocol, check_source_ranges, check_text, shown};
use super::ids::Ids;
use fake_cloud_driver::{Frontend, HealthCheck, LbAddress, LbState, LoadBalancer, ObjectKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// The prefix of load balancers' ids.
const PREFIX: &str = "lb";

/// The part of a load balancer that its creator decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LbSpec {
    /// See [`LoadBalancer::name`].
    pub name: String,
    /// See [`LoadBalancer::owner`].
    pub owner: String,
    /// See [`LoadBalancer::frontends`].
    pub frontends: Vec<Frontend>,
    /// See [`LoadBalancer::backends`]; in any order.
    pub backends: Vec<String>,
    /// See [`LoadBalancer::health_check`].
    pub health_check: Option<HealthCheck>,
    /// See [`LoadBalancer::source_ranges`].
    pub source_ranges: Vec<String>,
    /// See [`LoadBalancer::session_affinity`]; empty means `None`.
    pub session_affinity: String,
    /// See [`LoadBalancer::details`]; the dialect defines its meaning.
    pub details: Value,
}

/// Which addresses a load balancer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// One IPv4 address.
    V4,
    /// One IPv4 and one IPv6 address.
    Both,
    /// One IPv4 address with a host name.
    Named,
    /// This address, which its creator has reserved.
    At(IpAddr),
}

impl LbSpec {
    /// The part of a load balancer that its creator has decided so far.
    pub fn of(lb: &LoadBalancer) -> LbSpec {
        LbSpec {
            name: lb.name.clone(),
            owner: lb.owner.clone(),
            frontends: lb.frontends.clone(),
            backends: lb.backends.clone(),
            health_check: lb.health_check.clone(),
            source_ranges: lb.source_ranges.clone(),
            session_affinity: lb.session_affinity.clone(),
            details: lb.details.clone(),
        }
    }

    /// The same in its usual form, if it is valid.
    pub(super) fn checked(mut self) -> Result<LbSpec, Refusal> {
        check_name(&self.name)?;
        check_text("owner", &self.owner)?;
        let mut taken = BTreeSet::new();
        for frontend in &self.frontends {
            check_port("port", frontend.port)?;
            check_port("node_port", frontend.node_port)?;
            check_protocol(&frontend.protocol)?;
            frontend.health_check.as_ref().map_or(Ok(()), check_health_check)?;
            if !taken.insert((frontend.port, &frontend.protocol)) {
                let text = format!("two frontends for {}/{}", frontend.port, frontend.protocol);
                return Err(Refusal::Invalid(text));
            }
        }
        self.health_check.as_ref().map_or(Ok(()), check_health_check)?;
        check_source_ranges(&self.source_ranges)?;
        match self.session_affinity.as_str() {
            "None" | "ClientIP" => {}
            "" => "None".clone_into(&mut self.session_affinity),
            other => {
                let text = format!("session affinity {} is neither None nor ClientIP", shown(other));
                return Err(Refusal::Invalid(text));
            }
        }
        self.backends.sort_unstable();
        self.backends.dedup();
        Ok(self)
    }

    fn into_load_balancer(self, id: String, addresses: Vec<LbAddress>, state: LbState) -> LoadBalancer {
        LoadBalancer {
            id,
            name: self.name,
            owner: self.owner,
            frontends: self.frontends,
            backends: self.backends,
            health_check: self.health_check,
            source_ranges: self.source_ranges,
            session_affinity: self.session_affinity,
            addresses,
            state,
            details: self.details,
        }
    }
}

fn check_health_check(check: &HealthCheck) -> Result<(), Refusal> {
    check_port("health check port", check.port)?;
    match (check.protocol.as_str(), check.path.as_str()) {
        ("HTTP", path) if path.starts_with('/') => check_text("health check path", path),
        ("HTTP", _) => Err(Refusal::Invalid("the path of an HTTP health check must begin with /".to_owned())),
        ("TCP", "") => Ok(()),
        ("TCP", _) => Err(Refusal::Invalid("a TCP health check has no path".to_owned())),
        (other, _) => {
            Err(Refusal::Invalid(format!("health check protocol {} is not HTTP or TCP", shown(other))))
        }
    }
}

/// What happens to a deleted instance among the backends of load balancers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GoneBackends {
    /// It stays: only the creator of the load balancer may remove it.
    #[default]
    Kept,
    /// It is removed.
    Dropped,
}

/// Whether two load balancers can have the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// A name that is in use is rejected.
    #[default]
    Unique,
    /// Only ids distinguish them.
    Shared,
}

/// The result of a deletion.
#[derive(Debug, PartialEq, Eq)]
pub enum Deleted<'a> {
    /// It is gone.
    Gone,
    /// It stays visible for a while.
    Deleting(&'a LoadBalancer),
}

/// All load balancers by id.
#[derive(Debug, Default)]
pub(super) struct LoadBalancers {
    by_id: BTreeMap<String, Record>,
    /// When the states of load balancers end by themselves.
    due: BTreeSet<(Duration, String)>,
    pool: AddressPool,
    naming: Naming,
}

/// A load balancer and its hidden data.
#[derive(Debug)]
struct Record {
    lb: LoadBalancer,
    /// Addresses that it will have once it is provisioned.
    reserved: Vec<LbAddress>,
    /// When its state ends by itself; `None`: never.
    due: Option<Duration>,
}

impl LoadBalancers {
    pub(super) fn named(naming: Naming) -> LoadBalancers {
        LoadBalancers { naming, ..LoadBalancers::default() }
    }

    /// Applies all changes that are due by `now`. All other methods rely on this call.
    pub(super) fn settle(&mut self, now: Duration) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, id)) = self.due.pop_first() else { return };
            let Some(record) = self.by_id.get_mut(&id) else { continue };
            record.due = None;
            match record.lb.state {
                LbState::Provisioning => {
                    record.lb.state = LbState::Active;
                    record.lb.addresses = std::mem::take(&mut record.reserved);
                }
                LbState::Deleting => {
                    self.by_id.remove(&id);
                }
                LbState::Active => {}
            }
        }
    }

    pub(super) fn get(&self, id: &str) -> Result<&LoadBalancer, Refusal> {
        self.by_id.get(id).map(|record| &record.lb).ok_or_else(|| Refusal::no(ObjectKind::LoadBalancer, id))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LoadBalancer> {
        self.by_id.values().map(|record| &record.lb)
    }

    pub(super) fn create(
        &mut self,
        (spec, families): (LbSpec, Families),
        ids: &mut Ids,
        now: Duration,
        provisioning: Duration,
    ) -> Result<&LoadBalancer, Refusal> {
        self.check_free(&spec.name, None)?;
        let address = match families {
            Families::At(address) => address,
            Families::V4 | Families::Both | Families::Named => self.free_address(BTreeSet::new())?,
        };
        let id = ids.next(PREFIX);
        let addresses = match families {
            Families::V4 | Families::At(_) => vec![ip_address(address)],
            Families::Both => vec![ip_address(address), ip_address(counterpart(address))],
            Families::Named => {
                let hostname = Some(format!("{id}.balancers.example"));
                vec![LbAddress { hostname, ..ip_address(address) }]
            }
        };
        let record = if provisioning.is_zero() {
            let lb = spec.into_load_balancer(id.clone(), addresses, LbState::Active);
            Record { lb, reserved: Vec::new(), due: None }
        } else {
            let lb = spec.into_load_balancer(id.clone(), Vec::new(), LbState::Provisioning);
            Record { lb, reserved: addresses, due: Some(now.saturating_add(provisioning)) }
        };
        if let Some(due) = record.due {
            self.due.insert((due, id.clone()));
        }
        self.by_id.insert(id.clone(), record);
        self.get(&id)
    }

    pub(super) fn update(&mut self, id: &str, spec: LbSpec) -> Result<&LoadBalancer, Refusal> {
        self.check_free(&spec.name, Some(id))?;
        let record = self.record(id)?;
        if record.lb.state == LbState::Deleting {
            return Err(Refusal::Conflict(format!("load balancer {id} is being deleted")));
        }
        let addresses = std::mem::take(&mut record.lb.addresses);
        record.lb = spec.into_load_balancer(id.to_owned(), addresses, record.lb.state);
        Ok(&record.lb)
    }

    pub(super) fn delete(
        &mut self,
        id: &str,
        now: Duration,
        deletion: Duration,
    ) -> Result<Deleted<'_>, Refusal> {
        let record = self.record(id)?;
        if record.lb.state == LbState::Deleting {
            return Ok(Deleted::Deleting(&self.record(id)?.lb));
        }
        if deletion.is_zero() {
            self.remove(id);
            return Ok(Deleted::Gone);
        }
        record.lb.state = LbState::Deleting;
        let due = now.saturating_add(deletion);
        if let Some(old) = record.due.replace(due) {
            self.due.remove(&(old, id.to_owned()));
        }
        self.due.insert((due, id.to_owned()));
        Ok(Deleted::Deleting(&self.record(id)?.lb))
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(Record { due: Some(due), .. }) = self.by_id.remove(id) {
            self.due.remove(&(due, id.to_owned()));
        }
    }

    /// Removes an instance from all lists of backends.
    pub(super) fn drop_backend(&mut self, instance: &str) {
        for record in self.by_id.values_mut() {
            record.lb.backends.retain(|id| id != instance);
        }
    }

    pub(super) fn put(&mut self, lb: LoadBalancer) {
        self.remove(&lb.id);
        self.by_id.insert(lb.id.clone(), Record { lb, reserved: Vec::new(), due: None });
    }

    pub(super) fn restore(&mut self, wanted: Vec<LoadBalancer>) {
        let keep: BTreeSet<&str> = wanted.iter().map(|lb| lb.id.as_str()).collect();
        let gone: Vec<String> = self.by_id.keys().filter(|id| !keep.contains(id.as_str())).cloned().collect();
        gone.iter().for_each(|id| self.remove(id));
        for lb in wanted {
            if self.by_id.get(&lb.id).is_none_or(|record| record.lb != lb) {
                self.put(lb);
            }
        }
    }

    fn record(&mut self, id: &str) -> Result<&mut Record, Refusal> {
        self.by_id.get_mut(id).ok_or_else(|| Refusal::no(ObjectKind::LoadBalancer, id))
    }

    fn check_free(&self, name: &str, except: Option<&str>) -> Result<(), Refusal> {
        let unique = self.naming == Naming::Unique;
        match self.iter().find(|lb| unique && lb.name == name && Some(lb.id.as_str()) != except) {
            None => Ok(()),
            Some(lb) => {
                Err(Refusal::Conflict(format!("load balancer {} has the name {}", lb.id, shown(name))))
            }
        }
    }

    /// A public IPv4 address that neither a load balancer has nor any of `others` is.
    pub(super) fn free_address(&mut self, mut others: BTreeSet<IpAddr>) -> Result<IpAddr, Refusal> {
        others.extend(self.addresses_in_use());
        self.pool.take(&others).ok_or_else(|| Refusal::Conflict("no public address is left".to_owned()))
    }

    fn addresses_in_use(&self) -> BTreeSet<IpAddr> {
        self.by_id
            .values()
            .flat_map(|record| record.lb.addresses.iter().chain(&record.reserved))
            .filter_map(|address| address.ip)
            .collect()
    }
}

fn ip_address(ip: IpAddr) -> LbAddress {
    LbAddress { ip: Some(ip), hostname: None }
}
