//! The image of this process, if it runs in a Pod of the cluster: it contains the harness's own commands.

use crate::SessionError;
use harness_clusters::InsideCluster;
use harness_clusters::images::own_program;
use harness_core::check::chain;
use harness_core::files;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::Path;

/// Variables that contain the Pod's name: one that manifests set, and the one that kubelets set where Pods have their own
/// host name.
const NAMES: [&str; 2] = ["POD_NAME", "HOSTNAME"];

/// The image of this Pod's container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnImage {
    /// Its name, as the Pod spells it.
    pub(super) image: String,
    /// The digest of its content; empty if the kubelet has not reported it yet.
    pub(super) digest: String,
    /// The path of this program in it.
    program: String,
}

impl OwnImage {
    /// The command of a container of the image that runs this command of the program.
    pub(super) fn command(&self, command: &str) -> Vec<String> {
        vec![self.program.clone(), command.to_owned()]
    }
}

/// Queries the API server for the Pod of this process.
///
/// # Errors
/// It does not answer, or there is no such Pod.
pub(super) async fn own_image(inside: &InsideCluster) -> Result<OwnImage, SessionError> {
    let unknown = |why: String| {
        SessionError::Precondition(format!(
            "the image of this Pod is unknown: {why}; set the environment variable POD_NAME of its container from the \
             field metadata.name"
        ))
    };
    let program = own_program()
        .map_err(|error| unknown(format!("cannot find this program's own file: {}", files::why(&error))))?;
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
