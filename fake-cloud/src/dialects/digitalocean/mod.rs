//! DigitalOcean's API v2 as far as its CCM and the tools around it speak it, described in the README beside this file.
//!
//! Load balancers begin as `new` and become `active` by themselves; there are no action objects. What the API says of a
//! load balancer beyond the model's fields is in [`details`](crate::admin::LoadBalancer::details); firewalls,
//! certificates and tags are auxiliary objects.

mod certificates;
mod desk;
mod droplets;
mod errors;
mod firewalls;
mod lb_request;
mod load_balancers;
mod places;
mod query;
mod routes;
mod tags;
mod wire;

use super::{Answer, Denial, Dialect, Plan, Request};
use crate::model::{GoneBackends, IdForm};
use desk::Desk;
use std::sync::Arc;

/// Keeps how many calls were answered, for headers; everything else is the model's.
pub(super) struct DigitalOcean {
    desk: Arc<Desk>,
}

impl DigitalOcean {
    pub(super) fn new() -> DigitalOcean {
        DigitalOcean { desk: Arc::new(Desk::open()) }
    }
}

impl Dialect for DigitalOcean {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(&self.desk, request)
    }

    fn ids(&self) -> IdForm {
        IdForm::Uuid
    }

    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Dropped
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.desk.answer(|ticket| errors::denied(denial, ticket))
    }

    fn malformed(&self) -> Answer {
        self.desk.answer(|_| Answer::json_text(200, "{\"meta\": {\"total\":".to_owned()))
    }
}
