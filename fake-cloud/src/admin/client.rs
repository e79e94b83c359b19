//! The admin API's client: what the harness holds.

use super::types::{ActiveFault, BarrierStatus, Credential, Entry, Fault, Instance, Inventory, LoadBalancer, Match, Route, Settings};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long a call may take, its long poll not counted.
const LIMIT: Duration = Duration::from_secs(10);

/// A call of the admin API failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No answer.
    #[error("fake cloud at {address}: {operation}: no answer")]
    Unreachable {
        /// What was asked.
        operation: String,
        /// Address of the admin API.
        address: String,
        /// Why.
        #[source]
        cause: reqwest::Error,
    },
    /// An answer that refuses.
    #[error("fake cloud at {address}: {operation}: {status}: {body}")]
    Refused {
        /// What was asked.
        operation: String,
        /// Address of the admin API.
        address: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        body: String,
    },
    /// An answer nobody understands.
    #[error("fake cloud at {address}: {operation}: an answer that is not what the admin API promises")]
    Garbled {
        /// What was asked.
        operation: String,
        /// Address of the admin API.
        address: String,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// The client itself cannot be made.
    #[error("no HTTP client")]
    Client(#[source] reqwest::Error),
}

impl ClientError {
    /// Whether the object asked about does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClientError::Refused { status: 404, .. })
    }
}

/// A client of one fake cloud.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    address: String,
    token: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

type Outcome<T> = Result<T, ClientError>;

