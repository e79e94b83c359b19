//! A client that may read the CCM's own endpoints, and nothing else.

use super::CheckCx;
use super::undo_steps::{Undo, gone};
use harness_core::check::CheckError;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

/// The paths that it may read (contract AUTH-12).
const PATHS: &[&str] = &["/metrics", "/metrics/slis", "/configz"];
/// The lifetime of its token in seconds: the minimum of an API server.
const GOOD_FOR_S: i64 = 600;

/// A bearer token.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, port: &SecurePort<'_>) -> Verdict {
/// let reader: Reader = cx.reader().await?;
/// let metrics = port.get_as("/metrics", &reader).becomes(answers(200)).await?;
/// cx.record("lines", metrics.lines().count());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Reader(pub(super) String);

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader(<redacted>)")
    }
}

impl CheckCx {
    /// Creates a service account that may read `/metrics` and `/configz` of servers that authenticate clients through the
    /// API server. It is removed when the check ends.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn reader(&self) -> Result<Reader, CheckError> {
        let namespace = self.namespace().await?;
        let name = self.prefix.clone();
        let account: ServiceAccount = as_object(json!({"metadata": {"name": "reader"}}))?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &namespace);
        accounts.create(&PostParams::default(), &account).await?;
        self.on_end(Undo::Right(name.clone()));
        let role: ClusterRole = as_object(json!({
            "metadata": {"name": name}, "rules": [{"nonResourceURLs": PATHS, "verbs": ["get"]}],
        }))?;
        Api::<ClusterRole>::all(self.client.clone()).create(&PostParams::default(), &role).await?;
        let binding: ClusterRoleBinding = as_object(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        }))?;
        Api::<ClusterRoleBinding>::all(self.client.clone()).create(&PostParams::default(), &binding).await?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(GOOD_FOR_S),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let granted = accounts.create_token_request("reader", &PostParams::default(), &request).await?;
        let token = granted.status.and_then(|status| status.token);
        token.map(Reader).ok_or_else(|| CheckError::Error("the API server issued no token".to_owned()))
    }

    pub(super) async fn undo_right(&self, name: &str) -> Result<(), String> {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        gone(async || bindings.delete(name, &DeleteParams::default()).await).await?;
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        gone(async || roles.delete(name, &DeleteParams::default()).await).await
    }
}

fn as_object<K: serde::de::DeserializeOwned>(written: serde_json::Value) -> Result<K, CheckError> {
    serde_json::from_value(written)
        .map_err(|error| CheckError::Error(format!("the harness's own object is invalid: {error}")))
}
