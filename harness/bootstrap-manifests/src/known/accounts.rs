//! The annotation `kubernetes.io/enforce-mountable-secrets` of a service account: admission refuses Pods with Secrets that
//! the account does not list (`plugin/pkg/admission/serviceaccount`, `limitSecretReferences`).

use crate::manifest::{Node, Object, Objects};
use crate::workload::{Hindrance, Stage, Workload, spec_path};

const ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";

/// The first Secret of the Pods that their service account does not list, if it lists all that are allowed.
pub(super) fn unlisted_secret(objects: &Objects, object: &Object, workload: &Workload) -> Option<Hindrance> {
    let account = objects.find("ServiceAccount", &workload.namespace, &workload.service_account)?;
    let value = account.node.at(&["metadata", "annotations", ANNOTATION])?.scalar()?;
    if !matches!(value.as_str(), "1" | "t" | "T" | "true" | "True" | "TRUE") {
        return None;
    }
    let listed = |field: &str, name: &str| {
        let items = account.node.get(field).map(Node::items).unwrap_or_default();
        items.iter().any(|item| item.text_at("name") == Some(name))
    };
    let spec = object.node.at(spec_path(workload.kind))?;
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let volume_names =
        volumes.iter().filter_map(|volume| Some((volume, volume.at(&["secret", "secretName"])?.text()?)));
    let containers = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).map(Node::items).unwrap_or_default());
    let variables =
        containers.flat_map(|container| container.get("env").map(Node::items).unwrap_or_default());
    let variable_names = variables.filter_map(|variable| {
        Some((variable, variable.at(&["valueFrom", "secretKeyRef", "name"])?.text()?))
    });
    let pulls = spec.get("imagePullSecrets").map(Node::items).unwrap_or_default();
    let pull_names = pulls.iter().filter_map(|pull| Some((pull, pull.text_at("name")?)));
    let mut unlisted = volume_names
        .chain(variable_names)
        .filter(|(_, name)| !listed("secrets", name))
        .chain(pull_names.filter(|(_, name)| !listed("imagePullSecrets", name)));
    let (node, name) = unlisted.next()?;
    Some(Hindrance::new(
        Stage::Creation,
        format!(
            "ServiceAccount/{} may only use the Secrets that it lists ({ANNOTATION}), and '{name}' is not one of them",
            workload.service_account
        ),
        object.place(node),
        format!("remove the annotation {ANNOTATION} from ServiceAccount/{}", workload.service_account),
    ))
}
