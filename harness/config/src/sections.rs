//! The components that a profile can describe: a CCM, and others that are tested with it or alone. Each has a
//! section.

use super::enums::ProfileKind;
use super::profile::Profile;
use super::section_keys::{CSI_MIGRATION, IMAGE_CREDENTIALS, NETWORK_PROXY};
use harness_core::check::Party;
use std::collections::BTreeSet;

/// The part of a profile that describes one component.
#[derive(Debug)]
pub struct Section {
    /// The `kind` of a profile that describes only this component.
    pub kind: ProfileKind,
    /// The party that the checks of this component judge.
    pub party: Party,
    /// The key of the section; empty for the CCM, whose keys are at the top of the profile.
    pub key: &'static str,
    /// Keys that a profile of this kind must have, each with a hint for a user who omits it.
    pub(crate) required: &'static [(&'static str, &'static str)],
    /// Keys of a CCM that also apply to this component.
    pub(crate) shares: &'static [&'static str],
    /// Whether the section is not allowed in the profile of a CCM.
    pub(crate) alone: bool,
    /// Whether it runs on other machines than the API server, so that a cluster needs more than one.
    pub on_workers: bool,
    /// Whether its checks get a cluster if the user names none.
    pub(crate) wants_cluster: bool,
    /// Whether a profile describes this component.
    pub(crate) is_in: fn(&Profile) -> bool,
}

/// Every section, the CCM's first.
pub static SECTIONS: &[Section] = &[
    Section {
        kind: ProfileKind::Profile,
        party: Party::Ccm,
        key: "",
        required: &[
            ("manifests", "list the CCM's manifests ('[]' deploys nothing)"),
            ("capabilities", "say what the CCM can do, e.g. 'instances: v2'"),
        ],
        shares: &[],
        alone: false,
        on_workers: false,
        wants_cluster: true,
        is_in: Profile::has_ccm,
    },
    Section {
        kind: ProfileKind::ImageCredentials,
        party: Party::ImageCredentials,
        key: IMAGE_CREDENTIALS,
        required: &[("imageCredentials", "describe the plugin")],
        shares: &[],
        alone: false,
        on_workers: false,
        wants_cluster: false,
        is_in: |profile| profile.image_credentials.is_some(),
    },
    Section {
        kind: ProfileKind::NetworkProxy,
        party: Party::NetworkProxy,
        key: NETWORK_PROXY,
        required: &[("networkProxy", "describe server and agents")],
        shares: &["image"],
        alone: false,
        on_workers: true,
        wants_cluster: false,
        is_in: |profile| profile.network_proxy.is_some(),
    },
    Section {
        kind: ProfileKind::CsiMigration,
        party: Party::CsiMigration,
        key: CSI_MIGRATION,
        required: &[("csiMigration", "name drivers and their manifests")],
        shares: &["image"],
        alone: true,
        on_workers: true,
        wants_cluster: true,
        is_in: |profile| profile.csi_migration.is_some(),
    },
];

impl Section {
    /// The section for a profile of this kind.
    pub fn of(kind: ProfileKind) -> &'static Section {
        SECTIONS.iter().find(|section| section.kind == kind).expect("each kind of profile has a section")
    }

    /// The sections of the components in this profile.
    pub(crate) fn all_in(profile: &Profile) -> impl Iterator<Item = &'static Section> {
        SECTIONS.iter().filter(move |section| (section.is_in)(profile))
    }
}

impl Profile {
    /// The parties that are judged.
    pub fn subjects(&self) -> BTreeSet<Party> {
        Section::all_in(self).map(|section| section.party).collect()
    }

    /// All its declarations as text, for the report.
    pub fn declared_words(&self) -> Vec<String> {
        let mut words = if self.has_ccm() { self.capabilities.declared() } else { Vec::new() };
        let sections = Section::all_in(self).filter(|section| section.party != Party::Ccm);
        words.extend(sections.map(|section| section.key.to_owned()));
        words
    }
}
