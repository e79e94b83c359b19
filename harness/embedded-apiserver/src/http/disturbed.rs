//! Requests that meet a fault: they are refused, lost or held, before or after they take effect.

use embedded_objects::status::{self, Status};
use embedded_state::auth::attributes::Attributes;
use embedded_state::{Api, Met, RequestEffect};
use futures::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Collected, StreamBody};

use super::reply::{Body, full};

/// Marks a response that is never sent.
#[derive(Clone, Copy, Debug)]
struct CutOff;

/// What happens to a request before it takes effect. `Some`: this is the answer instead, and it takes no effect.
pub(super) async fn before(
    api: &Api,
    met: Option<&Met>,
    request: &Attributes,
) -> Option<Result<Response<Body>, Status>> {
    let met = met?;
    match met.effect {
        RequestEffect::Refuse { code } => Some(Err(refusal(code, request))),
        RequestEffect::LoseRequest => Some(Ok(cut_off())),
        RequestEffect::HoldRequest => {
            api.request_faults.held(met).await;
            None
        }
        RequestEffect::LoseAnswer | RequestEffect::CutAnswer | RequestEffect::HoldAnswer => None,
    }
}

/// What happens to the answer of a request that has taken effect.
pub(super) async fn after(api: &Api, met: Option<&Met>, answer: Response<Body>) -> Response<Body> {
    match met.map(|met| met.effect) {
        Some(RequestEffect::LoseAnswer) => cut_off(),
        Some(RequestEffect::CutAnswer) => half(answer).await,
        Some(RequestEffect::HoldAnswer) => {
            if let Some(met) = met {
                api.request_faults.held(met).await;
            }
            answer
        }
        _ => answer,
    }
}

/// The first half of an answer that announces all of it: its client finds that the rest is missing. A stream, which has no
/// announced length, is not sent at all.
async fn half(answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    if body.size_hint().exact().is_none() {
        return cut_off();
    }
    let Ok(whole) = body.collect().await.map(Collected::to_bytes);
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let part = Frame::data(whole.slice(..whole.len() / 2));
    // A body of unknown length, or the server would correct the announcement.
    Response::from_parts(head, StreamBody::new(stream::iter([Ok(part)])).boxed_unsync())
}

/// Whether the connection ends instead of this response.
pub(crate) fn is_cut_off(response: &Response<Body>) -> bool {
    response.extensions().get::<CutOff>().is_some()
}

fn cut_off() -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.extensions_mut().insert(CutOff);
    response
}

/// The errors of a real API server that is overloaded or has lost its storage, in its words.
fn refusal(code: u16, request: &Attributes) -> Status {
    match code {
        409 => status::conflict_on(
            &request.group,
            &request.resource,
            &request.name,
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        429 => status::too_many_requests("the server is currently unable to handle the request", 1),
        503 => status::unavailable("the server is currently unable to handle the request"),
        504 => status::timeout("request did not complete within the allotted timeout", 0),
        _ => status::internal("etcdserver: request timed out"),
    }
}
