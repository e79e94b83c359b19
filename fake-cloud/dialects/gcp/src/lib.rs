//! Google's Compute Engine API, as far as the CCM of `cloud-provider-gcp` uses it, with its tokens and its metadata
//! server. The README in this folder lists the calls.
//!
//! A load balancer of Google consists of several resources that exist on their own ([`balancing`]): a forwarding rule, a
//! target pool or a backend service, health checks and firewalls. The forwarding rule is the load balancer of the model.

mod addresses;
mod balancing;
mod errors;
mod filter;
mod firewalls;
mod forwarding_rules;
mod health_checks;
mod identity;
mod instances;
mod metadata;
mod names;
mod operations;
mod parts;
mod places;
mod query;
mod resources;
mod routes;
mod target_pools;
mod vpc_routes;

use errors::Google;
use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::{Answer, Asker, Denial, Dialect, DialectInfo, Error, Identity, Plan, Request, Voice};
use fake_cloud_model::{GoneBackends, IdForm, Naming};
use fake_cloud_recording::credentials::Credentials;
use names::HOSTS;

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "gcp",
    title: "Google's Compute Engine API, spoken by cloud-provider-gcp",
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
        shared_routes: true,
        dotted_names: false,
        actions: true,
        page_numbers: false,
    },
    metadata: true,
    hosts: HOSTS,
    new: || Box::new(Gcp),
};

/// This dialect.
struct Gcp;

impl Dialect for Gcp {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn metadata(&self, request: &Request, asker: Asker) -> Plan {
        metadata::plan(request, asker)
    }

    fn ids(&self) -> IdForm {
        IdForm::Number
    }

    /// A deleted instance leaves its target pools.
    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Dropped
    }

    fn naming(&self) -> Naming {
        Naming::Unique
    }

    fn identify(&self, request: &Request, known: &Credentials) -> Identity {
        if identity::is_login(request) {
            return identity::identify(request, known);
        }
        match request.bearer().and_then(|token| known.name_of(token)) {
            Some(name) => Identity::Known(name),
            None => Identity::Unknown,
        }
    }

    fn refuse(&self, denial: Denial) -> Answer {
        Google.answer(Err(Error::Denied(denial)))
    }
}
