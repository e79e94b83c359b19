//! One request from its head to its answer. The order is that of a real API server: authenticate,
//! impersonate, authorize, then handle the request.

use std::sync::Arc;

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use http::request::Parts;
use http::{HeaderValue, Request, Response, header};
use jiff::Timestamp;

use super::accept::{self, Form};
use super::call::{self, Call};
use super::disturbed;
use super::held::{held, too_many};
use super::peer::Peer;
use super::reply::{self, Body, Reply};
use super::target::Target;
use super::{authenticate, body};
use embedded_state::audit::Entry;
use embedded_state::auth::attributes::Attributes;
use embedded_state::auth::user::User;
use embedded_state::query::Query;
use embedded_state::{Api, Clock, Share, Use};

/// Answers one request.
pub(crate) async fn handle<B>(api: Arc<Api>, peer: Peer, request: Request<B>) -> Response<Body>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let clock = Clock::now();
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let target = Target::parse(&parts.method, parts.uri.path(), &query);
    let form = form_of(&api, &parts, &target, &query);
    let audit = |user: &User, by: Option<&User>, code: u16, authorized: bool| {
        api.audit.write(Entry { code, authorized, ..entry(&parts, &target, clock.at, user, by) });
    };
    // A rejection before a verb handles the request has the requested form, or otherwise JSON.
    let plain = form.unwrap_or(Form::PLAIN);

    let Some(user) = authenticate::user(&api, &peer, &parts.headers) else {
        audit(&User::default(), None, 401, false);
        return finish(reply::refusal(&status::unauthorized(), plain));
    };
    if !peer.belongs_to(&api.usage, &user) {
        audit(&user, None, 429, false);
        let mut response = finish(too_many());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    // A request of a user who is cut off waits until the network is restored.
    api.reach.admits(&user).await;
    let (user, real) = match authenticate::impersonated(&api, &user, &parts.headers) {
        Ok(None) => (user, None),
        Ok(Some(other)) => (other, Some(user)),
        Err(status) => {
            audit(&user, None, status.code, false);
            return finish(reply::refusal(&status, plain));
        }
    };
    let used = if is_endless(&target.attributes, &query) { Use::Watch } else { Use::Request };
    let Ok(mut share) = peer.take(&api.usage, &user, used) else {
        audit(&user, real.as_ref(), 429, false);
        return finish(too_many());
    };
    let decision = api.authorize(&user, &target.attributes);
    if !decision.is_allowed() {
        let refused = forbidden(&user, &target, decision.reason());
        audit(&user, real.as_ref(), refused.code, false);
        return finish(reply::refusal(&refused, plain));
    }
    let met = api.request_faults.meets(&user, &target.attributes);
    if let Some(answer) = disturbed::before(&api, met.as_ref(), &target.attributes).await {
        let response = answer.unwrap_or_else(|status| reply::refusal(&status, plain));
        audit(&user, real.as_ref(), response.status().as_u16(), true);
        return finish(response);
    }
    let outcome = match body::read(body, &parts.method, &query, share.as_mut()).await {
        Ok(body) => {
            let call = Call {
                api: Arc::clone(&api),
                user: user.clone(),
                method: parts.method.clone(),
                headers: parts.headers.clone(),
                target: target.clone(),
                query,
                form,
                body,
                clock: clock.clone(),
                share: share.as_ref().map(Share::of_bytes),
            };
            crate::verbs::dispatch(call).await
        }
        Err(status) => Err(status),
    };
    // A list is written only if there is room for it, according to its stored size.
    let mut has_room =
        |reply: &Reply| share.as_mut().is_none_or(|share| share.hold(reply.stored_bytes()).is_ok());
    let response = match outcome {
        Ok(reply) if !has_room(&reply) => too_many(),
        Ok(reply) => held(reply.into_response(plain), share),
        Err(status) => held(reply::refusal(&status, plain), share),
    };
    audit(&user, real.as_ref(), response.status().as_u16(), true);
    finish(disturbed::after(&api, met.as_ref(), response).await)
}

/// The requested form of the answer; `None` if the server does not have it.
fn form_of(api: &Api, parts: &Parts, target: &Target, query: &Query) -> Option<Form> {
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let agent = call::text_header(&parts.headers, &header::USER_AGENT);
    let codings = call::text_header(&parts.headers, &header::ACCEPT_ENCODING);
    let form = accept::negotiate(accept, || has_protobuf(api, target));
    form.map(|form| form.refined(query, agent, codings))
}

/// The audit log entry of a request that is not answered yet.
fn entry(parts: &Parts, target: &Target, at: Timestamp, user: &User, by: Option<&User>) -> Entry {
    Entry {
        at,
        user: user.name.clone(),
        impersonated_by: by.map(|user| user.name.clone()),
        request: target.attributes.clone(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        code: 0,
        authorized: false,
        user_agent: call::text_header(&parts.headers, &header::USER_AGENT).to_owned(),
    }
}

/// Whether the answer is a stream that continues until one side ends it.
fn is_endless(asked: &Attributes, query: &Query) -> bool {
    asked.verb == "watch" || (asked.subresource == "log" && query.flag("follow") == Some(true))
}

/// Whether the object of the request can be sent as protobuf. Custom resources and their definitions cannot.
fn has_protobuf(api: &Api, target: &Target) -> bool {
    let Attributes { group, resource, subresource, .. } = &target.attributes;
    let kind = api.kind(group, &target.version, resource);
    subresource == "scale" || kind.is_none_or(Kind::in_protobuf)
}

fn forbidden(user: &User, target: &Target, reason: &str) -> Status {
    let request = &target.attributes;
    let mut why = request.denial(user);
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    status::forbidden_on(&request.group, &request.resource, &request.name, &why)
}

/// The headers of every answer.
fn finish(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
        headers.insert("audit-id", id);
    }
    response
}
