//! The cloud controller manager.

use super::{Change, Component, Keys};
use harness_config::{Image, Profile, ProfileKind, REFERENCE_PROFILE, Section};
use harness_core::check::Facility;
use serde_json::json;

/// A cloud controller manager.
pub(super) struct Ccm;

impl Component for Ccm {
    fn section(&self) -> &'static Section {
        Section::of(ProfileKind::Profile)
    }

    fn noun(&self) -> &'static str {
        "a CCM"
    }

    fn reference(&self) -> &'static str {
        REFERENCE_PROFILE
    }

    fn changeable(&self) -> &'static str {
        "mutants"
    }

    /// By a variable, since the manifests as shipped contain it, unlike a flag.
    fn change(&self, change: Change, id: &str, keys: &mut Keys) {
        let variable = match change {
            Change::Mutant => "REFERENCE_CCM_MUTANT",
            Change::Variant => "REFERENCE_CCM_VARIANT",
        };
        keys.insert("environment".to_owned(), json!({variable: id}));
    }

    fn feature(&self) -> Option<Facility> {
        None
    }

    fn shown(&self, profile: &Profile) -> Option<(&'static str, String)> {
        let image = match &profile.image {
            None if profile.deploys_nothing() => "none: nothing is deployed".to_owned(),
            None => "that in the manifests, or the one given with --image or --binary".to_owned(),
            Some(Image::Reference(reference)) => reference.clone(),
            Some(Image::Command(command)) => format!("this program, run as '{command}'"),
            Some(Image::Build(build)) => format!("built from package {}", build.package),
        };
        profile.has_ccm().then_some(("image", image))
    }
}
