//! Two HTTP servers over one cloud: the cloud API in a vendor's dialect, and the admin API.

use crate::admin::{Credential, Effect, Entry, Outcome};
use crate::cloud::{Cloud, Under};
use crate::dialects::{self, Answer, Meaning, Request};
use crate::faults::Subject;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Largest request body, bytes.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// How the fake cloud is started.
#[derive(Clone)]
pub struct Config {
    /// Dialect of the cloud API; see [`dialects::ALL`].
    pub dialect: String,
    /// Where the cloud API listens; port 0 for any.
    pub listen: SocketAddr,
    /// Where the admin API listens; port 0 for any.
    pub admin_listen: SocketAddr,
    /// Token of the admin API.
    pub admin_token: String,
    /// Credentials of the cloud API; more can be added through the admin API.
    pub credentials: Vec<Credential>,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("dialect", &self.dialect)
            .field("listen", &self.listen)
            .field("admin_listen", &self.admin_listen)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// The fake cloud cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No such dialect.
    #[error("no dialect named {name}; there are: {known}")]
    Dialect {
        /// As asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: end what listens there, or choose another address (port 0 takes any)")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The admin token is empty.
    #[error("the admin token is empty: anybody could steer the cloud")]
    NoAdminToken,
}

/// Starts fake clouds.
#[derive(Debug)]
pub struct Server;

/// A fake cloud at work. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Where the cloud API listens.
    pub cloud_addr: SocketAddr,
    /// Where the admin API listens.
    pub admin_addr: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    /// Stops listening and ends every connection.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Server {
    /// Starts a fake cloud on the current runtime.
    ///
    /// # Errors
    /// When the dialect is unknown, the admin token is empty, or an address cannot be listened on.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        let dialect = dialects::find(&config.dialect).ok_or_else(|| StartError::Dialect {
            name: config.dialect.clone(),
            known: dialects::ALL.iter().map(|d| d.name()).collect::<Vec<_>>().join(", "),
        })?;
        if config.admin_token.is_empty() {
            return Err(StartError::NoAdminToken);
        }
        let cloud = Arc::new(Cloud::new(dialect));
        {
            let mut state = cloud.lock();
            config.credentials.into_iter().for_each(|credential| state.put_credential(credential));
        }
        let (listener, cloud_addr) = bind(config.listen).await?;
        let (admin, admin_addr) = bind(config.admin_listen).await?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_cloud(listener, cloud.clone(), stop.clone()));
        let router = crate::admin::routes::router(cloud, config.admin_token);
        let stopped = stop.clone().cancelled_owned();
        tasks.spawn(async move {
            if let Err(error) = axum::serve(admin, router).with_graceful_shutdown(stopped).await {
                tracing::error!(%error, "the admin API stopped");
            }
        });
        Ok(Running { cloud_addr, admin_addr, stop, tasks })
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let fail = |cause| StartError::Bind { address, cause };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    Ok((listener, bound))
}

async fn serve_cloud(listener: TcpListener, cloud: Arc<Cloud>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Small answers must not wait for one another.
                    let _ = stream.set_nodelay(true);
                    let (cloud, stop) = (cloud.clone(), stop.clone());
                    connections.spawn(async move {
                        let peer = peer.ip().to_canonical();
                        let service = service_fn(move |request| {
                            let cloud = cloud.clone();
                            async move { handle(&cloud, peer, request).await }
                        });
                        let connection = hyper::server::conn::http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service);
                        tokio::select! {
                            () = stop.cancelled() => {}
                            outcome = connection => if let Err(error) = outcome {
                                tracing::debug!(%error, "a connection ended");
                            }
                        }
                    });
                }
                Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
            }
        }
    }
    connections.shutdown().await;
}

/// Ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed without an answer, as a fault asks for")]
struct Closed;

type HttpAnswer = http::Response<Full<Bytes>>;

