//! A proxy in front of the fake cloud, as in a run.

use fake_cloud::{Config as CloudConfig, Running as Cloud, Server};
use fake_cloud_driver::{Client, Credential, Entry, Instance, Op};
use recording_proxy::{
    Bounds, Config, DriverConfig, ErrorForm, ErrorForms, Rule, Running, Source, SourceText, Table, any_port,
};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const TOKEN: &str = "driver-token-of-the-test";
pub(crate) const CALLER_TOKEN: &str = "token-of-replica-a";

pub(crate) fn path(name: &str) -> Source {
    source(SourceText { path: Some(name.to_owned()), ..SourceText::default() })
}

pub(crate) fn query(name: &str) -> Source {
    source(SourceText { query: Some(name.to_owned()), ..SourceText::default() })
}

pub(crate) fn json(pointer: &str) -> Source {
    source(SourceText { json: Some(pointer.to_owned()), ..SourceText::default() })
}

pub(crate) fn source(text: SourceText) -> Source {
    Source::parse(text).expect("a source")
}

/// A few of the calls of the API `native`.
pub(crate) fn table() -> Table {
    let rule = |call: &str, op| Rule::new(call, op).expect("a rule");
    let rules = [
        rule("GET /v1/instances", Op::InstanceList).paged_by(query("page")),
        rule("GET /v1/instances", Op::InstanceGet)
            .when(query("name"), Some("*"))
            .and_then(|rule| rule.naming(query("name"))),
        rule("GET /v1/instances/{id}", Op::InstanceGet).naming(path("id")),
        rule("POST /v1/load-balancers", Op::LbCreate)
            .naming(json("/name"))
            .and_then(|rule| rule.owned_by(json("/owner")))
            .and_then(|rule| rule.creating(json("/id"))),
        rule("GET /v1/load-balancers/{id}", Op::LbGet).naming(path("id")),
        rule("DELETE /v1/load-balancers/{id}", Op::LbDelete).naming(path("id")),
    ];
    Table::new(rules.into_iter().map(|rule| rule.expect("a rule")).collect()).expect("a table")
}

/// A proxy without a driver API for this URL.
pub(crate) fn before(upstream: &str) -> Config {
    let errors = ErrorForms(vec![ErrorForm {
        status: None,
        content_type: "application/json".to_owned(),
        body: r#"{"error": {"code": "code-${STATUS}"}}"#.to_owned(),
    }]);
    Config {
        ports: vec![any_port(Some("a".to_owned())), any_port(Some("b".to_owned()))],
        upstream: upstream.to_owned(),
        upstream_ca: None,
        table: table(),
        errors,
        rewrites: Default::default(),
        tls: None,
        driver: None,
        bounds: Bounds::default(),
        ended: None,
        on_message: Arc::new(|_| ()),
    }
}

/// The fake cloud, a proxy in front of it, and its driver.
pub(crate) struct Proxied {
    pub(crate) cloud: Cloud,
    pub(crate) proxy: Running,
    pub(crate) driver: Client,
    pub(crate) http: reqwest::Client,
    /// The messages for the user.
    pub(crate) messages: Arc<Mutex<Vec<String>>>,
}

impl Proxied {
    pub(crate) async fn start() -> Proxied {
        Proxied::bounded(Bounds::default()).await
    }

