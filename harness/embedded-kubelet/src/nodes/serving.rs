//! The content of a kubelet's request for a serving certificate, with `serverTLSBootstrap` (kubernetes
//! pkg/kubelet/certificate/kubelet.go).

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

/// The signer of kubelets' serving certificates.
const SIGNER: &str = "kubernetes.io/kubelet-serving";

/// The names and addresses in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    names: BTreeSet<String>,
    ips: BTreeSet<IpAddr>,
}

/// The certificate that the kubelet of this Node needs; `None` before the Node has an IP address.
pub(crate) fn wanted(node: &Node) -> Option<Wanted> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    let mut wanted = Wanted { names: BTreeSet::new(), ips: BTreeSet::new() };
    for address in addresses {
        match (address.type_.as_str(), address.address.parse::<IpAddr>()) {
            ("Hostname" | "InternalIP" | "ExternalIP", Ok(ip)) => _ = wanted.ips.insert(ip),
            ("Hostname" | "InternalDNS" | "ExternalDNS", _) => {
                wanted.names.insert(address.address.clone());
            }
            _ => {}
        }
    }
    Some(wanted).filter(|wanted| !wanted.ips.is_empty())
}

/// The request for the certificate, with a new key. The certificate is never used to serve.
pub(crate) fn request(name: &str, wanted: &Wanted) -> Result<CertificateSigningRequest, rcgen::Error> {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, format!("system:node:{name}"));
    let names = wanted.names.iter().map(|name| Ok(SanType::DnsName(name.as_str().try_into()?)));
    let ips = wanted.ips.iter().map(|ip| Ok(SanType::IpAddress(*ip)));
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    params.subject_alt_names = names.chain(ips).collect::<Result<_, rcgen::Error>>()?;
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta { generate_name: Some("csr-".to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(vec!["digital signature".to_owned(), "server auth".to_owned()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(addresses: &[(&str, &str)]) -> Option<Wanted> {
        let addresses: Vec<_> =
            addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
        wanted(&serde_json::from_value(json!({"status": {"addresses": addresses}})).expect("a Node"))
    }

    #[test]
    fn a_host_name_alone_is_not_enough() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("Hostname", "a"), ("InternalDNS", "a.internal")]), None);
        let all = of(&[("Hostname", "a"), ("InternalIP", "10.0.0.1"), ("ExternalIP", "2001:db8::1")]);
        let all = all.expect("it has addresses");
        assert_eq!(all.names, BTreeSet::from(["a".to_owned()]));
        assert_eq!(all.ips.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.1", "2001:db8::1"]);
        let request = request("a", &all).expect("a request");
        assert!(request.spec.request.0.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----"));
    }
}
