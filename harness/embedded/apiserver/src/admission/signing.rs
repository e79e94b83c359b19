//! Who may be asked to be: nobody gets a client certificate of the administrators' group signed.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_semantics::kinds::Kind;
use embedded_semantics::status::{self, Status};
use serde_json::Value;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509CertificationRequest};

use crate::auth::user::MASTERS;

/// The signer whose certificates the API server takes.
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

/// The groups that a request asks for: the organizations of its subject.
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
