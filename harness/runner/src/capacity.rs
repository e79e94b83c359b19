//! How many clusters a run uses at the same time.

use super::planned::{Planned, arranged, selected};
use harness_clusters::{cores, docker_disk_mib, facts, memory_mib, planned_machines};
use harness_config::{BackendKind, RunPlan};

/// Lanes of embedded clusters. They are cheap, and with this many lanes the checks that must run alone end soon after
/// those that share.
const EMBEDDED: u32 = 12;
/// Memory that each further node of kind clusters needs, in GiB; about 0.8 are observed.
const MEMORY_OF_NODE: u64 = 2;
/// Disk space that a node of a kind cluster uses, in MiB: the CCM's image twice, etcd and logs.
const DISK_OF_NODE: u64 = 1536;
/// Disk space that stays free for other programs and for the images of a run, in MiB.
const DISK_OF_OTHERS: u64 = 2048;
/// Maximum number of kind clusters that a run starts by default.
const KIND_AT_MOST: u32 = 6;
/// Number of single-node clusters that two cores can run: most of the time a check waits, and so does a cluster.
const ON_TWO_CORES: usize = 6;

/// The lanes of a run: as many as the plan sets or the machine allows, but never more than the checks can use.
pub(super) fn lane_count(plan: &RunPlan, planned: &[Planned]) -> u32 {
    let chosen = selected(planned);
    let useful = arranged(&chosen, usize::MAX, plan.profile.workers, plan.cluster.backend()).useful_lanes();
    let allowed = plan.clusters.unwrap_or_else(|| match plan.cluster.backend() {
        // One after another.
        _ if plan.jobs == 1 => 1,
        // A kubelet that runs a plugin takes seconds, and a further cluster would take longer than all checks.
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
        // There is only one existing cluster.
        _ if !plan.profile.cloud.is_many() => 1,
        BackendKind::Embedded | BackendKind::Kind => {
            allowed.min(u32::try_from(useful).unwrap_or(u32::MAX)).max(1)
        }
    }
}

/// How many lanes, each with kind clusters of this many nodes, fit on a machine with this many cores and this much
/// memory; at least one.
fn by_machine(cores: usize, memory_gib: u64, clusters: &[usize]) -> u32 {
    let nodes: usize = clusters.iter().map(|nodes| nodes.max(&1)).sum();
    let by_cores = u32::try_from(ON_TWO_CORES * cores / (2 * nodes.max(1))).unwrap_or(u32::MAX);
    let besides_the_first = (memory_gib + MEMORY_OF_NODE).saturating_sub(facts(BackendKind::Kind).memory_gib);
    let by_memory =
        u32::try_from(besides_the_first / (MEMORY_OF_NODE * nodes.max(1) as u64)).unwrap_or(u32::MAX);
    by_cores.min(by_memory).clamp(1, KIND_AT_MOST / u32::try_from(clusters.len()).unwrap_or(1).max(1))
}

/// How many lanes fit on a disk with this much free space; at least one.
fn by_disk(free_mib: Option<u64>, clusters: &[usize]) -> u32 {
    let lane = DISK_OF_NODE * clusters.iter().map(|nodes| *nodes.max(&1) as u64).sum::<u64>();
    let fit = free_mib.map(|free| free.saturating_sub(DISK_OF_OTHERS) / lane.max(1));
    fit.map_or(u32::MAX, |fit| u32::try_from(fit).unwrap_or(u32::MAX)).max(1)
}

/// The number of nodes of each cluster of a lane; one if the topology cannot be read, which is reported elsewhere.
fn clusters(plan: &RunPlan) -> Vec<usize> {
    let own = plan.cluster.desired().own();
    let served =
        own.and_then(|own| planned_machines(&own.topology).ok()).map_or(1, |machines| machines.len());
    // The Pods of a hosted CCM run on an additional cluster with one node.
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
