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

use fake_cloud_driver::{InstanceIds, Shown};
use fake_cloud_kit::{Answer, Denial, Dialect, DialectInfo, Error, Plan, Request, Voice};
use fake_cloud_model::IdForm;
use state::State;
use std::sync::Arc;

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "linode",
    title: "the Linode API v4, spoken by linode-cloud-controller-manager",
    instance_ids: InstanceIds::Number,
    shown: Shown {
        internal_v4: Some(1),
        internal_v6: Some(0),
        external_v4: None,
        external_v6: Some(1),
        names: Some(0),
        deletions: false,
        retry_after: true,
        provider_ids: false,
        provisioning: false,
        nested_routes: true,
        shared_routes: false,
        dotted_names: true,
        actions: false,
        page_numbers: true,
    },
    metadata: false,
    hosts: &[],
    new: || Box::new(Linode::new()),
};

/// This dialect.
struct Linode {
    state: Arc<State>,
}

impl Linode {
    fn new() -> Linode {
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
