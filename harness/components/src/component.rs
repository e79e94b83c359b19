//! The components that can be tested. A component is one implementation of [`Component`] and one line in [`COMPONENTS`];
//! a profile describes it in the section that [`Component::section`] names.

mod ccm;
mod csi_migration;
mod definition;
mod image_credentials;
mod network_proxy;

pub use definition::{Change, Component, Keys};

use definition::{command_line, run_instead, section_of};
use harness_config::ProfileKind;
use harness_core::check::Party;

/// All components, the CCM first.
pub static COMPONENTS: &[&dyn Component] = &[
    &ccm::Ccm,
    &image_credentials::ImageCredentialProvider,
    &network_proxy::NetworkProxy,
    &csi_migration::CsiMigration,
];

/// The component that a profile of this kind describes.
pub fn of_kind(kind: ProfileKind) -> &'static dyn Component {
    let found = COMPONENTS.iter().find(|one| one.section().kind == kind);
    *found.expect("each kind of profile has a component")
}

/// The component that these claims are about; `None` for those of the harness.
pub fn of_party(party: Party) -> Option<&'static dyn Component> {
    COMPONENTS.iter().find(|one| one.section().party == party).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{Profile, SECTIONS};
    use serde_json::{Value, json};

    #[test]
    fn each_section_of_a_profile_has_one_component_and_each_reference_a_profile() {
        let kinds = |kind: ProfileKind| COMPONENTS.iter().filter(|one| one.section().kind == kind).count();
        assert!(SECTIONS.iter().all(|section| kinds(section.kind) == 1));
        assert_eq!(SECTIONS.len(), COMPONENTS.len());
        assert!(of_party(Party::Harness).is_none());
        for one in COMPONENTS {
            let profile = Profile::load(one.reference()).expect("a built-in profile");
            assert_eq!(profile.kind, one.section().kind, "{}", one.reference());
            assert!(one.shown(&profile).is_some(), "{}", one.reference());
            assert_eq!(Profile::load(one.changeable()).expect("a built-in profile").kind, profile.kind);
        }
    }

    #[test]
    fn a_change_names_the_mutant_and_keeps_the_other_keys() {
        for one in COMPONENTS {
            let mut keys = Keys::new();
            let key = one.section().key;
            if !key.is_empty() {
                keys.insert(key.to_owned(), json!({"config": "other.yaml"}));
            }
            one.change(Change::Mutant, "M-1", &mut keys);
            let text = Value::Object(keys.clone()).to_string();
            assert!(text.contains("M-1"), "{}: {text}", one.noun());
            assert!(key.is_empty() || keys[key]["config"] == "other.yaml", "{}: {text}", one.noun());
        }
    }
}
