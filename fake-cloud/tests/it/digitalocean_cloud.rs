//! A cloud with the `digitalocean` dialect, and helpers for calling it.

use crate::support::{LIMIT, TestCloud};
use fake_cloud::Unknown;
use fake_cloud_driver::{Address, Instance, InstanceState};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A cloud with droplets 101 (`node-101`) and 102, strict as by default.
pub(crate) async fn start() -> TestCloud {
    start_with(Unknown::Refused).await
}

pub(crate) async fn start_with(unknown: Unknown) -> TestCloud {
    TestCloud::speaking("digitalocean", unknown, &[droplet(101), droplet(102)]).await
}

/// The instance that is droplet `number`.
pub(crate) fn droplet(number: u64) -> Instance {
    let address = |kind: &str, text: &str| Address { kind: kind.to_owned(), address: text.to_owned() };
    Instance {
        id: number.to_string(),
        name: format!("node-{number}"),
        provider_id: Some(format!("digitalocean://{number}")),
        instance_type: "s-1vcpu-2gb".to_owned(),
        zone: String::new(),
        region: "fra1".to_owned(),
        addresses: vec![address("InternalIP", "10.1.2.3"), address("ExternalIP", "198.51.100.9")],
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

/// Body that creates a load balancer, as the CCM writes it for a Service with one port.
pub(crate) fn load_balancer(name: &str) -> Value {
    json!({
        "name": name,
        "algorithm": "round_robin",
        "region": "fra1",
        "type": "REGIONAL_NETWORK",
        "forwarding_rules": [
            {"entry_protocol": "tcp", "entry_port": 80, "target_protocol": "tcp", "target_port": 80},
        ],
        "health_check": {
            "protocol": "http", "port": 10256, "path": "/healthz", "check_interval_seconds": 3,
            "response_timeout_seconds": 5, "healthy_threshold": 5, "unhealthy_threshold": 3, "proxy_protocol": false,
        },
        "sticky_sessions": {"type": "none"},
        "droplet_ids": [101, 102],
        "disable_lets_encrypt_dns_records": false,
        "firewall": {},
        "network": "EXTERNAL",
        "network_stack": "IPV4",
    })
}

/// Creates a load balancer with this name; returns its id.
pub(crate) async fn created(cloud: &TestCloud, name: &str) -> String {
    let created = cloud.post("/v2/load_balancers", load_balancer(name)).await;
    let body = body(&created.text, created.status, 202);
    body["load_balancer"]["id"].as_str().expect("an id").to_owned()
}

/// The body of an answer, which has to have this status.
#[track_caller]
pub(crate) fn body(text: &str, status: u16, wanted: u16) -> Value {
    assert_eq!(status, wanted, "{text}");
    if text.is_empty() { Value::Null } else { serde_json::from_str(text).expect("JSON") }
}

/// An answer with this dialect's headers.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Answer {
        let response = request.timeout(LIMIT).send().await.expect("an answer");
        let text = |value: &reqwest::header::HeaderValue| value.to_str().expect("text").to_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value)));
        Answer {
            status: response.status().as_u16(),
            headers: headers.collect(),
            text: response.text().await.expect("a body"),
        }
    }

    /// The body of an answer, which has to have this status and to be JSON in this dialect's form.
    #[track_caller]
    pub(crate) fn answers(&self, status: u16) -> Value {
        let body = body(&self.text, self.status, status);
        for header in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "x-request-id"] {
            assert!(self.headers.contains_key(header), "{header}: {:?}", self.headers);
        }
        let content_type = self.headers.get("content-type").map(String::as_str);
        let wanted = (!self.text.is_empty()).then_some("application/json; charset=utf-8");
        assert_eq!(content_type, wanted);
        body
    }

    /// The message of an error, which has to have this dialect's form.
    #[track_caller]
    pub(crate) fn fails(&self, status: u16, id: &str) -> String {
        let body = self.answers(status);
        let message = body["message"].as_str().expect("a message").to_owned();
        let request_id = &self.headers["x-request-id"];
        assert_eq!(body, json!({"id": id, "message": message, "request_id": request_id}));
        message
    }
}

/// Helpers for calls whose headers matter.
pub(crate) trait Calls {
    fn call(&self, method: &str, path: &str, body: Option<Value>) -> impl Future<Output = Answer>;
}

impl Calls for TestCloud {
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let request = self.request(method.parse().expect("a method"), path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        Answer::of(request).await
    }
}
