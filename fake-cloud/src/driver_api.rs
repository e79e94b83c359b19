//! The server side of the driver API: paths, the token, and access to the state.

use crate::server::{Shared, State as CloudState, Tls};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post, put};
use fake_cloud_driver::{
    ActiveFault, Capabilities, Credential, DriverFacility, Effect, Fault, Instance, InstanceIds, Inventory,
    LoadBalancer, ObjectKind, PROTOCOL, Route, Settings,
};
use fake_cloud_model::{Dependents, Refusal};
use fake_cloud_recording::barriers::Barriers;
use fake_cloud_recording::credentials::Secret;
use fake_cloud_recording::faults::Faults;
use fake_cloud_recording::journal::Journal;
use fake_cloud_recording::recorded::{self, DONE, Done, ErrorReply, Recorded, Reply, parse};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The largest body in bytes: an inventory of a very large cloud.
const BODY_LIMIT_BYTES: usize = 64 << 20;

type Cloud = State<Arc<Shared>>;

/// All paths.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let api = Router::new()
        .route("/capabilities", get(capabilities))
        .route("/instances", post(put_instances))
        .route("/instances/{id}", get(get_instance).put(put_instance).delete(delete_instance))
        .route("/inventory", get(inventory).put(restore))
        .route("/load-balancers/{id}", put(put_load_balancer).delete(delete_load_balancer))
        .route("/routes", post(post_route))
        .route("/routes/{id}", put(put_route).delete(delete_route))
        .route("/settings", get(settings).put(set_settings))
        .route("/credentials", put(put_credential))
        .route("/credentials/{name}", delete(delete_credential))
        .route("/reset", post(reset))
        .merge(recorded::router())
        .layer(axum::middleware::from_fn_with_state(shared.clone(), recorded::authorize));
    Router::new()
        .nest("/driver/v1", api)
        .fallback(async || ErrorReply::not_found("the driver API has no such path"))
        .method_not_allowed_fallback(async || {
            ErrorReply::new(StatusCode::METHOD_NOT_ALLOWED, "the driver API's path has no such method")
        })
        .layer(DefaultBodyLimit::max(BODY_LIMIT_BYTES))
        .with_state(shared)
}

/// Serves the driver API until it is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router) {
    // It never ends by itself: an error of a connection only ends that connection.
    let _ = axum::serve(listener, router).await;
}

/// The answer of the driver API when the model rejects something.
fn refused(refusal: Refusal) -> ErrorReply {
    match refusal {
        Refusal::NotFound(_) => ErrorReply::not_found(refusal),
        Refusal::Conflict(_) => ErrorReply::new(StatusCode::CONFLICT, refusal),
        Refusal::Invalid(_) => ErrorReply::invalid(refusal),
    }
}

fn same_id(kind: ObjectKind, path: &str, body: &str) -> Result<(), ErrorReply> {
    if path == body {
        return Ok(());
    }
    Err(ErrorReply::invalid(format!("the path says {kind} {path:.80}, the body {body:.80}")))
}

impl Recorded for Shared {
    fn token(&self) -> &Secret {
        &self.driver_token
    }

