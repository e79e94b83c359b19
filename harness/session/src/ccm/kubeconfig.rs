//! The kubeconfig with which a hosted CCM reaches the cluster that it serves.

use super::deploy::CcmError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness_config::yaml;
use harness_core::check::chain;
use harness_core::probe::{ReadError, poll};
use harness_core::secrets;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

/// Placeholder of the kubeconfig in manifests.
pub const KUBECONFIG: &str = "KUBECONFIG";
/// The lifetime of its token in seconds: longer than a run.
const GOOD_FOR_S: i64 = 24 * 3600;
/// How long a service account may take to appear: a controller creates that of a new namespace.
const THERE_IN: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(100);

/// An API server as Pods of the management cluster connect to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Its URL.
    pub url: String,
    /// Its CA certificates, PEM in base64, as in a kubeconfig.
    pub ca_data: String,
}

/// The namespace and name of a service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccountKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A kubeconfig, and the id that identifies its user to the API server.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The kubeconfig as text.
    pub(super) kubeconfig: String,
    /// The id of its token.
    pub(super) token_id: String,
}

/// Creates a token for that account, and a kubeconfig with it. Both are registered for redaction.
///
/// # Errors
/// [`CcmError::Apply`]: the API server does not issue a token.
pub(super) async fn kubeconfig_of(
    served: &Client,
    server: &ServerAddress,
    account: &AccountKey,
) -> Result<Given, CcmError> {
    let token = token_of(served, account).await?;
    secrets::know(&token);
    let kubeconfig = rendered(server, &token, &account.namespace);
    secrets::know_kubeconfig(&kubeconfig);
    Ok(Given { kubeconfig, token_id: id_of(&token).unwrap_or_default() })
}

async fn token_of(served: &Client, account: &AccountKey) -> Result<String, CcmError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(served.clone(), &account.namespace);
    let spec = TokenRequestSpec { expiration_seconds: Some(GOOD_FOR_S), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let granted = async |_: &mut String| {
        let granted = accounts.create_token_request(&account.name, &PostParams::default(), &request).await;
        let granted = granted.map_err(|error| ReadError::passing(chain(&error)))?;
        Ok(granted.status.and_then(|status| status.token))
    };
    poll("the API server issues a token", THERE_IN, AGAIN, granted).await.map_err(|error| CcmError::Apply {
        object: format!("a token of ServiceAccount/{} in {}", account.name, account.namespace),
        cause: error.text,
        refused: true,
    })
}

/// The id of a service account's token, in the format of the API server (`authentication.kubernetes.io/credential-id`).
fn id_of(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(format!("JTI={}", claims["jti"].as_str()?))
}

/// A kubeconfig as text.
fn rendered(server: &ServerAddress, token: &str, namespace: &str) -> String {
    let name = "served";
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server.url, "certificate-authority-data": server.ca_data}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
    });
    yaml::to_string(&kubeconfig).expect("plain data")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::config::Kubeconfig;

    #[test]
    fn a_token_says_which_one_it_is() {
        let token = |claims: &str| format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(id_of(&token(r#"{"jti": "4711", "sub": "x"}"#)).as_deref(), Some("JTI=4711"));
        for other in [token("{}"), token("not JSON"), "opaque".to_owned()] {
            assert_eq!(id_of(&other), None, "{other}");
        }
    }

    #[test]
    fn the_rendered_kubeconfig_has_a_token_that_no_output_shows() {
        let server = ServerAddress { url: "https://192.0.2.1:6443".into(), ca_data: "Y2E=".into() };
        let token = "a-token-that-nobody-may-read";
        let text = rendered(&server, token, "kube-system");
        let read = Kubeconfig::from_yaml(&text).expect("a kubeconfig");
        let cluster = read.clusters[0].cluster.clone().expect("a cluster");
        assert_eq!(cluster.server.as_deref(), Some("https://192.0.2.1:6443"));
        assert_eq!(read.current_context.as_deref(), Some("served"));
        assert!(read.auth_infos[0].auth_info.as_ref().is_some_and(|user| user.token.is_some()));
        secrets::know(token);
        assert!(!secrets::redact(text).contains(token));
    }
}
