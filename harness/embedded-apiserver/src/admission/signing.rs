//! Restrictions of certificate requests: no client certificate of the administrators' group is signed.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use serde_json::{Value, json};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509CertificationRequest};

use embedded_state::auth::user::{MASTERS, User};

/// The signer whose certificates the API server accepts.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Checks a new CertificateSigningRequest.
pub(super) fn check(kind: &'static Kind, object: &Value) -> Result<(), Status> {
    if object["spec"]["signerName"] != SIGNER {
        return Ok(());
    }
    let refuse = |why: String| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(status::forbidden(kind, name, &why))
    };
    match groups(object["spec"]["request"].as_str().unwrap_or_default()) {
        Err(why) => refuse(format!("failed to parse CSR: {why}")),
        Ok(groups) if groups.iter().any(|group| group == MASTERS) => {
            refuse(format!("use of {SIGNER} signer with {MASTERS} group is not allowed"))
        }
        Ok(_) => Ok(()),
    }
}

/// Sets the requesting user in the object, whatever the request contains
/// (`pkg/registry/certificates/certificates` PrepareForCreate).
pub(super) fn note_asker(user: &User, object: &mut Value) {
    let Some(spec) = object["spec"].as_object_mut() else { return };
    for (key, value, is_empty) in [
        ("username", json!(user.name), user.name.is_empty()),
        ("uid", json!(user.uid), user.uid.is_empty()),
        ("groups", json!(user.groups), user.groups.is_empty()),
        ("extra", json!(user.extra), user.extra.is_empty()),
    ] {
        if is_empty {
            spec.remove(key);
        } else {
            spec.insert(key.to_owned(), value);
        }
    }
}

/// The requested groups: the organizations of the request's subject.
fn groups(request: &str) -> Result<Vec<String>, String> {
    let pem = STANDARD.decode(request).map_err(|why| why.to_string())?;
    let not_pem = || "PEM block type must be CERTIFICATE REQUEST".to_owned();
    let (_, block) = parse_x509_pem(&pem).map_err(|_| not_pem())?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err(not_pem());
    }
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents).map_err(|why| why.to_string())?;
    let subject = &parsed.certification_request_info.subject;
    let organizations = subject.iter_organization();
    Ok(organizations.map(|name| String::from_utf8_lossy(name.as_slice()).replace('\0', "")).collect())
}
