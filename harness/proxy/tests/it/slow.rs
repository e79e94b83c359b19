//! Clients that are slow, and more of them than the limit.

use super::support::{Pieces, Proxied, before, client};
use fake_cloud_driver::Outcome;
use fake_cloud_recording::faults::pause;
use recording_proxy::{Bounds, Config, Running};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a client that is not slow, and short for a test.
const SOON: Duration = Duration::from_millis(300);
/// Longer than anything in the test.
const LIMIT: Duration = Duration::from_secs(10);

fn bounds() -> Bounds {
    Bounds { request: SOON, body: SOON, pause: SOON, connections: 3 }
}

async fn connected(url: &str) -> TcpStream {
    TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection")
}

/// The data until the connection is closed.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let closed = timeout(LIMIT, stream.read_to_end(&mut said)).await;
    // A reset connection is closed too.
    let _ = closed.expect("it is closed");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_slow_request_head_closes_the_connection() {
    let proxied = Proxied::bounded(bounds()).await;
    for begun in ["G", "GET /v1/instances HTTP/1.1\r\nHost: x\r\n", "PRI * HTTP/2.0\r\n"] {
        let mut stream = connected(&proxied.url("a", "")).await;
        stream.write_all(begun.as_bytes()).await.expect("written");
        let began = Instant::now();
        until_closed(&mut stream).await;
        assert!(began.elapsed() >= SOON / 2, "{begun}: {:?}", began.elapsed());
    }
    // A byte now and then does not help.
    let mut stream = connected(&proxied.url("a", "")).await;
    let (mut read, mut write) = stream.split();
    let dribbles = async {
        while write.write_all(b"x").await.is_ok() {
            pause(SOON / 10).await;
        }
    };
    let mut end = [0; 64];
    let closed = async { while let Ok(1..) = read.read(&mut end).await {} };
    timeout(LIMIT, async {
        tokio::select! { () = dribbles => (), () = closed => () }
    })
    .await
    .expect("closed");
    let messages = proxied.messages.lock().expect("fine").clone();
    assert_eq!(
        messages,
        [
            "a client from 127.0.0.1 took more than 0.3 s to send the head of a request: its connection was closed"
        ]
    );
    assert_eq!(proxied.get("/v1/instances").await.status(), 200, "others are served");
}

#[tokio::test]
async fn a_slow_request_body_is_answered_and_logged() {
    let proxied = Proxied::bounded(bounds()).await;
    // One that a rule reads, and one that is streamed.
    for line in ["POST /v1/load-balancers HTTP/1.1", "PUT /v1/elsewhere HTTP/1.1"] {
        let mut stream = connected(&proxied.url("a", "")).await;
        let head = format!("{line}\r\nHost: x\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.expect("written");
        let answer = until_closed(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("took too long to send a body and was answered 408"), "{answer}");
    }
    let outcomes: Vec<Outcome> = proxied.journal().await.into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes, [Outcome::Answered { status: 408 }, Outcome::Answered { status: 408 }]);
    let messages = proxied.messages.lock().expect("fine").clone();
    assert_eq!(
        messages.iter().filter(|what| what.contains("took too long to send a body")).count(),
        1,
        "{messages:?}"
    );
}

#[tokio::test]
async fn a_port_has_only_so_many_connections() {
    let proxied = Proxied::bounded(Bounds { request: LIMIT, ..bounds() }).await;
    let mut standing = Vec::new();
    for _ in 0..3 {
        standing.push(connected(&proxied.url("a", "")).await);
    }
    let mut beyond = connected(&proxied.url("a", "")).await;
    assert_eq!(until_closed(&mut beyond).await, "");
    let messages = proxied.messages.lock().expect("fine").clone();
    assert_eq!(
        messages,
        [
            "the proxy's port for a has 3 connections, the maximum; further ones, such as one from 127.0.0.1, are closed"
        ]
    );
    // Another replica has its own port, and a client that leaves makes room.
    let other = client().get(proxied.url("b", "/v1/instances")).send().await.expect("an answer");
    assert_eq!(other.status(), 401);
    drop(standing);
    let served = async {
        while proxied.ask(proxied.http.get(proxied.url("a", "/v1/instances"))).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, served).await.expect("there is room again");
}

#[tokio::test]
async fn waiting_and_piecewise_clients_are_not_slow() {
    let pieces = Pieces::start().await;
    let messages: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = messages.clone();
    let config = Config {
        bounds: bounds(),
        on_message: Arc::new(move |what| heard.lock().expect("fine").push(what)),
        ..before(&pieces.url)
    };
    let proxy = Running::start(config).await.expect("a proxy");
    let (sender, parts) = tokio::sync::mpsc::unbounded_channel::<Result<&'static str, std::io::Error>>();
    let stream =
        futures::stream::unfold(parts, |mut parts| async move { Some((parts.recv().await?, parts)) });
    let url = format!("{}/upload", proxy.ports()[0].1);
    let asked = tokio::spawn(async move {
        client().post(url).body(reqwest::Body::wrap_stream(stream)).send().await.expect("an answer")
    });
    // Longer in total than any limit, but no pause is.
    for part in ["one", "two", "three", "four"] {
        sender.send(Ok(part)).expect("sent");
        pieces.hears(part).await;
        pause(SOON / 2).await;
    }
    drop(sender);
    pieces.hears("\r\n0\r\n\r\n").await;
    // A long poll: nothing for longer than any limit, and then piece by piece.
    pause(SOON * 2).await;
    pieces.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    let mut answer = asked.await.expect("asked");
    assert_eq!(answer.chunk().await.expect("a piece").as_deref(), Some(&b"first"[..]));
    pause(SOON * 2).await;
    pieces.say(b"6\r\nsecond\r\n0\r\n\r\n");
    assert_eq!(answer.chunk().await.expect("a piece").as_deref(), Some(&b"second"[..]));
    assert_eq!(answer.chunk().await.expect("the end"), None);
    assert!(messages.lock().expect("fine").is_empty());
}
