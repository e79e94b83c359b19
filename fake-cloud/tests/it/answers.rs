//! Drivers with invalid answers: the client reports an error soon, and never panics.

use fake_cloud_driver::{Client, ClientError, Effect, Fault, Match, Settings};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A small generator of numbers (xorshift64), seeded so that a failure can be reproduced.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }
}

/// Answers that are valid for some call, to be broken.
const BODIES: [&str; 8] = [
    r#"{"protocol":1,"driver":"d","facilities":["machines","journal"],"instanceIds":"text"}"#,
    r#"{"instances":[],"load_balancers":[],"auxiliaries":[],"routes":[]}"#,
    r#"{"entries":[{"seq":1,"at_ms":0,"took_ms":null,"peer":"127.0.0.1","credential":null,"op":"lb.get","write":false,"resource":null,"owner":null,"request":"GET /","outcome":{"kind":"under-way"}}]}"#,
    r#"{"id":1,"fault":{"matching":{},"effect":{"kind":"refuse"},"calls":null,"for_ms":null},"hits":0,"in_force":true}"#,
    r#"{"page_size":5}"#,
    r#"{"error":"no"}"#,
    "",
    "<html>",
];
const PIECES: [&str; 14] = [
    "null",
    "-1",
    "1e999",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\u0000",
    "\u{feff}",
    "18446744073709551616",
    ",,",
    "\0",
    "é",
];

fn answer(numbers: &mut Numbers) -> Vec<u8> {
    let mut body = BODIES[numbers.below(BODIES.len())].to_owned();
    for _ in 0..numbers.below(4) {
        let mut at = numbers.below(body.len() + 1);
        while !body.is_char_boundary(at) {
            at -= 1;
        }
        match numbers.below(3) {
            0 => body.truncate(at),
            _ => body.insert_str(at, PIECES[numbers.below(PIECES.len())]),
        }
    }
    let status = [200, 200, 200, 201, 204, 301, 400, 401, 404, 418, 500, 503, 99, 1000][numbers.below(14)];
    let length = match numbers.below(6) {
        0 => String::new(),
        1 => format!("Content-Length: {}\r\n", body.len() + numbers.below(3)),
        2 => "Transfer-Encoding: chunked\r\n".to_owned(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let mut whole = format!("HTTP/1.1 {status} X\r\n{length}Connection: close\r\n\r\n{body}").into_bytes();
    if numbers.below(8) == 0 {
        let at = numbers.below(whole.len());
        whole[at] = u8::try_from(numbers.below(256)).unwrap_or_default();
    }
    whole
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Makes a call; returns its result.
async fn ask(client: &Client, which: usize) -> Result<(), ClientError> {
    let fault = Fault { matching: Match::default(), effect: Effect::Refuse, calls: None, for_ms: None };
    match which {
        0 => client.capabilities().await.map(drop),
        1 => client.inventory().await.map(drop),
        2 => client.journal(0, Duration::ZERO).await.map(drop),
        3 => client.inject(&fault).await.map(drop),
        4 => client.settings().await.map(drop),
        5 => client.get_instance("..").await.map(drop),
        6 => client.barrier(1).await.map(drop),
        _ => client.set_settings(&Settings::default()).await.map(drop),
    }
}

#[tokio::test]
async fn any_response_of_a_driver_is_an_answer_or_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = Client::new(&listener.local_addr().expect("an address").to_string(), "t").expect("a client");
    let mut numbers = Numbers(number("DRIVER_FUZZ_SEED").unwrap_or(7).max(1));
    let until = Instant::now() + Duration::from_secs(number("DRIVER_FUZZ_SECONDS").unwrap_or(2));
    let (mut answers, mut errors) = (0_u32, 0_u32);
    while Instant::now() < until {
        let (answer, which) = (answer(&mut numbers), numbers.below(8));
        let driver = async {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        };
        let both = async { tokio::join!(ask(&client, which), driver).0 };
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let asked = tokio::time::timeout(Duration::from_secs(5), both).await;
        match asked.unwrap_or_else(|_| panic!("no end: {shown}")) {
            Ok(()) => answers += 1,
            Err(error) => {
                errors += 1;
                let text = error.to_string();
                assert!(text.len() < 2000 && text.contains("127.0.0.1"), "{text} of {shown}");
            }
        }
    }
    assert!(answers > 0 && errors > answers / 10, "{answers} answers, {errors} errors");
}

#[tokio::test]
async fn an_answer_without_an_end_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = Client::new(&listener.local_addr().expect("an address").to_string(), "t").expect("a client");
    let driver = async {
        let (mut stream, _) = listener.accept().await.expect("a caller");
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).await;
        let _ = stream.write_all(b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n").await;
        let part = vec![b' '; 1 << 20];
        let mut parts = 0;
        while stream.write_all(&part).await.is_ok() {
            parts += 1;
            assert!(parts < 1000, "the answer does not end");
        }
    };
    let (asked, ()) = tokio::join!(client.inventory(), driver);
    let error = asked.expect_err("it has no end");
    assert!(error.to_string().ends_with("is larger than 64 MiB"), "{error}");
}
