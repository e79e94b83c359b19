//! Service account tokens: what they say, and whether they still hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::user::User;
use crate::store::{Key, Record, Store};

/// Who issues the tokens, and whom they are for where a request names nobody.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The lifetime by which a kubelet's projection is known: such a token holds for a year, with a warning after this.
pub const WARN_ONLY_SECONDS: i64 = 3607;

/// How long a token of [`WARN_ONLY_SECONDS`] really holds.
pub const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// A deleted object binds tokens this much longer, in seconds.
const LEEWAY_SECONDS: i64 = 60;

/// What a service account token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// For whom the token is meant.
    pub aud: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
    /// When it was made, in seconds since 1970.
    pub iat: i64,
    /// Who made it.
    pub iss: String,
    /// Its own id.
    pub jti: String,
    /// What it is bound to.
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
    /// From when it holds, in seconds since 1970.
    pub nbf: i64,
    /// The user name of the account.
    pub sub: String,
}

/// What a token is bound to: it holds as long as these are there.
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
    /// A node: the pod's, or with no pod what the token is bound to.
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
    /// The unique id; empty where the object is not there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Claims {
    /// Who shows this token, if what it is bound to is still there; `now` in seconds since 1970.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in the API server's words.
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
