//! What a driver says of itself.

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
    /// Whether machines can be put, changed and removed. Before a real cloud they cannot: those are there already.
    #[serde(default = "usual")]
    pub machines: bool,
    /// What it can do beyond machines and inventory.
    #[serde(default)]
    pub facilities: BTreeSet<DriverFacility>,
    /// Which ids machines may have: the harness chooses them.
    #[serde(default)]
    pub ids: InstanceIds,
    /// What of a machine and of a load balancer the cloud's API shows to a CCM.
    #[serde(default)]
    pub shows: Shown,
    /// URL of the cloud's API, for CCMs on the machine where the driver listens: what `${CLOUD_ENDPOINT}` stands for. Absent
    /// where the profile says itself where its cloud is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// URL of the cloud's metadata service, where it has one: what machines of the cloud ask at `169.254.169.254`. A machine is
    /// known by the address it asks from, or by its name as the user of `Proxy-Authorization: Basic` or
    /// `Authorization: Basic`, which then counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

fn usual() -> bool {
    true
}

/// What a driver may be able to do beyond machines and inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriverFacility {
    /// Load balancers can be created, changed and removed without a CCM.
    Objects,
    /// Routes can be created, changed and removed without a CCM. A cloud without routes does not have it.
    Routes,
    /// Every call that a CCM makes to the cloud is recorded.
    Journal,
    /// The cloud's answers can be made wrong, late or absent.
    Faults,
    /// Calls to the cloud can be held before they take effect.
    Barriers,
    /// How the cloud as a whole behaves can be changed.
    Settings,
    /// The cloud lets in whom the harness names, and tells replicas apart by their tokens.
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
