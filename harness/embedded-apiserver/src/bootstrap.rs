//! The objects of a new cluster.

use embedded_objects::kinds;
use embedded_objects::status::Status;
use embedded_state::policy;
use serde_json::{Value, json};

use crate::verbs::create_object;
use crate::write::Write;
use embedded_state::auth::user::User;
use embedded_state::{Api, Clock};

/// Creates the namespaces, roles and bindings, and the `kubernetes` service of a new cluster; `port` is the
/// server's.
///
/// # Errors
///
/// The rejected object and the reason: a bug in this program.
pub(crate) fn run(api: &Api, port: u16) -> Result<(), (String, Status)> {
    let clock = Clock::now();
    let user = User::master("system:apiserver");
    let tx = api.store.begin();
    let write = Write { api, tx: &tx, user: &user, clock: &clock, dry_run: false, manager: "kube-apiserver" };
    let create = |group: &str, plural: &str, namespace: &str, object: Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(kind) = kinds::find(group, "v1", plural) else { return Ok(()) };
        create_object(&write, kind, namespace, object)
            .map(drop)
            .map_err(|why| (format!("{plural} {name}"), why))
    };
    for name in ["kube-system", "kube-public", "kube-node-lease", "default"] {
        create("", "namespaces", "", json!({"metadata": {"name": name}}))?;
    }
    for item in policy::items() {
        let namespace = item.object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        create("rbac.authorization.k8s.io", item.resource, &namespace, item.object)?;
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    create(
        "",
        "services",
        "default",
        json!({
            "metadata": {"name": "kubernetes", "labels": labels},
            "spec": {
                "clusterIP": "10.96.0.1", "type": "ClusterIP",
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            },
        }),
    )?;
    // A real server publishes an address that pods can reach. Ours listens on loopback only, which the
    // endpoint kinds reject. So the Service has no endpoints, and clients take the address from their
    // kubeconfig.
    create(
        "",
        "configmaps",
        "kube-system",
        json!({
            "metadata": {"name": "extension-apiserver-authentication"},
            "data": {
                "client-ca-file": api.authority.certificate(),
                "requestheader-allowed-names": "[\"front-proxy-client\"]",
                "requestheader-client-ca-file": api.authority.certificate(),
                "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
                "requestheader-group-headers": "[\"X-Remote-Group\"]",
                "requestheader-username-headers": "[\"X-Remote-User\"]",
            },
        }),
    )?;
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000_i64,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        create(
            "scheduling.k8s.io",
            "priorityclasses",
            "",
            json!({
                "metadata": {"name": name}, "value": value, "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        )?;
    }
    Ok(())
}
