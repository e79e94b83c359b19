//! The Hetzner Cloud API v1, as far as its cloud controller manager uses it. The README in this folder lists
//! the calls.

mod calls;
mod catalog;
mod certificates;
mod clock;
mod details;
mod errors;
mod lb_changes;
mod lb_services;
mod lb_targets;
mod lb_wire;
mod load_balancers;
mod metadata;
mod networks;
mod offers;
mod query;
mod routes;
mod servers;
mod shown;

use clock::{Clock, RateLimit};
use fake_cloud_driver::InstanceIds;
use fake_cloud_kit::{Answer, Asker, Denial, Dialect, DialectInfo, Error, Plan, Request, Voice};
use fake_cloud_model::{GoneBackends, IdForm};
use shown::Shown;
use std::sync::Arc;
use std::time::Duration;

/// The dialect, as the table of dialects lists it.
pub const DIALECT: DialectInfo = DialectInfo {
    name: "hcloud",
    title: "the Hetzner Cloud API v1",
    instance_ids: InstanceIds::Number,
    shown: fake_cloud_driver::Shown {
        internal_v4: Some(1),
        internal_v6: Some(0),
        external_v4: Some(1),
        external_v6: Some(1),
        names: Some(0),
        deletions: false,
        retry_after: false,
        provider_ids: false,
        provisioning: true,
        nested_routes: false,
        shared_routes: false,
        dotted_names: true,
        actions: true,
        page_numbers: true,
    },
    metadata: true,
    hosts: &[],
    new: || Box::new(Hcloud::new()),
};

/// This dialect. It keeps the time when it was started, on which all its times depend, the number of calls
/// that are left, and cached JSON.
struct Hcloud {
    clock: Clock,
    limit: RateLimit,
    texts: Arc<Shown>,
}

impl Hcloud {
    fn new() -> Hcloud {
        Hcloud { clock: Clock::start(), limit: RateLimit::new(), texts: Arc::default() }
    }
}

impl Dialect for Hcloud {
    fn plan(&self, request: &Request) -> Plan {
        routes::plan(self.clock, &self.texts, request)
    }

    fn metadata(&self, request: &Request, asker: Asker) -> Plan {
        metadata::plan(request, asker)
    }

    fn ids(&self) -> IdForm {
        IdForm::Number
    }

    fn gone_backends(&self) -> GoneBackends {
        GoneBackends::Dropped
    }

    fn with_headers(&self, answer: Answer, now: Duration) -> Answer {
        self.limit.count(answer, self.clock, now)
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.clock.answer(Err(Error::Denied(denial)))
    }
}
