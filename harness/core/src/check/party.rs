//! Who makes the promises of the contract.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose promise a row of the contract is, and so what a suite judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Party {
    /// The cloud controller manager's.
    Ccm,
    /// The harness's own: what it needs of a cluster and does in every check.
    Harness,
    /// The kubelet's image credential provider's.
    ImageCredentials,
    /// The API server's network proxy's.
    NetworkProxy,
    /// The cluster's, whose volumes moved to CSI.
    CsiMigration,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Party::Ccm => "cloud controller manager",
            Party::Harness => "harness",
            Party::ImageCredentials => "image credential provider",
            Party::NetworkProxy => "network proxy",
            Party::CsiMigration => "CSI migration",
        })
    }
}
