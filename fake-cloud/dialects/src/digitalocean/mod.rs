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

use fake_cloud_kit::{Answer, Asker, Denial, Dialect, Error, Plan, Request, Voice};
use fake_cloud_model::{GoneBackends, IdForm};
use state::State;
use std::sync::Arc;

/// This dialect.
pub(super) struct DigitalOcean {
    state: Arc<State>,
}

impl DigitalOcean {
    pub(super) fn new() -> DigitalOcean {
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
