//! How many clusters a run has side by side.

use super::arrange::useful_lanes;
use super::planned::{Planned, declared, selected};
use crate::config::{BackendKind, RunPlan};
use std::num::NonZero;
use std::thread::available_parallelism;

/// Embedded clusters: they cost next to nothing, and with five those that must be alone end before those that share.
const EMBEDDED: u32 = 5;
/// What a kind cluster takes of a machine without being felt.
const CORES: usize = 4;
const MEMORY_GIB: u64 = 8;

/// Lanes of a run: as many as the plan wants or the machine allows, and never more than the checks can make use of.
pub(super) fn lane_count(plan: &RunPlan, planned: &[Planned]) -> u32 {
    let chosen = selected(planned);
    let useful = useful_lanes(&declared(&chosen), plan.profile.workers);
    let allowed = plan.clusters.unwrap_or_else(|| match plan.cluster.backend() {
        BackendKind::Embedded => EMBEDDED,
        BackendKind::Kind => by_machine(available_parallelism().map_or(1, NonZero::get), memory_gib()),
        BackendKind::Existing => 1,
    });
    match plan.cluster.backend() {
        BackendKind::Existing => 1,
        BackendKind::Embedded | BackendKind::Kind => {
            allowed.min(u32::try_from(useful).unwrap_or(u32::MAX)).max(1)
        }
    }
}

/// kind clusters a machine with so many cores and so much memory has room for, at least one.
fn by_machine(cores: usize, memory_gib: u64) -> u32 {
    let by_cores = u32::try_from(cores / CORES).unwrap_or(u32::MAX);
    let by_memory = u32::try_from(memory_gib / MEMORY_GIB).unwrap_or(u32::MAX);
    by_cores.min(by_memory).clamp(1, 4)
}

/// The machine's memory, GiB; 0 where it does not say.
fn memory_gib() -> u64 {
    let said = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = said.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / (1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_has_room_for_one() {
        assert_eq!(by_machine(2, 24), 1);
        assert_eq!(by_machine(8, 8), 1);
        assert_eq!(by_machine(8, 32), 2);
        assert_eq!(by_machine(64, 256), 4);
        assert_eq!(by_machine(1, 0), 1);
    }
}
