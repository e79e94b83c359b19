//! Invalid input of every kind: it is rejected in the dialect's form, and never ends the cloud.

use crate::support::{LIMIT, Reply, TOKEN, TestCloud, load_balancer};
use fake_cloud::Unknown;
use fake_cloud_driver::{Entry, Op, Outcome};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn unknown_paths_and_methods_are_loud() {
    let cloud = TestCloud::start().await;
    let calls = [
        (Method::GET, "/"),
        (Method::GET, "/v1"),
        (Method::GET, "/v1/instances/"),
        (Method::GET, "//v1/instances"),
        (Method::GET, "/v2/instances/i-1"),
        (Method::PATCH, "/v1/load-balancers/lb-1"),
        (Method::POST, "/v1/load-balancers/lb-1"),
        (Method::GET, "/v1/load-balancers/lb-1/backends"),
        (Method::GET, "/v1/firewalls/fw-1"),
        (Method::OPTIONS, "/v1/routes"),
        (Method::GET, "/driver/v1/inventory"),
    ];
    let count = calls.len();
    for (method, path) in calls {
        if path == "/v1/instances/" {
            // An instance without an id.
            Reply::of(cloud.request(method, path)).await.fails(404, "not_found");
            continue;
        }
        Reply::of(cloud.request(method, path)).await.fails(501, "unknown_endpoint");
    }
    let journal = cloud.journal().await;
    let unknown = journal.iter().filter(|entry| entry.unknown.is_some());
    let refused = |e: &&Entry| e.op == Op::Other && e.outcome == Outcome::Answered { status: 501 };
    assert_eq!(unknown.filter(refused).count(), count - 1);
    assert!(journal.iter().any(|entry| entry.request == "PATCH /v1/load-balancers/lb-1"));
}

