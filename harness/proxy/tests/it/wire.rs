//! Streamed bodies, and HTTP of every kind.

use super::support::{CALLER_TOKEN, Pieces, Proxied, before, client};
use recording_proxy::{Config, Rewrites, Running};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn an_answer_is_passed_on_as_it_comes() {
    let pieces = Pieces::start().await;
    let proxy = Running::start(before(&pieces.url)).await.expect("a proxy");
    let url = format!("{}/events", proxy.ports()[0].1);
    let asked = tokio::spawn(async move { client().get(url).send().await.expect("an answer") });
    pieces.hears("GET /events HTTP/1.1").await;
    pieces.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-own: 1\r\n\r\n5\r\nfirst\r\n");
    let mut answer = asked.await.expect("asked");
    assert_eq!(answer.headers()["x-own"], "1");
    assert_eq!(answer.chunk().await.expect("a piece").as_deref(), Some(&b"first"[..]));
    // A long poll: nothing yet, but the connection stays open.
    assert!(timeout(Duration::from_millis(50), answer.chunk()).await.is_err());
    pieces.say(b"6\r\nsecond\r\n0\r\n\r\n");
    assert_eq!(answer.chunk().await.expect("a piece").as_deref(), Some(&b"second"[..]));
    assert_eq!(answer.chunk().await.expect("the end"), None);
}

#[tokio::test]
async fn a_body_is_passed_on_as_it_comes() {
    let pieces = Pieces::start().await;
    let proxy = Running::start(before(&pieces.url)).await.expect("a proxy");
    let (sender, parts) = tokio::sync::mpsc::unbounded_channel::<Result<&'static str, std::io::Error>>();
    let stream =
        futures::stream::unfold(parts, |mut parts| async move { Some((parts.recv().await?, parts)) });
    let url = format!("{}/upload", proxy.ports()[0].1);
    let asked = tokio::spawn(async move {
        client().post(url).body(reqwest::Body::wrap_stream(stream)).send().await.expect("an answer").status()
    });
    sender.send(Ok("first part")).expect("sent");
    pieces.hears("first part").await;
    sender.send(Ok("second part")).expect("sent");
    drop(sender);
    pieces.hears("second part").await;
    pieces.say(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(asked.await.expect("asked"), 204);
    let got = String::from_utf8_lossy(&pieces.got.lock().expect("fine")).to_ascii_lowercase();
    assert!(got.contains("transfer-encoding: chunked"), "{got}");
}

#[tokio::test]
async fn a_body_that_rules_read_and_that_is_too_long_is_passed_on_whole() {
    let pieces = Pieces::start().await;
    let proxy = Running::start(before(&pieces.url)).await.expect("a proxy");
    let url = format!("{}/v1/load-balancers", proxy.ports()[0].1);
    let body = format!("{}the end", "x".repeat(3 << 20));
    let asked =
        tokio::spawn(async move { client().post(url).body(body).send().await.expect("an answer").status() });
    pieces.hears("the end").await;
    pieces.say(b"HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(asked.await.expect("asked"), 413);
}

#[tokio::test]
async fn callers_may_speak_tls_and_http_2() {
    let proxied = Proxied::start().await;
    let upstream = format!("http://{}", proxied.cloud.cloud_addr());
    let tls = Some(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]);
    let proxy = Running::start(Config { tls, ..before(&upstream) }).await.expect("a proxy");
    let ca = reqwest::Certificate::from_pem(proxy.ca().expect("a CA").as_bytes()).expect("a certificate");
    let url = format!("{}/v1/instances", proxy.ports()[0].1);
    assert!(url.starts_with("https://"));
    for (builder, version) in [
        (reqwest::Client::builder(), reqwest::Version::HTTP_2),
        (reqwest::Client::builder().http1_only(), reqwest::Version::HTTP_11),
    ] {
        let client = builder.no_proxy().tls_certs_only([ca.clone()]).build().expect("a client");
        let answer = client.get(&url).send().await.expect("an answer");
        assert_eq!((answer.version(), answer.status().as_u16()), (version, 401));
    }
    assert!(client().get(&url).send().await.is_err(), "no other client trusts the CA of the run");
    let plain = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let answer = plain.get(proxied.url("a", "/v1/instances")).send().await.expect("an answer");
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
}

#[tokio::test]
async fn a_redirected_client_returns_through_the_same_port() {
    let pieces = Pieces::start().await;
    let proxy = Running::start(before(&pieces.url)).await.expect("a proxy");
    let url = proxy.ports()[0].1.clone();
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    let http = http.expect("a client");
    // The port of the second begins with that of the cloud.
    for (from, to) in [("", url.clone()), ("0", format!("{}0", pieces.url))] {
        let asked = tokio::spawn(http.get(format!("{url}/old{from}")).send());
        pieces.hears(&format!("GET /old{from} ")).await;
        let location = format!("location: {}{from}/new?x=1", pieces.url);
        let head = format!("HTTP/1.1 301 X\r\n{location}\r\ncontent-length: 0\r\n\r\n");
        pieces.say(head.leak().as_bytes());
        let answer = asked.await.expect("asked").expect("an answer");
        assert_eq!(answer.headers()["location"], format!("{to}/new?x=1"));
    }
}

#[tokio::test]
async fn the_cloud_hears_who_was_called_and_urls_of_itself_lead_back_to_the_proxy() {
    let pieces = Pieces::start().await;
    let rewrites = Rewrites::of(["https://api.acme.example/v2".to_owned()]);
    let proxy = Running::start(Config { rewrites, ..before(&pieces.url) }).await.expect("a proxy");
    let url = proxy.ports()[0].1.clone();
    let asked = tokio::spawn(client().get(format!("{url}/servers")).send());
    pieces.hears("GET /servers HTTP/1.1").await;
    pieces.hears("\r\n\r\n").await;
    let got = String::from_utf8_lossy(&pieces.got.lock().expect("fine")).to_ascii_lowercase();
    let host = url.trim_start_matches("http://");
    assert!(got.contains(&format!("x-forwarded-host: {host}\r\n")), "{got}");
    assert!(
        got.contains("x-forwarded-proto: http\r\n") && got.contains("accept-encoding: identity"),
        "{got}"
    );
    let body = r#"{"next": "https://api.acme.example/v2/servers?page=2"}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
    pieces.say(format!("{head}: {}\r\n\r\n{body}", body.len()).leak().as_bytes());
    let answer = asked.await.expect("asked").expect("an answer");
    assert_eq!(answer.text().await.expect("text"), format!(r#"{{"next": "{url}/servers?page=2"}}"#));
}

#[tokio::test]
async fn a_client_may_use_it_as_the_proxy_of_a_name_that_resolves_nowhere() {
    let proxied = Proxied::start().await;
    let through = reqwest::Proxy::http(proxied.url("a", "")).expect("a proxy");
    let client = reqwest::Client::builder().proxy(through).build().expect("a client");
    let asked = client.get("http://cloud.ccm-conformance.internal/v1/instances").bearer_auth(CALLER_TOKEN);
    assert_eq!(asked.send().await.expect("an answer").status(), 200);
    let last = proxied.journal().await.pop().expect("a call");
    assert_eq!((last.request.as_str(), last.credential.as_deref()), ("GET /v1/instances", Some("a")));
}
