//! OpenStack (Keystone v3, Nova v2.1, Neutron v2.0, Octavia v2), as far as its cloud controller manager uses
//! it: four services with one address. The README in this folder lists the calls.
//!
//! The listeners, pools, members and monitors of a load balancer, which the model does not have, are in
//! [`details`](fake_cloud_driver::LoadBalancer::details); floating IPs are auxiliary objects, and the routes
//! of the only router are the model's routes.

mod balancers;
mod changes;
mod floating_ips;
mod identity;
mod networks;
mod parts;
mod query;
mod router;
mod routes;
mod servers;
mod services;
mod tree;

use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::{Answer, Denial, Dialect, DialectInfo, Error, Identity, Plan, Request, Voice};
use fake_cloud_model::{IdForm, Naming};
use fake_cloud_recording::credentials::Credentials;
use services::Service;

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "openstack",
    title: "OpenStack's APIs, spoken by openstack-cloud-controller-manager",
    instance_ids: InstanceIds::Text,
    shown: Shown {
        internal_v4: None,
        internal_v6: None,
        external_v4: None,
        external_v6: Some(0),
        names: Some(0),
        deletions: true,
        retry_after: true,
        provider_ids: false,
        provisioning: true,
        nested_routes: true,
        shared_routes: false,
        dotted_names: true,
        actions: false,
        page_numbers: false,
    },
    metadata: false,
    hosts: &[],
    new: || Box::new(OpenStack),
};

/// This dialect.
struct OpenStack;

impl Dialect for OpenStack {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(request)
    }

    fn ids(&self) -> IdForm {
        IdForm::Uuid
    }

    fn naming(&self) -> Naming {
        Naming::Shared
    }

    /// A token is the credential's own: it is issued for it, and not accepted any more when the credential is
    /// removed.
    fn identify(&self, request: &Request, known: &Credentials) -> Identity {
        if services::is_public(request) {
            return Identity::Anybody;
        }
        let token = identity::secret_in(request).or_else(|| identity::token_of(request).map(str::to_owned));
        match token.and_then(|token| known.name_of(&token)) {
            Some(name) => Identity::Known(name),
            None => Identity::Unknown,
        }
    }

    fn refuse(&self, denial: Denial) -> Answer {
        Service::Identity.answer(Err(Error::Denied(denial)))
    }
}
