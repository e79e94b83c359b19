//! What was shown, as JSON.

use super::super::kit::Texts;
use crate::driver::{Instance, LoadBalancer};

/// The texts of what is long and shown often.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) servers: Texts<Instance>,
    pub(super) load_balancers: Texts<LoadBalancer>,
}
