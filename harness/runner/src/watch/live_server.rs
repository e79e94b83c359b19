//! Who is let in to the page of a run: whoever knows its address, on this machine, and no page of somebody else's.

use super::live::{Live, PACE};
use bytes::Bytes;
use harness_core::probe::pause;
use harness_report::live_page;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How many connections there may be.
const CONNECTIONS: usize = 128;
/// What a request may say before its body, bytes.
const HEAD_AT_MOST: usize = 16 << 10;
/// How long it may take for that.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long a page that asks for news is left without an answer where there are none.
const HOLD: Duration = Duration::from_secs(15);
/// How long open pages have to get the rest when the run has ended.
const GRACE: Duration = Duration::from_secs(2);
/// How often is looked whether they have.
const LOOK: Duration = Duration::from_millis(20);

/// What every answer says: it is kept nowhere, shown in no other page, taken for nothing else and given to no other origin.
const ALWAYS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// What was asked of a run that could be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// How often the page was opened.
    pub(super) opened: usize,
    /// How many requests were answered in all.
    pub(super) answers: usize,
}

/// The page's one address.
pub(super) struct LiveServer {
    /// What a browser that was led there says of where it is.
    hosts: [String; 2],
    token: [u8; 32],
    live: Live,
    over: watch::Receiver<bool>,
    opened: AtomicUsize,
    answers: AtomicUsize,
    /// Pages that wait for news.
    asking: AtomicUsize,
    /// Pages that have got some, and will ask for more, or for the evidence of what failed.
    reading: AtomicI64,
}

impl LiveServer {
    pub(super) fn new(port: u16, token: &str, live: Live, over: watch::Receiver<bool>) -> Arc<LiveServer> {
        Arc::new(LiveServer {
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            token: Sha256::digest(token).into(),
            live,
            over,
            opened: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            asking: AtomicUsize::new(0),
            reading: AtomicI64::new(0),
        })
    }

