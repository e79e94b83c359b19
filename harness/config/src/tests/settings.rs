//! The settings of a plan: every value, who set it, and how it compares with the contract.

use super::{folder, planned};
use crate::{BackendChoice, Budget, ClusterKeys, Given, LimitKeys, RunFile, SelectKeys, Source, plan};
use harness_core::ledger::{ContractComparison, SetBy, Setting};

/// The settings of a run file.
fn settings(run_file: &str, typed: RunFile) -> Vec<Setting> {
    let (_folder, plan) = planned(run_file, typed);
    plan.expect("a sound file").settings
}

/// The value of one setting, who set it, and how it compares.
#[track_caller]
fn of(settings: &[Setting], name: &str) -> (String, SetBy, ContractComparison) {
    let found = settings.iter().find(|one| one.setting == name);
    let one = found.unwrap_or_else(|| panic!("no {name} in {settings:?}"));
    (one.value.clone(), one.from, one.bearing)
}

#[test]
fn nothing_said_is_the_contract_but_for_the_faster_pace() {
    let settings = plan(&Source::Defaults, RunFile::default()).expect("a plan").settings;
    assert_eq!(settings.iter().filter(|one| one.relaxes()).count(), 0, "{settings:?}");
    for budget in Budget::ALL {
        let (_, from, bearing) = of(&settings, &format!("limits.budgets.{budget}"));
        let paced = matches!(budget, Budget::Failover | Budget::StepDown | Budget::Route);
        let expected = if paced { ContractComparison::Stricter } else { ContractComparison::AsContract };
        assert_eq!((from, bearing), (SetBy::Default, expected), "{budget}");
    }
    assert_eq!(of(&settings, "timing"), ("fast".to_owned(), SetBy::Default, ContractComparison::None));
    assert_eq!(of(&settings, "jobs"), ("32".to_owned(), SetBy::Default, ContractComparison::None));
}

#[test]
fn a_factor_and_single_budgets_of_a_run_file_are_reported_with_their_direction() {
    let text = "limits: {scale: 2, budgets: {life: 5s, quiet-life: 5s, quiet-nodes: 40s}}\ntiming: default";
    let settings = settings(text, RunFile::default());
    for (name, value, bearing) in [
        ("limits.scale", "2", ContractComparison::Looser),
        ("limits.budgets.watch", "20s", ContractComparison::Looser),
        ("limits.budgets.life", "5s", ContractComparison::Stricter),
        ("limits.budgets.quiet-life", "5s", ContractComparison::Looser),
        ("limits.budgets.quiet-nodes", "40s", ContractComparison::Stricter),
        ("limits.budgets.quiet-services", "1m30s", ContractComparison::Stricter),
        ("limits.budgets.failover", "36.2s", ContractComparison::Looser),
    ] {
        assert_eq!(of(&settings, name), (value.to_owned(), SetBy::RunFile, bearing), "{name}");
    }
    assert_eq!(of(&settings, "timing").1, SetBy::RunFile);
}

#[test]
fn a_factor_below_one_is_not_a_relaxation() {
    let settings = settings("limits: {scale: 0.5}", RunFile::default());
    assert_eq!(settings.iter().filter(|one| one.relaxes()).count(), 0, "{settings:?}");
}

#[test]
fn a_profiles_own_budget_and_election_are_relaxations_and_a_run_file_wins_over_them() {
    let profile = "apiVersion: ccm-conformance/v1\nkind: Profile\nname: slow\nmanifests: []\n\
                   capabilities: {instances: v2}\nbudgets: {life: 60s, watch: 30s}\n\
                   leaseTiming: {duration: 30s, renewDeadline: 20s, retryPeriod: 5s}\n";
    let folder = folder(&[
        ("profile.yaml", profile),
        (
            "run.yaml",
            "apiVersion: ccm-conformance/v1\nkind: Conformance\nprofile: ./profile.yaml\nlimits: {budgets: {watch: 10s}}\n",
        ),
    ]);
    let source = Source::File(folder.path().join("run.yaml"));
    let settings = plan(&source, RunFile::default()).expect("a plan").settings;
    let looser = |value: &str| (value.to_owned(), SetBy::Profile, ContractComparison::Looser);
    assert_eq!(of(&settings, "limits.budgets.life"), looser("1m"));
    // 30 s of lease, two polls of 11 s, 6.2 s: above the contract's 30 s.
    assert_eq!(of(&settings, "limits.budgets.failover"), looser("58.2s"));
    let watch = of(&settings, "limits.budgets.watch");
    assert_eq!(watch, ("10s".to_owned(), SetBy::RunFile, ContractComparison::AsContract));
}

#[test]
fn options_and_the_environment_are_distinguished() {
    let cluster = |backend| ClusterKeys { backend: Some(backend), ..ClusterKeys::default() };
    let environment = RunFile { cluster: cluster(BackendChoice::Kind), ..RunFile::default() };
    let select = SelectKeys { skip: Some(vec!["HA-*".into()]), quick: Some(true), ..SelectKeys::default() };
    let limits = LimitKeys { scale: Some(3.0), ..LimitKeys::default() };
    let typed = RunFile { select, limits, jobs: Some(4), ..RunFile::default() };
    let given = Given { environment, typed, ..Given::default() };
    let settings = plan(&Source::Defaults, given.clone()).expect("a plan").settings;
    let setting = |name: &str| {
        let (value, from, _) = of(&settings, name);
        (value, from)
    };
    assert_eq!(setting("cluster.backend"), ("kind".to_owned(), SetBy::Environment));
    assert_eq!(setting("select.skip"), ("HA-*".to_owned(), SetBy::Option));
    assert_eq!(setting("select.quick"), ("true".to_owned(), SetBy::Option));
    assert_eq!(setting("limits.scale"), ("3".to_owned(), SetBy::Option));
    assert_eq!(setting("limits.budgets.boot"), ("9m".to_owned(), SetBy::Option));
    assert_eq!(setting("jobs"), ("4".to_owned(), SetBy::Option));
    let typed = RunFile { cluster: cluster(BackendChoice::Embedded), ..RunFile::default() };
    let settings = plan(&Source::Defaults, Given { typed, ..given }).expect("a plan").settings;
    let backend = of(&settings, "cluster.backend");
    assert_eq!(backend, ("embedded".to_owned(), SetBy::Option, ContractComparison::None));
}
