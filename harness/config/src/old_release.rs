//! The release that a run upgrades from: its own profile, image or program next to those of the CCM under test.

use super::formats::ImageReference;
use super::profile::Profile;
use super::schema::ordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `upgradeFrom` of a run file. Without a profile, the old release has that of the CCM under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct UpgradeKeys {
    /// The profile of the old release, if its manifests or flags differ: a built-in name, or the path of a profile folder
    /// or file.
    #[schemars(extend("x-default" = "that of the CCM under test"), example = &"./my-ccm-1.35")]
    pub profile: Option<String>,
    /// The image of the old release, instead of the one in its profile.
    #[schemars(with = "Option<ImageReference>", example = &"registry.example/acme-ccm:v1.1.0")]
    pub image: Option<String>,
    /// A program on this machine that is the old release; only the embedded cluster runs it.
    #[schemars(example = &"./ccm-1.35")]
    pub binary: Option<String>,
}

/// The release that is installed before the CCM under test.
#[derive(Clone, Debug, PartialEq)]
pub struct OldRelease {
    /// Its profile.
    pub profile: Profile,
    /// Its program on this machine, instead of the profile's image.
    pub binary: Option<PathBuf>,
}
