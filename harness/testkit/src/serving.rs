//! The serving certificates that kubelets request (kubernetes pkg/kubelet/certificate/kubelet.go).

use super::{CheckCx, Cold, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Verdict, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, matcher};
use harness_session::k8s::addresses;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, ListParams};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, X509CertificationRequest};

/// The signer of the kubelets' serving certificates.
const SIGNER: &str = "kubernetes.io/kubelet-serving";
/// How long a kubelet may take to notice the addresses of its Node, and to repeat a denied request.
const RETRY: Duration = Duration::from_secs(30);

/// Names and IP addresses for which a certificate is valid.
type Names = BTreeSet<String>;

/// The addresses of one Node and its certificate requests.
struct Asked {
    node: String,
    /// The names and addresses for which its certificate must be valid.
    has: Names,
    /// The names and addresses of each request, in order.
    requests: Vec<Names>,
}

/// The Nodes of a cluster and their kubelets' requests for serving certificates.
pub(super) struct Certificates(Vec<Asked>);

impl Observed for Certificates {
    fn observed(&self) -> String {
        let words = |names: &Names| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let one = |asked: &Asked| {
            let requests: Vec<String> =
                asked.requests.iter().map(|names| format!("({})", words(names))).collect();
            let requests = if requests.is_empty() { "no request".to_owned() } else { requests.join(" and ") };
            format!("{}: has ({}), {requests}", asked.node, words(&asked.has))
        };
        self.0.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// The kubelets of a cluster and their requests.
struct ServingCertificates<'a> {
    cx: &'a CheckCx,
    nodes: Vec<super::Node<'a>>,
}

impl Subject for ServingCertificates<'_> {
    type Snapshot = Certificates;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        super::nodes::together("the kubelets of", &self.nodes)
    }

    async fn read(&self, reach: ReadSource) -> Result<Certificates, ReadError> {
        let api: Api<CertificateSigningRequest> = Api::all(self.cx.client.clone());
        let mut requests = requested(&api).await?;
        let mut seen = Vec::new();
        for node in &self.nodes {
            let name = Subject::name(node).name;
            let known = node.read(reach).await?;
            let has = known.iter().flat_map(|node| addresses(node));
            let has = has.map(|(_, address)| canonical(&address)).collect();
            let requests = requests.remove(&name).unwrap_or_default();
            seen.push(Asked { node: name, has, requests });
        }
        Ok(Certificates(seen))
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.nodes.iter().any(|node| node.concerns(call))
    }
}

/// The requests by Node, the oldest first.
async fn requested(api: &Api<CertificateSigningRequest>) -> Result<BTreeMap<String, Vec<Names>>, ReadError> {
    let list = api.list(&ListParams::default()).await;
    let mut list = list.map_err(|error| ReadError::passing(chain(&error)))?.items;
    list.retain(|request| request.spec.signer_name == SIGNER);
    list.sort_by_key(|request| request.metadata.creation_timestamp.clone());
    let mut by_node = BTreeMap::<String, Vec<Names>>::new();
    for request in list {
        let user = request.spec.username.unwrap_or_default();
        let Some(node) = user.strip_prefix("system:node:") else { continue };
        let names = names_in(&request.spec.request.0).map_err(ReadError::passing)?;
        by_node.entry(node.to_owned()).or_default().push(names);
    }
    Ok(by_node)
}

/// The names and addresses in a request.
fn names_in(pem: &[u8]) -> Result<Names, String> {
    let wrong = |why: String| format!("a certificate request cannot be read: {why}");
    let (_, pem) = parse_x509_pem(pem).map_err(|error| wrong(error.to_string()))?;
    let (_, request) =
        X509CertificationRequest::from_der(&pem.contents).map_err(|error| wrong(error.to_string()))?;
    let mut names = Names::new();
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(alternative) = extension else { continue };
        for name in &alternative.general_names {
            match name {
                GeneralName::DNSName(name) => _ = names.insert((*name).to_owned()),
                GeneralName::IPAddress(bytes) => _ = names.insert(ip_of(bytes)?.to_string()),
                _ => {}
            }
        }
    }
    Ok(names)
}

