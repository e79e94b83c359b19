//! Invalid requests: the answer is a Status, and the server keeps working.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_the_servers_status() {
    let cluster = Cluster::start().await;
    let large = vec![b' '; (3 << 20) + 1];
    let answer = cluster.send("POST", MAPS, "application/json", large).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.body()["message"], "Request entity too large: limit is 3145728");
    assert_eq!(answer.body()["reason"], "RequestEntityTooLarge");
    let answer = cluster.send("PATCH", &format!("{MAPS}/kube-root-ca.crt"), "text/plain", "{}").await;
    assert_eq!(answer.status, 415, "{}", answer.text);
    let request = cluster.admin.get(format!("{}{MAPS}", cluster.server.url())).header("Accept", "text/html");
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 406);
    for (method, path, status) in [
        ("POST", "/healthz", 405),
        ("PUT", MAPS, 405),
        ("POST", "/api/v1/namespaces/default/configmaps/x", 405),
        ("GET", "/api/v1/unknown", 404),
        ("GET", "/api/v1/configmaps/x", 404),
        ("GET", "/nothing", 404),
        ("DELETE", "/api/v1/namespaces/default/configmaps/absent", 404),
        ("POST", "/api/v1/namespaces/default/configmaps?timeout=x", 400),
    ] {
        let answer = cluster.ask(method, path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_takes_more_than_its_share() {
    let cluster = Cluster::start().await;
    // A client that sends far too much sees the answer, not a broken connection.
    let answer = cluster.send("POST", MAPS, "application/json", vec![b' '; 50 << 20]).await;
    assert_eq!(answer.status, 413, "{}", answer.text);
    let text = "x".repeat(1000);
    let made = json!({"metadata": {"name": "m", "finalizers": ["example.com/a"]}, "data": {"a": text}});
    assert_eq!(cluster.ask("POST", MAPS, Some(made)).await.status, 201);
    // Each copy contains all earlier ones: 30 of them would be a terabyte.
    let copies: Vec<Value> = (0..30)
        .map(|at| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/x{at}")}))
        .collect();
    let path = format!("{MAPS}/m");
    let patch = |kind: &'static str, body: String| cluster.send("PATCH", &path, kind, body);
    let answer = patch("application/json-patch+json", json!(copies).to_string()).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert!(answer.text.contains("rejected our request"), "{}", answer.text);
    // The size of an object is limited.
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let made = cluster
        .ask(
            "POST",
            roles,
            Some(json!({"metadata": {"name": "r"}, "rules": [
                {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]},
            ]})),
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "resourceNames": ["y".repeat(800 << 10)]});
    let more = json!([{"op": "add", "path": "/rules/-", "value": rule}]).to_string();
    let role = format!("{roles}/r");
    let grow = || cluster.send("PATCH", &role, "application/json-patch+json", more.clone());
    assert_eq!(grow().await.status, 200);
    let answer = grow().await;
    assert_eq!(answer.body()["message"], "etcdserver: request is too large", "{}", answer.status);
    // Comparing every entry with every other must not take hours.
    let many: Vec<String> = (0..200_000).map(|at| format!("f{at}")).collect();
    let body = json!({"metadata": {"finalizers": many}}).to_string();
    let answer = patch("application/strategic-merge-patch+json", body).await;
    assert_eq!(answer.status, 413, "{}", answer.text);
    // YAML with aliases to itself grows as fast.
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for at in 1..12 {
        let before = vec![format!("*a{}", at - 1); 10].join(", ");
        bomb.push_str(&format!("a{at}: &a{at} [{before}]\n"));
    }
    let answer =
        cluster.send("PATCH", &format!("{path}?fieldManager=f"), "application/apply-patch+yaml", bomb).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for kind in
        ["application/merge-patch+json", "application/apply-patch+yaml", "application/json-patch+json"]
    {
        let answer = cluster.send("PATCH", &format!("{path}?fieldManager=f"), kind, nested.clone()).await;
        assert!((400..500).contains(&answer.status), "{kind}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_leaves_nothing() {
    let cluster = Cluster::start().await;
    for _ in 0..20 {
        let request = cluster.admin.get(format!("{}{MAPS}?watch=1", cluster.server.url()));
        drop(request.send().await.expect("an answer"));
    }
    let port = cluster.server.address().port();
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00"] {
        use tokio::io::AsyncWriteExt as _;
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
        stream.write_all(bytes).await.expect("written");
    }
    assert_eq!(cluster.ask("GET", "/readyz", None).await.status, 200);
}

/// A small generator of numbers: bodies only have to differ, and a failure has to be reproducible.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(below.max(1)).expect("it fits")).expect("it fits")
    }
}

