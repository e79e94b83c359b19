//! The driver API of a proxy: its own journal, faults and barriers, and everything else from the driver of the cloud
//! behind it, so that clients of a driver can use a proxy instead.

use crate::body::full;
use crate::shared::{Behind, Shared};
use crate::upstream::UpstreamError;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fake_cloud_driver::{
    ActiveFault, Capabilities, Credential, DriverFacility, Effect, Fault, Instance, InstanceIds, Inventory,
    LoadBalancer, ObjectKind, PROTOCOL, Route, Shown,
};
use fake_cloud_recording::barriers::Barriers;
use fake_cloud_recording::credentials::Secret;
use fake_cloud_recording::faults::{FaultError, Faults};
use fake_cloud_recording::journal::Journal;
use fake_cloud_recording::recorded::{self, ErrorReply, Recorded, Reply};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Maximum size of a body, in bytes: an inventory of a very large cloud.
const BODY_LIMIT_BYTES: usize = 64 << 20;
/// Time limit for the driver.
const LIMIT: Duration = Duration::from_secs(10);

type Own = State<Arc<Shared>>;

/// All paths.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let api = Router::new()
        .route("/capabilities", get(capabilities))
        .merge(recorded::router())
        .fallback(hand_on)
        .layer(axum::middleware::from_fn_with_state(shared.clone(), recorded::authorize));
    Router::new().nest("/driver/v1", api).layer(DefaultBodyLimit::max(BODY_LIMIT_BYTES)).with_state(shared)
}

/// Serves the driver API until it is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router) {
    // It never ends by itself: errors of connections only affect those.
    let _ = axum::serve(listener, router).await;
}

/// How much of an invalid answer is shown, in characters.
const SHOWN: usize = 200;

/// The answer of a driver.
struct Answered {
    status: StatusCode,
    body: Bytes,
}

impl Answered {
    /// The error text for an unsuccessful answer.
    fn refusal(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        format!("it answered {}: {}", self.status, text.chars().take(SHOWN).collect::<String>())
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        if !self.status.is_success() {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.body).map_err(|error| format!("its answer is invalid: {error}"))
    }
}

impl Behind {
    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Answered, UpstreamError> {
        let nonsense = |why: String| UpstreamError::Nonsense { url: self.api.url(), why };
        let target: Uri = path.parse().map_err(|_| nonsense(format!("{path} is not a path")))?;
        let uri = self.api.uri(&target).map_err(|error| nonsense(error.to_string()))?;
        let mut request = http::Request::builder().method(method).uri(uri);
        if let Ok(token) = HeaderValue::from_str(&format!("Bearer {}", self.token.reveal())) {
            request = request.header(header::AUTHORIZATION, token);
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(full(body)).map_err(|error| nonsense(error.to_string()))?;
        let asked = async {
            let answer = self.api.call(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), BODY_LIMIT_BYTES).collect().await;
            let body =
                body.map_err(|error| UpstreamError::Broken { url: self.api.url(), why: error.to_string() })?;
            Ok(Answered { status, body: body.to_bytes() })
        };
        let slow = || UpstreamError::Slow { url: self.api.url(), limit: LIMIT };
        tokio::time::timeout(LIMIT, asked).await.unwrap_or_else(|_| Err(slow()))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let answered = self.ask(Method::GET, path, Bytes::new()).await.map_err(|error| error.to_string())?;
        answered.read()
    }

    /// Deletes something; returns whether it existed.
    async fn remove(&self, path: &str) -> Result<bool, String> {
        let answered =
            self.ask(Method::DELETE, path, Bytes::new()).await.map_err(|error| error.to_string())?;
        match answered.status {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(answered.refusal()),
        }
    }

    /// Everything in the cloud.
    pub(crate) async fn inventory(&self) -> Result<Inventory, String> {
        self.get("/driver/v1/inventory").await
    }

    /// Its facilities.
    pub(crate) async fn capabilities(&self) -> Result<Capabilities, String> {
        self.get("/driver/v1/capabilities").await
    }
}

fn unreachable(why: impl ToString) -> ErrorReply {
    ErrorReply::new(StatusCode::BAD_GATEWAY, why)
}

