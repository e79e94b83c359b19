//! Access control: every call of both APIs, in every dialect, without a token, with that of another, and with
//! one that was removed. Also callers that do not follow the protocol.

use crate::support::{LIMIT, Reply, TOKEN, TestCloud, instance};
use fake_cloud::Unknown;
use fake_cloud_driver::{Credential, Instance, Outcome};
use reqwest::{Method, RequestBuilder};
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Paths of each dialect; those with an id are for existing objects.
const PATHS: [(&str, &[&str]); 3] = [
    (
        "native",
        &[
            "/v1/instances",
            "/v1/instances/i-1",
            "/v1/instances?name=node-i-1",
            "/v1/load-balancers",
            "/v1/load-balancers/lb-1",
            "/v1/load-balancers/lb-1/backends",
            "/v1/firewalls",
            "/v1/firewalls/fw-1",
            "/v1/routes",
            "/v1/routes/r-1",
        ],
    ),
    (
        "hcloud",
        &[
            "/v1/locations",
            "/v1/locations/1",
            "/v1/load_balancer_types",
            "/v1/actions",
            "/v1/actions/1",
            "/v1/servers",
            "/v1/servers/1",
            "/v1/servers/1/actions/reboot",
            "/v1/load_balancers",
            "/v1/load_balancers/1",
            "/v1/load_balancers/1/actions/add_service",
            "/v1/networks",
            "/v1/networks/1",
            "/v1/networks/1/actions/add_route",
            "/v1/certificates",
            "/v1/certificates/1",
        ],
    ),
    (
        "digitalocean",
        &[
            "/v2/account",
            "/v2/regions",
            "/v2/droplets",
            "/v2/droplets/1",
            "/v2/load_balancers",
            "/v2/load_balancers/1",
            "/v2/tags",
            "/v2/tags/t",
            "/v2/tags/t/resources",
            "/v2/certificates",
            "/v2/certificates/1",
            "/v2/firewalls",
            "/v2/firewalls/1",
        ],
    ),
];
/// Paths of every dialect, and texts that only look like paths.
const EVERYWHERE: [&str; 5] = ["/", "/v1/nothing", "//v1/instances", "/driver/v1/inventory", "/healthz"];
/// Paths of the driver API.
const DRIVER: [&str; 17] = [
    "/capabilities",
    "/instances",
    "/instances/i-1",
    "/inventory",
    "/load-balancers/lb-1",
    "/routes",
    "/routes/r-1",
    "/faults",
    "/faults/1",
    "/barriers",
    "/barriers/1",
    "/barriers/1/release",
    "/journal",
    "/settings",
    "/credentials",
    "/credentials/replica-1",
    "/reset",
];
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// A token that was accepted, and is not any more.
const ENDED: &str = "token-that-has-ended";

/// A way to present a token, or none.
type Shown = fn(RequestBuilder, &str) -> RequestBuilder;

/// Ways to present a token of others, or none. The text is the other API's token.
const STRANGERS: [(&str, Shown); 12] = [
    ("none", |request, _| request),
    ("another API's", |request, other| request.bearer_auth(other)),
    ("one that has ended", |request, _| request.bearer_auth(ENDED)),
    ("a made up one", |request, _| request.bearer_auth("0123456789abcdef0123456789abcdef")),
    ("an empty one", |request, _| request.header("Authorization", "Bearer ")),
    ("the beginning of a good one", |request, _| request.bearer_auth(&TOKEN[..TOKEN.len() - 1])),
    ("a good one and more", |request, _| request.bearer_auth(format!("{TOKEN}x"))),
    ("a good one in capitals", |request, _| request.bearer_auth(TOKEN.to_uppercase())),
    ("a good one as a password", |request, _| request.basic_auth("x", Some(TOKEN))),
    ("a good one in the query", |request, _| request.query(&[("access_token", TOKEN), ("token", TOKEN)])),
    ("a good one as a cookie", |request, _| {
        request.header("Cookie", format!("Authorization=Bearer {TOKEN}"))
    }),
    ("two, the first made up", |request, _| {
        request.header("Authorization", "Bearer x").header("Authorization", format!("Bearer {TOKEN}"))
    }),
];

fn numbered(number: &str) -> Instance {
    Instance { id: number.to_owned(), ..instance(number) }
}

