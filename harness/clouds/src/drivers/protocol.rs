//! The common part of all drivers: the driver protocol, with whichever program serves it.

use crate::{
    ActiveFault, Admission, Answer, BarrierStatus, Barriers, CloudError, CloudRecord, Credential, Driver,
    Entry, Fault, Faults, Instance, InstanceIds, Inventory, InventorySource, Journalled, LoadBalancer,
    Machines, Match, Objects, Problem, Route, Routes, Settings, Shown, Tunable,
};
use crate::{as_written, tails};
use fake_cloud_driver::{Capabilities, Client, ClientError, DriverFacility, PROTOCOL};
use futures::{FutureExt, TryFutureExt};
use harness_core::check::chain;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// How a driver is reached, and its capabilities.
#[derive(Serialize, Deserialize)]
pub(super) struct Access {
    /// The URL of the driver for this machine.
    url: String,
    /// Its bearer token.
    token: String,
    /// Its capabilities.
    pub(super) capabilities: Capabilities,
}

impl Access {
    /// Reads the capabilities of a driver; `name` is used until it has reported its own.
    ///
    /// # Errors
    /// It does not answer, rejects the token, or answers in another form.
    pub(super) async fn of(name: &str, url: String, token: String) -> Result<Access, CloudError> {
        const CALL: &str = "asking what it can do";
        let failed = |error: ClientError| CloudError::new(name, CALL, problem(&error)).caused_by(error);
        let client = Client::new(&url, &token).map_err(failed)?;
        let capabilities = client.capabilities().await.map_err(failed)?;
        if capabilities.protocol != PROTOCOL {
            let why = format!(
                "the driver at {url} speaks version {} of the protocol, this program version {PROTOCOL}",
                capabilities.protocol
            );
            return Err(CloudError::new(name, CALL, Problem::Nonsense).caused_by(why));
        }
        Ok(Access { url, token, capabilities })
    }

    pub(super) fn into_record(self, driver: &str, ip: Ipv4Addr, endpoint: String) -> CloudRecord {
        let (metadata, ca) = (self.capabilities.metadata.clone(), self.capabilities.ca.clone());
        CloudRecord {
            driver: driver.to_owned(),
            ip,
            endpoint,
            access: serde_json::json!(self),
            secrets: vec![self.token],
            name: None,
            endpoints: Default::default(),
            http_proxy: false,
            metadata,
            ca,
        }
    }
}

/// Restricts a recorded driver to facilities that only read its cloud or affect calls on their way to it:
/// nothing is created in a real cloud without its CCM.
///
/// # Errors
/// The record does not belong to a driver of this program.
pub(super) fn only_look(record: &mut CloudRecord) -> Result<(), CloudError> {
    let unusable = || CloudError::new(&record.driver, "attaching", Problem::Unusable);
    let mut access = Access::deserialize(&record.access).map_err(|error| unusable().caused_by(error))?;
    access.capabilities.machines = false;
    access.capabilities.facilities.retain(|one| match one {
        DriverFacility::Journal | DriverFacility::Faults | DriverFacility::Barriers => true,
        DriverFacility::Objects
        | DriverFacility::Routes
        | DriverFacility::Settings
        | DriverFacility::Credentials => false,
    });
    record.access = serde_json::json!(access);
    Ok(())
}

/// URL and token of a recorded driver.
///
/// # Errors
/// The record does not belong to a driver of this program.
pub(crate) fn reached(record: &CloudRecord) -> Result<(String, String), CloudError> {
    let unusable = || CloudError::new(&record.driver, "attaching", Problem::Unusable);
    let access = Access::deserialize(&record.access).map_err(|error| unusable().caused_by(error))?;
    Ok((access.url, access.token))
}

/// The recorded driver; `name` is its name in errors and reports, if that is not its own.
fn remote(record: &CloudRecord, name: Option<&str>) -> Result<Arc<dyn Driver>, CloudError> {
    let unusable = || CloudError::new(&record.driver, "attaching", Problem::Unusable);
    let access = Access::deserialize(&record.access).map_err(|error| unusable().caused_by(error))?;
    let client = Client::new(&access.url, &access.token).map_err(|error| unusable().caused_by(error))?;
    let Access { url, capabilities, .. } = access;
    let name = name.map_or_else(|| capabilities.name.clone(), str::to_owned);
    Ok(Arc::new(Remote { name, url, capabilities, client }))
}

/// The driver for a recorded fake cloud.
pub(super) fn attach(record: &CloudRecord) -> Result<Arc<dyn Driver>, CloudError> {
    remote(record, Some(&record.driver))
}

/// The driver for a recorded one that has reported its name.
pub(super) fn attach_named(record: &CloudRecord) -> Result<Arc<dyn Driver>, CloudError> {
    remote(record, None)
}

/// A driver, wherever it runs.
#[derive(Debug)]
struct Remote {
    name: String,
    url: String,
    capabilities: Capabilities,
    client: Client,
}

