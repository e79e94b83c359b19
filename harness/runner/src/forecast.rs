//! How long checks take, estimated from what they declare.

use super::capacity::lane_count;
use super::planned::{Planned, arranged, selected};
use harness_config::{BackendKind, RunPlan};
use std::time::Duration;

/// Seconds that a check takes at least on an embedded cluster, even if it declares none.
const SHORTEST_S: f64 = 0.7;
/// The same with real machines.
const SHORTEST_ON_MACHINES_S: f64 = 1.5;

/// Estimates how long checks take.
#[derive(Clone)]
pub struct Forecast {
    /// The checks.
    pub checks: Vec<Planned>,
    /// Number of clusters that they are divided among.
    pub lanes: usize,
    /// How many run at the same time on each cluster.
    pub at_once: usize,
    /// How many Services and Nodes the CCM works on at the same time.
    pub workers: u32,
    /// The kind of cluster.
    pub backend: BackendKind,
}

impl Forecast {
    /// Of the checks that a plan has selected.
    pub fn of_plan(plan: &RunPlan, planned: &[Planned]) -> Forecast {
        Forecast {
            checks: selected(planned),
            lanes: lane_count(plan, planned) as usize,
            at_once: plan.jobs as usize,
            workers: plan.profile.workers,
            backend: plan.cluster.backend(),
        }
    }

    /// The time for all of them.
    pub fn all(&self) -> Duration {
        self.of(|_| true)
    }

    /// The time for those that are still to end, by their ids.
    pub fn of(&self, open: impl Fn(&str) -> bool) -> Duration {
        let checks: Vec<Planned> =
            self.checks.iter().filter(|one| open(one.check.id.as_str())).cloned().collect();
        if checks.is_empty() {
            return Duration::ZERO;
        }
        let arrangement = arranged(&checks, self.lanes, self.workers, self.backend);
        let shortest = match self.backend {
            BackendKind::Embedded | BackendKind::Absent => SHORTEST_S,
            BackendKind::Kind | BackendKind::Existing => SHORTEST_ON_MACHINES_S,
        };
        // A step takes as long as its longest check, and longer if not all of its checks run at the same time.
        let mut work = vec![0.0; arrangement.steps.len()];
        for (one, step) in checks.iter().zip(&arrangement.of) {
            work[*step] += f64::from(one.takes_s).max(shortest);
        }
        let at_once = self.at_once.max(1) as f64;
        let mut lanes = vec![0.0; self.lanes.max(1)];
        for (step, lane) in arrangement.fixed_lanes(self.lanes).into_iter().enumerate() {
            lanes[lane] += f64::from(arrangement.steps[step].takes_s).max(work[step] / at_once);
        }
        Duration::from_secs_f64(lanes.into_iter().fold(0.0, f64::max))
    }
}

/// A time for people: `35 s`, `3 min`, `1 h 20 min`.
pub fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds @ 90..5400 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::Choice;
    use harness_core::check::Level;
    use harness_testkit::Check;

    const CHECK: Check = Check::own("A-01", "a claim", "a source", |_| Box::pin(async { Ok(()) }));
    const LONG: Check = Check::own("A-02", "a claim", "a source", |_| Box::pin(async { Ok(()) })).takes(60);

    fn planned(check: &'static Check) -> Planned {
        Planned {
            suite: "suite",
            check,
            level: Level::Must,
            choice: Choice::Selected,
            elsewhere: false,
            takes_s: check.takes_s,
        }
    }

    #[test]
    fn many_checks_take_as_long_as_their_number_and_few_as_long_as_the_longest() {
        let many: Vec<Planned> = (0..100).map(|_| planned(&CHECK)).collect();
        let forecast = |checks, at_once| Forecast {
            checks,
            lanes: 1,
            at_once,
            workers: 1,
            backend: BackendKind::Embedded,
        };
        let seconds = |forecast: &Forecast| forecast.all().as_secs_f64().round();
        assert_eq!(seconds(&forecast(many.clone(), 1)), 70.0);
        assert_eq!(seconds(&forecast(many, 10)), 7.0);
        let both = forecast(vec![planned(&CHECK), planned(&LONG)], 8);
        assert_eq!(seconds(&both), 62.0);
        assert!(both.of(|id| id == "A-01") < Duration::from_secs(5));
        assert_eq!(both.of(|_| false), Duration::ZERO);
    }

    #[test]
    fn times_are_round() {
        let said = [35, 89, 200, 5400].map(|seconds| about(Duration::from_secs(seconds)));
        assert_eq!(said, ["35 s", "89 s", "3 min", "1 h 30 min"]);
    }
}
