//! Upstreams that are absent, slow, untrusted, or not HTTP: each with its own message, before the first call and after
//! it.

use super::support::{Proxied, answer, before, client};
use recording_proxy::{Config, Running, StartError, UpstreamError};
use std::path::PathBuf;
use tokio::net::TcpListener;

async fn refused(config: Config) -> UpstreamError {
    match Running::start(config).await.expect_err("it does not start") {
        StartError::Upstream(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_unreachable_upstream_is_reported() {
    let absent = refused(before("http://127.0.0.1:1")).await;
    assert!(matches!(absent, UpstreamError::Absent { .. }), "{absent}");
    for url in ["127.0.0.1:80", "ftp://127.0.0.1", "http://u:p@127.0.0.1", "http://127.0.0.1/?x=1", "http://"]
    {
        let why = refused(before(url)).await;
        assert!(matches!(why, UpstreamError::Url(_)), "{url}: {why}");
    }
    let mut config = before("https://127.0.0.1:1");
    config.upstream_ca = Some(PathBuf::from("/nowhere/ca.pem"));
    let why = refused(config).await.to_string();
    assert!(
        why.starts_with("the certificates in /nowhere/ca.pem cannot be used: there is no such file"),
        "{why}"
    );
}

#[tokio::test]
async fn an_upstream_with_another_protocol_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            answer(&mut stream, b"220 mail.example ESMTP\r\n\r\n").await;
        }
    });
    let nonsense = refused(before(&url)).await;
    assert!(matches!(nonsense, UpstreamError::Nonsense { .. }), "{nonsense}");
    let as_tls = refused(before(&url.replace("http:", "https:"))).await;
    assert!(matches!(as_tls, UpstreamError::Nonsense { .. } | UpstreamError::Trusted(_)), "{as_tls}");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let slow = refused(before(&url)).await;
    assert!(matches!(slow, UpstreamError::Slow { .. }), "{slow}");
}

#[tokio::test]
async fn an_untrusted_certificate_is_not_accepted() {
    let hidden = Proxied::start().await;
    let url = format!("http://{}", hidden.cloud.cloud_addr());
    // A proxy with TLS works as an upstream too.
    let tls = Some(vec!["127.0.0.1".to_owned()]);
    let front = Running::start(Config { tls, ..before(&url) }).await.expect("a proxy");
    let folder = std::env::temp_dir().join(format!("recording-proxy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("ca.pem");
    std::fs::write(&file, front.ca().expect("a CA")).expect("written");
    let upstream = front.ports()[0].1.clone();
    let stranger = refused(before(&upstream)).await;
    assert!(matches!(stranger, UpstreamError::Certificate { .. } | UpstreamError::Trusted(_)), "{stranger}");
    let trusting = Config { upstream_ca: Some(file), ..before(&upstream) };
    let chained = Running::start(trusting).await.expect("it trusts the CA");
    let answer =
        client().get(format!("{}/v1/instances", chained.ports()[0].1)).send().await.expect("an answer");
    assert_eq!(answer.status(), 401);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[tokio::test]
async fn a_lost_cloud_is_reported_once_and_calls_still_get_answers() {
    let proxied = Proxied::start().await;
    let Proxied { cloud, proxy, http, messages, .. } = proxied;
    cloud.shutdown().await;
    for _ in 0..2 {
        let url = format!("{}/v1/instances", proxy.ports()[0].1);
        let answer = http.get(url).send().await.expect("the proxy answers");
        assert_eq!(answer.status(), 502);
        assert!(
            answer.text().await.expect("a body").starts_with("ccm-conformance proxy: the cloud at http://")
        );
    }
    let said = messages.lock().expect("fine").clone();
    assert!(said.iter().filter(|what| what.contains("cannot be reached")).count() == 1, "{said:?}");
}