impl Client {
    /// A client for the admin API at `address`, e.g. `http://127.0.0.1:8081`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(address: impl Into<String>, token: impl Into<String>) -> Outcome<Client> {
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .build()
            .map_err(ClientError::Client)?;
        Ok(Client { http, address: address.into(), token: token.into() })
    }

    fn call(&self, method: Method, path: &str) -> (String, RequestBuilder) {
        let operation = format!("{method} {path}");
        let url = format!("{}/admin/v1/{path}", self.address);
        (operation, self.http.request(method, url).bearer_auth(&self.token).timeout(LIMIT))
    }

    async fn send(&self, operation: String, request: RequestBuilder) -> Outcome<(String, Vec<u8>)> {
        let lost = |cause: reqwest::Error| ClientError::Unreachable {
            operation: operation.clone(),
            address: self.address.clone(),
            cause: cause.without_url(),
        };
        let response = request.send().await.map_err(lost)?;
        let status = response.status();
        let body = response.bytes().await.map_err(lost)?.to_vec();
        if status.is_client_error() || status.is_server_error() || status == StatusCode::NOT_MODIFIED {
            let body = String::from_utf8_lossy(&body).chars().take(500).collect();
            let address = self.address.clone();
            return Err(ClientError::Refused { operation, address, status: status.as_u16(), body });
        }
        Ok((operation, body))
    }

    async fn read<T: DeserializeOwned>(&self, (operation, request): (String, RequestBuilder)) -> Outcome<T> {
        let (operation, body) = self.send(operation, request).await?;
        serde_json::from_slice(&body)
            .map_err(|cause| ClientError::Garbled { operation, address: self.address.clone(), cause })
    }

    async fn act(&self, (operation, request): (String, RequestBuilder)) -> Outcome<()> {
        self.send(operation, request).await.map(|_| ())
    }

    fn with<T: Serialize + ?Sized>(&self, method: Method, path: &str, body: &T) -> (String, RequestBuilder) {
        let (operation, request) = self.call(method, path);
        (operation, request.json(body))
    }

    /// Whether the fake cloud is at work.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn health(&self) -> Outcome<()> {
        self.act(self.call(Method::GET, "health")).await
    }

    /// Creates or replaces an instance.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn put_instance(&self, instance: &Instance) -> Outcome<()> {
        self.act(self.with(Method::PUT, &format!("instances/{}", instance.id), instance)).await
    }

    /// Creates or replaces instances.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn put_instances(&self, instances: &[Instance]) -> Outcome<()> {
        self.act(self.with(Method::POST, "instances", instances)).await
    }

    /// One instance.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn get_instance(&self, id: &str) -> Outcome<Instance> {
        self.read(self.call(Method::GET, &format!("instances/{id}"))).await
    }

    /// Deletes an instance.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn delete_instance(&self, id: &str) -> Outcome<()> {
        self.act(self.call(Method::DELETE, &format!("instances/{id}"))).await
    }

    /// Everything the cloud holds.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn inventory(&self) -> Outcome<Inventory> {
        self.read(self.call(Method::GET, "inventory")).await
    }

    /// Replaces everything the cloud holds.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn restore(&self, inventory: &Inventory) -> Outcome<()> {
        self.act(self.with(Method::PUT, "inventory", inventory)).await
    }

    /// Puts a load balancer as it is, behind the CCM's back.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn put_load_balancer(&self, lb: &LoadBalancer) -> Outcome<()> {
        self.act(self.with(Method::PUT, &format!("load-balancers/{}", lb.id), lb)).await
    }

    /// Takes a load balancer away behind the CCM's back, with what belongs to it when `cascade`.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn delete_load_balancer(&self, id: &str, cascade: bool) -> Outcome<()> {
        self.act(self.call(Method::DELETE, &format!("load-balancers/{id}?cascade={cascade}"))).await
    }

    /// Puts a route as it is, behind the CCM's back.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn put_route(&self, route: &Route) -> Outcome<()> {
        self.act(self.with(Method::PUT, &format!("routes/{}", route.id), route)).await
    }

    /// Takes a route away behind the CCM's back.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn delete_route(&self, id: &str) -> Outcome<()> {
        self.act(self.call(Method::DELETE, &format!("routes/{id}"))).await
    }

    /// Puts a fault in force.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn inject(&self, fault: &Fault) -> Outcome<ActiveFault> {
        self.read(self.with(Method::POST, "faults", fault)).await
    }

    /// One fault, also when it is used up.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn fault(&self, id: u64) -> Outcome<ActiveFault> {
        self.read(self.call(Method::GET, &format!("faults/{id}"))).await
    }

    /// Ends a fault.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn clear_fault(&self, id: u64) -> Outcome<()> {
        self.act(self.call(Method::DELETE, &format!("faults/{id}"))).await
    }

    /// Ends every fault.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn clear_faults(&self) -> Outcome<()> {
        self.act(self.call(Method::DELETE, "faults")).await
    }

    /// Raises a barrier.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn raise_barrier(&self, matching: &Match) -> Outcome<BarrierStatus> {
        self.read(self.with(Method::POST, "barriers", matching)).await
    }

    /// One barrier.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn barrier(&self, id: u64) -> Outcome<BarrierStatus> {
        self.read(self.call(Method::GET, &format!("barriers/{id}"))).await
    }

    /// Lets a barrier's calls go on and takes it away; its last status.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that id.
    pub async fn release(&self, id: u64) -> Outcome<BarrierStatus> {
        self.read(self.call(Method::POST, &format!("barriers/{id}/release"))).await
    }

    /// Takes every barrier away.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn release_all(&self) -> Outcome<()> {
        self.act(self.call(Method::DELETE, "barriers")).await
    }

    /// Journal entries after sequence number `after`; waits up to `wait` for the first.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn journal(&self, after: u64, wait: Duration) -> Outcome<Vec<Entry>> {
        let path = format!("journal?after={after}&wait_ms={}", wait.as_millis());
        let (operation, request) = self.call(Method::GET, &path);
        self.read((operation, request.timeout(LIMIT + wait))).await
    }

    /// The settings in force.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn settings(&self) -> Outcome<Settings> {
        self.read(self.call(Method::GET, "settings")).await
    }

    /// Changes the settings that are given; all that are in force then.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn set_settings(&self, settings: &Settings) -> Outcome<Settings> {
        self.read(self.with(Method::PUT, "settings", settings)).await
    }

    /// Adds a credential, or gives one of that name another token.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn put_credential(&self, credential: &Credential) -> Outcome<()> {
        self.act(self.with(Method::PUT, "credentials", credential)).await
    }

    /// Takes a credential away.
    ///
    /// # Errors
    /// When the call fails, also when there is none of that name.
    pub async fn delete_credential(&self, name: &str) -> Outcome<()> {
        self.act(self.call(Method::DELETE, &format!("credentials/{name}"))).await
    }

    /// Empties the cloud: objects, faults, barriers, settings. Credentials and journal stay.
    ///
    /// # Errors
    /// When the call fails.
    pub async fn reset(&self) -> Outcome<()> {
        self.act(self.call(Method::POST, "reset")).await
    }
}
