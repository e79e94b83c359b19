//! The part of the driver API that reports and disturbs calls: journal, faults, barriers. It is served by
//! each program that records calls: the fake cloud, and a proxy in front of another cloud.

use crate::barriers::Barriers;
use crate::credentials::{CredentialError, Secret};
use crate::faults::{FaultError, Faults};
use crate::journal::{Dropped, Journal};
use crate::used_ids::Taken;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use fake_cloud_driver::{ActiveFault, BarrierStatus, Fault, Match};
use fake_cloud_driver::{JournalPage, Problem};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The longest long poll in milliseconds.
const LONGEST_POLL_MS: u64 = 30_000;

/// A program that records calls. Each access is short: nothing waits in it.
pub trait Recorded: Send + Sync + 'static {
    /// The token that clients of the driver API need.
    fn token(&self) -> &Secret;

    /// The faults, and the time since the start.
    fn faults<T>(&self, access: impl FnOnce(&mut Faults, Duration) -> T) -> T;

    /// The barriers.
    fn barriers<T>(&self, access: impl FnOnce(&mut Barriers) -> T) -> T;

    /// The journal.
    fn journal<T>(&self, access: impl FnOnce(&Journal) -> T) -> T;

    /// Notifies when a call has arrived.
    fn arrivals(&self) -> &Notify;

    /// Activates a fault.
    fn inject(&self, id: u64, fault: Fault) -> impl Future<Output = Result<ActiveFault, ErrorReply>> + Send;

    /// A fault that was not cleared.
    fn fault(&self, id: u64) -> impl Future<Output = Result<Option<ActiveFault>, ErrorReply>> + Send {
        ready(Ok(self.faults(|faults, now| faults.find(id, now))))
    }

    /// Ends all faults.
    fn clear_all(&self) -> impl Future<Output = Result<(), ErrorReply>> + Send {
        self.faults(|faults, _| faults.clear_all());
        ready(Ok(()))
    }

    /// Ends a fault; returns whether there was one.
    fn clear(&self, id: u64) -> impl Future<Output = Result<bool, ErrorReply>> + Send {
        ready(Ok(self.faults(|faults, _| faults.clear(id))))
    }
}

/// The routes, below `/driver/v1`.
pub fn router<R: Recorded>() -> Router<Arc<R>> {
    Router::new()
        .route("/faults", get(faults::<R>).delete(clear_faults::<R>))
        .route("/faults/{id}", get(fault::<R>).put(inject::<R>).delete(clear_fault::<R>))
        .route("/barriers", get(barriers::<R>).delete(release_all::<R>))
        .route("/barriers/{id}", get(barrier::<R>).put(raise_barrier::<R>))
        .route("/barriers/{id}/release", post(release::<R>))
        .route("/journal", get(journal::<R>))
}

/// An error of the driver API.
#[derive(Debug)]
pub struct ErrorReply(StatusCode, String);

/// The result of a call of the driver API.
pub type Reply<T> = Result<axum::Json<T>, ErrorReply>;
/// The result of a call of the driver API without content.
pub type Done = Result<StatusCode, ErrorReply>;

/// The answer of a call without content.
pub const DONE: Done = Ok(StatusCode::NO_CONTENT);

impl ErrorReply {
    /// An error with this status and text.
    pub fn new(status: StatusCode, text: impl ToString) -> ErrorReply {
        ErrorReply(status, text.to_string())
    }

    /// The error for a missing object.
    pub fn not_found(text: impl ToString) -> ErrorReply {
        ErrorReply::new(StatusCode::NOT_FOUND, text)
    }

    /// The error for an invalid request.
    pub fn invalid(text: impl ToString) -> ErrorReply {
        ErrorReply::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    }
}

impl IntoResponse for ErrorReply {
    fn into_response(self) -> Response {
        (self.0, axum::Json(Problem { error: self.1 })).into_response()
    }
}

impl From<FaultError> for ErrorReply {
    fn from(error: FaultError) -> ErrorReply {
        match error {
            FaultError::Taken(_) => ErrorReply::new(StatusCode::CONFLICT, error),
            FaultError::Status(_) | FaultError::Never(_) => ErrorReply::invalid(error),
        }
    }
}

impl From<Taken> for ErrorReply {
    fn from(taken: Taken) -> ErrorReply {
        ErrorReply::new(StatusCode::CONFLICT, format!("barrier {taken}"))
    }
}

impl From<CredentialError> for ErrorReply {
    fn from(error: CredentialError) -> ErrorReply {
        match error {
            CredentialError::NoName | CredentialError::Unusable(_) => ErrorReply::invalid(error),
            CredentialError::Shared(..) => ErrorReply::new(StatusCode::CONFLICT, error),
        }
    }
}

