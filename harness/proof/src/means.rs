//! The common inputs of all measurements on embedded clusters.

use harness_config::Profile;

/// The variants' folder, and the CCM for them.
#[derive(Clone, Debug)]
pub(super) struct Means {
    /// The profile of the reference CCM.
    pub(super) profile: Profile,
    /// The command line of the reference CCM.
    pub(super) program: Vec<String>,
}
