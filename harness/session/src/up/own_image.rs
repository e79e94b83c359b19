//! The image that this process runs in, where it is a Pod of the cluster: the harness's own commands are in it.

use crate::SessionError;
use harness_clusters::InsideCluster;
use harness_clusters::images::own_program;
use harness_core::check::chain;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::Path;

/// Variables that name the Pod: one that manifests set, and the one that kubelets set where Pods have a name of their own on
/// the network.
const NAMES: [&str; 2] = ["POD_NAME", "HOSTNAME"];

/// The image of this Pod's container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnImage {
    /// Its name, as the Pod spells it.
    pub(super) image: String,
    /// What identifies its content; empty where the kubelet has not said it yet.
    pub(super) digest: String,
    /// Where this program is in it.
    program: String,
}

impl OwnImage {
    /// What a container of the image has to be told so that it is that command of this program.
    pub(super) fn command(&self, command: &str) -> Vec<String> {
        vec![self.program.clone(), command.to_owned()]
    }
}

/// Asks the API server for the Pod that this process runs in.
///
/// # Errors
/// It does not answer, or knows no such Pod.
pub(super) async fn own_image(inside: &InsideCluster) -> Result<OwnImage, SessionError> {
    let unknown = |why: String| {
        SessionError::Precondition(format!(
            "which image this Pod runs is not known: {why}; its container has to have the variable POD_NAME, from the field \
             metadata.name"
        ))
    };
    let program = own_program().map_err(|error| unknown(format!("where is this program? {error}")))?;
    let name = NAMES.iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    let name = name.ok_or_else(|| unknown(format!("neither {} is set", NAMES.join(" nor "))))?;
    let config = Kubeconfig::from_yaml(&inside.kubeconfig()).map_err(|error| unknown(chain(&error)))?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| unknown(chain(&error)))?;
    let api: Api<Pod> = Api::namespaced(Client::try_from(config)?, &inside.namespace);
    let pod = api.get(&name).await;
    let pod =
        pod.map_err(|error| unknown(format!("Pod {name} in {}: {}", inside.namespace, chain(&error))))?;
    of_pod(&pod, &program)
        .ok_or_else(|| unknown(format!("no container of Pod {name} runs {}", program.display())))
}

/// The image of the first container of a Pod that runs this program.
fn of_pod(pod: &Pod, program: &Path) -> Option<OwnImage> {
    let runs_it = |container: &&Container| match container.command.as_deref() {
        // The image's own command.
        None | Some([]) => true,
        Some([first, ..]) => Path::new(first).file_name() == program.file_name(),
    };
    let container = pod.spec.as_ref()?.containers.iter().find(runs_it)?;
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let status = statuses.iter().find(|status| status.name == container.name);
    let digest =
        status.and_then(|status| status.image_id.find("sha256:").map(|at| status.image_id[at..].to_owned()));
    Some(OwnImage {
        image: container.image.clone()?,
        digest: digest.unwrap_or_default(),
        program: program.to_string_lossy().into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_image_is_that_of_the_container_that_runs_this_program() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [
                {"name": "worker", "image": "other:1", "command": ["/other"]},
                {"name": "plugin", "image": "registry.example/ccm-conformance:1"}]},
            "status": {"containerStatuses": [
                {"name": "plugin", "image": "x", "ready": true, "restartCount": 0,
                 "imageID": "registry.example/ccm-conformance@sha256:12"}]},
        }))
        .expect("a Pod");
        let own = of_pod(&pod, Path::new("/ccm-conformance")).expect("there is one");
        assert_eq!(own.image, "registry.example/ccm-conformance:1");
        assert_eq!(own.digest, "sha256:12");
        assert_eq!(own.command("fake-cloud"), ["/ccm-conformance", "fake-cloud"]);
        let other: Pod = serde_json::from_value(json!({"spec": {"containers": [
            {"name": "worker", "image": "other:1", "command": ["/other"]}]}}))
        .expect("a Pod");
        assert_eq!(of_pod(&other, Path::new("/ccm-conformance")), None);
    }
}
