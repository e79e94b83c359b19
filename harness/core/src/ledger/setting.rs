//! The settings of a run that affect what its result means, and who set each.

use crate::output::first_of;
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

/// An option of the command line is shown as it is typed.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(option) = option_of(&self.setting).filter(|_| self.from == SetBy::Option) {
            f.write_str(option)?;
            if self.value != "true" {
                write!(f, " {}", some_of(&self.value))?;
            }
            return self.contract.as_ref().map_or(Ok(()), |contract| write!(f, " (contract: {contract})"));
        }
        write!(f, "{} {}", self.setting, some_of(&self.value))?;
        match &self.contract {
            Some(contract) => write!(f, " (contract: {contract}; {})", self.from),
            None => write!(f, " ({})", self.from),
        }
    }
}

/// A value; of a long list only the beginning, such as the ids of a report that `--failed-from` has read.
fn some_of(value: &str) -> String {
    const SHOWN: usize = 6;
    first_of(&value.split(", ").collect::<Vec<_>>(), SHOWN)
}

/// The keys of the release that a run upgrades from.
const UPGRADE: &str = "upgradeFrom.";

/// The release that a run upgrades from, such as `profile acme, image acme:v1`; `None` if there is none.
pub fn upgrades_from(settings: &[Setting]) -> Option<String> {
    let parts = settings.iter().filter_map(|one| Some((one.setting.strip_prefix(UPGRADE)?, &one.value)));
    let words: Vec<String> = parts.map(|(what, value)| format!("{what} {value}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Keys of the run file, and the options that set them.
const OPTIONS: [(&str, &str); 29] = [
    ("profile", "--profile"),
    ("image", "--image"),
    ("binary", "--binary"),
    ("cluster.backend", "--cluster"),
    ("cluster.topology", "--topology"),
    ("cluster.kubernetes", "--kubernetes"),
    ("cluster.kubeconfig", "--kubeconfig"),
    ("cluster.allowForeign", "--allow-foreign-cluster"),
    ("cluster.providerId", "--provider-id"),
    ("cluster.nodeIp", "--node-ip"),
    ("cluster.seed", "--seed"),
    ("select.suites", "--suite"),
    ("select.only", "--only"),
    ("select.skip", "--skip"),
    ("select.quick", "--quick"),
    ("select.shard", "--shard"),
    ("select.run", "--shard-of"),
    ("soak", "--soak"),
    ("upgradeFrom", "--upgrade-from"),
    ("upgradeFrom.profile", "--upgrade-from"),
    ("upgradeFrom.image", "--upgrade-from"),
    ("upgradeFrom.binary", "--upgrade-from"),
    ("output.dir", "--out"),
    ("keep", "--keep"),
    ("jobs", "--jobs"),
    ("clusters", "--clusters"),
    ("timing", "--timing"),
    ("requireComplete", "--require-complete"),
    ("certify", "--certify"),
];

/// The option that sets a key of the run file, or an entry of it such as `select.only[0]`.
pub fn option_of(key: &str) -> Option<&'static str> {
    let list = key.split('[').next().unwrap_or(key);
    OPTIONS.iter().find(|(known, _)| *known == list).map(|(_, option)| *option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_shown_as_it_is_typed_and_other_settings_with_who_set_them() {
        let shown = |setting, value, from| Setting::given(setting, value, from).to_string();
        assert_eq!(shown("select.only", "SVC-*, NODE-*", SetBy::Option), "--only SVC-*, NODE-*");
        assert_eq!(shown("select.only", "SVC-*", SetBy::RunFile), "select.only SVC-* (run file)");
        assert_eq!(shown("select.quick", "true", SetBy::Option), "--quick");
        let many = ["A-01"; 9].join(", ");
        let some = ["A-01"; 6].join(", ");
        assert_eq!(shown("select.only", &many, SetBy::Option), format!("--only {some} and 3 more"));
        assert_eq!(shown("limits.scale", "2", SetBy::Option), "limits.scale 2 (option)");
        let contract = Some("default".to_owned());
        let timing = Setting { contract, ..Setting::given("timing", "random", SetBy::Option) };
        assert_eq!(timing.to_string(), "--timing random (contract: default)");
    }
}
