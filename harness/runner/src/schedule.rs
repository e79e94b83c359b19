//! Which checks run next to which: the steps of a run, derived from what its checks declare.
//!
//! A lane is a cluster with its own cloud and CCM. A step is a set of checks that run at the same time in one lane; a
//! lane starts its next step when all checks of the current one have ended. A check that disturbs the CCM or the cluster
//! for other checks never runs next to unrelated ones: its step contains only other claims of its contract row, or
//! nothing else.

use harness_core::check::{Isolation, row_of};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// From this number of concurrent Services and Nodes on, a CCM is assumed to have workers left for others while some are
/// busy.
pub const ENOUGH_WORKERS: u32 = 8;

/// The properties of a check that its arrangement depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared<'a> {
    /// Its id.
    pub id: &'a str,
    /// How it may share its cluster.
    pub isolation: Isolation,
    /// Whether it keeps the CCM busy for other checks too.
    pub disturbs: bool,
    /// Whether it does so regardless of how many workers the CCM has.
    pub holds_up: bool,
    /// Whether it does so for longer than a client waits.
    pub hangs: bool,
    /// The row next to whose claims it may run if it may not run next to unrelated checks, unless that is its own row.
    pub next_to: Option<&'a str>,
    /// Whether it creates its own environment with real kubelets, which takes much of the machine. Only one of them
    /// exists at a time.
    pub crowds: bool,
    /// The shortest time of a passing run, in seconds.
    pub takes_s: u32,
}

/// Which lane runs a step, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Starts on a cluster on which no CCM works; a lane without a CCM continues with these.
    Cold,
    /// Steps of checks that share the CCM: only the first lane runs these, or another one if its environment is gone. It
    /// starts with them, or runs them after the cold steps if it is the only lane.
    Shared,
    /// Steps outside of the lanes: one at a time next to the steps of all lanes, after the sharing ones, when the machine
    /// has room for real kubelets next to the lanes.
    Crowding,
    /// Steps that any lane runs.
    Apart,
    /// Judges the whole run, after all others have ended.
    Last,
}

/// Checks that run at the same time in one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The lanes that run it.
    pub kind: Kind,
    /// Its approximate duration in seconds, including preparation.
    pub takes_s: u32,
}

/// The steps of some checks, in the order in which lanes run them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// The steps.
    pub steps: Vec<Step>,
    /// The step of each check, in the order of the checks.
    pub of: Vec<usize>,
}

