//! The components that the contract is about.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The component that a row of the contract is about, and that a suite judges.
///
/// ```
/// use harness_core::check::{Party, Suite};
///
/// # struct Cx;
/// let suite: Suite<Cx> = Suite { name: "acme", proves: "what Acme promises", judges: Party::Ccm, tables: &[] };
/// assert_eq!(suite.judges, Party::Ccm);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Party {
    /// The cloud controller manager.
    Ccm,
    /// The harness itself: what it requires of a cluster and does in every check.
    Harness,
    /// The kubelet's image credential provider.
    ImageCredentials,
    /// The API server's network proxy.
    NetworkProxy,
    /// A cluster whose volumes were migrated to CSI.
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
