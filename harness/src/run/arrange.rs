//! Who runs beside whom: every check's lane and its step in it, from what the check declares.
//!
//! A lane is a cluster, a cloud and a CCM of its own. In a lane steps follow one another: the next begins when every check
//! of the one before has ended. A check that keeps the CCM or the cloud busy for more than itself never runs beside
//! strangers: it has a step with the other claims of its contract row, or none.

use crate::check::{Sharing, row_of};
use std::collections::{BTreeMap, BTreeSet};

/// From how many Services and Nodes at a time on a CCM is taken to have a worker left for others while some are kept busy.
pub const ENOUGH_WORKERS: u32 = 8;

/// What the arrangement needs to know of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared<'a> {
    /// Its id.
    pub id: &'a str,
    /// How it runs beside others.
    pub sharing: Sharing,
    /// Whether it keeps the CCM busy for more than itself.
    pub disturbs: bool,
    /// Whether it does so however many workers the CCM has.
    pub holds_up: bool,
    /// Whether it does so for longer than a client waits.
    pub hangs: bool,
    /// The least time a passing run takes, seconds.
    pub takes_s: u32,
}

/// A check's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The lane, from 0.
    pub lane: usize,
    /// The step by which others of the lane wait for it.
    pub step: usize,
    /// Every check of its lane with a step below this one has to have ended before it begins.
    pub after: usize,
}

impl Place {
    /// After every other check of every lane.
    pub const AT_THE_END: Place = Place { lane: 0, step: usize::MAX, after: usize::MAX };
}

/// The place of each check, in the order given. There is at least one lane.
///
/// With one lane: checks on a cluster no CCM has touched, one after another; then those that share, and beside them those
/// that watch the leader crash; then those that disturb, a contract row after the other; then those that want calm, together, and those that run alone. With
/// more, the first lane has those that share, and the others the rest, spread by time.
pub fn arrange(checks: &[Declared<'_>], lanes: usize, workers: u32) -> Vec<Place> {
    let groups: Vec<Group<'_>> = checks.iter().map(|check| Group::of(check, workers)).collect();
    let mut time: BTreeMap<Group<'_>, u32> = BTreeMap::new();
    for (group, check) in groups.iter().zip(checks) {
        let longest = time.entry(*group).or_default();
        *longest = (*longest).max(check.takes_s);
    }
    // Those that watch the leader crash prepare beside those that share, where there is no lane for them.
    let crash_beside = lanes <= 1;
    let apart = |group: &Group<'_>| match group {
        Group::Shared | Group::Standing => false,
        Group::Joint => !crash_beside,
        Group::Cold(_) | Group::Disturbing(_) | Group::Calm | Group::Exclusive(_) => true,
    };
    let mut alone: Vec<Group<'_>> = time.keys().copied().filter(apart).collect();
    // Cold ones first, as each of them takes the CCM away; then the longest.
    alone.sort_by_key(|group| (group.rank(), std::cmp::Reverse(time[group]), *group));
    let mut places: BTreeMap<Group<'_>, Place> = BTreeMap::new();
    let mut taken = vec![0_u32; lanes.max(1)];
    let mut steps = vec![0_usize; lanes.max(1)];
    let next = |lane: usize, steps: &mut [usize]| {
        let step = steps[lane];
        steps[lane] += 1;
        Place { lane, step, after: step }
    };
    let any_shared = groups.iter().any(|group| !apart(group) && *group != Group::Standing);
    let others = usize::from(any_shared && lanes > 1)..lanes.max(1);
    for group in alone.iter().filter(|group| group.rank() == 0) {
        // They share a lane: the CCM goes once and comes back once.
        let lane = others.start;
        taken[lane] += time[group] + COLD_S;
        places.insert(*group, next(lane, &mut steps));
    }
    let (shared, joint) = (steps[0], steps[0] + 1);
    steps[0] += 2;
    for group in alone.iter().filter(|group| group.rank() > 0) {
        let lane = others.clone().min_by_key(|lane| taken[*lane]).unwrap_or(0);
        taken[lane] += time[group] + EACH_S;
        places.insert(*group, next(lane, &mut steps));
    }
    let place = |group: &Group<'_>| match group {
        Group::Shared => Place { lane: 0, step: shared, after: shared },
        Group::Standing => Place::AT_THE_END,
        Group::Joint if crash_beside => Place { lane: 0, step: joint, after: shared },
        Group::Joint | Group::Cold(_) | Group::Disturbing(_) | Group::Calm | Group::Exclusive(_) => {
            places[group]
        }
    };
    groups.iter().map(place).collect()
}

