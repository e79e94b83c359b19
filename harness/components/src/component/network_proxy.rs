//! The API server's network proxy.

use super::{Change, Component, Keys, command_line, run_instead, section_of};
use harness_config::{Profile, ProfileKind, Section};
use harness_core::check::Facility;

/// A network proxy.
pub(super) struct NetworkProxy;

/// The command of this program that is the reference with mutants and variants.
const CHANGEABLE: &str = "reference-network-proxy-mutant";
/// The variable that selects one.
const VARIABLE: &str = "REFERENCE_NETWORK_PROXY_MUTANT";

impl Component for NetworkProxy {
    fn section(&self) -> &'static Section {
        Section::of(ProfileKind::NetworkProxy)
    }

    fn noun(&self) -> &'static str {
        "a network proxy"
    }

    fn reference(&self) -> &'static str {
        "reference-network-proxy"
    }

    /// It runs in containers and as a process on this machine.
    fn change(&self, _: Change, id: &str, keys: &mut Keys) {
        run_instead(self.section(), CHANGEABLE, (VARIABLE, id), keys);
        section_of(self.section(), keys)["program"] = command_line(CHANGEABLE);
    }

    fn feature(&self) -> Option<Facility> {
        Some(Facility::NetworkProxy)
    }

    fn shown(&self, profile: &Profile) -> Option<(&'static str, String)> {
        profile.network_proxy.as_ref().map(|proxy| ("proxy", proxy.to_string()))
    }
}
