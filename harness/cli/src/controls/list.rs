//! The lists of mutants, conforming variants and adversaries, in the form of their files.

use harness_clouds::Settings;
use harness_config::{HumanDuration, ProfileKind, did_you_mean, yaml};
use harness_core::check::{CheckId, Level, row_of};
use harness_core::files;
use harness_core::ledger::Share;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An entry of `mutants.yaml`: a faulty CCM, and the checks that must notice it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    pub(crate) mutant: String,
    /// What is wrong with it.
    pub(crate) what: String,
    /// The component that it is a mutant of.
    #[serde(default = "ccm")]
    pub(crate) of: ProfileKind,
    /// Whether its program is the unchanged reference CCM: then the fault is in its profile.
    #[serde(default)]
    pub(crate) as_is: bool,
    /// The changed keys of its profile.
    #[serde(default)]
    pub(crate) profile: Map<String, Value>,
    /// The duration of its soak checks.
    pub(crate) soak: Option<HumanDuration>,
    /// Whether it replaces the reference CCM in an upgrade.
    #[serde(default)]
    pub(crate) upgrades: bool,
    /// The changed keys of the profile of the release before.
    #[serde(default)]
    pub(crate) before: Map<String, Value>,
    /// Checks, or contract rows for all of their claims.
    pub(crate) checks: Vec<String>,
}

/// An entry of `variants.yaml`: a CCM that is correct in an unusual way.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) variant: String,
    /// What it is.
    #[serde(default = "ccm")]
    pub(crate) of: ProfileKind,
    /// What it does differently.
    pub(crate) what: String,
    /// Whether its program is the unchanged reference CCM: then only its profile and its cloud differ.
    #[serde(default)]
    pub(crate) as_is: bool,
    /// The changed keys of its profile.
    #[serde(default)]
    pub(crate) profile: Map<String, Value>,
    /// The settings of its cloud.
    #[serde(default)]
    pub(crate) cloud: Settings,
    /// How many checks run at the same time on each cluster.
    pub(crate) jobs: Option<u32>,
    /// The number of clusters that share its checks; one if absent.
    pub(crate) clusters: Option<usize>,
    /// The duration of its soak checks; they are left out if absent.
    pub(crate) soak: Option<HumanDuration>,
    /// Whether it replaces the reference CCM in an upgrade; otherwise the checks of upgrades are left out.
    #[serde(default)]
    pub(crate) upgrades: bool,
    /// The changed keys of the profile of the release before.
    #[serde(default)]
    pub(crate) before: Map<String, Value>,
    /// Suites, contract rows or their prefixes, checks; all if empty.
    #[serde(default)]
    pub(crate) checks: Vec<String>,
}

/// An entry of `adversaries.yaml`: a hostile CCM, and what must hold in spite of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Adversary {
    pub(crate) adversary: String,
    /// What it does.
    pub(crate) what: String,
    /// Checks, or contract rows for all of their claims, that fail on it.
    #[serde(default)]
    pub(crate) fails: Vec<String>,
    /// Checks that are blocked by it.
    #[serde(default)]
    pub(crate) blocked: Vec<String>,
    /// If no check fails or is blocked: the reason why no check can blame it. Either the contract has no
    /// claim about what it does, or that cannot be seen; then the entry shows that all other checks still
    /// pass.
    pub(crate) unblamed: Option<String>,
    /// Checks that it does not affect and that pass.
    #[serde(default)]
    pub(crate) passes: Vec<String>,
    /// How many seconds all of them may take, from its deployment until it is gone.
    pub(crate) within: u64,
    /// Whether it affects other environments of this machine: then no other CCM is judged at the same time.
    #[serde(default)]
    pub(crate) alone: bool,
}

/// The default component of an entry.
fn ccm() -> ProfileKind {
    ProfileKind::Profile
}