#[tokio::test]
async fn a_lenient_cloud_passes_over_what_it_does_not_know_and_says_so() {
    let cloud = TestCloud::start_with(Unknown::PassedOver).await;
    let calls = [(Method::GET, 200), (Method::PUT, 200), (Method::POST, 201), (Method::DELETE, 204)];
    for (method, status) in calls {
        let body = Reply::of(cloud.request(method.clone(), "/v9/gadgets/1")).await.answers(status);
        assert_eq!(body, if status == 204 { json!(null) } else { json!({}) }, "{method}");
    }
    let journal = cloud.journal().await;
    assert_eq!(journal.len(), 4);
    for entry in journal {
        assert_eq!(entry.unknown.as_deref(), Some("this dialect has no such call"));
        assert_eq!((entry.op, entry.write), (Op::Other, false));
    }
    cloud.get("/v1/instances/i-1").await.answers(200);
    assert_eq!(cloud.journal().await[4].unknown, None);
    let stranger = cloud.http.get(cloud.url("/v9/gadgets")).bearer_auth("somebody-else");
    Reply::of(stranger).await.fails(401, "unauthorized");
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let cloud = TestCloud::start().await;
    let deep = "[".repeat(100_000);
    let bodies = [
        "",
        "{",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{\"name\": 1}",
        "\u{feff}{}",
        "{\"name\":\"a\",\"name\":\"b\"}",
        &deep,
    ];
    for path in ["/v1/load-balancers", "/v1/firewalls", "/v1/routes"] {
        for body in bodies {
            let request = cloud.request(Method::POST, path).body(body.to_owned());
            Reply::of(request).await.fails(422, "invalid");
        }
        let binary = cloud.request(Method::POST, path).body(vec![0xff, 0x00, 0xfe]);
        Reply::of(binary).await.fails(422, "invalid");
    }
    assert!(cloud.driver.inventory().await.expect("inventory").load_balancers.is_empty());
}

#[tokio::test]
async fn values_out_of_range_are_refused() {
    let cloud = TestCloud::start().await;
    let changes = [
        ("/name", json!("")),
        ("/name", json!("x".repeat(256))),
        ("/name", json!("x\u{7}")),
        ("/name", json!(null)),
        ("/owner", json!("x".repeat(256))),
        ("/owner", json!(7)),
        ("/frontends", json!(null)),
        ("/frontends/0/port", json!(0)),
        ("/frontends/0/port", json!(65536)),
        ("/frontends/0/port", json!(-1)),
        ("/frontends/0/port", json!(80.5)),
        ("/frontends/0/node_port", json!(0)),
        ("/frontends/0/protocol", json!("ICMP")),
        ("/frontends/0", json!({"port": 1, "protocol": "TCP", "node_port": 1, "x": 1})),
        ("/backends", json!(["i-9"])),
        ("/backends", json!("i-1")),
        ("/health_check", json!({"protocol": "HTTP", "port": 1})),
        ("/health_check", json!({"protocol": "GRPC", "path": "/", "port": 1})),
        ("/session_affinity", json!("Cookie")),
        ("/source_ranges", json!(["10.0.0.0/33"])),
    ];
    for (field, value) in changes {
        let mut body = load_balancer("web", "u-1");
        *body.pointer_mut(field).expect("a field") = value.clone();
        let reply = cloud.post("/v1/load-balancers", body).await;
        assert_eq!(reply.status, 422, "{field} = {value}: {}", reply.text);
        assert!(reply.fails(422, "invalid").len() < 300, "{field}");
    }
    let longest = load_balancer(&"ß".repeat(255), &"界".repeat(255));
    cloud.post("/v1/load-balancers", longest).await.answers(201);
}

#[tokio::test]
async fn queries_that_are_not_known_are_refused() {
    let cloud = TestCloud::start().await;
    let paths = [
        "/v1/instances?zone=a",
        "/v1/instances?name=a&name=b",
        "/v1/instances/i-1?verbose",
        "/v1/load-balancers?tag=x",
        "/v1/firewalls?name=x",
        "/v1/instances?%ff=%ff",
    ];
    for path in paths {
        cloud.get(path).await.fails(422, "invalid");
    }
    cloud.get("/v1/instances/i-1?").await.answers(200);
}

#[tokio::test]
async fn a_token_has_to_be_known() {
    let cloud = TestCloud::start().await;
    let bare = |value: Option<&str>| {
        let request = cloud.http.get(cloud.url("/v1/instances/i-1"));
        match value {
            Some(value) => request.header("authorization", value),
            None => request,
        }
    };
    let wrong = ["", "Bearer", "Bearer ", "Bearer x", "Basic token-of-replica-one", "token-of-replica-one"];
    for value in wrong.map(Some).into_iter().chain([None]) {
        Reply::of(bare(value)).await.fails(401, "unauthorized");
    }
    Reply::of(bare(Some(&format!("Bearer {TOKEN}x")))).await.fails(401, "unauthorized");
    Reply::of(bare(Some(&format!("bearer {TOKEN}")))).await.answers(200);
    let journal = cloud.journal().await;
    assert_eq!(journal.iter().filter(|entry| entry.credential.is_none()).count(), 8);
    // An unknown caller learns nothing about existing objects.
    Reply::of(cloud.http.get(cloud.url("/v1/nothing"))).await.fails(401, "unauthorized");
}

#[tokio::test]
async fn huge_bodies_are_refused_and_read_to_their_end() {
    let cloud = TestCloud::start().await;
    let limit = 1 << 20;
    let body = |bytes: usize| {
        let text = format!("{{\"name\": \"{}\"}}", "x".repeat(bytes));
        cloud.request(Method::POST, "/v1/firewalls").body(text)
    };
    Reply::of(body(limit - 100)).await.fails(422, "invalid");
    for bytes in [limit, 8 * limit] {
        let message = Reply::of(body(bytes)).await.fails(413, "too_large");
        assert_eq!(message, "the body is longer than 1048576 bytes");
    }
    let journal = cloud.journal().await;
    assert_eq!(journal.last().map(|entry| entry.outcome.clone()), Some(Outcome::Answered { status: 413 }));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_abandoned_call() {
    let cloud = TestCloud::start().await;
    let mut stream = TcpStream::connect(cloud.running.cloud_addr()).await.expect("a connection");
    let head = format!(
        "POST /v1/firewalls HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 100\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("written");
    stream.write_all(b"{\"name\":").await.expect("written");
    drop(stream);
    let entry = cloud.arrival(0).await;
    assert_eq!((entry.op, cloud.ended(entry.seq).await.outcome), (Op::AuxCreate, Outcome::Abandoned));
}

#[tokio::test]
async fn bytes_that_are_not_http_do_not_affect_other_clients() {
    let cloud = TestCloud::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..],
        b"nonsense\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
    ] {
        let mut stream = TcpStream::connect(cloud.running.cloud_addr()).await.expect("a connection");
        stream.write_all(bytes).await.expect("written");
        stream.shutdown().await.expect("shut");
        let mut rest = Vec::new();
        // Both a 400 and a closed connection are fine.
        let _ = tokio::time::timeout(LIMIT, stream.read_to_end(&mut rest)).await.expect("it ends");
    }
    cloud.get("/v1/instances/i-1").await.answers(200);
}

#[tokio::test]
async fn no_mutation_of_a_call_ends_the_cloud() {
    let cloud = TestCloud::start().await;
    let lb = cloud.load_balancer("web", "u-1").await;
    let bodies = [
        load_balancer("web2", "u-1").to_string(),
        crate::support::firewall("web", "u-1", Some(&lb)).to_string(),
        json!({"destination": "10.244.1.0/24", "target_instance": "i-1"}).to_string(),
        json!({"backends": ["i-1"]}).to_string(),
    ];
    let paths = [
        "/v1/instances?name=node-i-1&page=1&per_page=5",
        "/v1/load-balancers",
        "/v1/load-balancers/lb-1",
        "/v1/load-balancers/lb-1/backends",
        "/v1/firewalls",
        "/v1/firewalls/fw-1",
        "/v1/routes?page=1",
        "/v1/routes/r-1",
    ];
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    const BYTES: &[u8] = b"{}[]\",:0-9\x00\xffen\\";
    const MARKS: &[u8] = b"/?&=%+.;~9-_";
    let mut random = Random(7);
    for _ in 0..600 {
        let method = methods[random.below(methods.len())].clone();
        let mut path = paths[random.below(paths.len())].to_owned();
        let mut body = bodies[random.below(bodies.len())].clone().into_bytes();
        for _ in 0..random.below(4) {
            let at = random.below(body.len());
            body[at] = BYTES[random.below(BYTES.len())];
        }
        for _ in 0..random.below(3) {
            // After the first slash, and with characters that are allowed in a request target.
            let at = 1 + random.below(path.len() - 1);
            path.insert(at, char::from(MARKS[random.below(MARKS.len())]));
        }
        let reply = Reply::of(cloud.request(method.clone(), &path).body(body.clone())).await;
        let fine = matches!(reply.status, 200..=204 | 403 | 404 | 409 | 422 | 501);
        assert!(fine, "{method} {path} {}: {} {}", String::from_utf8_lossy(&body), reply.status, reply.text);
    }
    assert_eq!(cloud.last_seq().await, 601);
}

/// Pseudo-random numbers that are the same each time (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}
