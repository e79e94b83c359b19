//! The mounts of a Pod that its program may use without being configured to. Pure functions.

use k8s_openapi::api::core::v1::{Container, Pod, Volume};
use std::collections::BTreeSet;

/// The folders of a Pod's volumes that contain files of the cluster and are not mentioned in a container's command line
/// or environment: their paths are built into its program.
pub(crate) fn unstated_mounts(pod: &Pod) -> BTreeSet<String> {
    let Some(spec) = &pod.spec else { return BTreeSet::new() };
    let from_cluster = |volume: &&Volume| {
        volume.secret.is_some()
            || volume.config_map.is_some()
            || volume.projected.is_some()
            || volume.downward_api.is_some()
    };
    let volumes: BTreeSet<&str> =
        spec.volumes.iter().flatten().filter(from_cluster).map(|volume| volume.name.as_str()).collect();
    let unstated = |container: &Container| {
        let stated: Vec<String> = words(container).collect();
        let mounts = container.volume_mounts.clone().unwrap_or_default().into_iter();
        let mounts =
            mounts.filter(|mount| volumes.contains(mount.name.as_str())).map(|mount| mount.mount_path);
        mounts
            .filter(|path| !stated.iter().any(|word| word.contains(path.trim_end_matches('/'))))
            .collect::<Vec<String>>()
    };
    spec.containers.iter().flat_map(unstated).collect()
}

/// Its command line, and the values of its environment.
fn words(container: &Container) -> impl Iterator<Item = String> {
    let line = container.command.iter().chain(&container.args).flatten().cloned();
    line.chain(container.env.iter().flatten().filter_map(|variable| variable.value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_is_unstated_if_neither_arguments_nor_environment_have_it() {
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        let mounts = [
            json!({"name": "token", "mountPath": account}),
            json!({"name": "config", "mountPath": "/etc/acme/"}),
            json!({"name": "host", "mountPath": "/etc/ssl/certs"}),
        ];
        let volumes = [
            json!({"name": "token", "projected": {"sources": []}}),
            json!({"name": "config", "configMap": {"name": "acme"}}),
            json!({"name": "host", "hostPath": {"path": "/etc/ssl/certs"}}),
        ];
        let unstated = |environment: serde_json::Value| {
            let container = json!({"name": "ccm", "args": ["--cloud-config=/etc/acme/cloud.conf"], "env": environment, "volumeMounts": mounts});
            let pod = json!({"spec": {"containers": [container], "volumes": volumes}});
            unstated_mounts(&serde_json::from_value(pod).expect("a Pod"))
        };
        assert_eq!(unstated(json!([])), BTreeSet::from([account.to_owned()]));
        assert_eq!(unstated(json!([{"name": "FOLDER", "value": account}])), BTreeSet::new());
        assert_eq!(unstated_mounts(&Pod::default()), BTreeSet::new());
    }
}
