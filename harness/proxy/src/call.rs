//! One call, from its arrival to its answer.
//!
//! # Order of events
//! The call arrives, is matched by the rules and gets its number in the journal; the first applicable fault takes effect;
//! barriers hold it; it is passed on; its answer is returned. A body is streamed, unless a rule has to read it.

use crate::answers::plain;
use crate::body::{Inbound, collected, full, inbound};
use crate::bounds::Bounds;
use crate::mask;
use crate::rewrite::is_text;
use crate::shared::{Shared, State};
use crate::source::CallView;
use crate::table::Meaning;
use crate::upstream::{Body, BoxError, UpstreamError};
use bytes::Bytes;
use fake_cloud_driver::{Effect, Entry, Match, Outcome};
use fake_cloud_recording::barriers::Place;
use fake_cloud_recording::faults::pause;
use fake_cloud_recording::journal::millis;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response, Uri, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The connection must be closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("closed without an answer")]
pub(crate) struct Closed;

/// The caller that uses a port.
pub(crate) type Caller = Option<Arc<str>>;

/// A call in progress. Dropping it ends it, however it ended.
struct Flight {
    shared: Arc<Shared>,
    seq: u64,
    peer: IpAddr,
    caller: Caller,
    line: String,
    meaning: Meaning,
    names: OnceLock<BTreeSet<String>>,
    /// Later barriers do not hold it.
    youngest_barrier: u64,
    /// The barrier at which it waits.
    waits_at: Option<u64>,
    /// The fault that loses its answer.
    loses: Option<(u64, Duration)>,
    /// Whether its client takes too long to send the body.
    late: Arc<AtomicBool>,
}

/// The next step of a call.
enum Step {
    Answer(Response<Bytes>),
    Wait(Duration),
    WaitAt(Place),
    Hang(Option<Duration>),
    Close,
    HandOn,
}

/// Processes a call.
pub(crate) async fn answer(
    shared: Arc<Shared>,
    caller: Caller,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let (head, incoming) = request.into_parts();
    let wanted = shared.table.wants_body(&head.method, head.uri.path());
    let Inbound { seen, sent, late } = inbound(incoming, wanted, &shared.bounds).await;
    let mut flight = Flight::open(&shared, caller, peer, &head, seen);
    flight.late = late;
    let Some(sent) = sent else { return flight.unread().ok_or(Closed) };
    flight.look_up().await;
    let mut step = flight.begin();
    loop {
        step = match step {
            Step::Answer(answer) => return Ok(answer.map(full)),
            Step::Close => return Err(Closed),
            Step::Hang(None) => std::future::pending().await,
            Step::Hang(Some(time)) => {
                pause(time).await;
                return Err(Closed);
            }
            Step::Wait(time) => {
                pause(time).await;
                flight.resume()
            }
            Step::WaitAt(mut place) => {
                place.released().await;
                flight.waits_at = None;
                flight.resume()
            }
            Step::HandOn => return flight.hand_on(head, sent).await,
        }
    }
}

