//! What every measurement on embedded clusters is made with.

use harness_config::Profile;

/// The variants' folder, and the CCM that runs in them.
#[derive(Clone, Debug)]
pub(super) struct Means {
    /// The profile of the reference CCM.
    pub(super) profile: Profile,
    /// The command line that is the reference CCM.
    pub(super) program: Vec<String>,
}
