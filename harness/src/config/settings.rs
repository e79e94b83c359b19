//! What of a plan bears on how much its result says: every value in force, who set it, and how it compares with the
//! contract (section 21).

use super::duration::HumanDuration;
use super::flags::LeaseTiming;
use super::limits::Limits;
use super::profile::Profile;
use super::run_file::{DEFAULT_BACKEND, DEFAULT_JOBS, RunFile};
use super::words::{Budget, Timing};
use crate::ledger::{Bearing, SetBy, Setting};
use std::cmp::Ordering;
use std::time::Duration;

/// Name of the setting that says where the cluster comes from.
pub const BACKEND: &str = "cluster.backend";
/// Name of the setting that says how many clusters stand side by side.
pub const CLUSTERS: &str = "clusters";
/// Start of the names of settings that say which checks run.
pub const SELECT: &str = "select.";

/// What a plan is made of.
pub(super) struct Making<'a> {
    pub(super) run: &'a RunFile,
    pub(super) profile: &'a Profile,
    pub(super) limits: &'a Limits,
    pub(super) timing: Timing,
    /// Who set a key of the run file.
    pub(super) set_by: &'a dyn Fn(&str) -> SetBy,
}

impl Making<'_> {
    /// Every value in force, in the order of the report.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let Making { run, set_by, .. } = self;
        let told = |key: &str, value: String| Setting::told(key, value, set_by(key));
        let mut all = vec![
            told(BACKEND, run.cluster.backend.unwrap_or(DEFAULT_BACKEND).to_string()),
            told("timing", self.timing.to_string()),
            told("jobs", run.jobs.unwrap_or(DEFAULT_JOBS).to_string()),
            told(
                CLUSTERS,
                run.clusters.map_or_else(|| "as many as there is room for".to_owned(), |n| n.to_string()),
            ),
        ];
        all.extend(self.selection());
        all.push(self.scale());
        all.extend(Budget::ALL.iter().map(|budget| self.budget(*budget)));
        all.push(self.instance_cache());
        let order: Vec<&str> = self.profile.address_order.iter().map(|kind| kind.as_str()).collect();
        let told = |key: &str, value: String| Setting::told(key, value, SetBy::Profile);
        all.extend((!order.is_empty()).then(|| told("addressOrder", order.join(", "))));
        let fixed = self.profile.location.fixed;
        all.extend(fixed.then(|| Setting::told("location.fixed", true, SetBy::Profile)));
        all
    }

    /// What selects among the checks, where anything does. Whether it leaves any out is known once they are planned.
    fn selection(&self) -> Vec<Setting> {
        let select = &self.run.select;
        let lists = [("suites", &select.suites), ("only", &select.only), ("skip", &select.skip)];
        let lists = lists.into_iter().filter_map(|(key, list)| Some((key, list.as_ref()?.join(", "))));
        let quick = (select.quick == Some(true)).then(|| ("quick", "true".to_owned()));
        let row = |(key, value): (&str, String)| {
            let key = format!("{SELECT}{key}");
            Setting::told(&key, value, (self.set_by)(&key))
        };
        lists.chain(quick).map(row).collect()
    }

    fn scale(&self) -> Setting {
        let (key, scale) = ("limits.scale", self.run.limits.scale.unwrap_or(1.0));
        let bearing = match scale.total_cmp(&1.0) {
            Ordering::Less => Bearing::Stricter,
            Ordering::Equal => Bearing::AsContract,
            Ordering::Greater => Bearing::Looser,
        };
        let contract = Some("1".to_owned());
        Setting { contract, bearing, ..Setting::told(key, scale, (self.set_by)(key)) }
    }

    fn instance_cache(&self) -> Setting {
        let (value, usual) = (self.profile.instance_cache, Limits::INSTANCE_CACHE);
        let (from, bearing) = match value.cmp(&usual) {
            Ordering::Less => (SetBy::Profile, Bearing::Stricter),
            Ordering::Equal => (SetBy::Default, Bearing::AsContract),
            Ordering::Greater => (SetBy::Profile, Bearing::Looser),
        };
        let contract = Some(HumanDuration(usual).to_string());
        Setting { contract, bearing, ..Setting::told("instanceCache", HumanDuration(value), from) }
    }

    fn budget(&self, budget: Budget) -> Setting {
        let (value, contract) =
            (self.limits.budget(budget), Limits::new(LeaseTiming::DEFAULT).budget(budget));
        let bearing = match value.cmp(&contract) {
            Ordering::Equal => Bearing::AsContract,
            order if (order == Ordering::Greater) == budget.is_quiet() => Bearing::Stricter,
            Ordering::Less | Ordering::Greater => Bearing::Looser,
        };
        let words = |limit: Duration| HumanDuration(limit).to_string();
        Setting {
            setting: format!("limits.budgets.{budget}"),
            value: words(value),
            contract: Some(words(contract)),
            from: self.budget_set_by(budget),
            bearing,
        }
    }

    /// Whose word decides on a budget: its own value, else the factor, else the pace of the election it follows from.
    fn budget_set_by(&self, budget: Budget) -> SetBy {
        let elects = matches!(budget, Budget::Failover | Budget::StepDown);
        if self.run.limits.budgets.contains_key(&budget) {
            (self.set_by)(&format!("limits.budgets.{budget}"))
        } else if self.profile.budgets.contains_key(&budget) {
            SetBy::Profile
        } else if self.run.limits.scale.is_some_and(|scale| scale != 1.0) {
            (self.set_by)("limits.scale")
        } else if elects && self.timing == Timing::Fast {
            (self.set_by)("timing")
        } else if elects && self.profile.lease_timing != LeaseTiming::DEFAULT {
            SetBy::Profile
        } else {
            SetBy::Default
        }
    }
}

impl Budget {
    /// Whether it is a window in which something must not happen: the longer, the more it shows.
    fn is_quiet(self) -> bool {
        match self {
            Budget::QuietNodes | Budget::QuietLife | Budget::QuietServices => true,
            Budget::Watch
            | Budget::Start
            | Budget::Failover
            | Budget::StepDown
            | Budget::Life
            | Budget::Service
            | Budget::LoadBalancer
            | Budget::Boot => false,
        }
    }
}
