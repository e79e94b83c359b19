//! What can be tested. A component is one implementation of [`Component`] and one line in [`COMPONENTS`]; a profile describes
//! it in the section that [`Component::section`] names.

mod ccm;
mod csi_migration;
mod image_credentials;
mod network_proxy;

use harness_config::{PROGRAM, Profile, ProfileKind, REFERENCE_PROFILE, Section};
use harness_core::check::{Facility, Party};
use serde_json::{Map, Value, json};

/// Every component, the CCM first.
pub static COMPONENTS: &[&dyn Component] = &[
    &ccm::Ccm,
    &image_credentials::ImageCredentialProvider,
    &network_proxy::NetworkProxy,
    &csi_migration::CsiMigration,
];

/// The keys that a mutant or a variant has in place of its profile's.
pub type Keys = Map<String, Value>;

/// How a reference program is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has a bug that a check must notice.
    Mutant,
    /// It is right in an unusual way, which no check may object to.
    Variant,
}

/// A kind of program that the checks judge.
pub trait Component: Sync {
    /// The part of a profile that describes it.
    fn section(&self) -> &'static Section;

    /// What it is called after a preposition, with its article.
    fn noun(&self) -> &'static str;

    /// The built-in profile of the reference program, which passes every check.
    fn reference(&self) -> &'static str;

    /// The built-in profile whose program can be a mutant or a variant.
    fn changeable(&self) -> &'static str {
        self.reference()
    }

    /// Makes the program of the profile [`Component::changeable`] the mutant or the variant of that id.
    fn change(&self, change: Change, id: &str, keys: &mut Keys);

    /// A profile of this component in which there is no program: what it is called, and its keys. `None` where a built-in
    /// profile has no program, or no check would notice.
    fn absent(&self) -> Option<(&'static str, Keys)> {
        None
    }

    /// What a cluster has to offer for the component to run on it; without it, checks that need it are not observable. `None`
    /// for a CCM, which runs on every cluster and needs one.
    fn feature(&self) -> Option<Facility>;

    /// Whether its checks measure times that a busy machine spoils, so that it is judged while no other is.
    fn is_timed(&self) -> bool {
        false
    }

    /// What a profile has of it, in one line under a label; `None` where it has none.
    fn shown(&self, profile: &Profile) -> Option<(&'static str, String)>;

    /// The option that makes a run judge the reference program; empty where that is the default.
    fn option(&self) -> String {
        match self.reference() {
            REFERENCE_PROFILE => String::new(),
            name => format!("--profile {name} "),
        }
    }
}

/// The component that a profile of this kind describes.
pub fn of_kind(kind: ProfileKind) -> &'static dyn Component {
    let found = COMPONENTS.iter().find(|one| one.section().kind == kind);
    *found.expect("each kind of profile has a component")
}

/// The component whose promises these are; `None` for those of the harness.
pub fn of_party(party: Party) -> Option<&'static dyn Component> {
    COMPONENTS.iter().find(|one| one.section().party == party).copied()
}

/// Has the container of a component's image run another command of this program, with this variable.
fn run_instead(section: &Section, command: &str, variable: (&str, &str), keys: &mut Keys) {
    let (name, value) = variable;
    section_of(section, keys)["environment"] = json!({name: value});
    keys.insert("image".to_owned(), json!({"command": command}));
}

/// The line that runs a command of this program.
fn command_line(command: &str) -> Value {
    json!([PROGRAM, command])
}

fn section_of<'a>(section: &Section, keys: &'a mut Keys) -> &'a mut Value {
    keys.entry(section.key).or_insert_with(|| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::SECTIONS;

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
