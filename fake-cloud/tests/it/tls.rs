//! TLS: the cloud is the HTTPS proxy of clients that call the hosts of its vendor.

use crate::support::{TestCloud, in_time};
use fake_cloud::Unknown;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const HOST: &str = "management.azure.com";

/// Requests a connection to a host; returns the connection and the head of the answer.
async fn connect(cloud: &TestCloud, target: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(cloud.running.cloud_addr()).await.expect("it listens");
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.expect("an answer"));
    }
    (stream, String::from_utf8(head).expect("text"))
}

fn client(ca: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM")).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn it_answers_as_a_host_of_its_vendor() {
    let cloud = TestCloud::speaking("azure", Unknown::Refused, &[]).await;
    let ca = cloud.running.ca().expect("a CA");
    assert_eq!(cloud.driver.capabilities().await.expect("capabilities").ca.as_deref(), Some(ca.as_str()));
    let (stream, head) = connect(&cloud, &format!("{HOST}:443")).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let name = ServerName::try_from(HOST).expect("a name");
    let mut stream = in_time(client(&ca).connect(name, stream)).await.expect("a trusted certificate");
    let request = format!(
        "GET /metadata/endpoints?api-version=2019-05-01 HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    // The end of the connection without a farewell is not of interest here.
    let _ = in_time(stream.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(&format!("https://{HOST}")), "{answer}");
}

#[tokio::test]
async fn a_certificate_is_for_its_host_only() {
    let cloud = TestCloud::speaking("azure", Unknown::Refused, &[]).await;
    let ca = cloud.running.ca().expect("a CA");
    let (stream, _) = connect(&cloud, &format!("{HOST}:443")).await;
    let other = ServerName::try_from("login.microsoftonline.com").expect("a name");
    assert!(in_time(client(&ca).connect(other, stream)).await.is_err());
    let second = TestCloud::speaking("azure", Unknown::Refused, &[]).await;
    let (stream, _) = connect(&second, &format!("{HOST}:443")).await;
    let name = ServerName::try_from(HOST).expect("a name");
    assert!(in_time(client(&ca).connect(name, stream)).await.is_err(), "each cloud has its own CA");
}

#[tokio::test]
async fn it_connects_to_nothing_else() {
    let cloud = TestCloud::speaking("azure", Unknown::Refused, &[]).await;
    for target in ["example.com:443", "127.0.0.1:22", "evilmanagement.azure.com:443"] {
        let (_, head) = connect(&cloud, target).await;
        assert!(head.starts_with("HTTP/1.1 403 "), "{target}: {head}");
    }
    let plain = cloud.get("/metadata/endpoints?api-version=2019-05-01").await.answers(200);
    assert_eq!(plain[0]["name"], "AzureCloud", "plain HTTP works on the same port");
    let other = TestCloud::start().await;
    assert_eq!(other.running.ca(), None, "a dialect without hosts has no CA");
}
