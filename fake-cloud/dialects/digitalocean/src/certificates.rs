//! Certificates: auxiliary objects that a user makes and load balancers refer to.

use super::errors;
use fake_cloud_driver::{Auxiliary, LoadBalancer};
use fake_cloud_kit::Error;
use fake_cloud_model::AuxSpec;
use serde::Deserialize;
use serde_json::{Value, json};

/// The kind of certificates in the model, which is also the prefix of their ids.
pub(super) const KIND: &str = "certificate";

/// The body of a request that creates a certificate.
#[derive(Deserialize)]
pub(super) struct NewCertificate {
    pub(super) name: String,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    dns_names: Option<Vec<String>>,
    #[serde(default)]
    leaf_certificate: Option<String>,
    #[serde(default)]
    private_key: Option<String>,
}

impl NewCertificate {
    /// The content that the model keeps. It never includes the key.
    ///
    /// # Errors
    /// When something is missing.
    pub(super) fn into_spec(self, created_at: &str) -> Result<AuxSpec, Error> {
        let kind = self.kind.unwrap_or_else(|| "custom".to_owned());
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let dns_names = self.dns_names.unwrap_or_default();
        let state = match kind.as_str() {
            "custom" if given(&self.leaf_certificate) && given(&self.private_key) => "verified",
            "custom" => return Err(errors::invalid("leaf_certificate and private_key are required")),
            "lets_encrypt" if dns_names.is_empty() => {
                return Err(errors::invalid("dns_names are required"));
            }
            "lets_encrypt" => "verified",
            _ => return Err(errors::invalid("type must be custom or lets_encrypt")),
        };
        let spec = json!({
            "not_after": "2099-01-02T03:04:05Z",
            "sha1_fingerprint": "dfcc9f57d86bf58e321c2c6c31c7a971be244ac7",
            "created_at": created_at,
            "dns_names": dns_names,
            "state": state,
            "type": kind,
        });
        Ok(AuxSpec { name: self.name, owner: String::new(), load_balancer: None, spec })
    }
}

/// A certificate as the API shows it. Fields that a test has left out get default values.
pub(super) fn shown(certificate: &Auxiliary) -> Value {
    let field = |name: &str, otherwise: Value| certificate.spec.get(name).cloned().unwrap_or(otherwise);
    json!({
        "id": certificate.id,
        "name": certificate.name,
        "not_after": field("not_after", "2099-01-02T03:04:05Z".into()),
        "sha1_fingerprint": field("sha1_fingerprint", "dfcc9f57d86bf58e321c2c6c31c7a971be244ac7".into()),
        "created_at": field("created_at", "2026-01-02T03:04:05Z".into()),
        "dns_names": field("dns_names", json!([])),
        "state": field("state", "verified".into()),
        "type": field("type", "custom".into()),
    })
}

/// Whether a load balancer refers to the certificate with this id.
pub(super) fn is_used_by(id: &str, lb: &LoadBalancer) -> bool {
    let rules = lb.details.get("forwarding_rules").and_then(Value::as_array);
    rules.is_some_and(|rules| rules.iter().any(|rule| rule.get("certificate_id") == Some(&id.into())))
}
