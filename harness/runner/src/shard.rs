//! Which part of a run each check belongs to when a run is divided between machines.
//!
//! Claims of a contract row stay together, and so do all checks that watch one crash of the leader. The rest is
//! distributed by duration, the longest first. The same checks result in the same parts on every machine.

use super::schedule::{Declared, Group};
use harness_core::check::row_of;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Approximate number of checks that run at the same time on a shared cluster.
const SIDE_BY_SIDE: u32 = 8;

/// Assumed number of lanes of a part: with it, checks that watch the crash have their own lane.
const LANES: usize = 2;

/// The part of each of these checks, from 0, in their order; `None` for one that judges the whole run, which every part
/// runs.
pub(super) fn parts<'a>(checks: &[Declared<'a>], parts: usize, workers: u32) -> Vec<Option<usize>> {
    let group = |check: &Declared<'a>| -> Group<'a> { Group::of(check, LANES, workers) };
    // Checks that watch the crash keep the rest of their row with them.
    let watching: Vec<&str> =
        checks.iter().filter(|check| group(check) == Group::Joint).map(|check| row_of(check.id)).collect();
    let unit = |check: &Declared<'a>| {
        let row = row_of(check.id);
        if watching.contains(&row) { String::new() } else { row.to_owned() }
    };
    let mut units: BTreeMap<String, BTreeMap<Group<'_>, (u32, u32)>> = BTreeMap::new();
    for check in checks.iter().filter(|check| group(check) != Group::Standing) {
        let (longest, sum) = units.entry(unit(check)).or_default().entry(group(check)).or_default();
        *longest = (*longest).max(check.takes_s);
        *sum += check.takes_s + 1;
    }
    let mut by_time: Vec<(u32, String)> =
        units.into_iter().map(|(unit, groups)| (groups.iter().map(cost).sum(), unit)).collect();
    by_time.sort_by_key(|(cost, unit)| (Reverse(*cost), unit.clone()));
    let mut taken = vec![0_u32; parts.max(1)];
    let mut part_of: BTreeMap<String, usize> = BTreeMap::new();
    for (cost, unit) in by_time {
        let part = (0..taken.len()).min_by_key(|part| taken[*part]).unwrap_or(0);
        taken[part] += cost;
        part_of.insert(unit, part);
    }
    checks
        .iter()
        .map(|check| part_of.get(&unit(check)).copied().filter(|_| group(check) != Group::Standing))
        .collect()
}

/// The cost of checks that run at the same time, in units of 1/[`SIDE_BY_SIDE`] second: the longest one, and the sum of
/// all.
fn cost((group, (longest, sum)): (&Group<'_>, &(u32, u32))) -> u32 {
    match group {
        Group::Standing => 0,
        // Others run next to them.
        Group::Shared | Group::Calm => *sum,
        Group::Cold(_)
        | Group::Joint
        | Group::Disturbing(_)
        | Group::Hanging
        | Group::Exclusive(_)
        | Group::Crowding(_) => (longest + group.comes_with_s()) * SIDE_BY_SIDE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Isolation;

    const fn check(id: &'static str, isolation: Isolation, takes_s: u32) -> Declared<'static> {
        Declared {
            id,
            isolation,
            disturbs: false,
            holds_up: false,
            hangs: false,
            next_to: None,
            crowds: false,
            takes_s,
        }
    }

    const CHECKS: [Declared<'static>; 9] = [
        check("BOOT-01", Isolation::FreshCluster, 20),
        check("BOOT-02", Isolation::FreshCluster, 20),
        check("NODE-01.a", Isolation::Shared, 4),
        check("NODE-01.b", Isolation::Alone, 10),
        check("SVC-01", Isolation::Shared, 3),
        check("HA-03", Isolation::SharedCrash, 10),
        check("HA-04.crash", Isolation::SharedCrash, 10),
        check("HA-04.frozen", Isolation::Alone, 10),
        check("OBS-10", Isolation::AfterTheRun, 0),
    ];

    fn of(count: usize) -> BTreeMap<&'static str, Option<usize>> {
        CHECKS.iter().map(|check| check.id).zip(parts(&CHECKS, count, 1)).collect()
    }

    #[test]
    fn each_check_has_one_part_and_rows_keep_together() {
        for count in 1..8 {
            let parts = of(count);
            assert_eq!(parts["OBS-10"], None, "it judges every part");
            assert!(parts.iter().all(|(id, part)| *id == "OBS-10" || part.is_some_and(|part| part < count)));
            assert_eq!(parts["NODE-01.a"], parts["NODE-01.b"]);
            let crash = ["HA-03", "HA-04.crash", "HA-04.frozen"].map(|id| parts[id]);
            assert!(crash.iter().all(|part| *part == crash[0]), "{crash:?}");
            assert_eq!(parts, of(count), "the same again");
        }
    }

    #[test]
    fn the_parts_take_alike_long() {
        let parts = of(2);
        assert_ne!(parts["BOOT-01"], parts["BOOT-02"]);
        assert_ne!(parts["HA-03"], parts["NODE-01.a"]);
    }
}
