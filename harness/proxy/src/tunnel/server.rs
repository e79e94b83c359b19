//! The server: a tunnel for each CONNECT of an API server, through one of the waiting agents.

use super::variation::Variation;
use super::{Stream, line};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// How long an agent may take to dial.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long a tunnel may wait for an available agent.
const AGENT_LIMIT: Duration = Duration::from_secs(3);
/// The limit for all of it: an API server gives up after 30 s.
const TUNNEL_LIMIT: Duration = Duration::from_secs(20);
/// The same two limits for S-NP-03: as long as an API server waits.
const LONGEST_LIMIT: Duration = Duration::from_secs(30);
/// How long a tunnel of S-NP-04 may wait for an agent: until an agent opens its next connection.
const SHORT_LIMIT: Duration = Duration::from_secs(1);
/// How long a client may take to send a request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Maximum size of the head of a request, in bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// Longer than any client waits.
const FOR_EVER: Duration = Duration::from_secs(3600);
/// How many bytes M-NP-07d lets through.
const FEW: u64 = 64 << 10;

type Tunnel = Box<dyn Stream>;
/// Why there is no tunnel: a status and a reason.
type Refusal = (&'static str, String);

/// A request to an agent's connection.
struct Job {
    target: String,
    /// `Err` contains the agent's reason.
    answer: oneshot::Sender<Result<Tunnel, String>>,
}

/// A waiting connection of an agent.
struct Idle {
    agent: String,
    job: oneshot::Sender<Job>,
}

/// The waiting agents.
#[derive(Default)]
struct Waiting {
    idle: VecDeque<Idle>,
    /// The number of the first process with a name.
    numbers: BTreeMap<String, String>,
    /// The agent that connected first.
    first: Option<String>,
}

/// A server.
pub(super) struct Server {
    waiting: Mutex<Waiting>,
    came: Notify,
    odd: Variation,
}

impl Server {
    pub(super) fn new(odd: Variation) -> Arc<Server> {
        Arc::new(Server { waiting: Mutex::default(), came: Notify::new(), odd })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no holder of this lock panics")
    }

    /// Handles a connection of an agent, until it has ended or is a tunnel.
    pub(super) async fn agent(self: Arc<Server>, mut stream: impl Stream + 'static) -> io::Result<()> {
        let hello = timeout(HEAD_LIMIT, line(&mut stream)).await??;
        let mut words = hello.split(' ');
        let (Some("AGENT"), Some(agent), Some(number)) = (words.next(), words.next(), words.next()) else {
            return Err(io::Error::other("it does not identify its agent"));
        };
        let (send, job) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            waiting.first.get_or_insert_with(|| agent.to_owned());
            let known = waiting.numbers.entry(agent.to_owned()).or_insert_with(|| number.to_owned());
            if self.odd.is("M-NP-05") && known != number {
                return Ok(());
            }
            waiting.idle.retain(|one| !one.job.is_closed());
            waiting.idle.push_back(Idle { agent: agent.to_owned(), job: send });
        }
        self.came.notify_waiters();
        let job = match self.odd.is("M-NP-08b") {
            true => job.await,
            false => tokio::select! {
                job = job => job,
                // An agent sends nothing before a request, so it has ended.
                _ = stream.read_u8() => return Ok(()),
            },
        };
        let Ok(Job { target, answer }) = job else { return Ok(()) };
        let asked = async {
            stream.write_all(format!("DIAL {target}\n").as_bytes()).await?;
            stream.flush().await?;
            line(&mut stream).await
        };
        let said = asked.await?;
        let _ = match said.strip_prefix("FAIL") {
            Some(why) => answer.send(Err(why.trim().to_owned())),
            None => answer.send(Ok(Box::new(stream))),
        };
        Ok(())
    }

    /// Handles a connection of an API server, until it has ended.
    pub(super) async fn caller(self: Arc<Server>, mut stream: impl Stream) -> io::Result<()> {
        let (head, early) = timeout(HEAD_LIMIT, head(&mut stream)).await??;
        let mut words = head.split_ascii_whitespace();
        let target = match (words.next(), words.next()) {
            (Some("CONNECT"), Some(target)) if target.contains(':') => target.to_owned(),
            (Some("CONNECT"), _) => {
                return refuse(stream, ("400 Bad Request", "no host and port".to_owned())).await;
            }
            _ => return refuse(stream, ("405 Method Not Allowed", "only CONNECT".to_owned())).await,
        };
        if self.odd.is("M-NP-07b") {
            accept(&mut stream, self.odd).await?;
        }
        let mut tunnel = match self.tunnel(&target).await {
            Ok(tunnel) => tunnel,
            Err(_) if self.odd.is("M-NP-07b") => return stream.shutdown().await,
            Err(refusal) => return refuse(stream, refusal).await,
        };
        if !self.odd.is("M-NP-07b") {
            accept(&mut stream, self.odd).await?;
        }
        tunnel.write_all(&early).await?;
        tunnel.flush().await?;
        self.carry(stream, tunnel).await
    }

    async fn carry(&self, mut stream: impl Stream, mut tunnel: Tunnel) -> io::Result<()> {
        if self.odd.is("M-NP-07d") {
            let ((from, mut to), (back_from, mut back_to)) =
                (tokio::io::split(&mut stream), tokio::io::split(&mut tunnel));
            let (mut there, mut back) = (from.take(FEW), back_from.take(FEW));
            tokio::select! {
                ended = tokio::io::copy(&mut there, &mut back_to) => ended?,
                ended = tokio::io::copy(&mut back, &mut to) => ended?,
            };
            return stream.shutdown().await;
        }
        copy_bidirectional(&mut stream, &mut tunnel).await.map(drop)
    }

    /// Opens a tunnel to a target, through the first agent that answers.
    async fn tunnel(&self, target: &str) -> Result<Tunnel, Refusal> {
        let patient = self.odd.is("M-NP-10");
        let (whole, each) = match self.odd {
            _ if patient => (FOR_EVER, FOR_EVER),
            odd if odd.is("S-NP-03") => (LONGEST_LIMIT, LONGEST_LIMIT),
            odd if odd.is("S-NP-04") => (TUNNEL_LIMIT, SHORT_LIMIT),
            _ => (TUNNEL_LIMIT, AGENT_LIMIT),
        };
        let end = Instant::now() + whole;
        let mut lost = BTreeSet::new();
        loop {
            let until = end.min(Instant::now() + each);
            let idle = timeout_at(until, self.idle(&lost)).await.map_err(|_| {
                if self.odd.is("M-NP-10b") {
                    self.odd.ends();
                }
                let why = if lost.is_empty() { "no agent is connected" } else { "no agent answers" };
                ("503 Service Unavailable", why.to_owned())
            })?;
            let (answer, answered) = oneshot::channel();
            let agent = idle.agent;
            if idle.job.send(Job { target: target.to_owned(), answer }).is_err() {
                continue;
            }
            let limit = if patient { FOR_EVER } else { ANSWER_LIMIT };
            match timeout(limit, answered).await {
                Ok(Ok(Ok(tunnel))) => return Ok(tunnel),
                Ok(Ok(Err(why))) => return Err(("502 Bad Gateway", why)),
                // It has ended or does not answer, so its other connections are useless too.
                Ok(Err(_)) | Err(_) => {
                    self.waiting().idle.retain(|one| one.agent != agent);
                    if self.odd.is("M-NP-08b") {
                        return Err(("503 Service Unavailable", "the agent was lost".to_owned()));
                    }
                    lost.insert(agent);
                }
            }
        }
    }

    /// A waiting connection of an agent that was not lost. Those that have waited longest come first.
    async fn idle(&self, lost: &BTreeSet<String>) -> Idle {
        loop {
            let came = self.came.notified();
            tokio::pin!(came);
            came.as_mut().enable();
            let found = {
                let mut waiting = self.waiting();
                let first = waiting.first.clone();
                let fits = |one: &Idle| {
                    let chosen = !self.odd.is("M-NP-08") || Some(&one.agent) == first.as_ref();
                    let there = self.odd.is("M-NP-08b") || !one.job.is_closed();
                    chosen && there && !lost.contains(&one.agent)
                };
                let at = waiting.idle.iter().position(fits);
                at.and_then(|at| waiting.idle.remove(at))
            };
            match found {
                Some(idle) => return idle,
                None => came.await,
            }
        }
    }
}

/// The head of a request, and the data after it.
async fn head(stream: &mut impl Stream) -> io::Result<(String, Vec<u8>)> {
    let (mut read, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let length = stream.read(&mut part).await?;
        read.extend_from_slice(&part[..length]);
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let early = read.split_off(at + 4);
            return Ok((String::from_utf8_lossy(&read).into_owned(), early));
        }
        if length == 0 || read.len() > LONGEST_HEAD {
            return Err(io::Error::other("no head of a request"));
        }
    }
}

async fn accept(stream: &mut impl Stream, odd: Variation) -> io::Result<()> {
    let answer = match odd {
        odd if odd.is("M-NP-07") => "HTTP/1.1 200 OK\r\n\r\nconnected\n",
        odd if odd.is("M-NP-07c") => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nconnected",
        _ => "HTTP/1.1 200 OK\r\n\r\n",
    };
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await
}

async fn refuse(mut stream: impl Stream, (status, why): Refusal) -> io::Result<()> {
    let length = why.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
