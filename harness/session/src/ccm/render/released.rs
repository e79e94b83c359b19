//! A release in an upgrade: the manifests as shipped, with what an upgrade needs in addition.

use super::super::manifests::{Manifests, ObjectKey, key_of, mentions, pod_spec_mut};
use super::edits::refer_to;
use super::{RenderContext, Rendered, Renderer, Replica, TOKEN, by_us, shipped};
use serde_json::json;

/// Where a release runs, and next to what.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Placed {
    /// Whether the other release of the upgrade has manifests with the same names.
    pub(in super::super) apart: bool,
    /// The number of Nodes on which its Pods may run.
    pub(in super::super) places: usize,
}

/// A release in an upgrade: the manifests as shipped, with the flags of the run, and the credential and the endpoint of `own`.
/// If it is `apart`, the objects that contain the credential are named after `own`, so that the other release does not replace
/// them, and the request log of the cloud tells the two apart.
///
/// A Deployment has at most as many replicas as there are `places` for its Pods: a replica that waits for a place would keep
/// the rollout from ever ending.
pub(in super::super) fn as_released(
    manifests: &Manifests,
    own: &Replica,
    around: &RenderContext,
    Placed { apart, places }: Placed,
) -> Rendered {
    let mut renderer = Renderer::of(manifests, around);
    renderer.set_flags();
    renderer.fit_into(places);
    // The manifests of both releases may name the same image.
    if let Some(image) = around.placeholders.get("IMAGE").filter(|image| apart && !image.is_empty()) {
        renderer.container()["image"] = json!(image);
    }
    let mut rendered = shipped(manifests, renderer, Some(own));
    let carriers: Vec<ObjectKey> = match apart {
        true => manifests.documents.iter().filter(|document| mentions(document, TOKEN)).map(key_of).collect(),
        false => Vec::new(),
    };
    for carrier in carriers.iter().filter(|carrier| !rendered.workloads.contains(carrier)) {
        let renamed = format!("{}-{}", carrier.name, own.name);
        for document in &mut rendered.documents {
            if key_of(document) == *carrier {
                document["metadata"]["name"] = json!(renamed);
            } else if rendered.workloads.contains(&key_of(document)) {
                refer_to(pod_spec_mut(document), &carrier.kind, &carrier.name, &renamed);
            }
        }
    }
    rendered
}

impl Renderer<'_> {
    fn fit_into(&mut self, places: usize) {
        let Some(replicas) = self.workload["spec"]["replicas"].as_u64() else { return };
        let fitting = replicas.min(u64::try_from(places.max(1)).unwrap_or(u64::MAX));
        if fitting < replicas {
            self.workload["spec"]["replicas"] = json!(fitting);
            let what = format!(
                "replicas {fitting} instead of {replicas} in upgrades, as the cluster has no place for more"
            );
            self.changes.push(by_us(what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::manifests::WorkloadHint;
    use super::*;

    #[test]
    fn the_old_release_has_its_own_credential_and_image_and_no_replica_that_waits() {
        let workload = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ccm", "namespace": "kube-system"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "ccm"}}, "template": {
                "metadata": {"labels": {"app": "ccm"}},
                "spec": {"containers": [{"name": "ccm", "image": "acme:1", "env": [
                    {"name": "T", "valueFrom": {"secretKeyRef": {"name": "cloud", "key": "token"}}}]}]}}}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud", "namespace": "kube-system"},
            "stringData": {"token": "${CLOUD_TOKEN}"}});
        let manifests = Manifests::new(vec![secret, workload], &WorkloadHint::default()).expect("a fine set");
        let own = Replica { name: "old".into(), token: "t".into(), secure_port: 0, endpoint: String::new() };
        let mut around = RenderContext::default();
        around.placeholders.insert("IMAGE".to_owned(), "acme-old:0".to_owned());
        let released = |apart, places| as_released(&manifests, &own, &around, Placed { apart, places });
        let old = released(true, 1);
        let [secret, workload] = old.documents.as_slice() else { panic!("{:?}", old.documents) };
        assert_eq!(secret["metadata"]["name"], "cloud-old");
        let container = &workload["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["env"][0]["valueFrom"]["secretKeyRef"]["name"], "cloud-old");
        assert_eq!((&container["image"], &workload["spec"]["replicas"]), (&json!("acme-old:0"), &json!(1)));
        let new = released(false, 3);
        assert_eq!(new.documents[0]["metadata"]["name"], "cloud");
        assert_eq!(new.documents[1]["spec"]["replicas"], 2);
        assert_eq!(new.workloads, old.workloads);
    }
}
