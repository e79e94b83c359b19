//! The objects of every new namespace.

use embedded_objects::kinds;
use embedded_objects::status::Status;
use serde_json::json;

use super::insert::insert;
use crate::write::Write;

/// Creates the objects that the controllers of a real cluster create within moments: the default service
/// account and the authority's certificate.
///
/// # Errors
///
/// Any rejection of a creation; an object that already exists stays as it is.
pub(super) fn create_defaults(write: &Write<'_>, namespace: &str) -> Result<(), Status> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let certificate = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {
                "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when \
                using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                guaranteed across distributions of Kubernetes clusters.",
            },
        },
        "data": {"ca.crt": write.api.authority.certificate()},
    });
    let controller = Write { manager: "kube-controller-manager", ..*write };
    for (plural, object) in [("serviceaccounts", account), ("configmaps", certificate)] {
        let Some(kind) = kinds::find("", "v1", plural) else { continue };
        insert(&controller, kind, namespace, object)
            .map(drop)
            .or_else(|refused| if refused.code == 409 { Ok(()) } else { Err(refused) })?;
    }
    Ok(())
}