impl Mutant {
    /// Whether a check is one of those that must notice it; `all` are the existing checks. A name that is
    /// that of a check means only that check, not the other claims of its row.
    pub(crate) fn is_for(&self, check: CheckId, all: &[CheckId]) -> bool {
        self.checks.iter().any(|name| match all.iter().any(|id| id == name) {
            true => check == *name,
            false => check.is_named(name),
        })
    }
}

impl Adversary {
    /// The names of all its checks.
    pub(crate) fn checks(&self) -> impl Iterator<Item = &String> {
        self.fails.iter().chain(&self.blocked).chain(&self.passes)
    }

    /// Whether it names checks that blame it, or else the reason why none can.
    pub(crate) fn is_blamed_or_says_why(&self) -> bool {
        let blamed = !self.fails.is_empty() || !self.blocked.is_empty();
        blamed != self.unblamed.as_ref().is_some_and(|why| !why.is_empty())
    }
}

impl Variant {
    /// Whether it is judged by a check of this suite.
    pub(crate) fn meets(&self, suite: &str, check: CheckId) -> bool {
        let row = row_of(check.as_str());
        let begins = |name: &str| row.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        self.checks.is_empty()
            || self.checks.iter().any(|name| name == suite || check.is_named(name) || begins(name))
    }
}

/// Binding checks without a mutant, which are not proven to fail (contract, section 20).
pub(crate) fn unproven(mutants: &[Mutant], checks: &[(CheckId, Level)]) -> Vec<CheckId> {
    let all: Vec<CheckId> = checks.iter().map(|(id, _)| *id).collect();
    let binding = checks.iter().filter(|(_, level)| *level != Level::Info).map(|(id, _)| *id);
    binding.filter(|id| !mutants.iter().any(|one| one.is_for(*id, &all))).collect()
}

/// The choice of a whole list.
pub(crate) const ALL: &str = "all";

/// The selected entries of `mutants.yaml`; without a selection, the share of all.
///
/// # Errors
/// A selected entry does not exist.
pub(crate) fn mutants(chosen: &[String], share: Share) -> Result<Vec<Mutant>, String> {
    chosen_of("mutants/mutants.yaml", ("mutant", "mutant"), (chosen, share), |one: &Mutant| &one.mutant)
}

/// The selected entries of `variants.yaml`; without a selection, the share of all.
///
/// # Errors
/// A choice that is not in the list.
pub(crate) fn variants(chosen: &[String], share: Share) -> Result<Vec<Variant>, String> {
    chosen_of("mutants/variants.yaml", ("variant", "conforming variant"), (chosen, share), |one: &Variant| {
        &one.variant
    })
}

/// The selected entries of `adversaries.yaml`; without a selection, the share of all.
///
/// # Errors
/// A choice that is not in the list.
pub(crate) fn adversaries(chosen: &[String], share: Share) -> Result<Vec<Adversary>, String> {
    chosen_of("mutants/adversaries.yaml", ("adversary", "adversary"), (chosen, share), |one: &Adversary| {
        &one.adversary
    })
}

