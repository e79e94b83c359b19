//! The kubelet's image credential provider.

use super::{Change, Component, Keys, command_line, section_of};
use harness_config::{Profile, ProfileKind, Section};
use harness_core::check::Facility;
use serde_json::{Value, json};

/// An image credential provider.
pub(super) struct ImageCredentialProvider;

/// The command of this program that is the reference with mutants and variants.
const CHANGEABLE: &str = "reference-credential-provider-mutant";
/// A file that cannot be executed.
const NO_PROGRAM: &str = "/dev/null";

impl ImageCredentialProvider {
    fn set_command(&self, command: Value, keys: &mut Keys) {
        section_of(self.section(), keys)["command"] = command;
    }
}

impl Component for ImageCredentialProvider {
    fn section(&self) -> &'static Section {
        Section::of(ProfileKind::ImageCredentials)
    }

    fn noun(&self) -> &'static str {
        "an image credential provider"
    }

    fn reference(&self) -> &'static str {
        "reference-credential-provider"
    }

    fn change(&self, change: Change, id: &str, keys: &mut Keys) {
        let flag = match change {
            Change::Mutant => "mutant",
            Change::Variant => "variant",
        };
        let mut line = command_line(CHANGEABLE);
        if let Some(words) = line.as_array_mut() {
            words.push(json!(format!("--{flag}={id}")));
        }
        self.set_command(line, keys);
    }

    fn absent(&self) -> Option<(&'static str, Keys)> {
        let mut keys = Keys::new();
        self.set_command(json!([NO_PROGRAM]), &mut keys);
        Some(("no plugin", keys))
    }

    fn feature(&self) -> Option<Facility> {
        Some(Facility::ImageCredentials)
    }

    /// It is called once, and may give the cloud only a few seconds: on a busy machine its answer is random.
    fn is_timed(&self) -> bool {
        true
    }

    fn shown(&self, profile: &Profile) -> Option<(&'static str, String)> {
        profile.image_credentials.as_ref().map(|plugin| ("plugin", plugin.to_string()))
    }
}
