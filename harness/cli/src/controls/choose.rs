//! Selects everything that `controls` has to judge, each with the plan of its run.

use super::super::arguments::ControlOptions;
use super::list::{self, Mutant, Variant};
use super::work::Work;
use harness_clusters::facts;
use harness_components::component::{COMPONENTS, Change, Component, Keys, of_kind};
use harness_config::{
    BackendKind, ClusterKeys, Given, HumanDuration, Offer, Problems, ProfileKind, RunFile, RunPlan, Source,
    Topology, UpgradeKeys, WantedCluster, plan,
};
use harness_core::check::Facility;
use harness_core::ledger::Share;
use harness_runner::{Planned, plan_checks};
use harness_testkit::Suite;
use std::cmp::Reverse;
use std::time::Duration;

/// On how many clusters at once the null CCM is judged: each of its checks fails only when its time is up.
const NULL_CCM_CLUSTERS: usize = 4;

/// How long the null CCM is watched in a soak: it does not reach the first round.
pub(super) const SOAK: HumanDuration = HumanDuration(Duration::from_secs(30));

/// A plan, and every check with the decision about it.
type Chosen = (RunPlan, Vec<Planned>);

/// The plans and checks to select from.
pub(super) struct Choosing<'a> {
    pub(super) suites: &'static [Suite],
    pub(super) options: &'a ControlOptions,
    /// The run with the mutants' profile, whose cluster the others use if possible.
    pub(super) with_mutants: &'a RunPlan,
    /// The run of the null CCM.
    pub(super) with_nothing: &'a RunPlan,
    /// Every check, as it applies to the mutants' profile.
    pub(super) everything: &'a [Planned],
}

impl Choosing<'_> {
    /// Everything to be judged: the longest first, subjects that are judged alone last.
    pub(super) fn work(&self) -> Result<Vec<Work>, String> {
        let ControlOptions { mutant, variant, adversary, .. } = self.options;
        let all = mutant.is_empty() && variant.is_empty() && adversary.is_empty();
        let mut work = Vec::new();
        if all || !variant.is_empty() {
            work.extend(self.variants()?);
        }
        if all || !adversary.is_empty() {
            work.extend(self.adversaries()?);
        }
        if all || *mutant == [list::ALL] {
            work.extend(self.nothing()?);
        }
        if all || !mutant.is_empty() {
            work.extend(self.mutants()?);
        }
        // While a subject is judged alone, all others have to wait.
        work.sort_by_key(|one| (one.alone, Reverse(one.takes_s)));
        Ok(work)
    }

    fn variants(&self) -> Result<Vec<Work>, String> {
        let mut work = Vec::new();
        for one in list::variants(&self.options.variant, self.share())? {
            let Variant { variant, of, profile, as_is, soak, upgrades, before, .. } = &one;
            let component = of_kind(*of);
            let keys = changed(component, *as_is, (Change::Variant, variant), profile.clone());
            let extent = Extent { soak: *soak, upgrades: *upgrades, before: before.clone() };
            let chosen = self.chosen(component, keys, extent, true);
            let (plan, planned) = chosen.map_err(|problems| format!("variant {variant}: {problems}"))?;
            work.extend(Work::of_variant(&one, component, &plan, &planned)?);
        }
        Ok(work)
    }

    fn adversaries(&self) -> Result<Vec<Work>, String> {
        let listed = list::adversaries(&self.options.adversary, self.share())?;
        listed.iter().map(|one| Work::of_adversary(one, self.with_mutants, self.everything)).collect()
    }

    fn mutants(&self) -> Result<Vec<Work>, String> {
        let mut work = Vec::new();
        for control in list::mutants(&self.options.mutant, self.share())? {
            let Mutant { mutant, of, profile, as_is, soak, upgrades, before, checks, .. } = &control;
            let component = of_kind(*of);
            let keys = changed(component, *as_is, (Change::Mutant, mutant), profile.clone());
            let on_a_cluster = component.feature().is_some_and(|feature| self.need(checks, feature));
            let extent = Extent { soak: *soak, upgrades: *upgrades, before: before.clone() };
            let chosen = self.chosen(component, keys, extent, on_a_cluster);
            let (plan, planned) = chosen.map_err(|problems| format!("mutant {mutant}: {problems}"))?;
            work.push(Work::of_mutant(&control, plan, &planned)?);
        }
        Ok(work)
    }

    /// The null program of each component.
    fn nothing(&self) -> Result<Vec<Work>, String> {
        let text = |problems: Problems| problems.to_string();
        let output = |name: &str| self.with_mutants.output.join(name.to_lowercase().replace(' ', "-"));
        let plan = RunPlan { output: output("no CCM"), ..self.with_nothing.clone() };
        let ccm = of_kind(ProfileKind::Profile);
        let (_, soaking) = self
            .chosen(ccm, Keys::new(), Extent { soak: Some(SOAK), ..Extent::default() }, true)
            .map_err(text)?;
        let mut work = Work::of_nothing("no CCM", plan, &soaking, NULL_CCM_CLUSTERS);
        for component in COMPONENTS {
            let Some((name, keys)) = component.absent() else { continue };
            let (plan, planned) = self.chosen(*component, keys, Extent::default(), true).map_err(text)?;
            let plan = RunPlan { output: output(name), ..plan };
            work.extend(Work::of_nothing(name, plan, &planned, 1));
        }
        Ok(work)
    }

    /// The plan and the checks of a component's reference with these keys in its profile. It uses a cluster
    /// if the others have one that the component can run on.
    fn chosen(
        &self,
        component: &dyn Component,
        keys: Keys,
        extent: Extent,
        on_a_cluster: bool,
    ) -> Result<Chosen, Problems> {
        match component.feature() {
            None => self.with_shared_cluster(component, keys, extent),
            Some(feature) => self.with_own_cluster(component, keys, on_a_cluster.then_some(feature)),
        }
    }

    /// A CCM on the cluster that all of them share.
    fn with_shared_cluster(
        &self,
        component: &dyn Component,
        keys: Keys,
        extent: Extent,
    ) -> Result<Chosen, Problems> {
        let typed = extent.of(overrides(self.options, component.changeable()), component.changeable());
        let plan_of = |typed| plan(&Source::Defaults, extent.given(typed, &keys));
        let (mut plan, mut cluster) = (plan_of(typed.clone())?, self.with_mutants.cluster.clone());
        if plan.profile.is_hosted() && !facts(cluster.backend()).manages {
            // The cluster of the others cannot have a management cluster, so this subject gets its own.
            plan = plan_of(RunFile { cluster: ClusterKeys::default(), ..typed })?;
            cluster = plan.cluster.clone().settled(BackendKind::Embedded);
        }
        if extent.upgrades {
            // As in a run: on a single machine some rollouts never have a place for both releases.
            cluster = cluster.with(|own| {
                if own.topology == Topology::Single {
                    own.topology = Topology::ThreeNode;
                }
            });
        }
        self.planned(plan.on(cluster))
    }

    /// A component that needs no CCM, on a cluster with `feature`, or without a cluster.
    fn with_own_cluster(
        &self,
        component: &dyn Component,
        keys: Keys,
        feature: Option<Facility>,
    ) -> Result<Chosen, Problems> {
        let typed =
            RunFile { cluster: ClusterKeys::default(), ..overrides(self.options, component.changeable()) };
        let plan = given(typed, &keys)?;
        let offered = &facts(self.with_mutants.cluster.backend()).facilities;
        let cluster = match feature.is_some_and(|feature| offered.contains(&feature)) {
            true => self.with_mutants.cluster.clone().with(|own| {
                if component.section().on_workers && own.topology == Topology::Single {
                    own.topology = Topology::ThreeNode;
                }
            }),
            false => WantedCluster::absent().settled(BackendKind::Absent),
        };
        self.planned(plan.on(cluster))
    }

    fn planned(&self, plan: RunPlan) -> Result<Chosen, Problems> {
        let planned = plan_checks(self.suites, &plan, &Offer::declared(&plan.profile))?;
        Ok((plan, planned))
    }

    /// Whether one of these checks needs a cluster with this feature.
    fn need(&self, checks: &[String], feature: Facility) -> bool {
        let needs = |id: &String| {
            self.everything.iter().any(|one| one.check.id == *id && one.check.facilities.contains(feature))
        };
        checks.iter().any(needs)
    }

    fn share(&self) -> Share {
        self.options.share.unwrap_or(Share::WHOLE)
    }
}