async fn handle(cloud: &Cloud, peer: IpAddr, request: http::Request<Incoming>) -> Result<HttpAnswer, Closed> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or_else(|| head.uri.path().to_owned(), ToString::to_string);
    let line = format!("{} {target}", head.method);
    let (body, too_large) = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(collected) => (collected.to_bytes().to_vec(), false),
        Err(error) if error.is::<LengthLimitError>() => (Vec::new(), true),
        Err(_) => return Err(Closed),
    };
    let request = Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: query(head.uri.query().unwrap_or_default()),
        headers: head.headers,
        body,
    };
    let meaning = cloud.dialect.meaning(&request);
    let (call, credential, under) = arrive(cloud, peer, &request, &meaning, line);
    if credential.is_none() {
        return Ok(end(under, cloud.dialect.error(401, "the token is missing or unknown")));
    }
    if too_large {
        return Ok(end(under, cloud.dialect.error(413, &format!("the body is larger than {MAX_BODY_BYTES} bytes"))));
    }
    let struck = {
        let now = cloud.now();
        let mut state = cloud.lock();
        let state = &mut *state;
        state.faults.strike(&call, &state.model, now)
    };
    let mut lost = None;
    match struck {
        None => {}
        Some((_, Effect::Latency { ms })) => delay(Duration::from_millis(ms)).await,
        Some((fault, Effect::LoseAnswer)) => lost = Some(fault),
        Some((fault, effect)) => return broken(cloud, under, fault, &effect).await,
    }
    let place = {
        let mut state = cloud.lock();
        let state = &mut *state;
        state.barriers.hold(&call, &state.model)
    };
    if let Some(place) = place {
        place.wait().await;
    }
    let answer = {
        let now = cloud.now();
        let mut state = cloud.lock();
        let answer = cloud.dialect.answer(&request, &meaning, state.answering(meaning.op, now), now);
        note_owner(&mut state, &meaning, under.seq);
        answer
    };
    if let Some(fault) = lost {
        under.end(Outcome::Faulted { status: None, fault });
        return Err(Closed);
    }
    Ok(end(under, answer))
}

/// Writes a call down and finds out who makes it.
fn arrive<'a>(
    cloud: &'a Cloud,
    peer: IpAddr,
    request: &Request,
    meaning: &Meaning,
    line: String,
) -> (Subject, Option<String>, Under<'a>) {
    let at_ms = cloud.now();
    let mut state = cloud.lock();
    let credential = cloud.dialect.token(request).and_then(|token| state.credential(token));
    let known_owner = || meaning.keys.iter().find_map(|key| state.model.owner_of(meaning.op, key));
    let owner = meaning.owner.clone().or_else(known_owner);
    let under = cloud.begin(&mut state, |seq| Entry {
        seq,
        at_ms,
        took_ms: None,
        peer,
        credential: credential.clone(),
        op: meaning.op,
        write: meaning.op.is_write(),
        resource: meaning.resource.clone(),
        owner,
        request: line,
        outcome: Outcome::UnderWay,
    });
    let call = Subject { op: meaning.op, keys: meaning.keys.clone(), credential: credential.clone(), peer };
    (call, credential, under)
}

/// What was created or looked up may have told whose it is.
fn note_owner(state: &mut crate::cloud::State, meaning: &Meaning, seq: u64) {
    if meaning.owner.is_none() {
        if let Some(owner) = meaning.keys.iter().find_map(|key| state.model.owner_of(meaning.op, key)) {
            state.journal.concerns(seq, owner);
        }
    }
}

async fn broken(cloud: &Cloud, under: Under<'_>, fault: u64, effect: &Effect) -> Result<HttpAnswer, Closed> {
    match effect {
        Effect::Status { status, retry_after_s } => {
            let mut answer = cloud.dialect.error(*status, "a fault was injected");
            answer.headers.extend(retry_after_s.map(|s| ("retry-after", s.to_string())));
            under.end(Outcome::Faulted { status: Some(*status), fault });
            Ok(http_answer(answer))
        }
        Effect::Malformed => {
            under.end(Outcome::Faulted { status: Some(200), fault });
            let body = Some(b"{\"instances\": [{\"id\": ".to_vec());
            Ok(http_answer(Answer { status: 200, headers: Vec::new(), body }))
        }
        Effect::Hang => {
            under.end(Outcome::Faulted { status: None, fault });
            std::future::pending().await
        }
        Effect::Refuse | Effect::LoseAnswer | Effect::Latency { .. } => {
            under.end(Outcome::Faulted { status: None, fault });
            Err(Closed)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "latency is what the fault asks for")]
async fn delay(period: Duration) {
    tokio::time::sleep(period).await;
}

fn end(under: Under<'_>, answer: Answer) -> HttpAnswer {
    under.end(Outcome::Answered { status: answer.status });
    http_answer(answer)
}

fn http_answer(answer: Answer) -> HttpAnswer {
    let mut response = http::Response::builder().status(answer.status);
    if answer.body.is_some() {
        response = response.header(http::header::CONTENT_TYPE, "application/json");
    }
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let body = Full::new(Bytes::from(answer.body.unwrap_or_default()));
    response.body(body).unwrap_or_else(|_| http::Response::new(Full::new(Bytes::new())))
}

/// A query string's pairs, decoded.
fn query(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
