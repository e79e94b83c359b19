//! The CCM's manifests as the profile names them, and what is filled in around them.

use super::RunState;
use super::SessionError;
use crate::ccm::{Flag, Manifests, Surroundings, WorkloadHint};
use crate::check::chain;
use crate::config::{RunPlan, yaml};
use crate::files;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pod networks of clusters of kind and of embedded ones, unless their topology says otherwise: one of each IP
/// family, also where Nodes get only one.
pub const POD_NETWORKS: [&str; 2] = ["10.244.0.0/16", "fd00:10:244::/56"];

/// Reads and checks the profile's manifests; `None` when the profile deploys nothing.
///
/// # Errors
/// Which file cannot be read or parsed, or why the set describes no CCM.
pub fn load_manifests<C>(plan: &RunPlan<C>) -> Result<Option<Manifests>, SessionError> {
    let profile = &plan.profile;
    if profile.deploys_nothing() {
        return Ok(None);
    }
    let mut documents = Vec::new();
    for path in &profile.manifests {
        let broken = |cause: String| SessionError::ManifestFile { path: path.clone(), cause };
        let text = files::read(path).map_err(|error| broken(error.to_string()))?;
        let read: Vec<Value> = yaml::from_str_multi(&text, path).map_err(|error| broken(chain(&error)))?;
        // By file, as long as it is known.
        Manifests::check(&read).map_err(|error| broken(error.to_string()))?;
        documents.extend(read);
    }
    let hint = match &profile.workload {
        None => WorkloadHint::default(),
        Some(workload) => WorkloadHint {
            namespace: Some(workload.namespace.clone()),
            name: Some(workload.name.clone()),
            container: workload.container.clone(),
        },
    };
    Ok(Some(Manifests::new(documents, &hint)?))
}

/// What rendering needs to know of plan and cluster.
pub(super) fn surroundings(plan: &RunPlan, state: &RunState) -> Surroundings {
    let mut placeholders: BTreeMap<String, String> = plan.profile.placeholders.clone();
    placeholders.entry("CLUSTER_CIDR".to_owned()).or_insert_with(|| POD_NETWORKS.join(","));
    placeholders.insert("IMAGE".to_owned(), state.ccm_image.clone());
    let flags = plan.ccm_arguments().iter().map(|(argument, from)| Flag::of(argument, *from)).collect();
    Surroundings {
        placeholders,
        command: state.ccm_command.clone(),
        api_server: state.cluster.api_server_for_pods.clone(),
        environment: plan.profile.environment.clone(),
        metadata: state.metadata.clone(),
        flags,
        cloud_ca: state.cloud.ca.clone(),
        secure_port: plan.profile.secure_port,
        takes_secure_port: plan.profile.accepts("secure-port"),
    }
}
