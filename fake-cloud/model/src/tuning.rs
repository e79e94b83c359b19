//! How the cloud behaves now.

use fake_cloud_driver::LbAddressing;
use std::time::Duration;

/// The settings of a cloud (`Settings` of the driver protocol) with all fields set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tuning {
    pub(super) page_size: u32,
    pub(super) provisioning: Duration,
    pub(super) deletion: Duration,
    pub(super) stale: Duration,
    pub(super) action: Duration,
    pub(super) latency: Duration,
    pub(super) addresses: LbAddressing,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            page_size: 50,
            provisioning: Duration::ZERO,
            deletion: Duration::ZERO,
            stale: Duration::ZERO,
            action: Duration::ZERO,
            latency: Duration::ZERO,
            addresses: LbAddressing::Usual,
        }
    }
}
