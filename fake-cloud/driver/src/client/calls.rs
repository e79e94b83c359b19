//! The calls of the driver API, one method each.

use super::super::replies::JournalPage;
use super::super::{
    ActiveFault, BarrierStatus, Capabilities, Credential, Entry, Fault, Instance, Inventory, LoadBalancer,
    Match, Route, Settings,
};
use super::ClientError;
use super::http::LIMIT;
use reqwest::header::HeaderValue;
use reqwest::{Method, Url};
use std::fmt;
use std::time::Duration;

/// The longest long poll.
const LONGEST_POLL: Duration = Duration::from_secs(30);

/// A new id for a fault or a barrier, almost certainly unused: from 1 to 2^53 - 1, which every JSON parser
/// keeps exactly.
///
/// # Panics
/// When the system has no random numbers; this only happens while it starts.
pub fn fresh_id() -> u64 {
    let random = getrandom::u64().expect("the system has random numbers");
    (random >> 11).max(1)
}

/// A client of a driver. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub(super) http: reqwest::Client,
    pub(super) base: Url,
    pub(super) authorization: HeaderValue,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the driver API at `address`, e.g. `http://172.18.0.4:8081` or just `172.18.0.4:8081`. No
    /// call is made. Proxies from the environment are not used.
    ///
    /// # Errors
    /// When the address is not a URL or the token is not allowed in a header.
    pub fn new(address: &str, token: &str) -> Result<Client, ClientError> {
        let unusable = |why: String| ClientError::Unusable { address: address.to_owned(), why };
        let full = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let base = Url::parse(&full).map_err(|error| unusable(error.to_string()))?;
        if base.scheme() != "http" || base.cannot_be_a_base() || !base.has_host() {
            return Err(unusable("only http://HOST:PORT is understood".to_owned()));
        }
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| unusable("the token holds characters that no header may hold".to_owned()))?;
        authorization.set_sensitive(true);
        // Another crate in the same build may have enabled TLS in reqwest without a cryptography provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(LIMIT)
            // A driver is reached by HTTP only. Without this line the system's certificates are read, and an
            // image without a base has none.
            .tls_certs_only([])
            .build()
            .map_err(|error| unusable(error.without_url().to_string()))?;
        Ok(Client { http, base, authorization })
    }

    /// The capabilities of driver and cloud.
    ///
    /// # Errors
    /// When the driver does not answer. All calls below have this error as well; their other errors are
    /// listed there.
    pub async fn capabilities(&self) -> Result<Capabilities, ClientError> {
        self.read(Method::GET, &["capabilities"]).await
    }

    /// Creates an instance, or replaces the one with its id.
    ///
    /// # Errors
    /// 422 when it has no id.
    pub async fn put_instance(&self, instance: &Instance) -> Result<(), ClientError> {
        self.write(Method::PUT, &["instances", &instance.id], Some(instance)).await
    }

    /// The same for several instances: all or none.
    ///
    /// # Errors
    /// 422 when one has no id or two have the same.
    pub async fn put_instances(&self, instances: &[Instance]) -> Result<(), ClientError> {
        self.write(Method::POST, &["instances"], Some(instances)).await
    }

    /// One instance.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn get_instance(&self, id: &str) -> Result<Instance, ClientError> {
        self.read(Method::GET, &["instances", id]).await
    }

    /// Deletes an instance. Objects that refer to it do not change.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn delete_instance(&self, id: &str) -> Result<(), ClientError> {
        self.write(Method::DELETE, &["instances", id], None::<&()>).await
    }

    /// All objects in the cloud.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn inventory(&self) -> Result<Inventory, ClientError> {
        self.read(Method::GET, &["inventory"]).await
    }

    /// Replaces the content of the cloud. Ids that were assigned before are still never assigned again.
    ///
    /// # Errors
    /// 422 when an object has no id or two of a kind have the same.
    pub async fn restore(&self, inventory: &Inventory) -> Result<(), ClientError> {
        self.write(Method::PUT, &["inventory"], Some(inventory)).await
    }

    /// Creates or changes a load balancer without a call to the cloud API. It stays in the given state.
    ///
    /// # Errors
    /// 422 when it has no id.
    pub async fn put_load_balancer(&self, lb: &LoadBalancer) -> Result<(), ClientError> {
        self.write(Method::PUT, &["load-balancers", &lb.id], Some(lb)).await
    }

    /// Deletes a load balancer at once, without a call to the cloud API. With `cascade`, its auxiliary
    /// objects are deleted as well; otherwise they stay and refer to nothing.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn delete_load_balancer(&self, id: &str, cascade: bool) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, &["load-balancers", id]).query(&[("cascade", cascade)]);
        self.send(request, LIMIT).await.map(drop)
    }

    /// Creates a route or replaces the one with its id, and returns it; a route with an empty id gets one.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn put_route(&self, route: &Route) -> Result<Route, ClientError> {
        let request = match route.id.as_str() {
            "" => self.request(Method::POST, &["routes"]),
            id => self.request(Method::PUT, &["routes", id]),
        };
        self.parse(self.send(request.json(route), LIMIT).await?)
    }

    /// Deletes a route.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn delete_route(&self, id: &str) -> Result<(), ClientError> {
        self.write(Method::DELETE, &["routes", id], None::<&()>).await
    }

    /// Activates a fault with any id.
    ///
    /// # Errors
    /// As [`Client::inject_as`].
    pub async fn inject(&self, fault: &Fault) -> Result<ActiveFault, ClientError> {
        self.inject_as(fresh_id(), fault).await
    }

    /// Activates a fault with an id that the caller has chosen ([`fresh_id`]). So the caller can end it even
    /// if the answer is lost.
    ///
    /// # Errors
    /// 422 when it could never hit or its status is not an error, 409 when the id was used before.
    pub async fn inject_as(&self, id: u64, fault: &Fault) -> Result<ActiveFault, ClientError> {
        self.exchange(Method::PUT, &["faults", &id.to_string()], fault).await
    }

    /// A fault and how many calls it has hit. It can be read until it is cleared, also after it is used up.
    ///
    /// # Errors
    /// 404 when it was cleared or never existed.
    pub async fn fault(&self, id: u64) -> Result<ActiveFault, ClientError> {
        self.read(Method::GET, &["faults", &id.to_string()]).await
    }

    /// All faults that were not cleared, in the order of their activation.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn faults(&self) -> Result<Vec<ActiveFault>, ClientError> {
        self.read(Method::GET, &["faults"]).await
    }

    /// Ends a fault. Calls that already hang stay hanging.
    ///
    /// # Errors
    /// 404 when it was cleared before or never existed.
    pub async fn clear_fault(&self, id: u64) -> Result<(), ClientError> {
        self.write(Method::DELETE, &["faults", &id.to_string()], None::<&()>).await
    }

    /// Ends all faults.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn clear_faults(&self) -> Result<(), ClientError> {
        self.write(Method::DELETE, &["faults"], None::<&()>).await
    }

    /// Raises a barrier with any id: matching calls wait at it before they take effect.
    ///
    /// # Errors
    /// As [`Client::raise_barrier_as`].
    pub async fn raise_barrier(&self, matching: &Match) -> Result<BarrierStatus, ClientError> {
        self.raise_barrier_as(fresh_id(), matching).await
    }

    /// Raises a barrier with an id that the caller has chosen ([`fresh_id`]). So the caller can release it
    /// even if the answer is lost.
    ///
    /// # Errors
    /// 409 when the id was used before.
    pub async fn raise_barrier_as(&self, id: u64, matching: &Match) -> Result<BarrierStatus, ClientError> {
        self.exchange(Method::PUT, &["barriers", &id.to_string()], matching).await
    }

    /// A barrier and the calls that wait at it.
    ///
    /// # Errors
    /// 404 when it was released or never existed.
    pub async fn barrier(&self, id: u64) -> Result<BarrierStatus, ClientError> {
        self.read(Method::GET, &["barriers", &id.to_string()]).await
    }

    /// All current barriers.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn barriers(&self) -> Result<Vec<BarrierStatus>, ClientError> {
        self.read(Method::GET, &["barriers"]).await
    }

    /// Removes a barrier and lets its calls continue; returns its state at that moment.
    ///
    /// # Errors
    /// 404 when it was released before or never existed.
    pub async fn release_barrier(&self, id: u64) -> Result<BarrierStatus, ClientError> {
        self.read(Method::POST, &["barriers", &id.to_string(), "release"]).await
    }

    /// Removes all barriers and lets their calls continue.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn release_barriers(&self) -> Result<(), ClientError> {
        self.write(Method::DELETE, &["barriers"], None::<&()>).await
    }

    /// Journal entries with a number above `after`. Answers as soon as there is one. Otherwise it waits as
    /// long as `wait` says, at most 30 s, and then returns an empty list.
    ///
    /// # Errors
    /// 410 when entries above `after` are not kept any more.
    pub async fn journal(&self, after: u64, wait: Duration) -> Result<Vec<Entry>, ClientError> {
        let wait = wait.min(LONGEST_POLL);
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let request =
            self.request(Method::GET, &["journal"]).query(&[("after", after), ("wait_ms", wait_ms)]);
        let page: JournalPage = self.parse(self.send(request, LIMIT + wait).await?)?;
        Ok(page.entries)
    }

    /// The current settings, with all fields set.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn settings(&self) -> Result<Settings, ClientError> {
        self.read(Method::GET, &["settings"]).await
    }

    /// Changes the given settings and returns all of them.
    ///
    /// # Errors
    /// 422 when the page size is 0.
    pub async fn set_settings(&self, settings: &Settings) -> Result<Settings, ClientError> {
        self.exchange(Method::PUT, &["settings"], settings).await
    }

    /// Accepts a token under a name, or gives the name a new token.
    ///
    /// # Errors
    /// 409 when another name has that token, 422 when it could never be sent.
    pub async fn put_credential(&self, credential: &Credential) -> Result<(), ClientError> {
        self.write(Method::PUT, &["credentials"], Some(credential)).await
    }

    /// Removes a credential.
    ///
    /// # Errors
    /// 404 when there is none with that name.
    pub async fn delete_credential(&self, name: &str) -> Result<(), ClientError> {
        self.write(Method::DELETE, &["credentials", name], None::<&()>).await
    }

    /// Empties the cloud, ends all faults, releases all barriers and resets all settings. Credentials and the
    /// journal stay.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub async fn reset(&self) -> Result<(), ClientError> {
        self.write(Method::POST, &["reset"], None::<&()>).await
    }
}
