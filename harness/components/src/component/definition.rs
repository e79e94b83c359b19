//! The interface of a component.

use harness_config::{PROGRAM, Profile, REFERENCE_PROFILE, Section};
use harness_core::check::Facility;
use serde_json::{Map, Value, json};

/// The keys of a mutant or a variant that replace those of its profile.
pub type Keys = Map<String, Value>;

/// How a reference program is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has a bug that a check must catch.
    Mutant,
    /// It is correct but unusual, and must pass all checks.
    Variant,
}

/// A kind of program that checks judge.
pub trait Component: Sync {
    /// The section of a profile that describes it.
    fn section(&self) -> &'static Section;

    /// Its name with an article, for use in sentences.
    fn noun(&self) -> &'static str;

    /// The built-in profile of the reference program, which passes all checks.
    fn reference(&self) -> &'static str;

    /// The built-in profile whose program can be a mutant or a variant.
    fn changeable(&self) -> &'static str {
        self.reference()
    }

    /// Makes the program of the profile [`Component::changeable`] the mutant or the variant with that id.
    fn change(&self, change: Change, id: &str, keys: &mut Keys);

    /// A profile of this component without a program: its name and its keys. `None` if a built-in profile has no program,
    /// or no check would catch it.
    fn absent(&self) -> Option<(&'static str, Keys)> {
        None
    }

    /// The facilities of a cluster that the component needs to run; without them, checks that need it are not observable.
    /// `None` for a CCM, which needs a cluster but runs on any.
    fn feature(&self) -> Option<Facility>;

    /// Whether its checks measure times that a busy machine distorts, so that it must be judged alone.
    fn is_timed(&self) -> bool {
        false
    }

    /// Its description in one line under a label; `None` if the profile has none.
    fn shown(&self, profile: &Profile) -> Option<(&'static str, String)>;

    /// The option that makes a run judge the reference program; empty if that is the default.
    fn option(&self) -> String {
        match self.reference() {
            REFERENCE_PROFILE => String::new(),
            name => format!("--profile {name} "),
        }
    }
}

/// Makes the container of a component's image run another command of this program, with this variable.
pub(super) fn run_instead(section: &Section, command: &str, variable: (&str, &str), keys: &mut Keys) {
    let (name, value) = variable;
    section_of(section, keys)["environment"] = json!({name: value});
    keys.insert("image".to_owned(), json!({"command": command}));
}

/// The command line that runs a command of this program.
pub(super) fn command_line(command: &str) -> Value {
    json!([PROGRAM, command])
}

pub(super) fn section_of<'a>(section: &Section, keys: &'a mut Keys) -> &'a mut Value {
    keys.entry(section.key).or_insert_with(|| json!({}))
}
