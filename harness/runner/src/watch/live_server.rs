//! Access to the page of a run: only for clients on this machine that know its address, and not for pages of other
//! origins.

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

/// Maximum number of connections.
const CONNECTIONS: usize = 128;
/// Maximum size of a request's head, in bytes.
const HEAD_AT_MOST: usize = 16 << 10;
/// Maximum time for receiving it.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long a request for updates waits if there are none.
const HOLD: Duration = Duration::from_secs(15);
/// How long open pages may fetch the rest after the end of the run.
const GRACE: Duration = Duration::from_secs(2);
/// How often the server checks whether they have.
const LOOK: Duration = Duration::from_millis(20);

/// Headers of every answer: not cached, not framed, no other content type, no access for other origins.
const ALWAYS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Statistics of a watched run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// How often the page was opened.
    pub(super) opened: usize,
    /// How many requests were answered.
    pub(super) answers: usize,
}

/// What is shown at the moment.
#[derive(Clone, Default)]
pub(super) struct Shown {
    /// The number of the run, from 1; pages that show another one load again.
    pub(super) number: u64,
    /// The run; `None` before the first one.
    pub(super) live: Option<Arc<Live>>,
    /// Whether it has ended.
    pub(super) is_over: bool,
    /// Whether another one may follow.
    pub(super) is_one_of_several: bool,
    /// Whether the server ends.
    pub(super) closes: bool,
}

/// The only address of the page.
pub(super) struct LiveServer {
    /// What a browser sends as its host for that address.
    hosts: [String; 2],
    token: [u8; 32],
    shown: watch::Receiver<Shown>,
    opened: AtomicUsize,
    answers: AtomicUsize,
    /// Pages that wait for updates.
    asking: AtomicUsize,
    /// Pages that have received some, and will ask for more or for evidence.
    reading: AtomicI64,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run {}", self.number)
    }
}

impl std::fmt::Debug for LiveServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LiveServer")
    }
}

impl LiveServer {
    pub(super) fn new(port: u16, token: &str, shown: watch::Receiver<Shown>) -> Arc<LiveServer> {
        Arc::new(LiveServer {
            hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            token: Sha256::digest(token).into(),
            shown,
            opened: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            asking: AtomicUsize::new(0),
            reading: AtomicI64::new(0),
        })
    }

    /// Serves until the run is over and the open pages have everything.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub(super) async fn serve(self: Arc<LiveServer>, listener: TcpListener) -> std::io::Result<Served> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (mut connections, close) = (JoinSet::new(), CancellationToken::new());
        {
            let finished = self.finished();
            tokio::pin!(finished);
            loop {
                tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => {}
                    () = &mut finished => break,
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) if connections.len() < CONNECTIONS => {
                            connections.spawn(connection(stream, self.clone(), close.clone()));
                        }
                        Ok(_) => {}
                        // For example because file descriptors ran out.
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

    /// Forgets pages of an earlier run that were closed before they had everything.
    pub(super) fn begins(&self) {
        self.reading.store(0, Ordering::Relaxed);
    }

    /// Ends when nothing more is served, and no page waits for the rest, or has had the time to ask for it.
    async fn finished(&self) {
        if self.shown.clone().wait_for(|shown| shown.closes).await.is_ok() {
            self.taken().await;
        }
    }

    /// Ends when no page waits for the rest of a run that has ended, or has had the time to ask for it.
    pub(super) async fn taken(&self) {
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
        if self.shown.borrow().closes {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        self.answers.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Gives no information to clients that do not know the token, not even that there is one.
    async fn answered(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        // This rejects foreign host names that resolve to this machine.
        if !self.is_addressed(request) {
            return refusal(StatusCode::MISDIRECTED_REQUEST);
        }
        let path = request.uri().path().strip_prefix('/').unwrap_or_default();
        let Some((token, what)) = path.split_once('/') else { return refusal(StatusCode::NOT_FOUND) };
        // The time for comparing digests reveals nothing about their inputs.
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
                response("text/html; charset=utf-8", "frame-ancestors 'none'", live_page())
            }
            "news" => match (asked("from").parse(), asked("run").parse()) {
                (Ok(from), Ok(run)) => self.news(from, &asked("head"), run).await,
                _ => refusal(StatusCode::BAD_REQUEST),
            },
            // The page waits for the run after this one.
            "next" => match asked("run").parse() {
                Ok(run) => self.next(run).await,
                Err(_) => refusal(StatusCode::BAD_REQUEST),
            },
            // The page has received the last updates.
            "taken" => {
                self.reading.fetch_sub(1, Ordering::Relaxed);
                data("text/plain; charset=utf-8", String::new())
            }
            "evidence" => match self.live().and_then(|live| live.evidence(&asked("check"))) {
                Some(files) => data("application/json", files),
                None => refusal(StatusCode::NOT_FOUND),
            },
            _ => refusal(StatusCode::NOT_FOUND),
        }
    }

    /// Whether a request uses the address that was printed.
    fn is_addressed(&self, request: &Request<Incoming>) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let named = hosts.next().and_then(|host| host.to_str().ok());
        let is_ours = named.is_some_and(|named| self.hosts.iter().any(|host| host == named));
        is_ours && hosts.next().is_none() && request.uri().authority().is_none()
    }

