//! The CA certificates for the CCM if the run has its own CA. Pure functions.

use super::manifests::{array_at, pod_spec_mut};
use serde_json::{Value, json};

/// Their path in the CCM's container.
const FOLDER: &str = "/etc/ccm-conformance/cloud";
/// Their volume, and their ConfigMap.
const VOLUME: &str = "ccm-conformance-cloud-ca";

/// The placeholders for them, and the values.
pub(super) fn placeholders() -> [(String, String); 2] {
    [("CLOUD_CA", "ca.crt"), ("CLOUD_CA_BUNDLE", "ca-bundle.crt")]
        .map(|(name, file)| (name.to_owned(), format!("{FOLDER}/{file}")))
}

/// Mounts them into a workload's container; returns their ConfigMap. `ca` is the run's, in PEM.
pub(super) fn mount(workload: &mut Value, container: usize, ca: &str) -> Value {
    let namespace = workload["metadata"]["namespace"].clone();
    let spec = pod_spec_mut(workload);
    array_at(spec, "volumes").push(json!({"name": VOLUME, "configMap": {"name": VOLUME}}));
    let mounted = json!({"name": VOLUME, "mountPath": FOLDER, "readOnly": true});
    array_at(&mut spec["containers"][container], "volumeMounts").push(mounted);
    let bundle = format!("{ca}\n{}", recording_proxy::trusted_here());
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": VOLUME, "namespace": namespace},
        "data": {"ca.crt": ca, "ca-bundle.crt": bundle},
    })
}