/// A value that resembles an object in some places.
fn odd(numbers: &mut Numbers, depth: usize) -> Value {
    const NAMES: [&str; 16] = [
        "metadata",
        "name",
        "labels",
        "spec",
        "status",
        "ports",
        "port",
        "taints",
        "key",
        "$patch",
        "finalizers",
        "containers",
        "type",
        "addresses",
        "ownerReferences",
        "$setElementOrder/ports",
    ];
    match numbers.next(if depth == 0 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => json!(numbers.next(2) == 0),
        2 => json!(i64::try_from(numbers.next(1 << 40)).unwrap_or_default() - (1 << 39)),
        3 => json!(""),
        4 => json!(["a", "delete", "LoadBalancer", "10.96.0.300", "\u{0}", "é"][numbers.next(6)]),
        5 => json!(1.5),
        6 => json!("x".repeat(numbers.next(300))),
        7 => (0..numbers.next(3)).map(|_| odd(numbers, depth - 1)).collect(),
        _ => {
            let members =
                (0..numbers.next(5)).map(|_| (NAMES[numbers.next(16)].to_owned(), odd(numbers, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

const POINTERS: [&str; 10] = [
    "",
    "/",
    "/metadata/labels",
    "/metadata/labels/a~1b",
    "/metadata/finalizers/-",
    "/spec/ports/0/port",
    "/spec/ports/99999999999999999999",
    "/metadata",
    "metadata",
    "/~2",
];

/// A body that roughly fits its content type: a list of operations, YAML text, a protobuf envelope or an object.
fn body_of(content_type: &str, numbers: &mut Numbers) -> Vec<u8> {
    let value = odd(numbers, 4);
    match content_type {
        "application/json-patch+json" if numbers.next(4) > 0 => {
            let one = |numbers: &mut Numbers| {
                let op = ["add", "remove", "replace", "move", "copy", "test", "x"][numbers.next(7)];
                let (path, from) = (POINTERS[numbers.next(10)], POINTERS[numbers.next(10)]);
                json!({"op": op, "path": path, "from": from, "value": odd(numbers, 2)})
            };
            let operations: Vec<Value> = (0..numbers.next(6)).map(|_| one(numbers)).collect();
            json!(operations).to_string().into_bytes()
        }
        "application/apply-patch+yaml" | "application/yaml" => {
            const PIECES: [&str; 12] = [
                "&a ",
                "*a",
                "<<: *a",
                "---\n",
                "\t",
                "- ",
                "? ",
                "|\n",
                "!!binary ",
                "\u{feff}",
                "%YAML 1.2\n",
                ": ",
            ];
            let head = ["", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"][numbers.next(2)];
            let mut text = format!("{head}spec: {value}\n");
            for _ in 0..numbers.next(4) {
                let at = text.floor_char_boundary(numbers.next(text.len() + 1));
                text.insert_str(at, PIECES[numbers.next(12)]);
            }
            text.into_bytes()
        }
        "application/vnd.kubernetes.protobuf" => {
            // The header of every such body, followed by fields with any number, type and length.
            let mut bytes = b"k8s\0".to_vec();
            for _ in 0..numbers.next(12) {
                let field = u8::try_from(numbers.next(6) << 3 | numbers.next(6)).unwrap_or_default();
                bytes.extend([field, u8::try_from(numbers.next(256)).unwrap_or_default()]);
                bytes.extend_from_slice(&b"\x0a\x02v1\x12\x04Node\xff\xff\xff\xff\x0f"[..numbers.next(16)]);
            }
            bytes
        }
        _ => value.to_string().into_bytes(),
    }
}

/// The query of a list: selectors, limits, continue tokens.
fn query(numbers: &mut Numbers) -> String {
    const KEYS: [&str; 8] = [
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "fieldManager",
    ];
    const VALUES: [&str; 16] = [
        "a%3Db",
        "a+in+(b,c)",
        "a+notin+()",
        "!a",
        "a%3D%3D%3Db",
        "((((",
        "metadata.name%3Dn",
        "spec.nothing!%3Dx",
        "-1",
        "99999999999999999999",
        "eyJ2IjoxfQ",
        "%00",
        "%ff",
        "%zz",
        "NotOlderThan",
        "",
    ];
    let one = |numbers: &mut Numbers| format!("{}={}", KEYS[numbers.next(8)], VALUES[numbers.next(16)]);
    (0..1 + numbers.next(4)).map(|_| one(numbers)).collect::<Vec<_>>().join("&")
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_patches_of_any_form_are_answered() {
    let seconds =
        std::env::var("EMBEDDED_APISERVER_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let seed = std::env::var("EMBEDDED_APISERVER_FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0x5eed);
    let cluster = Cluster::start().await;
    let targets = [
        ("/api/v1/nodes", "n", json!({"metadata": {"name": "n"}})),
        (
            "/api/v1/namespaces/default/services",
            "s",
            json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        ),
        (MAPS, "m", json!({"metadata": {"name": "m"}})),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "l", json!({"metadata": {"name": "l"}})),
        (
            "/api/v1/namespaces/default/pods",
            "p",
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        ),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "r", json!({"metadata": {"name": "r"}})),
    ];
    for (path, _, body) in &targets {
        let made = cluster.ask("POST", path, Some(body.clone())).await;
        assert_eq!(made.status, 201, "{path}: {}", made.text);
    }
    const TYPES: [&str; 7] = [
        "application/yaml",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "application/json",
        "application/vnd.kubernetes.protobuf",
    ];
    let mut numbers = Numbers(seed);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut count = 0_u64;
    while Instant::now() < until {
        let (path, name, _) = &targets[numbers.next(targets.len())];
        let content_type = TYPES[numbers.next(TYPES.len())];
        let mut body = body_of(content_type, &mut numbers);
        if numbers.next(4) == 0 && !body.is_empty() {
            let at = numbers.next(body.len());
            body[at] = u8::try_from(numbers.next(256)).unwrap_or_default();
        }
        let sub = ["", "/status", "/scale", "/token", "/binding"][numbers.next(5)];
        let (method, path) = match numbers.next(5) {
            4 => ("GET", format!("{path}?{}", query(&mut numbers))),
            0 => ("POST", (*path).to_owned()),
            1 => ("PUT", format!("{path}/{name}{sub}")),
            2 => ("DELETE", format!("{path}/absent")),
            _ => ("PATCH", format!("{path}/{name}{sub}?fieldManager=f")),
        };
        let shown = String::from_utf8_lossy(&body).into_owned();
        let answer = cluster.send(method, &path, content_type, body).await;
        let body = answer.body();
        // A real server also answers some meaningless patches with 500 and no reason.
        let failed = answer.status >= 500 && !(answer.status == 500 && body["reason"].is_null());
        let proper = body["kind"].is_string() || answer.status == 404;
        assert!(!failed && proper, "seed {seed}, {method} {path} {content_type} {shown}\n{answer:?}");
        count += 1;
    }
    assert!(count > 0);
    assert_eq!(cluster.ask("GET", "/readyz", None).await.status, 200);
}