    /// Whether the browser says that the page itself sent the request; other clients do not send this header.
    fn is_of_own_page(&self, headers: &HeaderMap) -> bool {
        let is = |name: HeaderName, fits: &dyn Fn(&[u8]) -> bool| {
            headers.get_all(name).iter().all(|value| fits(value.as_bytes()))
        };
        let own = |origin: &[u8]| self.hosts.iter().any(|host| format!("http://{host}").as_bytes() == origin);
        is(header::ORIGIN, &own)
            && is(HeaderName::from_static("sec-fetch-site"), &|site| site == b"same-origin")
    }

    fn live(&self) -> Option<Arc<Live>> {
        self.shown.borrow().live.clone()
    }

    /// The updates of this run, as soon as there are any, and at most as often as the stream is folded; 0 is the one that is
    /// shown.
    async fn news(&self, from: u64, seen: &str, run: u64) -> Response<Full<Bytes>> {
        let mut shown = self.shown.clone();
        if run == 0 && self.live().is_none() {
            // Nothing is shown yet.
            wait(&mut shown, HOLD, |shown| shown.live.is_some() || shown.closes).await;
        }
        let Shown { number, live, .. } = shown.borrow().clone();
        let is_another = run != 0 && run != number;
        let Some(live) = live.filter(|_| !is_another) else { return no_run(is_another) };
        let _asking = Asking::new(&self.asking);
        if from > 0 {
            self.reading.fetch_sub(1, Ordering::Relaxed);
            wait(&mut shown, PACE, |shown| shown.is_over).await;
        }
        let began = Instant::now();
        loop {
            let now = shown.borrow().clone();
            if now.number != number {
                return no_run(true);
            }
            let is_over = now.is_over || shown.has_changed().is_err();
            match live.news(from, seen, is_over, (number, now.is_one_of_several)) {
                Err(_) => return refusal(StatusCode::INTERNAL_SERVER_ERROR),
                Ok(news) if news.is_any || is_over || began.elapsed() >= HOLD => {
                    self.reading.fetch_add(1, Ordering::Relaxed);
                    return data("text/plain; charset=utf-8", news.text);
                }
                Ok(_) => wait(&mut shown, PACE, |shown| shown.is_over).await,
            }
        }
    }

    /// Whether another run than this one is shown, as soon as that is so.
    async fn next(&self, run: u64) -> Response<Full<Bytes>> {
        let mut shown = self.shown.clone();
        wait(&mut shown, HOLD, |shown| shown.number != run || shown.closes).await;
        let is_another = shown.borrow().number != run;
        no_run(is_another)
    }
}

/// A page that waits for updates, until this is dropped.
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

/// The answer for a page that shows no run, or whether it has to load again to show another one.
fn no_run(loads_again: bool) -> Response<Full<Bytes>> {
    let word = if loads_again { "again" } else { "waits" };
    data("text/plain; charset=utf-8", format!("{{\"{word}\":true}}\n"))
}

/// Returns after a time, or as soon as this is shown.
async fn wait(shown: &mut watch::Receiver<Shown>, period: Duration, until: impl FnMut(&Shown) -> bool) {
    tokio::select! {
        _ = shown.wait_for(until) => {}
        () = pause(period) => {}
    }
}

async fn connection(stream: TcpStream, server: Arc<LiveServer>, close: CancellationToken) {
    // Without it small answers wait for acknowledgements; if it cannot be set, serving still works.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(HEAD_AT_MOST);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    // The browser reconnects after a broken connection.
    tokio::select! {
        _ = served.as_mut() => {}
        () = close.cancelled() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}

fn data(kind: &'static str, text: String) -> Response<Full<Bytes>> {
    response(kind, "default-src 'none'; frame-ancestors 'none'; sandbox", text)
}

fn response(kind: &'static str, policy: &'static str, text: String) -> Response<Full<Bytes>> {
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