/// How many lanes these checks can make use of.
pub fn useful_lanes(checks: &[Declared<'_>], workers: u32) -> usize {
    let mut groups: BTreeSet<Group<'_>> = checks.iter().map(|check| Group::of(check, workers)).collect();
    groups.remove(&Group::Standing);
    let cold = groups.iter().filter(|group| group.rank() == 0).count();
    // The cold ones share a lane.
    (groups.len() - cold.saturating_sub(1)).max(1)
}

/// What making a cluster uninitialised and deploying the CCM adds to a check, about, in seconds.
pub(super) const COLD_S: u32 = 4;
/// What each further step costs, about, in seconds.
pub(super) const EACH_S: u32 = 2;

/// Checks that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group<'a> {
    Cold(&'a str),
    Shared,
    Joint,
    /// By contract row: its claims are no strangers to one another.
    Disturbing(&'a str),
    /// They keep nobody busy.
    Calm,
    Exclusive(&'a str),
    /// Judges the whole run.
    Standing,
}

impl<'a> Group<'a> {
    pub(super) fn of(check: &Declared<'a>, workers: u32) -> Group<'a> {
        match check.sharing {
            Sharing::Cold => Group::Cold(check.id),
            Sharing::Calm => Group::Calm,
            Sharing::Exclusive => Group::Exclusive(check.id),
            Sharing::Joint => Group::Joint,
            Sharing::Standing => Group::Standing,
            Sharing::Shared if check.holds_up || (check.disturbs && workers < ENOUGH_WORKERS) => {
                Group::Disturbing(if check.hangs { check.id } else { row_of(check.id) })
            }
            Sharing::Shared => Group::Shared,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Group::Cold(_) => 0,
            Group::Shared | Group::Joint | Group::Disturbing(_) => 1,
            Group::Calm | Group::Exclusive(_) => 2,
            Group::Standing => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn check(id: &'static str, sharing: Sharing, disturbs: bool, takes_s: u32) -> Declared<'static> {
        Declared { id, sharing, disturbs, holds_up: false, hangs: false, takes_s }
    }

    const CHECKS: [Declared<'static>; 9] = [
        check("BOOT-01", Sharing::Cold, false, 10),
        check("BOOT-02", Sharing::Cold, false, 5),
        check("NODE-01", Sharing::Shared, false, 0),
        check("NODE-10.hang", Sharing::Shared, true, 35),
        check("NODE-10.500", Sharing::Shared, true, 35),
        check("SVC-01", Sharing::Shared, true, 3),
        check("HA-03", Sharing::Joint, false, 10),
        check("HA-05", Sharing::Exclusive, false, 12),
        check("OBS-10", Sharing::Standing, false, 0),
    ];

    fn places(lanes: usize, workers: u32) -> BTreeMap<&'static str, (usize, usize, usize)> {
        let places = arrange(&CHECKS, lanes, workers);
        CHECKS.iter().zip(places).map(|(check, p)| (check.id, (p.lane, p.step, p.after))).collect()
    }

    #[test]
    fn in_one_lane_disturbers_follow_those_that_share_and_claims_of_a_row_keep_together() {
        let all = places(1, 1);
        assert!(all.values().all(|(lane, ..)| *lane == 0));
        assert_eq!((all["BOOT-01"], all["BOOT-02"]), ((0, 0, 0), (0, 1, 1)));
        assert_eq!((all["NODE-01"], all["HA-03"]), ((0, 2, 2), (0, 3, 2)));
        assert_eq!(all["NODE-10.hang"], (0, 4, 4));
        assert_eq!(all["NODE-10.500"], all["NODE-10.hang"]);
        assert_eq!((all["SVC-01"], all["HA-05"]), ((0, 5, 5), (0, 6, 6)));
    }

    #[test]
    fn what_hangs_has_a_step_of_its_own_where_workers_are_few() {
        let row = ["SVC-01.a", "SVC-01.b", "SVC-01.c"].map(|id| check(id, Sharing::Shared, true, 0));
        let row = [row[0], row[1], Declared { hangs: true, ..row[2] }];
        let steps = |workers| arrange(&row, 1, workers).iter().map(|p| p.step).collect::<BTreeSet<_>>().len();
        assert_eq!((steps(1), steps(ENOUGH_WORKERS)), (2, 1));
    }

    #[test]
    fn a_ccm_with_many_workers_is_disturbed_by_nobody() {
        let all = places(1, ENOUGH_WORKERS);
        assert_eq!((all["NODE-10.hang"], all["SVC-01"]), (all["NODE-01"], all["NODE-01"]));
        assert_eq!(all["HA-05"], (0, 4, 4));
    }

    #[test]
    fn who_holds_up_a_loop_never_runs_beside_strangers() {
        let checks = [
            CHECKS[2],
            Declared { holds_up: true, ..check("LIFE-03.401", Sharing::Shared, true, 30) },
            Declared { holds_up: true, ..check("LIFE-03.500", Sharing::Shared, true, 30) },
        ];
        let places = arrange(&checks, 1, ENOUGH_WORKERS);
        assert_eq!(places[1], places[2], "claims of a row are no strangers");
        assert!(places[1].after > places[0].step);
    }

    #[test]
    fn who_wants_calm_shares_it_and_has_no_other_beside() {
        let checks = [
            CHECKS[2],
            check("SVC-17", Sharing::Calm, false, 0),
            check("SVC-18", Sharing::Calm, true, 5),
            CHECKS[7],
        ];
        for workers in [1, ENOUGH_WORKERS] {
            let places = arrange(&checks, 1, workers);
            assert_eq!(places[1], places[2]);
            let steps: BTreeSet<usize> = places.iter().map(|place| place.step).collect();
            assert_eq!(steps.len(), 3, "{places:?}");
            assert!(places[1].after > places[0].step);
        }
    }

    #[test]
    fn with_more_lanes_nobody_disturbs_the_first() {
        for lanes in 2..6 {
            let all = places(lanes, 1);
            let first: Vec<&str> =
                all.iter().filter(|(_, (lane, ..))| *lane == 0).map(|(id, _)| *id).collect();
            assert_eq!(first, ["NODE-01", "OBS-10"], "{lanes} lanes");
            assert_eq!(all["OBS-10"], (0, usize::MAX, usize::MAX), "after everything");
            assert_eq!(all["NODE-01"], (0, 0, 0));
            assert_eq!(all["NODE-10.500"], all["NODE-10.hang"]);
            assert!(all.values().all(|(lane, ..)| *lane < lanes));
        }
        let spread: BTreeSet<usize> = places(4, 1).values().map(|p| p.0).collect();
        assert_eq!(spread.len(), 4, "every lane has work");
        // Those that share, those that are cold, those at the crash, two that disturb and one that runs alone.
        assert_eq!((useful_lanes(&CHECKS, 1), useful_lanes(&CHECKS, ENOUGH_WORKERS)), (6, 4));
        assert_eq!(useful_lanes(&CHECKS[..2], 1), 1);
        assert_eq!(arrange(&CHECKS[..1], 1, 1), [Place { lane: 0, step: 0, after: 0 }]);
    }
}