fn chosen_of<T: DeserializeOwned>(
    name: &str,
    (option, kind): (&str, &str),
    (chosen, share): (&[String], Share),
    id: impl Fn(&T) -> &String,
) -> Result<Vec<T>, String> {
    let path = files::built_in(name);
    let text = files::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut list: Vec<T> =
        yaml::from_str(&text, &path).map_err(|error| harness_core::check::chain(&error))?;
    if chosen.is_empty() || chosen == [ALL] {
        return Ok(share.keep(list));
    }
    let is = |one: &T, wanted: &String| id(one).eq_ignore_ascii_case(wanted);
    if let Some(unknown) = chosen.iter().find(|wanted| !list.iter().any(|one| is(one, wanted))) {
        let near = did_you_mean(unknown, list.iter().map(|one| id(one).as_str()));
        let hint =
            if near.is_empty() { "; 'ccm-conformance controls --list' shows all" } else { near.as_str() };
        return Err(format!("--{option}: unknown {kind} '{unknown}'{hint}"));
    }
    list.retain(|one| chosen.iter().any(|wanted| is(one, wanted)));
    Ok(share.keep(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_can_be_read_and_have_no_duplicates() {
        let mutants = mutants(&[], Share::WHOLE).expect("mutants");
        let variants = variants(&[], Share::WHOLE).expect("variants");
        let adversaries = adversaries(&[], Share::WHOLE).expect("adversaries");
        let named = mutants.iter().map(|one| &one.mutant).chain(variants.iter().map(|one| &one.variant));
        let names: Vec<&String> = named.chain(adversaries.iter().map(|one| &one.adversary)).collect();
        let distinct: std::collections::BTreeSet<&&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(
            variants.iter().all(|one| !one.what.is_empty()) && mutants.iter().all(|one| !one.what.is_empty())
        );
        assert!(adversaries.iter().all(|one| !one.what.is_empty() && one.checks().next().is_some()));
        let silent: Vec<&String> =
            adversaries.iter().filter(|one| !one.is_blamed_or_says_why()).map(|one| &one.adversary).collect();
        assert!(silent.is_empty(), "no check blames {silent:?}, and nothing says why; or both");
        let refused = super::variants(&["S-XYZXYZXYZ".to_owned()], Share::WHOLE).expect_err("unknown");
        assert!(
            refused.starts_with("--variant: unknown conforming variant 'S-XYZXYZXYZ'")
                && refused.contains("--list"),
            "{refused}"
        );
        let all = super::variants(&[ALL.to_owned()], Share::WHOLE).expect("variants");
        assert_eq!(all.len(), variants.len());
        let one = super::variants(&[variants[0].variant.clone()], Share::WHOLE).expect("variants");
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn a_check_is_proven_by_a_mutant_that_names_it_or_its_row_where_no_check_has_that_name() {
        let text = "- {mutant: M-1, what: a, checks: [SVC-UPD-01]}\n- {mutant: M-2, what: b, checks: [SVC-DEL-01.held, SVC-ERR-01]}";
        let list: Vec<Mutant> = yaml::from_str(text, "m.yaml".as_ref()).expect("mutants");
        let check = |row, claim, level| (CheckId::of_claim(row, claim), level);
        let checks = [
            check("SVC-UPD-01", "port", Level::Must),
            check("SVC-DEL-01", "held", Level::Must),
            check("SVC-DEL-01", "slow-cloud", Level::Should),
            (CheckId::new("SVC-ERR-01"), Level::Must),
            check("SVC-ERR-01", "event", Level::Must),
            check("SVC-ERR-02", "told", Level::Info),
        ];
        let found = unproven(&list, &checks);
        let found: Vec<&str> = found.iter().map(CheckId::as_str).collect();
        assert_eq!(found, ["SVC-DEL-01.slow-cloud", "SVC-ERR-01.event"]);
    }

    #[test]
    fn a_variant_meets_suites_rows_and_the_rows_that_begin_so() {
        let of = |checks: &[&str]| Variant {
            variant: "S".to_owned(),
            of: ProfileKind::Profile,
            what: "w".to_owned(),
            as_is: false,
            profile: Map::new(),
            cloud: Settings::default(),
            jobs: None,
            clusters: None,
            soak: None,
            upgrades: false,
            before: Map::new(),
            checks: checks.iter().map(|name| (*name).to_owned()).collect(),
        };
        let check = CheckId::of_claim("SVC-UPD-01", "port");
        for names in [&[][..], &["suite"], &["SVC-UPD-01"], &["SVC-UPD-01.port"], &["SVC-UPD"], &["SVC"]] {
            assert!(of(names).meets("suite", check), "{names:?}");
        }
        for names in [&["other"][..], &["SVC-UPD-0"], &["SVC-UPD-02"], &["SV"], &["SVC-UPD-01.affinity"]] {
            assert!(!of(names).meets("suite", check), "{names:?}");
        }
    }
}
