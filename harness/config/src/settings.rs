//! The settings of a plan that affect how much its result proves: every value, who set it, and how it
//! compares with the contract (section 21).

use super::duration::HumanDuration;
use super::enums::{Budget, Timing};
use super::flags::LeaseTiming;
use super::limits::Limits;
use super::profile::Profile;
use super::run_file::{DEFAULT_BACKEND, RunFile, usual_jobs};
use harness_core::ledger::{ContractComparison, SetBy, Setting};
use std::cmp::Ordering;
use std::time::Duration;

/// The setting for the source of the cluster.
pub const BACKEND: &str = "cluster.backend";
/// The setting for the number of clusters at the same time.
pub const CLUSTERS: &str = "clusters";
/// The setting that determines when a simulated cluster acts.
pub const SEED: &str = "cluster.seed";
/// The prefix of the settings that select checks.
pub const SELECT: &str = "select.";
/// The setting for the part of the checks that runs.
pub const SHARD: &str = "select.shard";
/// The setting of checks that the test runner left out.
pub const TEST_FILTER: &str = "test filter";

/// The setting for the factor on every budget.
const SCALE: &str = "limits.scale";

/// Name of the setting of a budget.
fn name_of(budget: Budget) -> String {
    format!("limits.budgets.{budget}")
}

/// The contract's value of a budget.
fn by_contract(budget: Budget) -> Duration {
    Limits::new(LeaseTiming::DEFAULT).budget(budget)
}

/// How the value of a budget compares with the contract's.
fn bearing(budget: Budget, value: Duration) -> ContractComparison {
    match value.cmp(&by_contract(budget)) {
        Ordering::Equal => ContractComparison::AsContract,
        order if (order == Ordering::Greater) == budget.is_quiet() => ContractComparison::Stricter,
        Ordering::Less | Ordering::Greater => ContractComparison::Looser,
    }
}

fn scale_bearing(scale: f64) -> ContractComparison {
    match scale.total_cmp(&1.0) {
        Ordering::Less => ContractComparison::Stricter,
        Ordering::Equal => ContractComparison::AsContract,
        Ordering::Greater => ContractComparison::Looser,
    }
}

/// The false statements about limits in some settings: a limit is missing, or compares with the contract in
/// another way.
pub fn untrue_limits(settings: &[Setting]) -> Vec<String> {
    let scale = |value: &str| value.parse().ok().map(scale_bearing);
    let limit =
        |budget: Budget| move |value: &str| Some(bearing(budget, value.parse::<HumanDuration>().ok()?.0));
    let mut wrong = Vec::new();
    let mut hold = |name: &str, contract: String, judge: &dyn Fn(&str) -> Option<ContractComparison>| {
        let Some(one) = settings.iter().find(|one| one.setting == name) else {
            return wrong.push(format!("{name} is not given"));
        };
        match judge(&one.value) {
            None => wrong.push(format!("{name}: '{}' is not a value of it", one.value)),
            Some(_) if one.contract.as_ref() != Some(&contract) => {
                let said = one.contract.as_deref().unwrap_or("nothing");
                wrong.push(format!("{name}: the contract says {contract}, not {said}"));
            }
            Some(true_bearing) if true_bearing != one.bearing => {
                let word = |bearing| serde_json::to_value(bearing).unwrap_or_default();
                let (said, is) = (word(one.bearing), word(true_bearing));
                wrong.push(format!("{name}: {} is {is}, not {said}", one.value));
            }
            Some(_) => {}
        }
    };
    hold(SCALE, "1".to_owned(), &scale);
    for budget in Budget::ALL {
        hold(&name_of(*budget), HumanDuration(by_contract(*budget)).to_string(), &limit(*budget));
    }
    wrong
}

/// The parts of a plan that its settings are made from.
pub(super) struct Making<'a> {
    pub(super) run: &'a RunFile,
    pub(super) profile: &'a Profile,
    pub(super) limits: &'a Limits,
    pub(super) timing: Timing,
    /// Who set a key of the run file.
    pub(super) set_by: &'a dyn Fn(&str) -> SetBy,
}

