//! Observations of a real kubelet that runs a plugin: each execution of it, and each request of the node's container
//! runtime to the registry. Of credentials and tokens only digests are kept.

use super::answer::CacheKeyType;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// One observation, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Sighting {
    /// A kubelet ran the plugin.
    Execution(PluginExecution),
    /// A client requested the manifest of an image.
    ManifestRequest(ManifestRequest),
}

/// One execution of a plugin by a kubelet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginExecution {
    /// The image of the request.
    pub image: String,
    /// The version of the request.
    pub version: String,
    /// Its exit code; `None` if a signal ended it or it could not be started.
    pub code: Option<i32>,
    /// Its duration, in ms.
    pub took_ms: u64,
    /// The images for which its response may be cached.
    pub cache_key_type: String,
    /// How long its response may be cached; `None` uses the configuration's value.
    pub cache_duration: Option<String>,
    /// Digests of the credentials in its response ([`digest`]).
    pub credentials: Vec<String>,
    /// The token that it got.
    pub token: Option<Claims>,
    /// The annotations that it got.
    pub annotations: BTreeMap<String, String>,
}

/// The audiences and the owner of a service account token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Claims {
    /// Its audiences.
    pub audiences: Vec<String>,
    /// The service account, with its namespace.
    pub service_account: String,
    /// The Pod to which it is bound; empty for none.
    pub pod: String,
    /// A digest that identifies it without revealing it.
    pub digest: String,
}

/// A request for an image's manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestRequest {
    /// The original registry.
    pub registry: String,
    /// The image's name there.
    pub repository: String,
    /// The user; `None` without credentials.
    pub user: Option<String>,
    /// The status of the answer.
    pub status: u16,
}

/// A digest that distinguishes user and password from others without revealing them.
pub(super) fn digest(user: &str, password: &str) -> String {
    digest_of(&format!("{user}:{password}"))
}

fn digest_of(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl PluginExecution {
    /// Whether its response is cached for the request of a later execution, depending on whether responses are cached by
    /// token.
    pub fn serves(&self, later: &PluginExecution, by_token: bool) -> bool {
        let token = |of: &PluginExecution| of.token.as_ref().map(|token| token.digest.clone());
        let key = CacheKeyType::of(&self.cache_key_type);
        key.is_some_and(|key| key.joins(&self.image, &later.image))
            && (!by_token || token(self) == token(later))
    }

    /// An execution with the properties of a request and its response, valid or not.
    pub fn of(request: &[u8], answer: &[u8]) -> PluginExecution {
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let (request, answer) = (read(request), read(answer));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let annotations = request["serviceAccountAnnotations"].as_object().into_iter().flatten();
        let auth = answer["auth"].as_object().into_iter().flatten();
        let credentials =
            auth.map(|(_, one)| digest(&text(&one["username"]), &text(&one["password"]))).collect();
        PluginExecution {
            image: text(&request["image"]),
            version: text(&request["apiVersion"]),
            cache_key_type: text(&answer["cacheKeyType"]),
            cache_duration: answer["cacheDuration"].as_str().map(str::to_owned),
            credentials,
            token: request["serviceAccountToken"].as_str().filter(|token| !token.is_empty()).map(Claims::of),
            annotations: annotations.map(|(key, value)| (key.clone(), text(value))).collect(),
            ..PluginExecution::default()
        }
    }
}

impl Claims {
    /// The claims of a JWT; `None` if it is not one.
    fn of(token: &str) -> Claims {
        let body = token.split('.').nth(1).and_then(|body| URL_SAFE_NO_PAD.decode(body).ok());
        let body = body.and_then(|body| serde_json::from_slice::<Value>(&body).ok()).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let own = &body["kubernetes.io"];
        let audiences = match &body["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(all) => all.iter().map(text).collect(),
            _ => Vec::new(),
        };
        let service_account = format!("{}/{}", text(&own["namespace"]), text(&own["serviceaccount"]["name"]));
        Claims { audiences, service_account, pod: text(&own["pod"]["name"]), digest: digest_of(token) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_of_a_secret_is_seen() {
        let claims = json!({"aud": ["registry"], "kubernetes.io": {"namespace": "team",
            "pod": {"name": "app"}, "serviceaccount": {"name": "puller"}}});
        let token = format!("e30.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let request = json!({"apiVersion": "v1", "image": "registry.acme.example/team/app",
            "serviceAccountToken": token, "serviceAccountAnnotations": {"acme.example/role": "puller"}});
        let answer = json!({"cacheKeyType": "Image", "cacheDuration": "1h",
            "auth": {"registry.acme.example": {"username": "u", "password": "acme-password-1"}}});
        let seen = PluginExecution::of(request.to_string().as_bytes(), answer.to_string().as_bytes());
        assert_eq!(seen.image, "registry.acme.example/team/app");
        assert_eq!((seen.cache_key_type.as_str(), seen.cache_duration.as_deref()), ("Image", Some("1h")));
        assert_eq!(seen.credentials, [digest("u", "acme-password-1")]);
        let expected = Claims {
            audiences: vec!["registry".into()],
            service_account: "team/puller".into(),
            pod: "app".into(),
            digest: digest_of(&token),
        };
        assert_eq!(seen.token, Some(expected));
        let text = serde_json::to_string(&Sighting::Execution(seen)).expect("plain data");
        assert!(!text.contains("acme-password-1") && !text.contains(&token), "{text}");
        assert_eq!(PluginExecution::of(b"nonsense", b""), PluginExecution::default());
    }

    #[test]
    fn an_answer_that_is_kept_by_token_serves_that_alone() {
        let of = |image: &str, token: &str| {
            let request = json!({"image": image, "serviceAccountToken": token});
            PluginExecution::of(request.to_string().as_bytes(), br#"{"cacheKeyType": "Registry"}"#)
        };
        let first = of("registry.example/app", "one");
        assert!(first.serves(&of("registry.example/tool", "one"), true));
        assert!(!first.serves(&of("registry.example/app", "two"), true));
        assert!(first.serves(&of("registry.example/app", "two"), false));
        assert!(!first.serves(&of("other.example/app", "one"), false));
        assert!(!PluginExecution::default().serves(&first, false), "what has no kind of key is not kept");
    }
}
