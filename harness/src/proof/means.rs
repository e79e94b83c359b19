//! What every measurement on embedded clusters is made with.

use crate::config::Profile;
use std::path::PathBuf;

/// The variants' folder, and the CCM that runs in them.
#[derive(Clone, Debug)]
pub(super) struct Means {
    /// Where the manifests of the cases are.
    pub(super) folder: PathBuf,
    /// The profile of the reference CCM.
    pub(super) profile: Profile,
    /// The reference CCM.
    pub(super) program: PathBuf,
}