impl Making<'_> {
    /// Every setting with its value, in the order of the report.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let Making { run, set_by, .. } = self;
        let given = |key: &str, value: String| Setting::given(key, value, set_by(key));
        let mut all = vec![
            given(BACKEND, run.cluster.backend.unwrap_or(DEFAULT_BACKEND).to_string()),
            given(
                SEED,
                run.cluster.seed.map_or_else(|| "another one each time".to_owned(), |n| n.to_string()),
            ),
            given("timing", self.timing.to_string()),
            given("jobs", run.jobs.unwrap_or_else(|| usual_jobs(self.profile.workers)).to_string()),
            given(
                CLUSTERS,
                run.clusters.map_or_else(|| "as many as there is room for".to_owned(), |n| n.to_string()),
            ),
        ];
        all.extend(self.selection());
        all.extend(run.soak.map(|time| given("soak", time.to_string())));
        all.extend(self.old_release());
        all.push(self.scale());
        all.extend(Budget::ALL.iter().map(|budget| self.budget(*budget)));
        all.push(self.instance_cache());
        let order: Vec<&str> = self.profile.address_order.iter().map(|kind| kind.as_str()).collect();
        let given = |key: &str, value: String| Setting::given(key, value, SetBy::Profile);
        all.extend((!order.is_empty()).then(|| given("addressOrder", order.join(", "))));
        let fixed = self.profile.location.fixed;
        all.extend(fixed.then(|| Setting::given("location.fixed", true, SetBy::Profile)));
        all.extend(self.profile.instance_type.clone().map(|kind| given("instanceType", kind)));
        all
    }

    /// The settings that select checks, if there are any. Whether they leave any out is known when the checks
    /// are planned.
    fn selection(&self) -> Vec<Setting> {
        let select = &self.run.select;
        let lists = [("suites", &select.suites), ("only", &select.only), ("skip", &select.skip)];
        let lists = lists.into_iter().filter_map(|(key, list)| Some((key, list.as_ref()?.join(", "))));
        let quick = (select.quick == Some(true)).then(|| ("quick", "true".to_owned()));
        let shard = select.shard.clone().map(|share| ("shard", share));
        let row = |(key, value): (&str, String)| {
            let key = format!("{SELECT}{key}");
            Setting::given(&key, value, (self.set_by)(&key))
        };
        lists.chain(quick).chain(shard).map(row).collect()
    }

    /// The release that the run upgrades from.
    fn old_release(&self) -> impl Iterator<Item = Setting> {
        let from = &self.run.upgrade_from;
        let keys = [("profile", &from.profile), ("image", &from.image), ("binary", &from.binary)];
        let given =
            keys.into_iter().filter_map(|(key, value)| Some((format!("upgradeFrom.{key}"), value.clone()?)));
        given.map(|(key, value)| Setting::given(&key, value, (self.set_by)(&key)))
    }

    fn scale(&self) -> Setting {
        let scale = self.run.limits.scale.unwrap_or(1.0);
        let contract = Some("1".to_owned());
        Setting {
            contract,
            bearing: scale_bearing(scale),
            ..Setting::given(SCALE, scale, (self.set_by)(SCALE))
        }
    }

    fn instance_cache(&self) -> Setting {
        let (value, usual) = (self.profile.instance_cache, Limits::INSTANCE_CACHE);
        let (from, bearing) = match value.cmp(&usual) {
            Ordering::Less => (SetBy::Profile, ContractComparison::Stricter),
            Ordering::Equal => (SetBy::Default, ContractComparison::AsContract),
            Ordering::Greater => (SetBy::Profile, ContractComparison::Looser),
        };
        let contract = Some(HumanDuration(usual).to_string());
        Setting { contract, bearing, ..Setting::given("instanceCache", HumanDuration(value), from) }
    }

    fn budget(&self, budget: Budget) -> Setting {
        let value = self.limits.budget(budget);
        Setting {
            setting: name_of(budget),
            value: HumanDuration(value).to_string(),
            contract: Some(HumanDuration(by_contract(budget)).to_string()),
            from: self.budget_set_by(budget),
            bearing: bearing(budget, value),
        }
    }

    /// Who determines a budget: its override, otherwise the factor, otherwise the timing of leader election
    /// that it follows from.
    fn budget_set_by(&self, budget: Budget) -> SetBy {
        let elects = matches!(budget, Budget::Failover | Budget::StepDown);
        let by_timing =
            elects || (budget == Budget::Route && self.limits.route_period() != Limits::ROUTE_PERIOD);
        if self.run.limits.budgets.contains_key(&budget) {
            (self.set_by)(&format!("limits.budgets.{budget}"))
        } else if self.profile.budgets.contains_key(&budget) {
            SetBy::Profile
        } else if self.run.limits.scale.is_some_and(|scale| scale != 1.0) {
            (self.set_by)(SCALE)
        } else if by_timing && self.timing == Timing::Fast {
            (self.set_by)("timing")
        } else if elects && self.profile.lease_timing != LeaseTiming::DEFAULT {
            SetBy::Profile
        } else {
            SetBy::Default
        }
    }
}

impl Budget {
    /// Whether it is a window in which something must not happen: a longer one proves more.
    fn is_quiet(self) -> bool {
        match self {
            Budget::QuietNodes | Budget::QuietLife | Budget::QuietServices => true,
            Budget::Watch
            | Budget::Start
            | Budget::Failover
            | Budget::StepDown
            | Budget::Life
            | Budget::Route
            | Budget::Service
            | Budget::LoadBalancer
            | Budget::Boot
            | Budget::Credential => false,
        }
    }
}
