//! DigitalOcean's API v2 as far as its CCM and the tools around it use it, described in the README in this folder.
//!
//! Load balancers begin as `new` and become `active` by themselves; there are no action objects. Fields of a
//! load balancer that the model does not have are in [`details`](fake_cloud_driver::LoadBalancer::details);
//! firewalls, certificates and tags are auxiliary objects.

mod certificates;
mod droplets;
mod errors;
mod firewalls;
mod headers;
mod lb_request;
mod load_balancers;
mod metadata;
mod places;
mod query;
mod routes;
mod state;
mod tags;
mod wire;

use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::{Answer, Asker, Denial, Dialect, DialectInfo, Error, Plan, Request, Voice};
use fake_cloud_model::{GoneBackends, IdForm};
use state::State;
use std::sync::Arc;

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "digitalocean",
    title: "DigitalOcean's API v2, spoken by digitalocean-cloud-controller-manager",
    instance_ids: InstanceIds::Number,
    shown: Shown {
        internal_v4: Some(1),
        internal_v6: Some(0),
        external_v4: Some(1),
        external_v6: Some(1),
        names: Some(0),
        deletions: false,
        retry_after: true,
        provider_ids: false,
        provisioning: true,
        nested_routes: true,
        shared_routes: false,
        dotted_names: true,
        actions: false,
        page_numbers: true,
    },
    metadata: true,
    hosts: &[],
    new: || Box::new(DigitalOcean::new()),
};

/// This dialect.
struct DigitalOcean {
    state: Arc<State>,
}

impl DigitalOcean {
    fn new() -> DigitalOcean {
        DigitalOcean { state: Arc::new(State::new()) }
    }
}

impl Dialect for DigitalOcean {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(&self.state, request)
    }

    fn metadata(&self, request: &Request, asker: Asker) -> Plan {
        metadata::plan(request, asker)
    }

    fn ids(&self) -> IdForm {
        IdForm::Uuid
    }

    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Dropped
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.state.answer(Err(Error::Denied(denial)))
    }

    fn malformed(&self) -> Answer {
        self.state.answer(Ok(Answer::json_text(200, "{\"meta\": {\"total\":".to_owned())))
    }
}
