//! CSI drivers among what is judged: the reference, or a mutant of it, on kubelets or on nothing.

use harness_clusters::facts;
use harness_config::{
    BackendKind, ClusterKeys, Given, Offer, Problems, RunFile, RunPlan, Source, Topology, WantedCluster, plan,
};
use harness_core::check::Facility;
use harness_runner::{Planned, plan_checks};
use harness_testkit::Suite;
use serde_json::{Map, Value, json};

/// The profile of the drivers.
pub(super) const DRIVERS: &str = "reference-csi-driver";
/// The command that is the same drivers, able to be broken.
const ODD_DRIVERS: &str = "reference-csi-driver-mutant";
/// The variable that makes it a mutant.
const VARIABLE: &str = "REFERENCE_CSI_DRIVER_MUTANT";

/// The plan and the checks of the reference with what was typed, or of the mutant of that id, with something laid over its profile.
pub(super) fn drivers_with(
    suites: &'static [Suite],
    typed: RunFile,
    with_mutants: &RunPlan,
    mutant: Option<&str>,
    mut over_profile: Map<String, Value>,
) -> Result<(RunPlan, Vec<Planned>), Problems> {
    if let Some(id) = mutant {
        over_profile.entry("csiMigration").or_insert_with(|| json!({}))["environment"] =
            json!({VARIABLE: id});
        over_profile.insert("image".to_owned(), json!({"command": ODD_DRIVERS}));
    }
    let typed = RunFile { cluster: ClusterKeys::default(), ..typed };
    let plan = plan(&Source::Defaults, Given { typed, over_profile, ..Given::default() })?;
    let real = facts(with_mutants.cluster.backend()).facilities.contains(&Facility::CsiDrivers);
    let cluster = match real {
        // Drivers are on other machines than the API server, in two zones.
        true => with_mutants.cluster.clone().with(|own| {
            if own.topology == Topology::Single {
                own.topology = Topology::ThreeNode;
            }
        }),
        false => WantedCluster::absent().settled(BackendKind::Absent),
    };
    let plan = plan.on(cluster);
    let planned = plan_checks(suites, &plan, &Offer::declared(&plan.profile))?;
    Ok((plan, planned))
}
