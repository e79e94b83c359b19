//! Describes what was tested, for the report.

use super::planned::{Planned, framework_notes, of_contract};
use harness_clusters::{Fidelity, facts};
use harness_config::contract::{Contract, CountedCheck};
use harness_config::{
    BACKEND, BackendKind, CLUSTERS, Choice, Image, RunPlan, SEED, SELECT, SHARD, TEST_FILTER,
    declared_not_judged,
};
use harness_core::check::{Before, Capability};
use harness_core::ledger::{ContractComparison, SetBy, Setting, ShardOf, SkipReason, Subject};
use harness_report::{Golden, GoldenCheck};
use harness_session::ccm::{Form, fingerprint};
use harness_session::{Session, load_manifests};
use harness_testkit::{Check, Suite};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was tested.
pub(super) fn subject(
    suites: &'static [Suite],
    plan: &RunPlan,
    planned: &[Planned],
    lanes: &[Arc<Session>],
    reproduce: &str,
) -> Subject {
    let manifests = load_manifests(plan).ok().flatten();
    let mut subject = Subject {
        profile: plan.profile.name.clone(),
        manifests_sha256: manifests.map(|m| fingerprint(&m.documents)).unwrap_or_default(),
        framework_version: plan.profile.framework.version(),
        capabilities: plan.profile.declared_words(),
        declared_not_judged: declared_not_judged(&plan.profile, &judged(suites)),
        dialect: plan.profile.cloud.dialect().unwrap_or_default().to_owned(),
        backend: plan.cluster.backend().to_string(),
        simulated: facts(plan.cluster.backend()).fidelity == Fidelity::Simulated,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        check_set: golden(suites).check_set(),
        certify: plan.certify,
        settings: in_force(&plan.settings, planned),
        reproduce: reproduce.to_owned(),
        shard: plan.selection.shard.map(|share| ShardOf { share, run: plan.selection.run.clone() }),
        declared: plan.profile.declared.iter().map(|d| (d.id.clone(), d.reason.clone())).collect(),
        ..Subject::default()
    };
    effective(&mut subject.settings, BACKEND, plan.cluster.backend().to_string());
    if let Some(session) = lanes.first() {
        effective(&mut subject.settings, CLUSTERS, lanes.len().to_string());
        let (state, record) = (session.state(), &session.state().cluster);
        subject.image = tested(plan, &state.ccm_image);
        subject.image_digest.clone_from(&state.ccm_image_digest);
        let about = record.about.clone();
        match about.seed {
            Some(seed) => effective(&mut subject.settings, SEED, seed.to_string()),
            // A real cluster has its own timing.
            None => subject.settings.retain(|one| one.setting != SEED),
        }
        subject.topology = about.topology;
        subject.kubernetes_version = about.kubernetes.unwrap_or_else(|| format!("1.{}", state.served_minor));
        subject.kind_version = about.kind_version;
        subject.node_image = about.node_image;
        subject.node_image_digest = about.node_image_digest;
        let rendered = session.ccm().rendered(Form::Replicas);
        if plan.profile.cloud.dialect().is_none() {
            let cloud = session.cloud();
            let has: Vec<String> = cloud.facilities().iter().map(ToString::to_string).collect();
            let real = if plan.profile.cloud.real().is_some() { " before a real cloud" } else { "" };
            subject.driver = format!("{}{real}: {}", cloud.driver(), has.join(", "));
        }
        subject.settings.extend(rendered.map(|rendered| rendered.changes).unwrap_or_default());
        subject.settings.extend(state.changes.iter().cloned());
        let notes = framework_notes(suites, plan.profile.framework);
        let setting = |note: String| Setting::given("framework", note, SetBy::Profile);
        subject.settings.extend(notes.into_iter().map(setting));
    }
    subject
}

/// Whether an argument of the reference CCM says how it differs from the correct one.
fn is_change(argument: &str) -> bool {
    ["--mutant=", "--variant=", "--adversary="].iter().any(|option| argument.starts_with(option))
}

/// What was tested, as the user named it. A program stands in Pods under the name of an image that does not exist, which
/// says nothing to a user.
fn tested(plan: &RunPlan, image: &str) -> String {
    match (&plan.binary, &plan.profile.image) {
        _ if image.is_empty() => String::new(),
        (Some(binary), _) => binary.display().to_string(),
        (None, Some(Image::Command(command))) => {
            let changes = plan.profile.extra_arguments.iter().filter(|argument| is_change(argument));
            let words: Vec<&str> =
                std::iter::once(command.as_str()).chain(changes.map(String::as_str)).collect();
            format!("{}, a part of ccm-conformance", words.join(" "))
        }
        (None, Some(Image::Build(build))) => format!("{} of package {}", build.binary, build.package),
        (None, Some(Image::Reference(_)) | None) => image.to_owned(),
    }
}

