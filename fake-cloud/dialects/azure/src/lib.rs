//! Azure Resource Manager and Entra ID, as far as the CCM of `cloud-provider-azure` uses them with single machines
//! and a standard load balancer. The README in this folder lists the calls.
//!
//! Services share resources: one load balancer with a frontend for each of them, one security group, one route
//! table. A call replaces such a resource, and means the difference ([`meaning`]).

mod balancer;
mod balancer_body;
mod balancer_view;
mod balancers;
mod errors;
mod fixed;
mod identity;
mod interfaces;
mod machines;
mod meaning;
mod members;
mod names;
mod operations;
mod pools;
mod public_ips;
mod query;
mod route_tables;
mod routes;
mod security;
mod subnets;

use errors::Arm;
use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::{Answer, Call, Denial, Dialect, DialectInfo, Error, Identity, Plan, Request, Voice};
use fake_cloud_model::{Cloud, GoneBackends, Naming};
use fake_cloud_recording::credentials::Credentials;
use names::HOSTS;
use std::time::Duration;

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "azure",
    title: "Azure Resource Manager and Entra ID, spoken by cloud-provider-azure",
    instance_ids: InstanceIds::Name,
    shown: Shown {
        internal_v4: Some(1),
        internal_v6: Some(0),
        external_v4: Some(1),
        external_v6: Some(0),
        names: Some(0),
        deletions: false,
        retry_after: true,
        provider_ids: false,
        provisioning: false,
        nested_routes: true,
        shared_routes: false,
        dotted_names: true,
        actions: true,
        page_numbers: false,
    },
    metadata: false,
    hosts: HOSTS,
    new: || Box::new(Azure),
};

/// This dialect.
struct Azure;

impl Dialect for Azure {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn meaning(&self, request: &Request, call: Call, cloud: &mut Cloud, now: Duration) -> Call {
        meaning::meaning(request, call, cloud, now)
    }

    /// A machine is deleted with its network interface, which was in the pools.
    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Dropped
    }

    /// The names of frontends are unique in their load balancer only.
    fn naming(&self) -> Naming {
        Naming::Shared
    }

    fn identify(&self, request: &Request, known: &Credentials) -> Identity {
        if let Some(login) = identity::login(request) {
            return identity::identify(request, &login, known);
        }
        if request.uri.path().starts_with("/metadata/") {
            return Identity::Anybody;
        }
        match request.bearer().and_then(|token| known.name_of(token)) {
            Some(name) => Identity::Known(name),
            None => Identity::Unknown,
        }
    }

    fn refuse(&self, denial: Denial) -> Answer {
        Arm.answer(Err(Error::Denied(denial)))
    }
}