    fn faults<T>(&self, access: impl FnOnce(&mut Faults, Duration) -> T) -> T {
        change(self, |state, now| access(&mut state.faults, now))
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

    async fn inject(&self, id: u64, fault: Fault) -> Result<ActiveFault, ErrorReply> {
        if matches!(fault.effect, Effect::FailAction { .. }) && !self.info.shown.actions {
            let dialect = self.info.name;
            return Err(ErrorReply::invalid(format!("dialect {dialect} has no actions that could fail")));
        }
        Ok(change(self, |state, now| {
            let CloudState { cloud, faults, .. } = state;
            faults.inject(id, fault, now, || cloud.inventory(now))
        })?)
    }
}

/// Changes the state at the current time.
fn change<T>(shared: &Shared, change: impl FnOnce(&mut CloudState, Duration) -> T) -> T {
    let mut state = shared.state();
    change(&mut state, shared.now())
}

/// The same for a change that the model may reject.
fn try_change<T>(
    shared: &Shared,
    attempt: impl FnOnce(&mut CloudState, Duration) -> Result<T, Refusal>,
) -> Result<T, ErrorReply> {
    change(shared, attempt).map_err(refused)
}

async fn capabilities(State(shared): Cloud) -> axum::Json<Capabilities> {
    axum::Json(Capabilities {
        protocol: PROTOCOL,
        name: format!("fake-cloud ({})", shared.info.name),
        machines: true,
        facilities: DriverFacility::ALL.iter().copied().collect(),
        ids: shared.info.instance_ids,
        shows: shared.info.shown,
        endpoint: Some(format!("http://{}", shared.places.cloud)),
        metadata: shared.places.metadata.map(|address| format!("http://{address}")),
        ca: shared.tls.as_ref().map(Tls::ca),
    })
}

async fn get_instance(State(shared): Cloud, Path(id): Path<String>) -> Reply<Instance> {
    Ok(axum::Json(try_change(&shared, |state, _| state.cloud.instance(&id).cloned())?))
}

/// Checks that the dialect supports an instance with this id.
fn check_instance_id(shared: &Shared, id: &str) -> Result<(), ErrorReply> {
    if shared.info.instance_ids.allow(id) {
        return Ok(());
    }
    let dialect = shared.info.name;
    let form = match shared.info.instance_ids {
        InstanceIds::Text | InstanceIds::Name => "a text that can stand in a path",
        InstanceIds::Number => "a number from 1 to 2^53 - 1, written plainly",
        InstanceIds::Uuid | InstanceIds::UuidSwapped => "a UUID in small letters",
    };
    Err(ErrorReply::invalid(format!("instance id '{id:.80}': in dialect {dialect} an id is {form}")))
}

async fn put_instance(State(shared): Cloud, Path(id): Path<String>, body: Bytes) -> Done {
    let instance: Instance = parse(&body)?;
    same_id(ObjectKind::Instance, &id, &instance.id)?;
    check_instance_id(&shared, &id)?;
    try_change(&shared, |state, _| state.cloud.put_instance(instance))?;
    DONE
}

async fn put_instances(State(shared): Cloud, body: Bytes) -> Done {
    let instances: Vec<Instance> = parse(&body)?;
    instances.iter().try_for_each(|instance| check_instance_id(&shared, &instance.id))?;
    try_change(&shared, |state, _| state.cloud.put_instances(instances))?;
    DONE
}

async fn delete_instance(State(shared): Cloud, Path(id): Path<String>) -> Done {
    try_change(&shared, |state, _| state.cloud.delete_instance(&id))?;
    DONE
}

async fn inventory(State(shared): Cloud) -> axum::Json<Inventory> {
    axum::Json(change(&shared, |state, now| state.cloud.inventory(now)))
}

async fn restore(State(shared): Cloud, body: Bytes) -> Done {
    let inventory: Inventory = parse(&body)?;
    inventory.instances.iter().try_for_each(|instance| check_instance_id(&shared, &instance.id))?;
    try_change(&shared, |state, now| state.cloud.restore(inventory, now))?;
    DONE
}

async fn put_load_balancer(State(shared): Cloud, Path(id): Path<String>, body: Bytes) -> Done {
    let lb: LoadBalancer = parse(&body)?;
    same_id(ObjectKind::LoadBalancer, &id, &lb.id)?;
    try_change(&shared, |state, _| state.cloud.put_load_balancer(lb))?;
    DONE
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cascade {
    #[serde(default)]
    cascade: bool,
}

async fn delete_load_balancer(
    State(shared): Cloud,
    Path(id): Path<String>,
    query: Result<Query<Cascade>, axum::extract::rejection::QueryRejection>,
) -> Done {
    let Query(Cascade { cascade }) = query.map_err(|error| ErrorReply::invalid(error.body_text()))?;
    let dependents = if cascade { Dependents::Remove } else { Dependents::Keep };
    try_change(&shared, |state, now| state.cloud.remove_load_balancer(&id, dependents, now))?;
    DONE
}

async fn post_route(State(shared): Cloud, body: Bytes) -> Reply<Route> {
    let route: Route = parse(&body)?;
    Ok(axum::Json(try_change(&shared, |state, _| state.cloud.put_route(route))?))
}

async fn put_route(State(shared): Cloud, Path(id): Path<String>, body: Bytes) -> Reply<Route> {
    let route: Route = parse(&body)?;
    same_id(ObjectKind::Route, &id, &route.id)?;
    Ok(axum::Json(try_change(&shared, |state, _| state.cloud.put_route(route))?))
}

async fn delete_route(State(shared): Cloud, Path(id): Path<String>) -> Done {
    try_change(&shared, |state, _| state.cloud.delete_route(&id))?;
    DONE
}

async fn settings(State(shared): Cloud) -> axum::Json<Settings> {
    axum::Json(change(&shared, |state, _| state.cloud.settings()))
}

async fn set_settings(State(shared): Cloud, body: Bytes) -> Reply<Settings> {
    let settings: Settings = parse(&body)?;
    let set =
        try_change(&shared, |state, now| state.cloud.set(&settings, now).map(|()| state.cloud.settings()));
    Ok(axum::Json(set?))
}

async fn put_credential(State(shared): Cloud, body: Bytes) -> Done {
    let credential: Credential =
        // The parser's message could repeat a token.
        serde_json::from_slice(&body).map_err(|_| ErrorReply::invalid("the body is not {\"name\":..., \"token\":...}"))?;
    change(&shared, |state, _| state.credentials.put(credential))?;
    DONE
}

async fn delete_credential(State(shared): Cloud, Path(name): Path<String>) -> Done {
    if change(&shared, |state, _| state.credentials.remove(&name)) {
        return DONE;
    }
    Err(ErrorReply::not_found(format!("credential {name:.80} does not exist")))
}

async fn reset(State(shared): Cloud) -> Done {
    change(&shared, |state, _| {
        state.cloud.reset();
        state.faults.clear_all();
        state.barriers.release_all();
    });
    DONE
}
