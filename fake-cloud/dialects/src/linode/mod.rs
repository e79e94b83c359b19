//! The Linode API v4 of Akamai, as far as its cloud controller manager uses it. The README in this folder
//! lists the calls.
//!
//! A NodeBalancer is complete as soon as the call that creates it is answered. Its configs and their nodes,
//! which the model does not have, are in [`details`](fake_cloud_driver::LoadBalancer::details).

mod configs;
mod details;
mod errors;
mod filter;
mod instances;
mod nodebalancers;
mod query;
mod routes;
mod state;
mod wire;

use fake_cloud_kit::{Answer, Denial, Dialect, Error, Plan, Request, Voice};
use fake_cloud_model::IdForm;
use state::State;
use std::sync::Arc;

/// This dialect.
pub(super) struct Linode {
    state: Arc<State>,
}

impl Linode {
    pub(super) fn new() -> Linode {
        Linode { state: Arc::new(State::new()) }
    }
}

impl Dialect for Linode {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(&self.state, request)
    }

    fn ids(&self) -> IdForm {
        IdForm::Number
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.state.answer(Err(Error::Denied(denial)))
    }
}
