//! Cached JSON of objects.

use fake_cloud_driver::{Instance, LoadBalancer};
use fake_cloud_kit::Texts;

/// The JSON of objects that are large and shown often.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) servers: Texts<Instance>,
    pub(super) load_balancers: Texts<LoadBalancer>,
}
