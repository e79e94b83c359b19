//! What a component is, whichever it is.

use harness_config::{PROGRAM, Profile, REFERENCE_PROFILE, Section};
use harness_core::check::Facility;
use serde_json::{Map, Value, json};

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

/// Has the container of a component's image run another command of this program, with this variable.
pub(super) fn run_instead(section: &Section, command: &str, variable: (&str, &str), keys: &mut Keys) {
    let (name, value) = variable;
    section_of(section, keys)["environment"] = json!({name: value});
    keys.insert("image".to_owned(), json!({"command": command}));
}

/// The line that runs a command of this program.
pub(super) fn command_line(command: &str) -> Value {
    json!([PROGRAM, command])
}

pub(super) fn section_of<'a>(section: &Section, keys: &'a mut Keys) -> &'a mut Value {
    keys.entry(section.key).or_insert_with(|| json!({}))
}