async fn capabilities(State(shared): Own) -> Reply<Capabilities> {
    let mut can = match &shared.behind {
        Some(behind) => behind.capabilities().await.map_err(unreachable)?,
        None => Capabilities {
            protocol: PROTOCOL,
            name: "recording proxy".to_owned(),
            machines: false,
            facilities: Default::default(),
            ids: InstanceIds::Text,
            shows: Shown::PLAIN,
            endpoint: None,
            metadata: None,
            ca: None,
        },
    };
    if shared.behind.is_some() {
        can.name.push_str(" behind the recording proxy");
        // Changes of the cloud's own behaviour are faults that the driver must support.
        if !can.facilities.contains(&DriverFacility::Faults) {
            can.facilities.remove(&DriverFacility::Settings);
        }
    }
    can.facilities.extend([DriverFacility::Journal, DriverFacility::Faults, DriverFacility::Barriers]);
    can.endpoint = Some(shared.endpoint.clone());
    Ok(axum::Json(can))
}

impl Recorded for Shared {
    fn token(&self) -> &Secret {
        &self.token
    }

    fn faults<T>(&self, access: impl FnOnce(&mut Faults, Duration) -> T) -> T {
        access(&mut self.state().faults, self.now())
    }

    fn barriers<T>(&self, access: impl FnOnce(&mut Barriers) -> T) -> T {
        access(&mut self.state().barriers)
    }

    fn journal<T>(&self, access: impl FnOnce(&Journal) -> T) -> T {
        access(&self.state().journal)
    }

    fn arrivals(&self) -> &Notify {
        &self.arrivals
    }

    /// Faults on the way of a call are the proxy's; faults of the cloud itself are its driver's, if it supports them.
    async fn inject(&self, id: u64, fault: Fault) -> Result<ActiveFault, ErrorReply> {
        match fault.effect {
            Effect::Status { .. }
            | Effect::Malformed
            | Effect::Refuse
            | Effect::Hang { .. }
            | Effect::Latency { .. }
            | Effect::LoseAnswer { .. } => {
                let mut state = self.state();
                Ok(state.faults.inject(id, fault, self.now(), Inventory::default)?)
            }
            Effect::SlowProvisioning { .. }
            | Effect::SlowDeletion { .. }
            | Effect::Empty
            | Effect::Without { .. }
            | Effect::Stale
            | Effect::EmptyFirstPage
            | Effect::ShiftedPages
            | Effect::FailAction { .. } => {
                let lacks = || {
                    ErrorReply::invalid(
                        "the proxy cannot inject this fault, and the cloud's driver does not support faults",
                    )
                };
                let behind = self.behind.as_ref().ok_or_else(lacks)?;
                let can = behind.capabilities().await.map_err(unreachable)?;
                if !can.facilities.contains(&DriverFacility::Faults) {
                    return Err(lacks());
                }
                let body = serde_json::to_vec(&fault).map_err(ErrorReply::invalid)?;
                {
                    // Recorded before the request to the driver: the fault must be cleared however this ends.
                    let mut state = self.state();
                    state.faults.is_free(id).map_err(FaultError::Taken)?;
                    state.handed_on.insert(id);
                }
                let asked = behind.ask(Method::PUT, &of_the_driver(id), body.into()).await;
                let answered = asked.map_err(unreachable)?;
                answered.read().map_err(|why| match answered.status {
                    StatusCode::CONFLICT => ErrorReply::new(StatusCode::CONFLICT, why),
                    _ => ErrorReply::invalid(why),
                })
            }
        }
    }

    async fn fault(&self, id: u64) -> Result<Option<ActiveFault>, ErrorReply> {
        let Some(behind) = self.behind_fault(id) else {
            return Ok(self.faults(|faults, now| faults.find(id, now)));
        };
        let asked = behind.ask(Method::GET, &of_the_driver(id), Bytes::new()).await;
        match asked.map_err(unreachable)? {
            Answered { status: StatusCode::NOT_FOUND, .. } => Ok(None),
            answered => Ok(Some(answered.read().map_err(unreachable)?)),
        }
    }