impl From<Dropped> for ErrorReply {
    fn from(dropped: Dropped) -> ErrorReply {
        ErrorReply::new(StatusCode::GONE, dropped)
    }
}

/// Accepts requests with the token.
///
/// # Errors
/// 401 for all others.
pub async fn authorize<R: Recorded>(
    State(shared): State<Arc<R>>,
    request: Request,
    next: Next,
) -> Result<Response, ErrorReply> {
    let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| value.strip_prefix("Bearer "));
    match token {
        Some(token) if shared.token().is(token) => Ok(next.run(request).await),
        _ => Err(ErrorReply::new(StatusCode::UNAUTHORIZED, "the driver token is missing or wrong")),
    }
}

/// Parses a body.
///
/// # Errors
/// 422 when it has another form.
pub fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ErrorReply> {
    serde_json::from_slice(body)
        .map_err(|error| ErrorReply::invalid(format!("the body is not as expected: {error}")))
}

async fn faults<R: Recorded>(State(shared): State<Arc<R>>) -> axum::Json<Vec<ActiveFault>> {
    axum::Json(shared.faults(|faults, now| faults.all(now)))
}

async fn inject<R: Recorded>(
    State(shared): State<Arc<R>>,
    id: NumberedPath,
    body: Bytes,
) -> Reply<ActiveFault> {
    Ok(axum::Json(shared.inject(number(id)?, parse(&body)?).await?))
}

async fn clear_faults<R: Recorded>(State(shared): State<Arc<R>>) -> Done {
    shared.clear_all().await?;
    DONE
}

async fn fault<R: Recorded>(State(shared): State<Arc<R>>, id: NumberedPath) -> Reply<ActiveFault> {
    let id = number(id)?;
    let found = shared.fault(id).await?;
    found.map(axum::Json).ok_or_else(|| ErrorReply::not_found(format!("fault {id} does not exist")))
}

async fn clear_fault<R: Recorded>(State(shared): State<Arc<R>>, id: NumberedPath) -> Done {
    let id = number(id)?;
    if shared.clear(id).await? {
        return DONE;
    }
    Err(ErrorReply::not_found(format!("fault {id} does not exist")))
}

async fn barriers<R: Recorded>(State(shared): State<Arc<R>>) -> axum::Json<Vec<BarrierStatus>> {
    axum::Json(shared.barriers(|barriers| barriers.all()))
}

async fn raise_barrier<R: Recorded>(
    State(shared): State<Arc<R>>,
    id: NumberedPath,
    body: Bytes,
) -> Reply<BarrierStatus> {
    let (id, matching): (u64, Match) = (number(id)?, parse(&body)?);
    Ok(axum::Json(shared.barriers(|barriers| barriers.raise(id, matching))?))
}

async fn release_all<R: Recorded>(State(shared): State<Arc<R>>) -> Done {
    shared.barriers(Barriers::release_all);
    DONE
}

async fn barrier<R: Recorded>(State(shared): State<Arc<R>>, id: NumberedPath) -> Reply<BarrierStatus> {
    let id = number(id)?;
    let found = shared.barriers(|barriers| barriers.find(id).cloned());
    found.map(axum::Json).ok_or_else(|| ErrorReply::not_found(format!("barrier {id} does not exist")))
}

async fn release<R: Recorded>(State(shared): State<Arc<R>>, id: NumberedPath) -> Reply<BarrierStatus> {
    let id = number(id)?;
    let released = shared.barriers(|barriers| barriers.release(id));
    released.map(axum::Json).ok_or_else(|| ErrorReply::not_found(format!("barrier {id} does not exist")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    wait_ms: u64,
}

async fn journal<R: Recorded>(
    State(shared): State<Arc<R>>,
    query: Result<Query<JournalQuery>, QueryRejection>,
) -> Reply<JournalPage> {
    let Query(query) = query.map_err(|error| ErrorReply::invalid(error.body_text()))?;
    let limit = query.limit.unwrap_or(usize::MAX);
    let wait = Duration::from_millis(query.wait_ms.min(LONGEST_POLL_MS));
    let poll = async {
        loop {
            // Created before the look, so that no arrival in between is missed.
            let arrival = shared.arrivals().notified();
            if shared.journal(Journal::last) > query.after || limit == 0 {
                return;
            }
            arrival.await;
        }
    };
    // A timeout without an arrival is a valid result as well.
    let _ = tokio::time::timeout(wait, poll).await;
    Ok(axum::Json(JournalPage { entries: shared.journal(|journal| journal.after(query.after, limit))? }))
}

type NumberedPath = Result<Path<u64>, PathRejection>;

fn number(path: NumberedPath) -> Result<u64, ErrorReply> {
    path.map(|Path(id)| id).map_err(|_| ErrorReply::not_found("ids of faults and barriers are numbers"))
}
