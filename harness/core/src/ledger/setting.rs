//! The settings of a run that affect what its result means, and who set each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SetBy {
    /// Not set: the harness's default.
    Default,
    /// The harness, because this cluster needs it.
    Harness,
    /// The CCM's profile.
    Profile,
    /// The run file.
    RunFile,
    /// An option of the command line.
    Option,
    /// An environment variable.
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

/// How a value compares with the contract's requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContractComparison {
    /// The contract requires nothing.
    None,
    /// The contract's own value.
    AsContract,
    /// It is stricter for the CCM than the contract.
    Stricter,
    /// It is less strict: the result is at most partial.
    Looser,
}

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setting {
    /// Its name: the run file's key (`limits.scale`), a budget's (`limits.budgets.watch`), or `manifests` for a change of
    /// the CCM's manifests.
    pub setting: String,
    /// The effective value.
    pub value: String,
    /// The contract's value, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Who set it.
    pub from: SetBy,
    /// How it compares with the contract.
    pub bearing: ContractComparison,
}

impl Setting {
    /// A value for which the contract has no requirement.
    pub fn given(setting: &str, value: impl fmt::Display, from: SetBy) -> Setting {
        Setting {
            setting: setting.to_owned(),
            value: value.to_string(),
            contract: None,
            from,
            bearing: ContractComparison::None,
        }
    }

    /// A change of the CCM's manifests, one sentence.
    pub fn of_manifests(what: impl fmt::Display, from: SetBy) -> Setting {
        Setting::given("manifests", what, from)
    }

    /// Whether it makes the result at most partial.
    pub fn relaxes(&self) -> bool {
        self.bearing == ContractComparison::Looser
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