/// Arranges these checks for this number of lanes, which is at least one.
///
/// With one lane: checks on a cluster that no CCM has touched, one after another; then those that share, and next to them
/// those that watch the leader crash; then those that disturb, one contract row after another; then those that need calm,
/// together, and those that run alone. With more lanes, the first starts with those that share, and the others run the
/// rest, the longest first.
pub fn arrange(checks: &[Declared<'_>], lanes: usize, workers: u32) -> Arrangement {
    let groups: Vec<Group<'_>> = checks.iter().map(|check| Group::of(check, lanes, workers)).collect();
    let mut time: BTreeMap<Group<'_>, u32> = BTreeMap::new();
    for (group, check) in groups.iter().zip(checks) {
        let longest = time.entry(*group).or_default();
        *longest = (*longest).max(check.takes_s);
    }
    let mut order: Vec<Group<'_>> = time.keys().copied().collect();
    order.sort_by_key(|group| (group.rank(), Reverse(time[group] + group.comes_with_s()), *group));
    let steps = order
        .iter()
        .map(|group| Step { kind: group.kind(), takes_s: time[group] + group.comes_with_s() })
        .collect();
    let of = groups.iter().map(|group| order.iter().position(|one| one == group).unwrap_or(0)).collect();
    Arrangement { steps, of }
}

impl Arrangement {
    /// The lane of each step, by time. For separate processes, which do not know which lane is free.
    pub fn fixed_lanes(&self, lanes: usize) -> Vec<usize> {
        let lanes = lanes.max(1);
        let shares = self.steps.iter().any(|step| step.kind == Kind::Shared);
        let others = usize::from(lanes > 1 && shares)..lanes;
        let mut taken = vec![0_u32; lanes];
        let mut lane_of = |step: &Step| match step.kind {
            Kind::Shared | Kind::Last => 0,
            Kind::Cold | Kind::Crowding | Kind::Apart => {
                let lane = others.clone().min_by_key(|lane| taken[*lane]).unwrap_or(0);
                taken[lane] += step.takes_s;
                lane
            }
        };
        self.steps.iter().map(&mut lane_of).collect()
    }

    /// The maximum number of lanes that these steps can use.
    pub fn useful_lanes(&self) -> usize {
        self.steps.iter().filter(|step| !matches!(step.kind, Kind::Crowding | Kind::Last)).count().max(1)
    }

    /// How many of these lanes start with cold steps: the same fraction of lanes as cold steps have of the total time.
    pub(super) fn cold_lanes(&self, lanes: usize) -> usize {
        let time = |kind: Kind| -> usize {
            self.steps.iter().filter(|step| step.kind == kind).map(|step| step.takes_s as usize).sum()
        };
        let (cold, apart) = (time(Kind::Cold), time(Kind::Apart));
        if cold == 0 { 0 } else { (lanes * cold).div_ceil(cold + apart) }
    }
}

/// Approximate seconds that a check takes longer because its cluster becomes uninitialised and the CCM is deployed.
const COLD_S: u32 = 4;
/// Approximate seconds that a check takes longer because it creates an environment with real kubelets.
const OWN_S: u32 = 45;
/// Approximate seconds that each further step takes.
const EACH_S: u32 = 2;

/// Checks that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group<'a> {
    Cold(&'a str),
    Shared,
    Joint,
    /// By contract row: the claims of one row may run next to each other.
    Disturbing(&'a str),
    /// They occupy different loops of a CCM that has workers to spare.
    Hanging,
    /// They do not disturb other checks.
    Calm,
    Exclusive(&'a str),
    /// Creates an environment that belongs to no lane.
    Crowding(&'a str),
    /// Judges the whole run.
    Standing,
}

impl<'a> Group<'a> {
    pub(super) fn of(check: &Declared<'a>, lanes: usize, workers: u32) -> Group<'a> {
        match check.isolation {
            Isolation::FreshCluster => Group::Cold(check.id),
            Isolation::Quiet => Group::Calm,
            Isolation::Alone => Group::Exclusive(check.id),
            // They prepare next to those that share, if there is no lane for them.
            Isolation::SharedCrash if lanes <= 1 => Group::Shared,
            Isolation::SharedCrash => Group::Joint,
            Isolation::AfterTheRun => Group::Standing,
            Isolation::Shared if check.holds_up || (check.disturbs && workers < ENOUGH_WORKERS) => {
                match check.hangs {
                    true if workers < ENOUGH_WORKERS => Group::Disturbing(check.id),
                    true => Group::Hanging,
                    false => Group::Disturbing(check.next_to.unwrap_or_else(|| row_of(check.id))),
                }
            }
            Isolation::DedicatedCluster if check.crowds => Group::Crowding(check.id),
            Isolation::Shared | Isolation::NoCluster | Isolation::DedicatedCluster => Group::Shared,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Group::Cold(_) => 0,
            Group::Shared => 1,
            Group::Crowding(_) => 2,
            Group::Joint | Group::Disturbing(_) | Group::Hanging => 3,
            Group::Calm | Group::Exclusive(_) => 4,
            Group::Standing => 5,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Group::Cold(_) => Kind::Cold,
            Group::Crowding(_) => Kind::Crowding,
            Group::Shared => Kind::Shared,
            Group::Joint | Group::Disturbing(_) | Group::Hanging | Group::Calm | Group::Exclusive(_) => {
                Kind::Apart
            }
            Group::Standing => Kind::Last,
        }
    }

    pub(super) fn comes_with_s(&self) -> u32 {
        match self {
            Group::Crowding(_) => OWN_S,
            _ if self.kind() == Kind::Cold => COLD_S,
            _ => EACH_S,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const fn check(
        id: &'static str,
        isolation: Isolation,
        disturbs: bool,
        takes_s: u32,
    ) -> Declared<'static> {
        Declared {
            id,
            isolation,
            disturbs,
            holds_up: false,
            hangs: false,
            next_to: None,
            crowds: false,
            takes_s,
        }
    }

    const CHECKS: [Declared<'static>; 9] = [
        check("BOOT-02", Isolation::FreshCluster, false, 5),
        check("BOOT-01", Isolation::FreshCluster, false, 10),
        check("NODE-01", Isolation::Shared, false, 0),
        check("NODE-10.hang", Isolation::Shared, true, 35),
        check("NODE-10.500", Isolation::Shared, true, 35),
        check("SVC-01", Isolation::Shared, true, 3),
        check("HA-03", Isolation::SharedCrash, false, 10),
        check("HA-05", Isolation::Alone, false, 12),
        check("OBS-10", Isolation::AfterTheRun, false, 0),
    ];

    /// The step of each check, by its number in the order.
    fn steps(lanes: usize, workers: u32) -> BTreeMap<&'static str, usize> {
        let arranged = arrange(&CHECKS, lanes, workers);
        CHECKS.iter().zip(arranged.of).map(|(check, step)| (check.id, step)).collect()
    }

    #[test]
    fn in_one_lane_disturbers_follow_those_that_share_and_claims_of_a_row_keep_together() {
        let all = steps(1, 1);
        assert_eq!((all["BOOT-01"], all["BOOT-02"]), (0, 1));
        assert_eq!((all["NODE-01"], all["HA-03"]), (2, 2));
        assert_eq!((all["NODE-10.hang"], all["NODE-10.500"]), (3, 3));
        assert_eq!((all["SVC-01"], all["HA-05"], all["OBS-10"]), (4, 5, 6));
    }

    #[test]
    fn hanging_checks_have_their_own_step_if_workers_are_few() {
        let row = ["SVC-01.a", "SVC-01.b", "SVC-01.c"].map(|id| check(id, Isolation::Shared, true, 0));
        let row = [row[0], row[1], Declared { hangs: true, ..row[2] }];
        let steps = |workers| arrange(&row, 1, workers).steps.len();
        assert_eq!((steps(1), steps(ENOUGH_WORKERS)), (2, 1));
        let loops = ["NODE-10.hang", "LIFE-03.hang"].map(|id| check(id, Isolation::Shared, true, 40));
        let loops = loops.map(|one| Declared { holds_up: true, hangs: true, ..one });
        let steps = |workers| arrange(&loops, 1, workers).steps.len();
        assert_eq!((steps(1), steps(ENOUGH_WORKERS)), (2, 1), "each holds up a loop of its own");
    }

    #[test]
    fn checks_share_a_step_if_the_ccm_has_enough_workers() {
        let all = steps(1, ENOUGH_WORKERS);
        assert_eq!((all["NODE-10.hang"], all["SVC-01"]), (all["NODE-01"], all["NODE-01"]));
        assert_eq!(all["HA-05"], 3);
    }

    #[test]
    fn a_check_that_blocks_a_loop_never_runs_next_to_others() {
        let checks = [
            CHECKS[2],
            Declared { holds_up: true, ..check("LIFE-03.401", Isolation::Shared, true, 30) },
            Declared { holds_up: true, ..check("LIFE-03.500", Isolation::Shared, true, 30) },
        ];
        let of = arrange(&checks, 1, ENOUGH_WORKERS).of;
        assert_eq!(of, [0, 1, 1], "claims of a row are not strangers");
        let guest = check("LIFE-10", Isolation::Shared, true, 30);
        let guest = Declared { holds_up: true, next_to: Some("LIFE-03"), ..guest };
        let of = arrange(&[checks[0], checks[1], guest], 1, 1).of;
        assert_eq!(of, [0, 1, 1], "nor is who says so");
    }

    #[test]
    fn checks_that_need_calm_run_only_next_to_each_other() {
        let checks = [
            CHECKS[2],
            check("SVC-17", Isolation::Quiet, false, 0),
            check("SVC-18", Isolation::Quiet, true, 5),
            CHECKS[7],
        ];
        for workers in [1, ENOUGH_WORKERS] {
            let arranged = arrange(&checks, 1, workers);
            assert_eq!(arranged.of[1], arranged.of[2]);
            assert_eq!(arranged.steps.len(), 3, "{arranged:?}");
        }
    }

    #[test]
    fn with_more_lanes_the_first_is_undisturbed_and_every_lane_has_work() {
        let kinds = |lanes, workers| -> Vec<Kind> {
            arrange(&CHECKS, lanes, workers).steps.iter().map(|step| step.kind).collect()
        };
        use Kind::{Apart, Cold, Last, Shared};
        assert_eq!(kinds(2, 1), [Cold, Cold, Shared, Apart, Apart, Apart, Apart, Last]);
        assert_eq!(kinds(2, ENOUGH_WORKERS), [Cold, Cold, Shared, Apart, Apart, Last]);
        for lanes in 2..6 {
            let arranged = arrange(&CHECKS, lanes, 1);
            let fixed = arranged.fixed_lanes(lanes);
            let first: Vec<&str> = CHECKS
                .iter()
                .zip(&arranged.of)
                .filter(|(_, step)| fixed[**step] == 0)
                .map(|(check, _)| check.id)
                .collect();
            assert_eq!(first, ["NODE-01", "OBS-10"], "{lanes} lanes");
            let spread: BTreeSet<usize> = fixed.into_iter().collect();
            assert_eq!(spread.len(), lanes, "every lane has work");
        }
        let useful = |checks: &[Declared<'_>], workers| arrange(checks, 9, workers).useful_lanes();
        assert_eq!((useful(&CHECKS, 1), useful(&CHECKS, ENOUGH_WORKERS)), (7, 5));
        assert_eq!((useful(&CHECKS[2..3], 1), useful(&[], 1)), (1, 1));
    }

    #[test]
    fn an_environment_of_its_own_has_a_step_where_it_crowds_the_machine() {
        let of = |crowds| {
            let own = Declared { crowds, ..check("BOOT-09", Isolation::DedicatedCluster, false, 50) };
            let arranged = arrange(&[own, CHECKS[2], CHECKS[8]], 2, ENOUGH_WORKERS);
            arranged.of.iter().map(|step| arranged.steps[*step].kind).collect::<Vec<_>>()
        };
        assert_eq!(of(false), [Kind::Shared, Kind::Shared, Kind::Last]);
        assert_eq!(of(true), [Kind::Crowding, Kind::Shared, Kind::Last]);
    }

    #[test]
    fn as_many_lanes_begin_cold_as_it_takes_of_the_time() {
        // 23 of 87 seconds.
        let arranged = arrange(&CHECKS, 5, 1);
        assert_eq!([1, 4, 8].map(|lanes| arranged.cold_lanes(lanes)), [1, 2, 3]);
        assert_eq!(arrange(&CHECKS[2..], 5, 1).cold_lanes(4), 0);
        assert_eq!(arrange(&CHECKS[..2], 5, 1).cold_lanes(4), 4);
    }
}
