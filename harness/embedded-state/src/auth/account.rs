//! Service account tokens: their claims, and whether they are still valid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::user::User;
use crate::store::{Key, Record, Store};

/// The issuer of the tokens, and the audience if a request names none.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The lifetime that identifies a token for a kubelet's projection: such a token is valid for a year, with a
/// warning after this time.
pub const WARN_ONLY_SECONDS: i64 = 3607;

/// How long a token of [`WARN_ONLY_SECONDS`] is really valid.
pub const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// For how many seconds tokens stay valid after the deletion of the object that they are bound to.
const LEEWAY_SECONDS: i64 = 60;

/// The claims of a service account token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The audiences of the token.
    pub aud: Vec<String>,
    /// When it expires, in seconds since 1970.
    pub exp: i64,
    /// When it was issued, in seconds since 1970.
    pub iat: i64,
    /// The issuer.
    pub iss: String,
    /// Its own id.
    pub jti: String,
    /// The objects that it is bound to.
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
    /// When it becomes valid, in seconds since 1970.
    pub nbf: i64,
    /// The user name of the account.
    pub sub: String,
}

/// The objects that a token is bound to: it is valid as long as they exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The namespace of account, pod and secret.
    pub namespace: String,
    /// The account itself.
    pub serviceaccount: Reference,
    /// A pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// A secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// A node: that of the pod, or, without a pod, the node that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// When clients should have a newer token, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// An object by name and unique id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// The unique id; empty if the object does not exist.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Claims {
    /// The user of this token, if the objects that it is bound to still exist; `now` in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The fault of the token, in the API server's words.
    pub fn holder(&self, store: &Store, now: i64) -> Result<User, String> {
        if now > self.exp + LEEWAY_SECONDS {
            return Err("service account token has expired".into());
        }
        if now + LEEWAY_SECONDS < self.nbf {
            return Err("service account token is not valid yet".into());
        }
        let Bound { namespace, serviceaccount, pod, secret, node, .. } = &self.bound;
        let account = store
            .get("serviceaccounts", &Key::new(namespace, &serviceaccount.name))
            .ok_or_else(|| format!("serviceaccounts {:?} not found", serviceaccount.name))?;
        let uid = uid_of(&account);
        if uid != serviceaccount.uid {
            return Err(format!("service account UID ({uid}) does not match claim ({})", serviceaccount.uid));
        }
        let there = |collection: &'static str, namespace: &str, reference: &Reference| {
            store
                .get(collection, &Key::new(namespace, &reference.name))
                .filter(|record| uid_of(record) == reference.uid && !long_deleted(record, now))
                .map(drop)
                .ok_or_else(|| "service account token has been invalidated".to_owned())
        };
        let mut extra = BTreeMap::new();
        let mut say = |key: &str, value: String| {
            extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        };
        say("credential-id", format!("JTI={}", self.jti));
        if let Some(secret) = secret {
            there("secrets", namespace, secret)?;
        }
        if let Some(pod) = pod {
            there("pods", namespace, pod)?;
            say("pod-name", pod.name.clone());
            say("pod-uid", pod.uid.clone());
        }
        if let Some(node) = node {
            if pod.is_none() {
                there("nodes", "", node)?;
            }
            say("node-name", node.name.clone());
            if !node.uid.is_empty() {
                say("node-uid", node.uid.clone());
            }
        }
        let mut user = User::service_account(namespace, &serviceaccount.name, &serviceaccount.uid);
        user.extra = extra;
        Ok(user)
    }
}

fn uid_of(record: &Record) -> String {
    record.value()["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn long_deleted(record: &Record, now: i64) -> bool {
    let value = record.value();
    let deleted =
        value["metadata"]["deletionTimestamp"].as_str().and_then(|t| t.parse::<jiff::Timestamp>().ok());
    deleted.is_some_and(|deleted| deleted.as_second() < now - LEEWAY_SECONDS)
}