fn ip_of(bytes: &[u8]) -> Result<IpAddr, String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| IpAddr::from(Ipv4Addr::from(bytes)));
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::from(Ipv6Addr::from(bytes))))
        .map_err(|_| format!("an address of {} bytes is neither IPv4 nor IPv6", bytes.len()))
}

/// An address in the form used in certificates.
fn canonical(address: &str) -> String {
    address.parse::<IpAddr>().map_or_else(|_| address.to_owned(), |ip| ip.to_string())
}

/// Each kubelet has made a request, and only for its Node's addresses.
fn ask_for_their_addresses() -> Matcher<Certificates> {
    matcher("request serving certificates for their Nodes' addresses", |seen: &Certificates| {
        let is_right = |asked: &Asked| {
            !asked.requests.is_empty() && asked.requests.iter().all(|names| *names == asked.has)
        };
        Observation::when(seen.0.iter().all(is_right))
    })
    .expecting("requests of each Node for all of its addresses, and none for other or for fewer addresses")
}

impl CheckCx {
    fn certificates<'a>(&'a self, cold: &Cold) -> ServingCertificates<'a> {
        ServingCertificates { cx: self, nodes: cold.nodes.iter().map(|name| self.real_node(name)).collect() }
    }

    /// Verifies that no kubelet has requested a serving certificate, as their Nodes have no addresses.
    ///
    /// # Errors
    /// [`CheckError::Error`] naming the requests: the kubelets do not wait for the CCM (contract KBL-10).
    pub async fn no_certificate_was_requested(&self, cold: &Cold) -> Verdict {
        let seen = self.certificates(cold).read(ReadSource::Origin).await?;
        if seen.0.iter().all(|asked| asked.requests.is_empty()) {
            return Ok(());
        }
        let seen = seen.observed();
        Err(CheckError::Error(format!(
            "kubelets requested serving certificates before a CCM was deployed: {seen}"
        )))
    }

    /// Waits until each kubelet has requested a serving certificate, and only for its Node's addresses, and verifies that
    /// it stays so: with later addresses a kubelet makes another request.
    ///
    /// # Errors
    /// [`CheckError::Violation`] after B-WATCH and the kubelet's retry, or when it does not stay so.
    pub async fn kubelets_ask_for_their_addresses(&self, cold: &Cold) -> Verdict {
        let (certificates, limit) = (self.certificates(cold), self.limits().watch() + RETRY);
        certificates.becomes(ask_for_their_addresses()).within(limit).await?;
        certificates.keeps(ask_for_their_addresses()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    fn names(all: &[&str]) -> Names {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_and_addresses_of_a_request() {
        let mut params = CertificateParams::new(vec!["n1".to_owned()]).expect("a name");
        for ip in ["10.0.0.1", "2001:db8::1"] {
            params.subject_alt_names.push(SanType::IpAddress(ip.parse().expect("an address")));
        }
        let key = KeyPair::generate().expect("a key");
        let pem = params.serialize_request(&key).and_then(|request| request.pem()).expect("a request");
        assert_eq!(names_in(pem.as_bytes()), Ok(names(&["10.0.0.1", "2001:db8::1", "n1"])));
        assert_eq!(canonical("2001:0db8::0001"), "2001:db8::1");
        assert!(names_in(b"no request").is_err());
    }

    #[test]
    fn each_node_needs_a_request_and_all_have_to_be_right() {
        let has = ["n1", "10.0.0.1"];
        let seen = |requests: &[&[&str]]| {
            let requests = requests.iter().map(|request| names(request)).collect();
            ask_for_their_addresses().matches(&Certificates(vec![Asked {
                node: "n1".to_owned(),
                has: names(&has),
                requests,
            }]))
        };
        assert_eq!(seen(&[&has]), Observation::Matched(()));
        assert_eq!(seen(&[&has, &has]), Observation::Matched(()), "a kubelet that was started again");
        for not_yet in [vec![], vec![&has[..1]], vec![&has[..1], &has[..]]] {
            assert_eq!(seen(&not_yet), Observation::Pending(String::new()));
        }
    }
}