/// The effective value of a setting that leaves a choice.
fn effective(settings: &mut [Setting], name: &str, value: String) {
    if let Some(setting) = settings.iter_mut().find(|one| one.setting == name) {
        setting.value = value;
    }
}

/// The settings of a plan; settings that leave out checks of the contract are marked as relaxed.
pub fn in_force(settings: &[Setting], planned: &[Planned]) -> Vec<Setting> {
    let of_contract = || planned.iter().filter(|one| !one.check.is_private());
    let is_left_out =
        |one: &&Planned| matches!(one.choice, Choice::Skip(SkipReason::Deselected, _)) && !one.elsewhere;
    let left_out = of_contract().filter(is_left_out).count();
    let mut settings = settings.to_vec();
    if of_contract().any(|one| one.elsewhere) {
        let shard = settings.iter_mut().filter(|one| one.setting == SHARD);
        shard.for_each(|one| one.bearing = ContractComparison::Looser);
    }
    if left_out == 0 {
        return settings;
    }
    let selects = |one: &&mut Setting| one.setting.starts_with(SELECT) && one.setting != SHARD;
    let mut selecting: Vec<&mut Setting> = settings.iter_mut().filter(selects).collect();
    selecting.iter_mut().for_each(|one| one.bearing = ContractComparison::Looser);
    if selecting.is_empty() {
        let value = format!("leaves {left_out} of {} checks out", of_contract().count());
        let filter = Setting::given(TEST_FILTER, value, SetBy::Option);
        settings.push(Setting { bearing: ContractComparison::Looser, ..filter });
    }
    settings
}

/// The capabilities that some check of the contract needs, and therefore judges.
pub fn judged(suites: &[Suite]) -> BTreeSet<Capability> {
    of_contract(suites).flat_map(|check| check.needs.iter().copied()).collect()
}

/// A check for the contract's coverage, on clusters of these backends with fully capable node images and clouds.
pub fn seen(check: &Check, backends: &[BackendKind]) -> CountedCheck {
    let lacking = |backend: &BackendKind| {
        let there = facts(*backend).facilities;
        let lacking = check.facilities.iter().filter(|one| one.is_of_the_cluster() && !there.contains(one));
        let lacking: Vec<String> = lacking.map(|facility| facility.to_string()).collect();
        (!lacking.is_empty()).then(|| (backend.to_string(), lacking))
    };
    CountedCheck { id: check.id, not_observable: backends.iter().filter_map(lacking).collect() }
}

/// The checks of these suites that belong to the contract, as reports of this version list them.
pub fn golden(suites: &[Suite]) -> Golden {
    let checks = suites.iter().flat_map(|suite| suite.checks().map(move |check| (suite, check)));
    let checks = checks.filter(|(_, check)| !check.is_private());
    let golden = |(suite, check): (&Suite, &Check)| GoldenCheck {
        id: check.id.to_string(),
        suite: suite.name.to_owned(),
        level: check.claim.level,
        framework: check.claim.framework_only,
        since: check.claim.since.filter(|since| since.before == Before::NotJudged).map(|since| since.minor),
        title: check.claim.title.to_owned(),
    };
    let profiles = Contract::built_in().map(|contract| contract.profiles).unwrap_or_default();
    Golden { version: env!("CARGO_PKG_VERSION").to_owned(), profiles, checks: checks.map(golden).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;

    fn check() -> &'static Check {
        const CHECK: &Check =
            &Check::own("NODE-INIT-01", "a claim", "a source", |_| Box::pin(async { Ok(()) }));
        CHECK
    }

    fn planned(choice: Choice) -> Planned {
        Planned { suite: "a", check: check(), level: Level::Must, choice, elsewhere: false, takes_s: 0 }
    }

    #[test]
    fn leaving_out_checks_relaxes_a_run_and_so_does_a_filter_of_tests() {
        let skip = Setting::given("select.skip", "B-*", SetBy::Option);
        let all = [planned(Choice::Selected)];
        let out = [planned(Choice::Skip(SkipReason::Deselected, "left out".to_owned())), all[0].clone()];
        let relaxed = |settings: &[Setting], planned: &[Planned]| -> Vec<String> {
            let settings = in_force(settings, planned);
            settings.iter().filter(|one| one.relaxes()).map(ToString::to_string).collect()
        };
        let settings = [Setting::given("jobs", 1, SetBy::Option), skip];
        assert_eq!(relaxed(&settings, &all), [""; 0], "it names nothing that is there");
        assert_eq!(relaxed(&settings, &out), ["--skip B-*"]);
        assert_eq!(relaxed(&settings[..1], &out), ["test filter leaves 1 of 2 checks out (option)"]);
        let elsewhere = Planned { elsewhere: true, ..out[0].clone() };
        let part = [Setting::given(SHARD, "1/2", SetBy::Option), settings[1].clone()];
        assert_eq!(relaxed(&part, &[elsewhere, all[0].clone()]), ["--shard 1/2"]);
    }
}
