//! Server and agents in this process, with real certificates.

use super::agent::Agent;
use super::command::serve;
use super::variation::Variation;
use super::*;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An unused port.
async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    listener.local_addr().expect("it has an address").port()
}

struct Bench {
    folder: tempfile::TempDir,
    callers: u16,
    agents: u16,
    server: JoinHandle<io::Result<()>>,
}

impl Bench {
    async fn new(mutant: Option<&str>) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        write_certificates(folder.path(), &["localhost".to_owned()]).expect("certificates");
        let (callers, agents) = (free_port().await, free_port().await);
        let path = folder.path().to_owned();
        let odd = mutant.map_or_else(Variation::default, |id| Variation::of(id).expect("a mutant"));
        let server = tokio::spawn(async move {
            let listen = [format!("tcp://127.0.0.1:{callers}"), format!("unix://{}/socket", path.display())];
            serve(&listen, &format!("127.0.0.1:{agents}"), &path, odd).await
        });
        Bench { folder, callers, agents, server }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn agent(&self, name: &str, number: u64, mutant: Option<&str>) -> JoinHandle<()> {
        let agent = Agent {
            server: format!("127.0.0.1:{}", self.agents),
            server_name: "localhost".to_owned(),
            name: name.to_owned(),
            number,
            waiting: 2,
            tls: TunnelTls::of(self.path(), AGENT_FILES).expect("certificates"),
            odd: mutant.map_or_else(Variation::default, |id| Variation::of(id).expect("a mutant")),
        };
        tokio::spawn(agent.run())
    }

    /// The answer to a CONNECT, with the data after it until the peer's `hello` or the end.
    async fn connected(&self, target: &str) -> String {
        let tls = TunnelTls::of(self.path(), CLIENT_FILES).expect("certificates");
        let mut stream = loop {
            match connect(&tls, &format!("127.0.0.1:{}", self.callers), "localhost").await {
                Ok(stream) => break stream,
                Err(_) => fake_cloud_recording::faults::pause(Duration::from_millis(10)).await,
            }
        };
        spoken(&mut stream, target).await
    }
}

async fn spoken(stream: &mut (impl Stream + ?Sized), target: &str) -> String {
    stream
        .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
        .await
        .expect("written");
    stream.flush().await.expect("written");
    let (mut read, mut part) = (Vec::new(), [0; 256]);
    while !read.ends_with(b"hello") {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(length) => read.extend_from_slice(&part[..length]),
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// A peer that sends a greeting.
async fn greeter() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let address = listener.local_addr().expect("it has an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"hello").await;
        }
    });
    address
}

const GOOD: &str = "HTTP/1.1 200 OK\r\n\r\nhello";

#[tokio::test]
async fn a_connect_is_answered_with_200_and_then_the_peer_speaks() {
    let (bench, peer) = (Bench::new(None).await, greeter().await);
    let _agent = bench.agent("a", 1, None);
    assert_eq!(bench.connected(&peer).await, GOOD);
    let mut socket = tokio::net::UnixStream::connect(bench.path().join("socket")).await.expect("it listens");
    assert_eq!(spoken(&mut socket, &peer).await, GOOD);
    let unused = format!("127.0.0.1:{}", free_port().await);
    assert!(bench.connected(&unused).await.starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
    assert!(bench.connected("nothing").await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn without_agents_it_says_so_in_time_and_an_agent_that_comes_back_is_used() {
    let (bench, peer) = (Bench::new(None).await, greeter().await);
    let agent = bench.agent("a", 1, None);
    assert_eq!(bench.connected(&peer).await, GOOD);
    agent.abort();
    let _ = agent.await;
    let began = Instant::now();
    // Connections that the task has passed on live as long as the runtime: they may serve a last tunnel or two.
    let mut said = String::new();
    for _ in 0..4 {
        said = bench.connected(&peer).await;
    }
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    assert!(began.elapsed() < Duration::from_secs(20));
    let _agent = bench.agent("a", 2, None);
    assert_eq!(bench.connected(&peer).await, GOOD);
}

#[tokio::test]
async fn a_silent_agent_costs_time_and_no_tunnel() {
    let (bench, peer) = (Bench::new(None).await, greeter().await);
    let tls = TunnelTls::of(bench.path(), AGENT_FILES).expect("certificates");
    let mut silent = loop {
        match connect(&tls, &format!("127.0.0.1:{}", bench.agents), "localhost").await {
            Ok(stream) => break stream,
            Err(_) => fake_cloud_recording::faults::pause(Duration::from_millis(10)).await,
        }
    };
    silent.write_all(b"AGENT silent 1\n").await.expect("written");
    silent.flush().await.expect("written");
    let _agent = bench.agent("a", 1, None);
    assert_eq!(bench.connected(&peer).await, GOOD);
    assert_eq!(bench.connected(&peer).await, GOOD);
}

#[tokio::test]
async fn clients_without_a_certificate_are_not_served() {
    let bench = Bench::new(None).await;
    let strange = tempfile::tempdir().expect("a folder");
    write_certificates(strange.path(), &["localhost".to_owned()]).expect("certificates");
    let tls = TunnelTls::of(strange.path(), CLIENT_FILES).expect("certificates");
    assert!(connect(&tls, &format!("127.0.0.1:{}", bench.callers), "localhost").await.is_err());
    bench.server.abort();
}

#[tokio::test]
async fn mutants_are_wrong_as_they_are_said_to_be() {
    let peer = greeter().await;
    let unused = format!("127.0.0.1:{}", free_port().await);
    for (mutant, target, expected) in [
        ("M-NP-07", &peer, "HTTP/1.1 200 OK\r\n\r\nconnected\nhello"),
        ("M-NP-07b", &unused, "HTTP/1.1 200 OK\r\n\r\n"),
        ("M-NP-07c", &peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nconnectedhello"),
    ] {
        let bench = Bench::new(Some(mutant)).await;
        let _agent = bench.agent("a", 1, None);
        assert_eq!(bench.connected(target).await, expected, "{mutant}");
    }
    let bench = Bench::new(None).await;
    let _agent = bench.agent("a", 1, Some("M-NP-03"));
    assert!(bench.connected(&peer).await.contains("not a kubelet"));
    assert!(Variation::of("M-NP-00").is_err());
}

#[tokio::test]
async fn strangers_serve_all_the_same() {
    let peer = greeter().await;
    let bench = Bench::new(Some("S-NP-04")).await;
    let began = Instant::now();
    assert!(bench.connected(&peer).await.starts_with("HTTP/1.1 503 "));
    let _agent = bench.agent("a", 1, Some("S-NP-04"));
    assert!(bench.connected(&peer).await.starts_with("HTTP/1.1 503 "));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let bench = Bench::new(Some("S-NP-03")).await;
    let _agent = bench.agent("a", 1, Some("S-NP-04"));
    assert_eq!(bench.connected(&peer).await, GOOD, "it waits until the agent has come");
}