    pub(crate) async fn bounded(bounds: Bounds) -> Proxied {
        let cloud = Server::start(CloudConfig::local("native")).await.expect("a cloud");
        let messages: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = messages.clone();
        let config = Config {
            driver: Some(DriverConfig {
                behind: Some((format!("http://{}", cloud.driver_addr()), cloud.driver_token().to_owned())),
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                token: TOKEN.to_owned(),
            }),
            bounds,
            on_message: Arc::new(move |what| heard.lock().expect("fine").push(what)),
            ..before(&format!("http://{}", cloud.cloud_addr()))
        };
        let proxy = Running::start(config).await.expect("a proxy");
        let url = format!("http://{}", proxy.driver_addr().expect("a driver API"));
        let driver = Client::new(&url, TOKEN).expect("a client");
        let credential = Credential { name: "a".to_owned(), token: CALLER_TOKEN.to_owned() };
        driver.put_credential(&credential).await.expect("let in");
        let machine = r#"{"id": "i-1", "name": "node-1", "provider_id": "native://i-1"}"#;
        let machine: Instance = serde_json::from_str(machine).expect("a machine");
        driver.put_instances(&[machine]).await.expect("a machine");
        Proxied { cloud, proxy, driver, http: client(), messages }
    }

    /// The URL of a path at a replica's port.
    pub(crate) fn url(&self, caller: &str, path: &str) -> String {
        let mut ports = self.proxy.ports().iter();
        let (_, url) = ports.find(|(name, _)| name.as_deref() == Some(caller)).expect("a port");
        format!("{url}{path}")
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.ask(self.http.get(self.url("a", path))).await.expect("an answer")
    }

    pub(crate) async fn ask(&self, request: reqwest::RequestBuilder) -> reqwest::Result<reqwest::Response> {
        request.bearer_auth(CALLER_TOKEN).send().await
    }

    /// Creates a load balancer; returns its id.
    pub(crate) async fn balancer(&self, name: &str, owner: &str) -> String {
        let wanted = serde_json::json!({"name": name, "owner": owner, "frontends": [], "backends": []});
        let url = self.url("a", "/v1/load-balancers");
        let made = self.ask(self.http.post(url).json(&wanted)).await.expect("an answer");
        let made: serde_json::Value = made.json().await.expect("JSON");
        made["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn journal(&self) -> Vec<Entry> {
        self.driver.journal(0, Duration::ZERO).await.expect("a journal")
    }
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// A server that answers each connection with these pieces, one after the other, when the test says so; and the bytes it
/// received.
pub(crate) struct Pieces {
    pub(crate) url: String,
    pub(crate) sender: tokio::sync::mpsc::UnboundedSender<&'static [u8]>,
    pub(crate) got: Arc<Mutex<Vec<u8>>>,
}

impl Pieces {
    pub(crate) async fn start() -> Pieces {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, mut pieces) = tokio::sync::mpsc::unbounded_channel::<&'static [u8]>();
        let got: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = got.clone();
        tokio::spawn(async move {
            // The first connection is the proxy's check whether the server answers.
            greet(&listener).await;
            let (stream, _) = listener.accept().await.expect("a connection");
            let (mut read, mut write) = stream.into_split();
            tokio::spawn(async move {
                let mut part = [0; 4096];
                while let Ok(size @ 1..) = read.read(&mut part).await {
                    kept.lock().expect("fine").extend_from_slice(&part[..size]);
                }
            });
            while let Some(piece) = pieces.recv().await {
                write.write_all(piece).await.expect("written");
            }
        });
        Pieces { url, sender, got }
    }

    pub(crate) fn say(&self, piece: &'static [u8]) {
        self.sender.send(piece).expect("a listener");
    }

    /// Waits until it has received this.
    pub(crate) async fn hears(&self, text: &str) {
        let heard = async {
            while !String::from_utf8_lossy(&self.got.lock().expect("fine")).contains(text) {
                tokio::task::yield_now().await;
            }
        };
        let heard = tokio::time::timeout(Duration::from_secs(10), heard).await;
        assert!(heard.is_ok(), "{text}: {}", String::from_utf8_lossy(&self.got.lock().expect("fine")));
    }
}

async fn greet(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    answer(&mut stream, b"HTTP/1.1 404 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
}

pub(crate) async fn answer(stream: &mut TcpStream, bytes: &[u8]) {
    let mut asked = [0; 4096];
    let _ = stream.read(&mut asked).await;
    let _ = stream.write_all(bytes).await;
}