#[tokio::test]
async fn requests_without_a_valid_token_are_rejected() {
    let (mut requests, mut let_in, mut paths) = (0, Vec::new(), 0);
    for (dialect, own) in PATHS {
        let machines = if dialect == "native" { vec![instance("i-1")] } else { vec![numbered("1")] };
        let cloud = TestCloud::speaking(dialect, Unknown::PassedOver, &machines).await;
        let gone = Credential { name: "gone".to_owned(), token: ENDED.to_owned() };
        cloud.driver.put_credential(&gone).await.expect("admitted");
        cloud.driver.delete_credential("gone").await.expect("dismissed");
        let before = cloud.driver.inventory().await.expect("an inventory");
        let driver = format!("http://{}/driver/v1", cloud.running.driver_addr());
        let of_cloud =
            own.iter().chain(&EVERYWHERE).map(|path| (cloud.url(path), cloud.running.driver_token()));
        let of_driver = DRIVER.iter().map(|path| (format!("{driver}{path}"), TOKEN));
        for (url, other) in of_cloud.chain(of_driver) {
            paths += 1;
            for method in METHODS {
                for (who, show) in STRANGERS {
                    let request = show(cloud.http.request(method.clone(), &url), other).body("{}");
                    let reply = Reply::of(request).await;
                    requests += 1;
                    // A missing method of a path is not a secret of the driver API, whose description is public.
                    let shut = reply.status == 401 || (reply.status == 405 && url.starts_with(&driver));
                    if !shut {
                        let_in.push(format!("{dialect}: {method} {url} with {who}: {}", reply.status));
                    }
                }
            }
        }
        assert_eq!(cloud.driver.inventory().await.expect("an inventory"), before, "{dialect}");
        let known = cloud.journal().await.into_iter().filter(|entry| entry.credential.is_some());
        assert_eq!(known.count(), 0, "{dialect}: a call was taken for a replica's");
    }
    say(&format!(
        "access     cloud and driver: {paths} paths, {requests} requests of strangers, {} let in",
        let_in.len()
    ));
    assert!(let_in.is_empty(), "{}", let_in.join("\n"));
}

/// Requests that hide a second request from one of two parsers, or that are too large for one; each asks for
/// an object to be created.
fn odd_requests() -> Vec<(&'static str, Vec<u8>)> {
    let body = r#"{"destination": "10.9.0.0/24", "target_instance": "i-1"}"#;
    let head = |token: &str, more: &str| {
        format!("POST /v1/routes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n")
    };
    let hidden = format!("{}{body}", head("x", &format!("Content-Length: {}\r\n", body.len())));
    let with = |more: &str, rest: &str| format!("{}{rest}", head("nobody", more)).into_bytes();
    let chunk = format!("0\r\n\r\n{hidden}");
    vec![
        ("length and chunks", with("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", &chunk)),
        ("chunks and length", with("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", &chunk)),
        ("two lengths", with("Content-Length: 0\r\nContent-Length: 44\r\n", &hidden)),
        ("two lengths in one", with("Content-Length: 0, 44\r\n", &hidden)),
        ("a length with a sign", with("Content-Length: +0\r\n", &hidden)),
        ("a length below zero", with("Content-Length: -1\r\n", &hidden)),
        ("a length that overflows", with("Content-Length: 18446744073709551616\r\n", &hidden)),
        ("chunks in other words", with("Transfer-Encoding: xchunked\r\n", &chunk)),
        ("chunks twice", with("Transfer-Encoding: chunked, chunked\r\n", &chunk)),
        ("chunks and identity", with("Transfer-Encoding: chunked, identity\r\n", &chunk)),
        ("a blank before the colon", with("Content-Length : 0\r\n", &hidden)),
        ("a folded header", with("X-A: b\r\n Content-Length: 0\r\n", &hidden)),
        ("a chunk that overflows", with("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n")),
        ("a chunk that is too long", with("Transfer-Encoding: chunked\r\n", "5\r\nabcdefgh\r\n0\r\n\r\n")),
        ("a zero in a header", with("X-A: \0\r\n", &hidden)),
        ("a bare line feed", format!("POST /v1/routes HTTP/1.1\nHost: x\n\n{hidden}").into_bytes()),
        ("a line that is too long", format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20)).into_bytes()),
        ("too many headers", with(&"X-A: b\r\n".repeat(10_000), &hidden)),
        ("a header that is too long", with(&format!("X-A: {}\r\n", "b".repeat(1 << 20)), &hidden)),
        ("another version", b"POST /v1/routes HTTP/3.0\r\n\r\n".to_vec()),
        ("another protocol", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("an absolute target", b"GET http://elsewhere/v1/routes HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("a tunnel", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
    ]
}

#[tokio::test]
async fn slow_oversized_and_smuggled_requests_do_nothing_to_anybody() {
    let cloud = TestCloud::start().await;
    let (addresses, odd) = ([cloud.running.cloud_addr(), cloud.running.driver_addr()], odd_requests());
    // Slow callers stay connected while others are served.
    let mut slow = Vec::new();
    for address in addresses {
        for part in ["", "G", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n"] {
            for _ in 0..25 {
                let mut stream = TcpStream::connect(address).await.expect("a connection");
                stream.write_all(part.as_bytes()).await.expect("written");
                slow.push(stream);
            }
        }
    }
    let mut served = Vec::new();
    for address in addresses {
        for (what, bytes) in &odd {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            // It may be rejected before it was sent completely.
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut answer)).await;
            let answer = String::from_utf8_lossy(&answer);
            if read.is_err() || answer.contains("HTTP/1.1 2") {
                served.push(format!("{what}: {answer}"));
            }
        }
    }
    cloud.get("/v1/instances/i-1").await.answers(200);
    let journal = cloud.journal().await;
    let done = |outcome: &Outcome| matches!(outcome, Outcome::Answered { status: 200..=299 });
    let made = journal.iter().filter(|entry| entry.write && done(&entry.outcome)).count();
    say(&format!(
        "access     cloud and driver: {} odd requests next to {} slow ones, {} served, {made} carried out",
        2 * odd.len(),
        slow.len(),
        served.len()
    ));
    assert!(served.is_empty(), "{}", served.join("\n"));
    assert_eq!(made, 0);
}

/// Prints the figures for a reader of the test's output.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
