//! The description that a driver gives of itself.

use super::ids::InstanceIds;
use super::shown::Shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Version of the protocol that this program speaks.
pub const PROTOCOL: u32 = 1;

/// Answer to `GET /driver/v1/capabilities`: what the driver and the cloud behind it can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Version of the protocol: 1.
    #[schemars(extend("const" = PROTOCOL))]
    pub protocol: u32,
    /// The driver's name, as errors and reports use it.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Whether machines can be created, changed and removed. With a real cloud they cannot: its machines
    /// already exist.
    #[serde(default = "usual")]
    pub machines: bool,
    /// What it can do in addition to machines and inventory.
    #[serde(default)]
    pub facilities: BTreeSet<DriverFacility>,
    /// Which ids machines may have; the harness chooses them.
    #[serde(default)]
    pub ids: InstanceIds,
    /// Which parts of a machine and of a load balancer the cloud's API shows to a CCM.
    #[serde(default)]
    pub shows: Shown,
    /// URL of the cloud's API, for CCMs on the machine of the driver: the value of `${CLOUD_ENDPOINT}`.
    /// Absent if the profile itself says where its cloud is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// URL of the cloud's metadata service, if it has one: the service at `169.254.169.254` for machines of
    /// the cloud. A machine is recognised by the address of its request, or by its name as the user of
    /// `Proxy-Authorization: Basic` or `Authorization: Basic`, which takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    /// The CA certificate, in PEM, with which CCMs verify the cloud. Absent if its API does not use TLS, or if
    /// its certificate is publicly trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

fn usual() -> bool {
    true
}

/// A facility of a driver, in addition to machines and inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriverFacility {
    /// Load balancers can be created, changed and removed without a CCM.
    Objects,
    /// Routes can be created, changed and removed without a CCM. A cloud without routes does not have it.
    Routes,
    /// Every call that a CCM makes to the cloud is recorded.
    Journal,
    /// The cloud's answers can be made wrong or late, or suppressed.
    Faults,
    /// Calls to the cloud can be held before they take effect.
    Barriers,
    /// The behaviour of the cloud as a whole can be changed.
    Settings,
    /// The cloud accepts the credentials that the harness sets, and recognises replicas by their tokens.
    Credentials,
}

impl DriverFacility {
    /// Every facility.
    pub const ALL: &[DriverFacility] = &[
        DriverFacility::Objects,
        DriverFacility::Routes,
        DriverFacility::Journal,
        DriverFacility::Faults,
        DriverFacility::Barriers,
        DriverFacility::Settings,
        DriverFacility::Credentials,
    ];
}

impl fmt::Display for DriverFacility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DriverFacility::Objects => "objects",
            DriverFacility::Routes => "routes",
            DriverFacility::Journal => "journal",
            DriverFacility::Faults => "faults",
            DriverFacility::Barriers => "barriers",
            DriverFacility::Settings => "settings",
            DriverFacility::Credentials => "credentials",
        })
    }
}
