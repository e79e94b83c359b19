//! What is special about namespaces: their finalizers, and what every new one has.

use embedded_semantics::kinds::{self, Kind};
use embedded_semantics::status::Status;
use serde_json::json;

use super::create::{Write, create_object};
use super::update;
use crate::http::call::Call;
use crate::http::reply::Outcome;

/// Answers a PUT to `namespaces/NAME/finalize`.
pub(super) fn finalize(call: &Call, kind: &'static Kind) -> Outcome {
    update::update(call, kind, Some("finalize"))
}

/// Gives a new namespace what controllers of a real cluster give it within moments: the default service account and
/// the authority's certificate.
///
/// # Errors
///
/// Whatever a creation can be refused with; what is there already stays as it is.
pub(super) fn furnish(write: &Write<'_>, namespace: &str) -> Result<(), Status> {
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
        create_object(&controller, kind, namespace, object)
            .map(drop)
            .or_else(|refused| if refused.code == 409 { Ok(()) } else { Err(refused) })?;
    }
    Ok(())
}