/// The keys of a subject: its own, and those that turn the program into the subject, unless it is used as it is.
pub(super) fn changed(
    component: &dyn Component,
    as_is: bool,
    (change, id): (Change, &str),
    mut keys: Keys,
) -> Keys {
    if !as_is {
        component.change(change, id, &mut keys);
    }
    keys
}

pub(super) fn given(typed: RunFile, keys: &Keys) -> Result<RunPlan<WantedCluster>, Problems> {
    plan(&Source::Defaults, Given { typed, over_profile: keys.clone(), ..Given::default() })
}

/// Checks that are part of a run only if it asks for them.
#[derive(Clone, Default)]
struct Extent {
    /// The duration of the soak checks.
    soak: Option<HumanDuration>,
    /// Whether the subject replaces the reference CCM in an upgrade.
    upgrades: bool,
    /// The changed keys of the profile of the release before.
    before: Keys,
}

impl Extent {
    /// The run with these checks; `profile` is that of the release before.
    fn of(&self, run: RunFile, profile: &str) -> RunFile {
        let from = self.upgrades.then(|| profile.to_owned());
        RunFile {
            upgrade_from: UpgradeKeys { profile: from, ..UpgradeKeys::default() },
            ..soaking(run, self.soak)
        }
    }

    /// The run with these keys in the profiles of both releases.
    fn given(&self, typed: RunFile, keys: &Keys) -> Given {
        Given { typed, over_profile: keys.clone(), over_old_profile: self.before.clone(), ..Given::default() }
    }
}

/// The same run with a soak of this duration.
pub(super) fn soaking(run: RunFile, soak: Option<HumanDuration>) -> RunFile {
    RunFile { soak, ..run }
}

/// The options for the profile with this name.
pub(super) fn overrides(options: &ControlOptions, profile: &str) -> RunFile {
    RunFile { profile: Some(profile.to_owned()), ..options.overrides() }
}