impl Remote {
    /// Adds driver and call to an error of the protocol.
    fn call<'a, T>(
        &'a self,
        call: &'static str,
        asked: impl Future<Output = Result<T, ClientError>> + Send + 'a,
    ) -> Answer<'a, T> {
        asked
            .map(move |outcome| {
                outcome.map_err(|error| {
                    let problem = problem(&error);
                    CloudError::new(&self.name, call, problem).caused_by(self.with_last_lines(problem, error))
                })
            })
            .boxed()
    }

    /// An error of a driver that stopped answering, with its last lines of output.
    fn with_last_lines(&self, problem: Problem, error: ClientError) -> Box<dyn Error + Send + Sync> {
        let broke_off = match &error {
            ClientError::Refused { status, .. } => *status >= 500,
            _ => matches!(problem, Problem::NoAnswer | Problem::Nonsense),
        };
        match tails::last_lines(&self.url).filter(|_| broke_off) {
            Some(lines) => format!("{}; the driver's last lines:\n{lines}", chain(&error)).into(),
            None => error.into(),
        }
    }

    /// The driver itself, if it has declared the facility.
    fn with(&self, facility: DriverFacility) -> Option<&Remote> {
        self.capabilities.facilities.contains(&facility).then_some(self)
    }
}

/// The kind of problem, according to the error of a call.
pub(crate) fn problem(error: &ClientError) -> Problem {
    match error {
        ClientError::Unusable { .. } => Problem::Unusable,
        ClientError::Unreachable { .. } => Problem::NoAnswer,
        ClientError::Refused { status: 404, .. } => Problem::NotFound,
        ClientError::Refused { .. } => Problem::Refused,
        ClientError::Malformed { .. } | ClientError::TooLarge { .. } => Problem::Nonsense,
    }
}

impl Driver for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn shown(&self) -> Shown {
        self.capabilities.shows
    }

    fn ids(&self) -> InstanceIds {
        self.capabilities.ids
    }

    fn machines(&self) -> Option<&dyn Machines> {
        self.capabilities.machines.then_some(self as _)
    }

    fn objects(&self) -> Option<&dyn Objects> {
        Some(self.with(DriverFacility::Objects)?)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self.with(DriverFacility::Routes)?)
    }

    fn inventory(&self) -> Option<&dyn InventorySource> {
        Some(self)
    }

    fn journal(&self) -> Option<&dyn Journalled> {
        Some(self.with(DriverFacility::Journal)?)
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(self.with(DriverFacility::Faults)?)
    }

    fn barriers(&self) -> Option<&dyn Barriers> {
        Some(self.with(DriverFacility::Barriers)?)
    }

    fn settings(&self) -> Option<&dyn Tunable> {
        Some(self.with(DriverFacility::Settings)?)
    }

    fn credentials(&self) -> Option<&dyn Admission> {
        Some(self.with(DriverFacility::Credentials)?)
    }
}

impl Machines for Remote {
    fn put<'a>(&'a self, instances: &'a [Instance]) -> Answer<'a, ()> {
        self.call("putting machines there", self.client.put_instances(instances))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        self.call("removing a machine", self.client.delete_instance(id))
    }
}

impl Objects for Remote {
    fn put_load_balancer<'a>(&'a self, lb: &'a LoadBalancer) -> Answer<'a, ()> {
        self.call("putting a load balancer there", self.client.put_load_balancer(lb))
    }

    fn remove_load_balancer<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        self.call("removing a load balancer", self.client.delete_load_balancer(id, true))
    }
}

impl Routes for Remote {
    fn put_route<'a>(&'a self, route: &'a Route) -> Answer<'a, Route> {
        self.call("putting a route there", self.client.put_route(route))
    }

    fn remove_route<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        self.call("removing a route", self.client.delete_route(id))
    }
}

impl InventorySource for Remote {
    fn read(&self) -> Answer<'_, Inventory> {
        let read = self.client.inventory().map_ok(|mut inventory| {
            inventory.load_balancers.iter_mut().for_each(as_written::in_one_form);
            inventory
        });
        self.call("reading the inventory", read)
    }
}

impl Journalled for Remote {
    fn read(&self, after: u64, wait: Duration) -> Answer<'_, Vec<Entry>> {
        let read = self.client.journal(after, wait).map_ok(|mut entries| {
            for change in entries.iter_mut().filter_map(|entry| entry.change.as_mut()) {
                let parts = [&mut change.before, &mut change.after];
                parts
                    .into_iter()
                    .flat_map(|parts| &mut parts.load_balancers)
                    .for_each(as_written::in_one_form);
            }
            entries
        });
        self.call("reading the journal", read)
    }
}

impl Faults for Remote {
    fn inject<'a>(&'a self, id: u64, fault: &'a Fault) -> Answer<'a, ActiveFault> {
        self.call("injecting a fault", self.client.inject_as(id, fault))
    }

    fn read(&self, id: u64) -> Answer<'_, ActiveFault> {
        self.call("reading a fault", self.client.fault(id))
    }

    fn clear(&self, id: u64) -> Answer<'_, ()> {
        self.call("clearing a fault", self.client.clear_fault(id))
    }
}

impl Barriers for Remote {
    fn raise<'a>(&'a self, id: u64, matching: &'a Match) -> Answer<'a, BarrierStatus> {
        self.call("raising a barrier", self.client.raise_barrier_as(id, matching))
    }

    fn read(&self, id: u64) -> Answer<'_, BarrierStatus> {
        self.call("reading a barrier", self.client.barrier(id))
    }

    fn release(&self, id: u64) -> Answer<'_, BarrierStatus> {
        self.call("releasing a barrier", self.client.release_barrier(id))
    }
}

impl Tunable for Remote {
    fn read(&self) -> Answer<'_, Settings> {
        self.call("reading the settings", self.client.settings())
    }

    fn change<'a>(&'a self, settings: &'a Settings) -> Answer<'a, Settings> {
        self.call("changing the settings", self.client.set_settings(settings))
    }
}

impl Admission for Remote {
    fn admit<'a>(&'a self, caller: &'a Credential) -> Answer<'a, ()> {
        self.call("letting a caller in", self.client.put_credential(caller))
    }
}
