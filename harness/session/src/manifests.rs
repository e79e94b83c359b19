//! The CCM's manifests that the profile names, and the values that are filled in.

use super::RunState;
use super::SessionError;
use super::state::ReleaseImage;
use crate::ccm::{Ccm, Flag, KUBECONFIG, LeaseKey, Manifests, RenderContext, Side, WorkloadHint, mentions};
use harness_config::{Deployment, Lease, OldRelease, Profile, RunPlan, yaml};
use harness_core::check::chain;
use harness_core::files;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pod networks of kind and embedded clusters, unless their topology sets others: one of each IP family, even if
/// Nodes get only one.
pub const POD_NETWORKS: [&str; 2] = ["10.244.0.0/16", "fd00:10:244::/56"];

/// Reads and checks the profile's manifests; `None` if the profile deploys nothing.
///
/// # Errors
/// The file that cannot be read or parsed, why the manifests do not describe a CCM, or that they do not fit its
/// deployment.
pub fn load_manifests<C>(plan: &RunPlan<C>) -> Result<Option<Manifests>, SessionError> {
    manifests_of(&plan.profile)
}

/// The same for the profile of one release.
///
/// # Errors
/// Those of [`load_manifests`].
pub(super) fn manifests_of(profile: &Profile) -> Result<Option<Manifests>, SessionError> {
    if profile.deploys_nothing() {
        return Ok(None);
    }
    let mut documents = Vec::new();
    for path in &profile.manifests {
        let broken = |cause: String| SessionError::ManifestFile { path: path.clone(), cause };
        let text = files::read(path).map_err(|error| broken(error.to_string()))?;
        let read: Vec<Value> = yaml::from_str_multi(&text, path).map_err(|error| broken(chain(&error)))?;
        // File by file, as long as the file is known.
        Manifests::check(&read).map_err(|error| broken(error.to_string()))?;
        if profile.deployment == Deployment::InCluster && read.iter().any(|one| mentions(one, KUBECONFIG)) {
            return Err(SessionError::Usage(format!(
                "manifest {}: ${{{KUBECONFIG}}} is available only to a CCM that runs outside its cluster; write \
                 'deployment: hosted' in {}, or remove it",
                path.display(),
                profile.file.display()
            )));
        }
        documents.extend(read);
    }
    let taken = documents.iter().any(|document| mentions(document, KUBECONFIG))
        || profile.environment.values().any(|value| value.contains(&format!("${{{KUBECONFIG}}}")));
    if profile.is_hosted() && !taken {
        return Err(SessionError::Usage(format!(
            "{}: deployment: 'hosted', but no manifest contains ${{{KUBECONFIG}}}: put it where the CCM reads the \
             kubeconfig of its cluster, e.g. into a Secret, or write 'in-cluster'",
            profile.file.display()
        )));
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

/// The properties of plan and cluster that rendering needs.
pub(super) fn surroundings(plan: &RunPlan, state: &RunState) -> RenderContext {
    let image = state.image();
    surroundings_of(plan, &plan.profile, &image, state)
}

/// The same for the CCM of one release, with its profile and its image.
pub(super) fn surroundings_of(
    plan: &RunPlan,
    profile: &Profile,
    image: &ReleaseImage,
    state: &RunState,
) -> RenderContext {
    let mut placeholders: BTreeMap<String, String> = profile.placeholders.clone();
    placeholders.entry("CLUSTER_CIDR".to_owned()).or_insert_with(|| POD_NETWORKS.join(","));
    placeholders.extend(state.credentials.0.clone());
    placeholders.insert("IMAGE".to_owned(), image.image.clone());
    let pods_on = state.management.as_ref().unwrap_or(&state.cluster);
    let flags = plan.arguments_of(profile).iter().map(|(argument, from)| Flag::of(argument, *from)).collect();
    RenderContext {
        placeholders,
        command: image.command.clone(),
        api_server: pods_on.api_server_for_pods.clone(),
        group: pods_on.replica_group,
        environment: profile.environment.clone(),
        metadata: state.metadata.clone(),
        flags,
        http_proxy: state.cloud.http_proxy,
        cloud_ca: state.cloud.ca.clone(),
        secure_port: profile.secure_port,
        takes_secure_port: profile.accepts("secure-port"),
    }
}

/// The release that the run upgrades from, on the cluster of `side`; `None` if it names none.
pub(super) fn old_release(plan: &RunPlan, state: &RunState, side: Side) -> Result<Option<Ccm>, SessionError> {
    let (Some(OldRelease { profile, .. }), Some(own)) = (&plan.old_release, &state.old_release) else {
        return Ok(None);
    };
    let image = state.old_image.clone().unwrap_or_else(|| state.image());
    let around = surroundings_of(plan, profile, &image, state);
    let lease = lease_of(profile);
    Ok(Some(Ccm::new(side, None, manifests_of(profile)?, around, (vec![own.replica()], Vec::new()), lease)))
}

/// The Lease of a CCM with leader election.
pub(super) fn lease_of(profile: &Profile) -> Option<LeaseKey> {
    let Lease { namespace, name } = profile.lease.clone();
    profile.capabilities.leader_election.then_some(LeaseKey { namespace, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{RunFile, Source, plan};

    /// The error for a profile with that deployment and a Secret with `text`; empty if it is accepted.
    fn said(deployment: &str, text: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write(
            "profile.yaml",
            format!(
                "apiVersion: ccm-conformance/v1\nkind: Profile\nname: acme\nimage: {{command: reference-ccm}}\n\
                 manifests: [ccm.yaml]\ncapabilities: {{instances: v2}}\ndeployment: {deployment}\n"
            ),
        );
        write(
            "ccm.yaml",
            format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, stringData: {{kubeconfig: '{text}'}}}}\n---\n\
                 {{apiVersion: v1, kind: Pod, metadata: {{name: ccm}}, spec: {{containers: [{{name: a}}]}}}}\n"
            ),
        );
        let profile = Some(folder.path().display().to_string());
        let plan = plan(&Source::Defaults, RunFile { profile, ..RunFile::default() }).expect("a plan");
        match load_manifests(&plan) {
            Ok(_) => String::new(),
            Err(error) => {
                assert!(error.is_usage(), "{error}");
                error.to_string().replace(&format!("{}/", folder.path().display()), "")
            }
        }
    }

    #[test]
    fn a_kubeconfig_is_filled_in_for_a_hosted_ccm_and_for_no_other() {
        assert_eq!(said("hosted", "${KUBECONFIG}"), "");
        assert_eq!(said("in-cluster", "none"), "");
        let hosted = said("hosted", "none");
        assert!(
            hosted.starts_with("profile.yaml: deployment: 'hosted', but no manifest contains"),
            "{hosted}"
        );
        let inside = said("in-cluster", "${KUBECONFIG}");
        assert!(inside.starts_with("manifest ccm.yaml: ${KUBECONFIG} is available only to"), "{inside}");
    }
}
