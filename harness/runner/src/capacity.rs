//! How many clusters a run has side by side.

use super::planned::{Planned, arranged, selected};
use harness_clusters::{cores, docker_disk_mib, facts, memory_mib, planned_machines};
use harness_config::{BackendKind, RunPlan};

/// Lanes of embedded clusters: those cost next to nothing, and with so many lanes the checks that must be alone end soon after
/// those that share.
const EMBEDDED: u32 = 12;
/// What each further node of kind clusters takes of a machine's memory, GiB: some 0.8 are seen.
const MEMORY_OF_NODE: u64 = 2;
/// What a node of a kind cluster writes, MiB: the CCM's image twice, etcd and logs.
const DISK_OF_NODE: u64 = 1536;
/// What is left to others of a disk, and to the images of a run, MiB.
const DISK_OF_OTHERS: u64 = 2048;
/// The most kind clusters that are started unasked.
const KIND_AT_MOST: u32 = 6;
/// How many of one node two cores carry: most of the time a check waits, and so does a cluster.
const ON_TWO_CORES: usize = 6;

/// Lanes of a run: as many as the plan wants or the machine allows, and never more than the checks can make use of.
pub(super) fn lane_count(plan: &RunPlan, planned: &[Planned]) -> u32 {
    let chosen = selected(planned);
    let useful = arranged(&chosen, usize::MAX, plan.profile.workers, plan.cluster.backend()).useful_lanes();
    let allowed = plan.clusters.unwrap_or_else(|| match plan.cluster.backend() {
        // One after another.
        _ if plan.jobs == 1 => 1,
        // What a kubelet makes of a plugin takes seconds, and a further cluster more than all of it.
        _ if !plan.profile.has_ccm() => 1,
        BackendKind::Embedded => EMBEDDED,
        BackendKind::Kind => {
            let clusters = clusters(plan);
            by_machine(cores(), memory_mib().unwrap_or(0) >> 10, &clusters)
                .min(by_disk(docker_disk_mib(), &clusters))
        }
        BackendKind::Existing | BackendKind::Absent => 1,
    });
    match plan.cluster.backend() {
        BackendKind::Existing | BackendKind::Absent => 1,
        // There is one of it.
        _ if !plan.profile.cloud.is_many() => 1,
        BackendKind::Embedded | BackendKind::Kind => {
            allowed.min(u32::try_from(useful).unwrap_or(u32::MAX)).max(1)
        }
    }
}

/// Lanes, each with kind clusters of so many nodes, that a machine with so many cores and so much memory has room for, at
/// least one.
fn by_machine(cores: usize, memory_gib: u64, clusters: &[usize]) -> u32 {
    let nodes: usize = clusters.iter().map(|nodes| nodes.max(&1)).sum();
    let by_cores = u32::try_from(ON_TWO_CORES * cores / (2 * nodes.max(1))).unwrap_or(u32::MAX);
    let besides_the_first = (memory_gib + MEMORY_OF_NODE).saturating_sub(facts(BackendKind::Kind).memory_gib);
    let by_memory =
        u32::try_from(besides_the_first / (MEMORY_OF_NODE * nodes.max(1) as u64)).unwrap_or(u32::MAX);
    by_cores.min(by_memory).clamp(1, KIND_AT_MOST / u32::try_from(clusters.len()).unwrap_or(1).max(1))
}

/// Lanes that a disk with so much free has room for, at least one.
fn by_disk(free_mib: Option<u64>, clusters: &[usize]) -> u32 {
    let lane = DISK_OF_NODE * clusters.iter().map(|nodes| *nodes.max(&1) as u64).sum::<u64>();
    let fit = free_mib.map(|free| free.saturating_sub(DISK_OF_OTHERS) / lane.max(1));
    fit.map_or(u32::MAX, |fit| u32::try_from(fit).unwrap_or(u32::MAX)).max(1)
}

/// How many nodes each cluster of a lane has; one where the topology does not say, which is told elsewhere.
fn clusters(plan: &RunPlan) -> Vec<usize> {
    let own = plan.cluster.desired().own();
    let served =
        own.and_then(|own| planned_machines(&own.topology).ok()).map_or(1, |machines| machines.len());
    // A hosted CCM's Pods are on a cluster of one node.
    std::iter::once(served).chain(plan.profile.is_hosted().then_some(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{RunFile, Source, plan};

    #[test]
    fn the_more_nodes_a_cluster_has_the_fewer_fit() {
        assert_eq!(by_machine(1, 0, &[1]), 1);
        assert_eq!(by_machine(2, 7, &[1]), 2);
        assert_eq!(by_machine(2, 24, &[1]), 6);
        assert_eq!(by_machine(2, 12, &[1]), 5);
        assert_eq!(by_machine(2, 24, &[3]), 2);
        assert_eq!(by_machine(8, 24, &[3]), 3);
        assert_eq!(by_machine(64, 256, &[1]), 6);
    }

    #[test]
    fn a_disk_that_is_nearly_full_has_room_for_fewer() {
        assert_eq!(by_disk(None, &[1]), u32::MAX);
        assert_eq!(by_disk(Some(1000), &[1]), 1);
        assert_eq!(by_disk(Some(6000), &[1]), 2);
        assert_eq!(by_disk(Some(6000), &[1, 1]), 1);
        assert_eq!(by_disk(Some(80_000), &[3]), 16);
    }

    #[test]
    fn a_lane_of_a_hosted_ccm_is_two_clusters() {
        let of = |profile: &str| {
            let file = RunFile { profile: Some(profile.to_owned()), ..RunFile::default() };
            let wanted = plan(&Source::Defaults, file).expect("a plan");
            let kind = wanted.cluster.clone().settled(BackendKind::Kind);
            clusters(&wanted.on(kind))
        };
        assert_eq!((of("reference"), of("reference-hosted")), (vec![1], vec![1, 1]));
        assert_eq!(by_machine(2, 24, &[1, 1]), 3);
        assert_eq!(by_machine(8, 7, &[1, 1]), 1);
        assert_eq!(by_machine(8, 11, &[1, 1]), 2);
        assert_eq!(by_machine(64, 256, &[1, 1]), 3);
    }
}