    async fn clear(&self, id: u64) -> Result<bool, ErrorReply> {
        let (own, behind) = (self.faults(|faults, _| faults.clear(id)), self.behind_fault(id));
        let Some(behind) = behind else { return Ok(own) };
        let was_there = behind.remove(&of_the_driver(id)).await.map_err(unreachable)?;
        self.state().handed_on.remove(&id);
        Ok(was_there)
    }

    async fn clear_all(&self) -> Result<(), ErrorReply> {
        self.faults(|faults, _| faults.clear_all());
        let Some(behind) = &self.behind else { return Ok(()) };
        let can = behind.capabilities().await.map_err(unreachable)?;
        if can.facilities.contains(&DriverFacility::Faults) {
            behind.remove("/driver/v1/faults").await.map_err(unreachable)?;
            self.state().handed_on.clear();
        }
        Ok(())
    }
}

impl Shared {
    /// The driver, if it owns the fault with that id.
    fn behind_fault(&self, id: u64) -> Option<&Behind> {
        let is_its_own = self.state().handed_on.contains(&id);
        self.behind.as_ref().filter(|_| is_its_own)
    }
}

/// Whether the driver owns a fault.
fn of_the_driver(id: u64) -> String {
    format!("/driver/v1/faults/{id}")
}

/// Queries the driver for what is not the proxy's, and records the names of the cloud's objects.
async fn hand_on(State(shared): Own, method: Method, uri: Uri, body: Bytes) -> Result<Response, ErrorReply> {
    let Some(behind) = &shared.behind else {
        return Err(ErrorReply::not_found("this proxy has no driver for the cloud behind it"));
    };
    let path = uri.path_and_query().map_or("/", |target| target.as_str());
    let since = shared.state().book.heard();
    let answered = behind.ask(method.clone(), &format!("/driver/v1{path}"), body.clone()).await;
    let answered = answered.map_err(unreachable)?;
    if answered.status.is_success() {
        note(&shared, &method, uri.path(), &body, &answered, since);
    }
    let mut answer = (answered.status, answered.body).into_response();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}

/// `since` is the position of the book when the driver was queried.
fn note(shared: &Shared, method: &Method, path: &str, body: &Bytes, answered: &Answered, since: u64) {
    let mut state = shared.state();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (method, parts.as_slice()) {
        (&Method::GET, ["inventory"]) => {
            if let Ok(inventory) = answered.read::<Inventory>() {
                state.book.replace(&inventory, &[], since);
            }
        }
        (&Method::POST, ["instances"]) => {
            let given: Result<Vec<Instance>, _> = serde_json::from_slice(body);
            state.book.put_instances(&given.unwrap_or_default());
        }
        (&Method::PUT, ["instances", _]) => {
            let given: Result<Instance, _> = serde_json::from_slice(body);
            state.book.put_instances(given.ok().as_slice());
        }
        (&Method::DELETE, ["instances", id]) => state.book.remove(ObjectKind::Instance, id),
        (&Method::DELETE, ["load-balancers", id]) => state.book.remove(ObjectKind::LoadBalancer, id),
        (&Method::DELETE, ["routes", id]) => state.book.remove(ObjectKind::Route, id),
        (&Method::PUT, ["load-balancers", _]) => {
            let given: Result<LoadBalancer, _> = serde_json::from_slice(body);
            given.iter().for_each(|lb| state.book.put_load_balancer(lb));
        }
        (&Method::POST | &Method::PUT, ["routes", ..]) => {
            answered.read::<Route>().iter().for_each(|route| state.book.put_route(route));
        }
        (&Method::PUT, ["credentials"]) => {
            if let Ok(credential) = serde_json::from_slice::<Credential>(body) {
                // Only to keep it out of the journal; the driver decides whether to refuse it.
                let _ = state.credentials.put(credential);
            }
        }
        (&Method::POST, ["reset"]) => {
            state.faults.clear_all();
            state.barriers.release_all();
            state.book.clear();
        }
        (&Method::GET, _) => {}
        _ => state.book.is_changed(),
    }
}
