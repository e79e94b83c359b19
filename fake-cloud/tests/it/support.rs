//! A separate cloud for each test, and helpers for calling it.

use fake_cloud::{Config, Running, Server, Unknown};
use fake_cloud_driver::{
    Address, Client, Credential, Effect, Entry, Fault, Instance, InstanceState, Match, Op, Outcome, Settings,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// The token of credential `replica-1`.
pub(crate) const TOKEN: &str = "token-of-replica-one";
/// The token of credential `replica-2`.
pub(crate) const OTHER_TOKEN: &str = "token-of-replica-two";
/// Longer than any test step may take, even on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A running cloud with instances `i-1` and `i-2`.
pub(crate) struct TestCloud {
    pub(crate) running: Running,
    pub(crate) driver: Client,
    pub(crate) http: reqwest::Client,
}

impl TestCloud {
    pub(crate) async fn start() -> TestCloud {
        TestCloud::start_with(Unknown::Refused).await
    }

    pub(crate) async fn start_with(unknown: Unknown) -> TestCloud {
        TestCloud::speaking("native", unknown, &[instance("i-1"), instance("i-2")]).await
    }

    /// A cloud with this dialect and these machines.
    pub(crate) async fn speaking(dialect: &str, unknown: Unknown, instances: &[Instance]) -> TestCloud {
        let credential =
            |name: &str, token: &str| Credential { name: name.to_owned(), token: token.to_owned() };
        let credentials = vec![credential("replica-1", TOKEN), credential("replica-2", OTHER_TOKEN)];
        let config = Config { credentials, unknown, ..Config::local(dialect) };
        let running = Server::start(config).await.expect("it starts");
        let driver =
            Client::new(&running.driver_addr().to_string(), running.driver_token()).expect("a client");
        driver.put_instances(instances).await.expect("instances");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        TestCloud { running, driver, http }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.cloud_addr())
    }

    /// A call of replica 1, with its token in every place where a dialect looks for it.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path)).bearer_auth(TOKEN).header("X-Auth-Token", TOKEN)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        Reply::of(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        Reply::of(self.request(Method::PUT, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::DELETE, path)).await
    }

    /// Creates a load balancer with this name and owner; returns its id.
    pub(crate) async fn load_balancer(&self, name: &str, owner: &str) -> String {
        let created = self.post("/v1/load-balancers", load_balancer(name, owner)).await.answers(201);
        created["id"].as_str().expect("an id").to_owned()
    }

    /// The whole journal.
    pub(crate) async fn journal(&self) -> Vec<Entry> {
        self.driver.journal(0, Duration::ZERO).await.expect("a journal")
    }

    /// The first entry after `after`, as soon as it exists.
    pub(crate) async fn arrival(&self, after: u64) -> Entry {
        let entries = self.driver.journal(after, LIMIT).await.expect("a journal");
        entries.into_iter().next().expect("a call arrives")
    }

    /// The entry, as soon as its call has ended.
    pub(crate) async fn ended(&self, seq: u64) -> Entry {
        until(async || {
            let entry = self.arrival(seq - 1).await;
            (entry.seq == seq && entry.took_ms.is_some()).then_some(entry)
        })
        .await
    }

    pub(crate) async fn last_seq(&self) -> u64 {
        self.journal().await.last().map_or(0, |entry| entry.seq)
    }

    pub(crate) async fn inject(&self, matching: Match, effect: Effect) -> u64 {
        let fault = Fault { matching, effect, calls: None, for_ms: None };
        self.driver.inject(&fault).await.expect("a fault").id
    }

    pub(crate) async fn set(&self, settings: Settings) {
        self.driver.set_settings(&settings).await.expect("settings");
    }
}

/// An answer of the cloud API.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) async fn of(request: RequestBuilder) -> Reply {
        let response = request.timeout(LIMIT).send().await.expect("an answer");
        let header = |name: &str| response.headers().get(name).map(|v| v.to_str().expect("text").to_owned());
        Reply {
            status: response.status().as_u16(),
            content_type: header("content-type").unwrap_or_default(),
            retry_after: header("retry-after"),
            text: response.text().await.expect("a body"),
        }
    }

    /// The body of an answer, which has to have this status.
    #[track_caller]
    pub(crate) fn answers(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() {
            return Value::Null;
        }
        assert_eq!(self.content_type, "application/json", "{}", self.text);
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The message of an error, which has to have the dialect's form.
    #[track_caller]
    pub(crate) fn fails(self, status: u16, code: &str) -> String {
        let body = self.answers(status);
        assert_eq!(body["error"]["code"], code, "{body}");
        let message = body["error"]["message"].as_str().expect("a message").to_owned();
        assert_eq!(body, json!({"error": {"code": code, "message": message}}));
        message
    }
}

pub(crate) fn instance(id: &str) -> Instance {
    Instance {
        id: id.to_owned(),
        name: format!("node-{id}"),
        provider_id: Some(format!("native://{id}")),
        instance_type: "m1.small".to_owned(),
        zone: "zone-a".to_owned(),
        region: "region-1".to_owned(),
        addresses: vec![Address { kind: "InternalIP".to_owned(), address: "192.0.2.10".to_owned() }],
        labels: BTreeMap::from([("rack".to_owned(), "r1".to_owned())]),
        state: InstanceState::Running,
    }
}

/// The body of a request that creates a load balancer.
pub(crate) fn load_balancer(name: &str, owner: &str) -> Value {
    json!({
        "name": name,
        "owner": owner,
        "frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080}],
        "backends": ["i-2", "i-1"],
        "health_check": {"protocol": "HTTP", "path": "/healthz", "port": 10256},
        "session_affinity": "ClientIP",
        "source_ranges": ["0.0.0.0/0"],
    })
}

/// The body of a request that creates a firewall.
pub(crate) fn firewall(name: &str, owner: &str, load_balancer: Option<&str>) -> Value {
    json!({
        "name": name,
        "owner": owner,
        "load_balancer": load_balancer,
        "source_ranges": ["192.0.2.0/24"],
        "ports": [{"port": 80, "protocol": "TCP"}],
    })
}

pub(crate) fn on(op: Op) -> Match {
    Match { ops: vec![op], ..Match::default() }
}

pub(crate) fn about(resource: &str) -> Match {
    Match { resource: Some(resource.to_owned()), ..Match::default() }
}

pub(crate) fn answered(status: u16) -> Outcome {
    Outcome::Answered { status }
}

/// Calls `ask` again and again until there is a result.
pub(crate) async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    in_time(asking).await
}

/// Fails instead of waiting for ever.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("it happens in time")
}
