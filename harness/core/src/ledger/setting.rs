//! With what a run was made: every value that bears on how much its result says, and who set it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SetBy {
    /// Nobody: it is the harness's default.
    Default,
    /// The harness: the machinery of this cluster needs it.
    Harness,
    /// The CCM's profile.
    Profile,
    /// The run file.
    RunFile,
    /// An option of the command line.
    Option,
    /// A variable of the environment.
    Environment,
}

impl fmt::Display for SetBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SetBy::Default => "default",
            SetBy::Harness => "harness",
            SetBy::Profile => "profile",
            SetBy::RunFile => "run file",
            SetBy::Option => "option",
            SetBy::Environment => "environment",
        })
    }
}

/// How a value compares with what the contract demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bearing {
    /// The contract demands nothing of it.
    None,
    /// The contract's own value.
    AsContract,
    /// It asks more of the CCM than the contract does.
    Stricter,
    /// It asks less: the result is at most partial.
    Looser,
}

/// One value in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setting {
    /// What it is of: the run file's key (`limits.scale`), a budget's (`limits.budgets.watch`), or `manifests` for a change
    /// of the CCM's manifests.
    pub setting: String,
    /// The value in force.
    pub value: String,
    /// The contract's value, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Who set it.
    pub from: SetBy,
    /// How it compares with the contract.
    pub bearing: Bearing,
}

impl Setting {
    /// A value of which the contract demands nothing.
    pub fn told(setting: &str, value: impl fmt::Display, from: SetBy) -> Setting {
        Setting {
            setting: setting.to_owned(),
            value: value.to_string(),
            contract: None,
            from,
            bearing: Bearing::None,
        }
    }

    /// A change of the CCM's manifests, one sentence.
    pub fn of_manifests(what: impl fmt::Display, from: SetBy) -> Setting {
        Setting::told("manifests", what, from)
    }

    /// Whether it makes the result at most partial.
    pub fn relaxes(&self) -> bool {
        self.bearing == Bearing::Looser
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.setting, self.value)?;
        match &self.contract {
            Some(contract) => write!(f, " (contract: {contract}; {})", self.from),
            None => write!(f, " ({})", self.from),
        }
    }
}
