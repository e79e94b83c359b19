//! The admin API over HTTP; the table in the crate's README lists its calls.

use super::types::{BarrierStatus, Credential, Fault, Instance, Inventory, LoadBalancer, Match, Route, Settings};
use crate::cloud::Cloud;
use crate::model::Refusal;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Longest long poll of the journal.
const LONGEST_POLL: Duration = Duration::from_secs(30);

type Shared = State<Arc<Cloud>>;

/// The admin API of a cloud.
pub(crate) fn router(cloud: Arc<Cloud>, token: String) -> Router {
    let guarded = Router::new()
        .route("/instances", post(put_instances))
        .route("/instances/{id}", get(get_instance).put(put_instance).delete(delete_instance))
        .route("/inventory", get(inventory).put(restore))
        .route("/load-balancers/{id}", put(put_load_balancer).delete(delete_load_balancer))
        .route("/routes/{id}", put(put_route).delete(delete_route))
        .route("/faults", get(faults).post(inject).delete(clear_faults))
        .route("/faults/{id}", get(fault).delete(clear_fault))
        .route("/barriers", get(barriers).post(raise).delete(release_all))
        .route("/barriers/{id}", get(barrier))
        .route("/barriers/{id}/release", post(release))
        .route("/journal", get(journal))
        .route("/settings", get(settings).put(set_settings))
        .route("/credentials", put(put_credential))
        .route("/credentials/{name}", axum::routing::delete(delete_credential))
        .route("/reset", post(reset))
        .layer(from_fn_with_state(Arc::<str>::from(token), guard))
        .layer(DefaultBodyLimit::max(64 << 20));
    Router::new().nest("/admin/v1", guarded.route("/health", get(health))).with_state(cloud)
}

async fn guard(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let presented = request.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let presented = presented.and_then(|v| v.strip_prefix("Bearer ")).unwrap_or_default();
    if !same(presented.as_bytes(), token.as_bytes()) {
        return problem(StatusCode::UNAUTHORIZED, "the admin token is missing or wrong");
    }
    next.run(request).await
}

/// Compares in a time that tells nothing but the length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

fn problem(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"error": message}))).into_response()
}

fn absent(what: &str) -> Response {
    problem(StatusCode::NOT_FOUND, &format!("{what} does not exist"))
}

fn done(outcome: Result<(), Refusal>) -> Response {
    match outcome {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => refused(&refusal),
    }
}

fn refused(refusal: &Refusal) -> Response {
    let status = match refusal {
        Refusal::NotFound(_) => StatusCode::NOT_FOUND,
        Refusal::Conflict(_) => StatusCode::CONFLICT,
        Refusal::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    problem(status, &refusal.to_string())
}

async fn health(State(cloud): Shared) -> Json<serde_json::Value> {
    Json(json!({"status": "ok", "dialect": cloud.dialect.name(), "version": env!("CARGO_PKG_VERSION")}))
}

async fn put_instances(State(cloud): Shared, Json(list): Json<Vec<Instance>>) -> Response {
    let mut state = cloud.lock();
    done(list.into_iter().try_for_each(|instance| state.model.put_instance(instance)))
}

async fn get_instance(State(cloud): Shared, Path(id): Path<String>) -> Response {
    match cloud.lock().model.instance(&id) {
        Ok(instance) => Json(instance.clone()).into_response(),
        Err(refusal) => refused(&refusal),
    }
}

async fn put_instance(State(cloud): Shared, Path(id): Path<String>, Json(instance): Json<Instance>) -> Response {
    if instance.id != id {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "the id in the body is not the one in the path");
    }
    done(cloud.lock().model.put_instance(instance))
}

async fn delete_instance(State(cloud): Shared, Path(id): Path<String>) -> Response {
    done(cloud.lock().model.delete_instance(&id))
}

async fn inventory(State(cloud): Shared) -> Json<Inventory> {
    let now = cloud.now();
    Json(cloud.lock().model.inventory(now))
}

async fn restore(State(cloud): Shared, Json(inventory): Json<Inventory>) -> Response {
    let now = cloud.now();
    cloud.lock().model.restore(inventory, now);
    StatusCode::NO_CONTENT.into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cascade {
    #[serde(default)]
    cascade: bool,
}

async fn put_load_balancer(State(cloud): Shared, Path(id): Path<String>, Json(lb): Json<LoadBalancer>) -> Response {
    if lb.id != id {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "the id in the body is not the one in the path");
    }
    let now = cloud.now();
    cloud.lock().model.force_load_balancer(lb, now);
    StatusCode::NO_CONTENT.into_response()
}

async fn delete_load_balancer(State(cloud): Shared, Path(id): Path<String>, Query(how): Query<Cascade>) -> Response {
    done(cloud.lock().model.erase_load_balancer(&id, how.cascade))
}

