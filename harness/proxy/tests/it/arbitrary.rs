//! Calls and answers of any form, for a fixed time: each call ends, nothing panics, and other calls are served.

use super::support::{before, client, json, path, query, source};
use fake_cloud_driver::Op;
use recording_proxy::{Bounds, Config, Rule, Running, SourceText, Table};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A small generator of numbers (xorshift64), seeded so that a failure can be reproduced.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const BODIES: &[&str] = &[
    r#"{"name": "web", "owner": "uid-1", "items": [{"id": "a"}, {"id": 7}], "id": "lb-1"}"#,
    "Action=CreateLoadBalancer&Name=web&InstanceId.1=i-1&InstanceId.2=i-2&Filter.1.Name=tag&Filter.1.Value.1=uid-1",
    "<r xmlns=\"urn:x\"><lb id=\"1\"><name>web</name><id>lb-1</id></lb><![CDATA[x]]><!-- y --></r>",
    "<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><r><lb><id>&b;</id></lb></r>",
    "",
    "[[[[[[[[",
    "\u{feff}{}",
];
const PIECES: &[&str] = &[
    "null",
    "-1",
    "1e999",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\u0000",
    "<",
    "</lb>",
    "<lb>",
    "&",
    "&#x0;",
    "%",
    "%00",
    "%zz",
    "=",
    ".*",
    "]]>",
    "<!--",
    "<?x",
    "xmlns:a=\"\"",
    "\0",
    "\u{e9}",
    "\r\n",
];
const LINES: &[&str] = &[
    "POST /json HTTP/1.1",
    "POST /form HTTP/1.1",
    "POST /xml HTTP/1.1",
    "GET /v1/instances?name=%2e%2e&page=-1 HTTP/1.1",
    "GET /v1/instances?page=99999999999999999999&name=&name=a%00 HTTP/1.1",
    "GET //v1//instances/../%2f?x HTTP/1.1",
    "DELETE /v1/load-balancers/%C3%28 HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "GET http://elsewhere/ HTTP/1.1",
    "CONNECT elsewhere:1 HTTP/1.1",
    "PUT /elsewhere HTTP/1.0",
    "PATCH /json?\u{e9} HTTP/1.1",
    "\u{0} / HTTP/9.9",
];

fn broken(text: &str, numbers: &mut Numbers) -> String {
    let mut text = text.to_owned();
    for _ in 0..numbers.below(4) {
        let mut at = numbers.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match numbers.below(4) {
            0 => text.truncate(at),
            _ => text.insert_str(at, numbers.one(PIECES)),
        }
    }
    text
}

/// A head with these lines, and a body whose length the head may state wrongly.
fn message(first: &str, numbers: &mut Numbers) -> Vec<u8> {
    let body = broken(numbers.one(BODIES), numbers);
    let (length, body) = match numbers.below(7) {
        0 => (String::new(), body),
        1 => (format!("Content-Length: {}\r\n", body.len() + numbers.below(3)), body),
        2 => {
            ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
        }
        3 => ("Transfer-Encoding: chunked\r\n".to_owned(), body),
        _ => (format!("Content-Length: {}\r\n", body.len()), body),
    };
    let odd = numbers.one(&[
        "",
        "X-Own: \t \u{e9}\r\n",
        "Connection: x-own, close, ,\r\n",
        "Expect: 100-continue\r\n",
        "Location: http:///..%2f\r\n",
        "Content-Encoding: gzip\r\n",
        "Authorization: Basic !!!\r\n",
        "Host: \r\n",
    ]);
    let mut whole =
        format!("{first}\r\nHost: x\r\n{odd}{length}Connection: close\r\n\r\n{body}").into_bytes();
    if numbers.below(8) == 0 {
        let at = numbers.below(whole.len());
        whole[at] = u8::try_from(numbers.below(256)).unwrap_or_default();
    }
    whole
}

fn table() -> Table {
    let form = |field: &str| source(SourceText { form: Some(field.to_owned()), ..SourceText::default() });
    let xml = |place: &str| source(SourceText { xpath: Some(place.to_owned()), ..SourceText::default() });
    let rule = |call: &str, op| Rule::new(call, op).expect("a rule");
    let rules = [
        rule("POST /json", Op::LbCreate)
            .naming(json("/name"))
            .and_then(|rule| rule.naming(json("/items/*/id")))
            .and_then(|rule| rule.owned_by(json("/owner")))
            .and_then(|rule| rule.creating(json("/id"))),
        rule("POST /form", Op::LbUpdate)
            .naming(form("InstanceId.*"))
            .and_then(|rule| rule.owned_by(form("Name"))),
        rule("POST /xml", Op::LbCreate)
            .naming(xml("//lb/name"))
            .and_then(|rule| rule.creating(xml("//lb/id"))),
        rule("GET /v1/instances", Op::InstanceList).paged_by(query("page")),
        rule("DELETE /v1/load-balancers/{id}", Op::LbDelete).naming(path("id")),
    ];
    Table::new(rules.into_iter().map(|rule| rule.expect("a rule")).collect()).expect("a table")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Panics of this process since the first call.
fn panics() -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let (counted, before) = (count.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::Relaxed);
        before(info);
    }));
    count
}

#[tokio::test]
async fn calls_and_answers_of_any_form_end() {
    let seed = number("PROXY_FUZZ_SEED").unwrap_or(7).max(1);
    let until = Instant::now() + Duration::from_secs(number("PROXY_FUZZ_SECONDS").unwrap_or(2));
    let panics = panics();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let upstream = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let mut numbers = Numbers(seed.wrapping_mul(31).max(1));
        while let Ok((mut stream, _)) = listener.accept().await {
            let status = [200, 200, 201, 204, 302, 304, 404, 500, 103, 99][numbers.below(10)];
            let mut said = message(&format!("HTTP/1.1 {status} X"), &mut numbers);
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let size = stream.read(&mut asked).await.unwrap_or(0);
                // The greeting of the proxy, and valid calls.
                if asked[..size].starts_with(b"GET / ") || asked[..size].starts_with(b"GET /right") {
                    said = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".to_vec();
                }
                let _ = stream.write_all(&said).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    let moment = Duration::from_millis(500);
    let bounds = Bounds { request: moment, body: moment, pause: moment, connections: 64 };
    let proxy =
        Running::start(Config { table: table(), bounds, ..before(&upstream) }).await.expect("a proxy");
    let url = proxy.ports()[0].1.clone();
    let (mut numbers, mut calls, mut answered) = (Numbers(seed), 0_u32, 0_u32);
    while Instant::now() < until {
        let line = broken(numbers.one(LINES), &mut numbers);
        let line = if numbers.below(2) == 0 { numbers.one(LINES).to_owned() } else { line };
        let call = message(&line, &mut numbers);
        let shown = String::from_utf8_lossy(&call).into_owned();
        let one = async {
            let mut stream =
                TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
            let _ = stream.write_all(&call).await;
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said).await;
            said
        };
        let said = timeout(Duration::from_secs(10), one).await.unwrap_or_else(|_| panic!("no end: {shown}"));
        answered += u32::from(!said.is_empty());
        calls += 1;
        assert_eq!(panics.load(Ordering::Relaxed), 0, "seed {seed}: {shown}");
    }
    assert!(calls > 0 && answered > calls / 10, "{answered} of {calls} were answered");
    let right = client().get(format!("{url}/right")).send().await.expect("an answer");
    assert_eq!(right.text().await.expect("a body"), "ok");
}
