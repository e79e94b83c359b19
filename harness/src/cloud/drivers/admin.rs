//! What both drivers of the fake cloud share: its admin API.

use crate::cloud::{
    ActiveFault, Answer, BarrierStatus, Barriers, CloudError, CloudRecord, Credential, Driver, Entry, Fault,
    Faults, Instance, Inventory, Journalled, LoadBalancer, Machines, Match, Problem, Route, Settings, Shown,
    Stock, Tunable,
};
use fake_cloud::admin::{Client, ClientError};
use fake_cloud::dialects;
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// How a fake cloud is reached.
#[derive(Serialize, Deserialize)]
pub(super) struct Access {
    /// The API it speaks.
    pub(super) dialect: String,
    /// URL of the admin API, as this machine reaches it.
    pub(super) admin_url: String,
    /// Bearer token of the admin API.
    pub(super) admin_token: String,
}

impl Access {
    pub(super) fn into_record(self, driver: &str, ip: Ipv4Addr, endpoint: String) -> CloudRecord {
        CloudRecord {
            driver: driver.to_owned(),
            ip,
            endpoint,
            access: serde_json::json!(self),
            secrets: vec![self.admin_token],
        }
    }
}

/// The driver for a recorded fake cloud.
pub(super) fn attach(record: &CloudRecord) -> Result<Arc<dyn Driver>, CloudError> {
    let unusable = || CloudError::new(&record.driver, "attaching", Problem::Unusable);
    let access = Access::deserialize(&record.access).map_err(|error| unusable().caused_by(error))?;
    let client = Client::new(&access.admin_url, &access.admin_token);
    let client = client.map_err(|error| unusable().caused_by(error))?;
    let kind = dialects::find(&access.dialect);
    let kind = kind.ok_or_else(|| unusable().caused_by(format!("there is no dialect {}", access.dialect)))?;
    Ok(Arc::new(FakeCloud { name: record.driver.clone(), shown: kind.shown, client }))
}

/// A fake cloud, wherever it runs.
#[derive(Debug)]
struct FakeCloud {
    name: String,
    shown: Shown,
    client: Client,
}

impl FakeCloud {
    /// Names driver and call in an error of the admin API.
    fn call<'a, T>(
        &'a self,
        call: &'static str,
        asked: impl Future<Output = Result<T, ClientError>> + Send + 'a,
    ) -> Answer<'a, T> {
        asked
            .map(move |outcome| {
                outcome.map_err(|error| {
                    let problem = problem(&error);
                    CloudError::new(&self.name, call, problem).caused_by(error)
                })
            })
            .boxed()
    }
}

fn problem(error: &ClientError) -> Problem {
    match error {
        ClientError::Unusable { .. } => Problem::Unusable,
        ClientError::Unreachable { .. } => Problem::NoAnswer,
        ClientError::Refused { status: 404, .. } => Problem::NotFound,
        ClientError::Refused { .. } => Problem::Refused,
        ClientError::Malformed { .. } => Problem::Nonsense,
    }
}

impl Driver for FakeCloud {
    fn name(&self) -> &str {
        &self.name
    }

    fn shown(&self) -> Shown {
        self.shown
    }

    fn admit<'a>(&'a self, replica: &'a Credential) -> Answer<'a, ()> {
        self.call("admitting a replica", self.client.put_credential(replica))
    }

    fn machines(&self) -> Option<&dyn Machines> {
        Some(self)
    }

    fn inventory(&self) -> Option<&dyn Stock> {
        Some(self)
    }

    fn journal(&self) -> Option<&dyn Journalled> {
        Some(self)
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(self)
    }

    fn barriers(&self) -> Option<&dyn Barriers> {
        Some(self)
    }

    fn settings(&self) -> Option<&dyn Tunable> {
        Some(self)
    }
}

impl Machines for FakeCloud {
    fn put<'a>(&'a self, instances: &'a [Instance]) -> Answer<'a, ()> {
        self.call("putting machines there", self.client.put_instances(instances))
    }

    fn remove<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        self.call("removing a machine", self.client.delete_instance(id))
    }

    fn put_load_balancer<'a>(&'a self, lb: &'a LoadBalancer) -> Answer<'a, ()> {
        self.call("putting a load balancer there", self.client.put_load_balancer(lb))
    }

    fn remove_load_balancer<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        self.call("removing a load balancer", self.client.delete_load_balancer(id, true))
    }

    fn put_route<'a>(&'a self, route: &'a Route) -> Answer<'a, Route> {
        self.call("putting a route there", self.client.put_route(route))
    }

    fn remove_route<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        self.call("removing a route", self.client.delete_route(id))
    }
}

impl Stock for FakeCloud {
    fn read(&self) -> Answer<'_, Inventory> {
        self.call("reading the inventory", self.client.inventory())
    }
}

impl Journalled for FakeCloud {
    fn read(&self, after: u64, wait: Duration) -> Answer<'_, Vec<Entry>> {
        self.call("reading the journal", self.client.journal(after, wait))
    }
}

impl Faults for FakeCloud {
    fn inject<'a>(&'a self, fault: &'a Fault) -> Answer<'a, ActiveFault> {
        self.call("injecting a fault", self.client.inject(fault))
    }

    fn read(&self, id: u64) -> Answer<'_, ActiveFault> {
        self.call("reading a fault", self.client.fault(id))
    }

    fn clear(&self, id: u64) -> Answer<'_, ()> {
        self.call("clearing a fault", self.client.clear_fault(id))
    }
}

impl Barriers for FakeCloud {
    fn raise<'a>(&'a self, matching: &'a Match) -> Answer<'a, BarrierStatus> {
        self.call("raising a barrier", self.client.raise_barrier(matching))
    }

    fn read(&self, id: u64) -> Answer<'_, BarrierStatus> {
        self.call("reading a barrier", self.client.barrier(id))
    }

    fn release(&self, id: u64) -> Answer<'_, BarrierStatus> {
        self.call("releasing a barrier", self.client.release_barrier(id))
    }
}

impl Tunable for FakeCloud {
    fn read(&self) -> Answer<'_, Settings> {
        self.call("reading the settings", self.client.settings())
    }

    fn change<'a>(&'a self, settings: &'a Settings) -> Answer<'a, Settings> {
        self.call("changing the settings", self.client.set_settings(settings))
    }
}