impl Flight {
    /// Adds a call to the journal.
    fn open(shared: &Arc<Shared>, caller: Caller, peer: IpAddr, head: &Parts, body: Bytes) -> Flight {
        let (path, query) = (head.uri.path(), head.uri.query());
        let meaning = shared.table.read(&CallView {
            method: &head.method,
            path,
            query: query.unwrap_or_default(),
            headers: &head.headers,
            body,
            form: OnceCell::new(),
            json: OnceCell::new(),
        });
        let mut line = format!("{} {}", head.method, mask::target(path, query));
        for (field, value) in &meaning.fields {
            line.push_str(&format!(" {field}={value}"));
        }
        let unknown = (!meaning.is_known).then(|| "no rule of the route table matches this call".to_owned());
        let agent = head.headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok());
        let mut state = shared.state();
        let state = &mut *state;
        let clean = |text: String| state.credentials.redact(mask::without(text, &head.headers));
        let entry = Entry {
            seq: 0,
            at_ms: millis(shared.now()),
            took_ms: None,
            peer,
            credential: caller.as_deref().map(str::to_owned),
            op: meaning.op,
            write: meaning.op.is_write(),
            resource: meaning.resource.clone().map(clean),
            owner: meaning.owner.clone().or_else(|| state.book.owner(meaning.op, &meaning.named)).map(clean),
            request: clean(line.clone()),
            user_agent: agent.map(str::to_owned).map(clean),
            outcome: Outcome::UnderWay,
            unknown,
            change: None,
        };
        if entry.unknown.is_some() {
            tracing::warn!(call = entry.request, "no rule of the route table matches this call");
        }
        let seq = state.journal.open(entry);
        shared.arrivals.notify_waiters();
        Flight {
            shared: shared.clone(),
            seq,
            peer,
            caller,
            line,
            meaning,
            names: OnceLock::new(),
            youngest_barrier: state.barriers.raised(),
            waits_at: None,
            loses: None,
            late: Arc::default(),
        }
    }

    /// Queries the cloud's driver for names that were not observed yet.
    async fn look_up(&self) {
        let Meaning { op, named, owner, .. } = &self.meaning;
        let Some(behind) = &self.shared.behind else { return };
        let since = {
            let state = self.shared.state();
            if owner.is_some() || !state.book.is_ignorant_of(*op, named) {
                return;
            }
            state.book.heard()
        };
        match behind.inventory().await {
            Ok(inventory) => {
                self.shared.learn(&inventory, named, since);
                let mut state = self.shared.state();
                if let Some(owner) = state.book.owner(*op, named) {
                    let owner = state.credentials.redact(owner);
                    state.journal.owned(self.seq, owner);
                }
            }
            Err(why) => self.shared.tell_once(format!("the cloud's driver does not answer the proxy: {why}")),
        }
    }

    /// Applies faults, then continues.
    fn begin(&mut self) -> Step {
        let shared = self.shared.clone();
        let mut state = shared.state();
        let State { book, faults, .. } = &mut *state;
        let Some(hit) = faults.hit(shared.now(), |matching| self.is_meant(book, matching)) else {
            return self.proceed(&mut state);
        };
        let fault = hit.id;
        let (status, step) = match hit.effect {
            Effect::Status { status, retry_after_s } => {
                (Some(status), Step::Answer(shared.errors.refusal(status, retry_after_s)))
            }
            Effect::Malformed => (Some(200), Step::Answer(shared.errors.malformed())),
            Effect::Hang { ms } => {
                state.journal.mark(self.seq, Outcome::Faulted { status: None, fault });
                return Step::Hang(ms.map(Duration::from_millis));
            }
            Effect::Latency { ms } => return Step::Wait(Duration::from_millis(ms)),
            Effect::LoseAnswer { ms } => {
                self.loses = Some((fault, Duration::from_millis(ms.unwrap_or(0))));
                return self.proceed(&mut state);
            }
            // Other effects were refused when they were requested.
            _ => (None, Step::Close),
        };
        drop(state);
        shared.close(self.seq, Outcome::Faulted { status, fault });
        step
    }

    /// Continues after something has held the call.
    fn resume(&mut self) -> Step {
        let shared = self.shared.clone();
        let mut state = shared.state();
        self.proceed(&mut state)
    }

    /// Waits at the next barrier, or passes the call on.
    fn proceed(&mut self, state: &mut State) -> Step {
        let State { book, barriers, .. } = state;
        match barriers.arrive(self.youngest_barrier, |matching| self.is_meant(book, matching)) {
            Some(place) => {
                self.waits_at = Some(place.barrier);
                Step::WaitAt(place)
            }
            None => Step::HandOn,
        }
    }

    async fn hand_on(self, head: Parts, body: Body) -> Result<Response<Body>, Closed> {
        let shared = &self.shared;
        let host = head.headers.get(header::HOST).cloned();
        let host = host.or_else(|| HeaderValue::from_str(head.uri.authority()?.as_str()).ok());
        let answered = match shared.upstream.uri(&head.uri) {
            Ok(uri) => {
                let mut request = onward(head, uri, shared, body);
                self.says_who_was_called(request.headers_mut(), host.as_ref());
                if self.meaning.creates.is_some() || !shared.rewrites.is_empty() {
                    // The answer is read: for the id of what it creates, or for URLs.
                    let plain = HeaderValue::from_static("identity");
                    request.headers_mut().insert(header::ACCEPT_ENCODING, plain);
                }
                shared.upstream.call(request).await
            }
            Err(error) => {
                let why = error.to_string();
                Err(UpstreamError::Nonsense { url: shared.upstream.url(), why })
            }
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(why) => return Ok(self.unread().unwrap_or_else(|| self.fail(&why))),
        };
        let (mut head, incoming) = answer.into_parts();
        clean(&mut head.headers);
        self.redirect(&mut head.headers, host.as_ref());
        let status = head.status.as_u16();
        if head.status.is_success() && self.meaning.op.is_write() {
            shared.state().book.is_changed();
        }
        let rewrites = !shared.rewrites.is_empty() && is_text(&head.headers);
        let creates = self.meaning.creates.is_some() && head.status.is_success();
        let reads = self.loses.is_some() || creates || rewrites;
        let body = match reads {
            false => incoming.map_err(BoxError::from).boxed(),
            true => match collected(incoming.map_err(BoxError::from).boxed()).await {
                Ok((seen, body)) => {
                    if creates || self.loses.is_some() {
                        self.note_creation(&seen);
                    }
                    match self.own_url(host.as_ref()).and_then(|own| shared.rewrites.applied(&seen, &own)) {
                        Some(changed) if rewrites => {
                            head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(changed.len()));
                            full(changed)
                        }
                        _ => body,
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    return Ok(self.fail(&UpstreamError::Broken { url: shared.upstream.url(), why }));
                }
            },
        };
        if let Some((fault, after)) = self.loses {
            shared.state().journal.mark(self.seq, Outcome::Faulted { status: None, fault });
            pause(after).await;
            return Err(Closed);
        }
        shared.close(self.seq, Outcome::Answered { status });
        head.version = Version::HTTP_11;
        Ok(Response::from_parts(head, body))
    }

    /// The answer for a client that took too long to send the body, if it did.
    fn unread(&self) -> Option<Response<Body>> {
        if !self.late.load(Ordering::Relaxed) {
            return None;
        }
        let Bounds { body, pause, .. } = self.shared.bounds;
        let (body, pause) = (body.as_secs_f64(), pause.as_secs_f64());
        let why = format!(
            "a client from {} took too long to send a body and was answered 408: a body may take {body} s, and a \
             streamed one may pause for {pause} s",
            self.peer
        );
        self.shared.close(self.seq, Outcome::Answered { status: 408 });
        let text = format!("ccm-conformance proxy: {why}\n");
        self.shared.tell_once(why);
        Some(plain(408, "text/plain", text).map(full))
    }

    /// The answer if the cloud gives none: 502, or 504 if it is only slow.
    fn fail(&self, why: &UpstreamError) -> Response<Body> {
        self.shared.tell_once(why.to_string());
        let status = if matches!(why, UpstreamError::Slow { .. }) { 504 } else { 502 };
        self.shared.close(self.seq, Outcome::Answered { status });
        plain(status, "text/plain", format!("ccm-conformance proxy: {why}\n")).map(full)
    }

    fn note_creation(&self, body: &[u8]) {
        let Some(source) = &self.meaning.creates else { return };
        let Some(id) = source.values_of_answer(body).into_iter().next() else { return };
        let mut state = self.shared.state();
        let state = &mut *state;
        let Meaning { op, named, owner, .. } = &self.meaning;
        state.book.created(*op, &id, named, owner.as_deref());
        let id = state.credentials.redact(id);
        state.journal.created(self.seq, id);
    }

    /// The URL of the proxy as the caller uses it.
    fn own_url(&self, host: Option<&HeaderValue>) -> Option<String> {
        Some(format!("{}://{}", self.shared.scheme, host?.to_str().ok()?))
    }

    /// Tells the cloud which host was called, so that URLs in its answers can lead back here.
    fn says_who_was_called(&self, headers: &mut HeaderMap, host: Option<&HeaderValue>) {
        let proto = HeaderValue::from_static(self.shared.scheme);
        headers.insert(HeaderName::from_static("x-forwarded-proto"), proto);
        if let Some(host) = host {
            headers.insert(HeaderName::from_static("x-forwarded-host"), host.clone());
        }
    }

    /// A redirected client must come back through the same port.
    fn redirect(&self, headers: &mut HeaderMap, host: Option<&HeaderValue>) {
        let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        if let (Some(url), Some(location)) = (self.own_url(host), location)
            && let Some(rest) = self.shared.upstream.below(location)
            && let Ok(own) = HeaderValue::from_str(&format!("{url}{rest}"))
        {
            headers.insert(header::LOCATION, own);
        }
    }

    fn is_meant(&self, book: &crate::name_index::NameIndex, matching: &Match) -> bool {
        let Match { ops, resource, credential, peer, from_page, request: _ } = matching;
        let names = || self.names.get_or_init(|| book.names(self.meaning.op, &self.meaning.named));
        (ops.is_empty() || ops.contains(&self.meaning.op))
            && credential.as_ref().is_none_or(|name| self.caller.as_deref() == Some(name.as_str()))
            && peer.is_none_or(|peer| peer.to_canonical() == self.peer)
            && from_page.is_none_or(|page| self.meaning.page >= page)
            && matching.fits_request(&self.line)
            && resource.as_ref().is_none_or(|wanted| names().contains(wanted))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(barrier) = self.waits_at {
            self.shared.state().barriers.leave(barrier);
        }
        // No effect on a call that was answered: only the first end counts.
        self.shared.close(self.seq, Outcome::Abandoned);
    }
}

/// The call in the form that is sent to the cloud.
fn onward(head: Parts, uri: Uri, shared: &Shared, body: Body) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = head.headers;
    let headers = request.headers_mut();
    clean(headers);
    headers.remove(header::EXPECT);
    if let Ok(host) = HeaderValue::from_str(shared.upstream.authority().as_str()) {
        headers.insert(header::HOST, host);
    }
    request
}

/// Removes headers that are only for the next hop (RFC 9110, section 7.6.1).
fn clean(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    named.into_iter().for_each(|name| drop(headers.remove(name)));
    let known = [
        header::CONNECTION,
        header::TE,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ];
    known.into_iter().for_each(|name| drop(headers.remove(name)));
}
