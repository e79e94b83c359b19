//! The options that name the CCM under test, of all commands that run one.

use super::complete::profiles;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;

/// The heading of their help.
pub(super) const CCM: &str = "CCM under test";

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CcmOptions {
    /// Profile of the CCM: a built-in name or a path [default: reference]
    #[arg(long, value_name = "NAME|PATH", help_heading = CCM, add = ArgValueCompleter::new(profiles))]
    pub(super) profile: Option<String>,
    /// Image of the CCM [default: the profile's]
    #[arg(long, value_name = "IMAGE", help_heading = CCM)]
    pub(super) image: Option<String>,
    /// Run this program instead of the image of the profile (on the embedded cluster), or instead of its plugin
    #[arg(long, value_name = "PATH", conflicts_with = "image", help_heading = CCM, value_hint = ValueHint::AnyPath)]
    pub(super) binary: Option<String>,
}