async fn put_route(State(cloud): Shared, Path(id): Path<String>, Json(route): Json<Route>) -> Response {
    if route.id != id {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "the id in the body is not the one in the path");
    }
    cloud.lock().model.force_route(route);
    StatusCode::NO_CONTENT.into_response()
}

async fn delete_route(State(cloud): Shared, Path(id): Path<String>) -> Response {
    done(cloud.lock().model.delete_route(&id))
}

async fn faults(State(cloud): Shared) -> Response {
    let now = cloud.now();
    Json(cloud.lock().faults.list(now)).into_response()
}

async fn inject(State(cloud): Shared, Json(fault): Json<Fault>) -> Response {
    if let super::types::Effect::Status { status, .. } = fault.effect {
        if !(400..600).contains(&status) {
            return problem(StatusCode::UNPROCESSABLE_ENTITY, "a fault's status is 400 to 599");
        }
    }
    let now = cloud.now();
    (StatusCode::CREATED, Json(cloud.lock().faults.inject(fault, now))).into_response()
}

async fn fault(State(cloud): Shared, Path(id): Path<u64>) -> Response {
    let found = cloud.lock().faults.find(id);
    found.map_or_else(|| absent(&format!("fault {id}")), |fault| Json(fault).into_response())
}

async fn clear_fault(State(cloud): Shared, Path(id): Path<u64>) -> Response {
    if cloud.lock().faults.clear(id) { StatusCode::NO_CONTENT.into_response() } else { absent(&format!("fault {id}")) }
}

async fn clear_faults(State(cloud): Shared) -> StatusCode {
    cloud.lock().faults.clear_all();
    StatusCode::NO_CONTENT
}

async fn barriers(State(cloud): Shared) -> Json<Vec<BarrierStatus>> {
    Json(cloud.lock().barriers.list())
}

async fn raise(State(cloud): Shared, Json(matching): Json<Match>) -> Response {
    (StatusCode::CREATED, Json(cloud.lock().barriers.raise(matching))).into_response()
}

async fn barrier(State(cloud): Shared, Path(id): Path<u64>) -> Response {
    let found = cloud.lock().barriers.find(id);
    found.map_or_else(|| absent(&format!("barrier {id}")), |status| Json(status).into_response())
}

async fn release(State(cloud): Shared, Path(id): Path<u64>) -> Response {
    let released = cloud.lock().barriers.release(id);
    released.map_or_else(|| absent(&format!("barrier {id}")), |status| Json(status).into_response())
}

async fn release_all(State(cloud): Shared) -> StatusCode {
    cloud.lock().barriers.release_all();
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reading {
    #[serde(default)]
    after: u64,
    #[serde(default = "Reading::most")]
    limit: usize,
    #[serde(default)]
    wait_ms: u64,
}

impl Reading {
    fn most() -> usize {
        10_000
    }
}

async fn journal(State(cloud): Shared, Query(reading): Query<Reading>) -> Response {
    let mut arrivals = cloud.lock().journal.arrivals();
    let mut entries = cloud.lock().journal.after(reading.after, reading.limit);
    if entries.is_empty() && reading.wait_ms > 0 {
        let wait = Duration::from_millis(reading.wait_ms).min(LONGEST_POLL);
        // Whether it came true or the time is up: what is there then is the answer.
        let _ = tokio::time::timeout(wait, arrivals.wait_for(|seq| *seq > reading.after)).await;
        entries = cloud.lock().journal.after(reading.after, reading.limit);
    }
    let dropped = cloud.lock().journal.dropped();
    ([("x-dropped-entries", dropped.to_string())], Json(entries)).into_response()
}

async fn settings(State(cloud): Shared) -> Json<Settings> {
    Json(cloud.lock().model.set(&Settings::default()))
}

async fn set_settings(State(cloud): Shared, Json(settings): Json<Settings>) -> Json<Settings> {
    Json(cloud.lock().model.set(&settings))
}

async fn put_credential(State(cloud): Shared, Json(credential): Json<Credential>) -> Response {
    if credential.name.is_empty() || credential.token.is_empty() {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "a credential needs a name and a token");
    }
    cloud.lock().put_credential(credential);
    StatusCode::NO_CONTENT.into_response()
}

async fn delete_credential(State(cloud): Shared, Path(name): Path<String>) -> Response {
    if cloud.lock().delete_credential(&name) {
        StatusCode::NO_CONTENT.into_response()
    } else {
        absent(&format!("credential {name}"))
    }
}

async fn reset(State(cloud): Shared) -> StatusCode {
    let now = cloud.now();
    let mut state = cloud.lock();
    state.faults.clear_all();
    state.barriers.release_all();
    state.model.reset(now);
    StatusCode::NO_CONTENT
}