    /// Serves until the run is over and the open pages know.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub(super) async fn serve(self: Arc<LiveServer>, listener: TcpListener) -> std::io::Result<Served> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (mut connections, close) = (JoinSet::new(), CancellationToken::new());
        {
            let told = self.all_told();
            tokio::pin!(told);
            loop {
                tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => {}
                    () = &mut told => break,
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) if connections.len() < CONNECTIONS => {
                            connections.spawn(connection(stream, self.clone(), close.clone()));
                        }
                        Ok(_) => {}
                        // For want of file descriptors, say.
                        Err(_) => pause(LOOK).await,
                    },
                }
            }
        }
        close.cancel();
        let closed = async { while connections.join_next().await.is_some() {} };
        tokio::select! {
            () = closed => {}
            () = pause(GRACE) => {}
        }
        Ok(Served {
            opened: self.opened.load(Ordering::Relaxed),
            answers: self.answers.load(Ordering::Relaxed),
        })
    }

    /// Ends when the run is over and no page waits for the rest, or has had the time to ask for it.
    async fn all_told(&self) {
        if self.over.clone().wait_for(|over| *over).await.is_err() {
            return;
        }
        let began = Instant::now();
        let waits = || self.asking.load(Ordering::Relaxed) > 0 || self.reading.load(Ordering::Relaxed) > 0;
        while waits() && began.elapsed() < GRACE {
            pause(LOOK).await;
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut answer = self.answered(&request).await;
        for (name, value) in ALWAYS {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if *self.over.borrow() {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        self.answers.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Says nothing to whoever does not know the token, not even that there is one.
    async fn answered(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        // A name that somebody else's page has made point to this machine is not ours.
        if !self.is_addressed(request) {
            return refusal(StatusCode::MISDIRECTED_REQUEST);
        }
        let path = request.uri().path().strip_prefix('/').unwrap_or_default();
        let Some((token, what)) = path.split_once('/') else { return refusal(StatusCode::NOT_FOUND) };
        // How long it takes to compare digests says nothing of what they are of.
        if <[u8; 32]>::from(Sha256::digest(token)) != self.token {
            return refusal(StatusCode::NOT_FOUND);
        }
        if request.method() != Method::GET {
            return refusal(StatusCode::METHOD_NOT_ALLOWED);
        }
        if !what.is_empty() && !self.is_of_own_page(request.headers()) {
            return refusal(StatusCode::FORBIDDEN);
        }
        let asked = |name: &str| {
            let query = request.uri().query().unwrap_or_default().as_bytes();
            let found = form_urlencoded::parse(query).find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned()).unwrap_or_default()
        };
        match what {
            "" => {
                self.opened.fetch_add(1, Ordering::Relaxed);
                told("text/html; charset=utf-8", "frame-ancestors 'none'", live_page())
            }
            "news" => match asked("from").parse() {
                Ok(from) => self.news(from, &asked("head")).await,
                Err(_) => refusal(StatusCode::BAD_REQUEST),
            },
            // A page has all that it wants of the news that were the last.
            "taken" => {
                self.reading.fetch_sub(1, Ordering::Relaxed);
                data("text/plain; charset=utf-8", String::new())
            }
            "evidence" => match self.live.evidence(&asked("check")) {
                Some(files) => data("application/json", files),
                None => refusal(StatusCode::NOT_FOUND),
            },
            _ => refusal(StatusCode::NOT_FOUND),
        }
    }

    /// Whether a request is for the address that was given out.
    fn is_addressed(&self, request: &Request<Incoming>) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let named = hosts.next().and_then(|host| host.to_str().ok());
        let is_ours = named.is_some_and(|named| self.hosts.iter().any(|host| host == named));
        is_ours && hosts.next().is_none() && request.uri().authority().is_none()
    }

    /// Whether a browser says that its own page asks; who is no browser says nothing of it.
    fn is_of_own_page(&self, headers: &HeaderMap) -> bool {
        let is = |name: HeaderName, fits: &dyn Fn(&[u8]) -> bool| {
            headers.get_all(name).iter().all(|value| fits(value.as_bytes()))
        };
        let own = |origin: &[u8]| self.hosts.iter().any(|host| format!("http://{host}").as_bytes() == origin);
        is(header::ORIGIN, &own)
            && is(HeaderName::from_static("sec-fetch-site"), &|site| site == b"same-origin")
    }

    /// What is new to a page, as soon as anything is, and not more often than the stream is folded.
    async fn news(&self, from: u64, seen: &str) -> Response<Full<Bytes>> {
        let _asking = Asking::new(&self.asking);
        let mut over = self.over.clone();
        if from > 0 {
            self.reading.fetch_sub(1, Ordering::Relaxed);
            until(&mut over, PACE).await;
        }
        let began = Instant::now();
        loop {
            let is_over = *over.borrow() || over.has_changed().is_err();
            match self.live.news(from, seen, is_over) {
                Err(_) => return refusal(StatusCode::INTERNAL_SERVER_ERROR),
                Ok(news) if news.is_any || is_over || began.elapsed() >= HOLD => {
                    self.reading.fetch_add(1, Ordering::Relaxed);
                    return data("text/plain; charset=utf-8", news.text);
                }
                Ok(_) => until(&mut over, PACE).await,
            }
        }
    }
}

/// A page that waits for news, until it is dropped.
struct Asking<'a>(&'a AtomicUsize);

impl Asking<'_> {
    fn new(all: &AtomicUsize) -> Asking<'_> {
        all.fetch_add(1, Ordering::Relaxed);
        Asking(all)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends after a time, or when the run is over.
async fn until(over: &mut watch::Receiver<bool>, period: Duration) {
    tokio::select! {
        _ = over.wait_for(|over| *over) => {}
        () = pause(period) => {}
    }
}

async fn connection(stream: TcpStream, server: Arc<LiveServer>, close: CancellationToken) {
    // Without it small answers wait for acknowledgements; that it cannot be set is no reason not to serve.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_AT_MOST);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    // A connection that breaks is its browser's to make again.
    tokio::select! {
        _ = served.as_mut() => {}
        () = close.cancelled() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}

fn data(kind: &'static str, text: String) -> Response<Full<Bytes>> {
    told(kind, "default-src 'none'; frame-ancestors 'none'; sandbox", text)
}

fn told(kind: &'static str, policy: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(text));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}

fn refusal(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = data("text/plain; charset=utf-8", format!("{status}\n"));
    *answer.status_mut() = status;
    answer
}
