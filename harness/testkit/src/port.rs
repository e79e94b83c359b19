//! A replica's secure port: what it serves over HTTPS, and to which clients.

use super::{CheckCx, Reader, Replica, Subject};
use harness_clouds::Entry;
use harness_core::bounded;
use harness_core::check::{CheckError, SubjectName, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, holds, matcher};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for an answer, including connection and handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much of a body a message shows.
const SHOWN: usize = 300;

/// The port on which a replica serves HTTPS, and how the harness connects to it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// for replica in cx.replicas() {
///     let port: SecurePort<'_> = replica.secure_port()?;
///     port.get("/healthz").becomes(answers(200)).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SecurePort<'a> {
    cx: &'a CheckCx,
    replica: String,
    at: SocketAddr,
    client: reqwest::Client,
}

/// A path on a secure port, with the credentials of the request.
#[derive(Clone)]
pub struct Page<'a> {
    port: SecurePort<'a>,
    path: String,
    reader: Option<Reader>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An answer over HTTPS.
    Given {
        /// Its status.
        status: u16,
        /// Its body.
        body: String,
    },
    /// No answer; the reason as text.
    None(String),
}

impl Observed for Answer {
    fn observed(&self) -> String {
        match self {
            Answer::Given { status, body } => {
                let said = in_one_line(body);
                let shown: String = said.chars().take(SHOWN).collect();
                let more = if shown.len() < said.len() { "..." } else { "" };
                format!("{status} '{shown}'{more}")
            }
            Answer::None(why) => format!("no answer over HTTPS: {why}"),
        }
    }
}

/// What a body says, for a message: the words of a Kubernetes Status, or all of its lines.
fn in_one_line(body: &str) -> String {
    let status = serde_json::from_str::<serde_json::Value>(body).ok();
    match status.as_ref().and_then(|status| status["message"].as_str()) {
        Some(message) => message.to_owned(),
        None => body.trim_end().lines().collect::<Vec<_>>().join("; "),
    }
}

/// There is an answer over HTTPS, whatever it is; returns status and body.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, port: &SecurePort<'_>) -> Verdict {
/// let (status, _) = port.get("/").becomes(serves()).await?;
/// cx.record("status", status);
/// # Ok(()) }
/// ```
pub fn serves() -> Matcher<Answer, (u16, String)> {
    matcher("is answered over HTTPS", |answer: &Answer| match answer {
        Answer::Given { status, body } => Observation::Matched((*status, body.clone())),
        Answer::None(_) => Observation::Pending(String::new()),
    })
}

/// The answer has this status; returns the body.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, port: &SecurePort<'_>) -> Verdict {
/// let body = port.get("/healthz").becomes(answers(200)).when("without a credential").await?;
/// cx.record("health", body);
/// # Ok(()) }
/// ```
pub fn answers(status: u16) -> Matcher<Answer, String> {
    matcher(format!("is answered with {status}"), move |answer: &Answer| match answer {
        Answer::Given { status: given, body } if *given == status => Observation::Matched(body.clone()),
        Answer::Given { .. } | Answer::None(_) => Observation::Pending(String::new()),
    })
}

/// The request is refused: the client is unknown or not permitted. A CCM that cannot authenticate clients answers with an
/// error, which also counts as refused.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(port: &SecurePort<'_>) -> Verdict {
/// port.get("/metrics").becomes(refused()).when("without a credential").await
/// # }
/// ```
pub fn refused() -> Matcher<Answer> {
    holds("is refused", |answer: &Answer| matches!(answer, Answer::Given { status: 401 | 403 | 500, .. }))
        .expecting("status 401 or 403, or 500 if it cannot authenticate the client")
}

/// The request is refused, or the path does not exist.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(port: &SecurePort<'_>) -> Verdict {
/// port.get("/debug/pprof/").becomes(shows_nothing()).when("without a credential").await
/// # }
/// ```
pub fn shows_nothing() -> Matcher<Answer> {
    let refused = refused();
    holds("is refused or does not exist", move |answer: &Answer| {
        matches!(answer, Answer::Given { status: 404, .. })
            || refused.matches(answer) == Observation::Matched(())
    })
    .expecting("status 401 or 403, 500 if it cannot authenticate the client, or 404")
}

/// The answer is successful and `lacks` finds nothing missing; it returns the missing parts as text.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, port: &SecurePort<'_>) -> Verdict {
/// let missing = |text: &str| -> Vec<String> {
///     let wanted = ["leader_election_master_status"];
///     wanted.iter().filter(|name| !text.contains(*name)).map(|name| (*name).to_owned()).collect()
/// };
/// let page = port.get_as("/metrics", &cx.reader().await?);
/// page.becomes(shows("the metrics of the framework", missing)).await?;
/// # Ok(()) }
/// ```
pub fn shows(
    what: impl Into<String>,
    lacks: impl Fn(&str) -> Vec<String> + 'static,
) -> Matcher<Answer, String> {
    matcher(format!("shows {}", what.into()), move |answer: &Answer| match answer {
        Answer::Given { status: 200, body } => match lacks(body) {
            missing if missing.is_empty() => Observation::Matched(body.clone()),
            missing => Observation::Pending(format!("without {}", missing.join(", "))),
        },
        Answer::Given { .. } | Answer::None(_) => Observation::Pending(String::new()),
    })
}

impl<'a> Replica<'a> {
    /// Its secure port. The address is the node's if the CCM listens on all interfaces or on this one.
    ///
    /// A CCM creates its own certificate when it starts (contract OBS-01), which cannot be verified, so any certificate
    /// is accepted.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] where its Pod is not on its node's network or the node cannot be reached,
    /// [`CheckError::Error`] when it has no Pod.
    pub fn secure_port(&self) -> Result<SecurePort<'a>, CheckError> {
        let (cx, name) = (self.cx, self.name());
        let session = cx.session();
        let pod = session.ccm().pods_of_replica(name).into_iter().find(|pod| {
            pod.metadata.deletion_timestamp.is_none()
                && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
        });
        cx.port_of(name, pod, session.ccm().secure_port_of(name).unwrap_or_default())
    }
}

impl CheckCx {
    /// The secure port of a Pod of the CCM with this name.
    pub(super) fn port_of(
        &self,
        name: &str,
        pod: Option<Arc<Pod>>,
        port: u16,
    ) -> Result<SecurePort<'_>, CheckError> {
        let session = self.session();
        let pod = pod.ok_or_else(|| CheckError::Error(format!("{name} has no Pod on a node")))?;
        let spec = pod.spec.clone().unwrap_or_default();
        let node = spec.node_name.unwrap_or_default();
        if spec.host_network != Some(true) {
            let why = format!("Pod {} is on the pod network, which the harness cannot reach", pod.name_any());
            return Err(CheckError::NotObservable(why));
        }
        let machine = session.ccm_site().cluster().machines().iter().find(|machine| machine.name == node);
        let address = machine.and_then(|machine| machine.reached_at);
        let address = address
            .ok_or_else(|| CheckError::NotObservable(format!("the harness cannot reach node {node}")))?;
        let bound = session.ccm().flag("bind-address");
        if bound.as_deref().is_some_and(|bound| keeps_to_its_node(bound, address)) {
            let bound = bound.unwrap_or_default();
            return Err(CheckError::NotObservable(format!(
                "--bind-address={bound} makes its port reachable only on its own node"
            )));
        }
        let client = client().map_err(|error| CheckError::Error(chain(&error)))?;
        Ok(SecurePort { cx: self, replica: name.to_owned(), at: SocketAddr::new(address, port), client })
    }
}

/// Whether an address can be reached only from its own node; a simulated node can be reached on the loopback of this
/// machine.
fn keeps_to_its_node(bound: &str, reached_at: IpAddr) -> bool {
    let loopback = bound == "localhost" || bound.parse().is_ok_and(|bound: IpAddr| bound.is_loopback());
    loopback && !reached_at.is_loopback()
}

impl<'a> SecurePort<'a> {
    /// A path with its query, read anonymously.
    pub fn get(&self, path: &str) -> Page<'a> {
        Page { port: self.clone(), path: path.to_owned(), reader: None }
    }

    /// A path with its query, read with the credentials of a reader.
    pub fn get_as(&self, path: &str, reader: &Reader) -> Page<'a> {
        Page { reader: Some(reader.clone()), ..self.get(path) }
    }

    /// The replica whose port it is.
    pub fn replica(&self) -> &str {
        &self.replica
    }
}

impl Page<'_> {
    async fn ask(&self) -> reqwest::Result<Answer> {
        let request = self.port.client.get(format!("https://{}{}", self.port.at, self.path));
        let request = match &self.reader {
            Some(Reader(token)) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await?;
        Ok(Answer::Given { status: response.status().as_u16(), body: bounded::body(response).await? })
    }
}

impl Subject for Page<'_> {
    type Snapshot = Answer;

    fn cx(&self) -> &CheckCx {
        self.port.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName {
            kind: "the path",
            name: format!("{} on port {} of replica {}", self.path, self.port.at.port(), self.port.replica),
            uid: None,
        }
    }

    /// Each read is a request to the replica itself.
    async fn read(&self, _: ReadSource) -> Result<Answer, ReadError> {
        Ok(self.ask().await.unwrap_or_else(|error| Answer::None(chain(&error))))
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

/// A client that accepts any certificate, follows no redirects and waits no longer than [`PATIENCE`].
fn client() -> reqwest::Result<reqwest::Client> {
    // Without this no TLS works if several providers are compiled in. If another one is already installed, it works as
    // well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent("ccm-conformance")
        .timeout(PATIENCE)
        .pool_max_idle_per_host(0)
        .no_proxy()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(status: u16, body: &str) -> Answer {
        Answer::Given { status, body: body.to_owned() }
    }

    #[test]
    fn only_what_is_answered_over_https_counts() {
        let refused = Answer::None("connection refused".to_owned());
        assert_eq!(serves().matches(&given(403, "no")), Observation::Matched((403, "no".to_owned())));
        assert_eq!(serves().matches(&refused), Observation::Pending(String::new()));
        assert_eq!(answers(200).matches(&given(200, "ok")), Observation::Matched("ok".to_owned()));
        for other in [given(403, "ok"), refused] {
            assert_eq!(answers(200).matches(&other), Observation::Pending(String::new()));
        }
    }

    #[test]
    fn a_shown_page_must_be_complete() {
        let all = |body: &str| if body.contains('b') { Vec::new() } else { vec!["b".to_owned()] };
        assert_eq!(shows("a and b", all).matches(&given(200, "ab")), Observation::Matched("ab".to_owned()));
        assert_eq!(
            shows("a and b", all).matches(&given(200, "a")),
            Observation::Pending("without b".to_owned())
        );
        assert_eq!(shows("a and b", all).matches(&given(403, "b")), Observation::Pending(String::new()));
        assert_eq!(refused().matches(&given(401, "")), Observation::Matched(()));
        assert_eq!(refused().matches(&given(404, "")), Observation::when(false));
        for (status, expected) in [(200, false), (403, true), (404, true)] {
            assert_eq!(shows_nothing().matches(&given(status, "")), Observation::when(expected), "{status}");
        }
        assert_eq!(refused().matches(&given(200, "")), Observation::when(false));
    }

    #[test]
    fn a_port_on_loopback_is_out_of_reach_but_of_a_simulated_node() {
        let (real, simulated) = ([172, 18, 0, 2].into(), [127, 16, 0, 1].into());
        for bound in ["127.0.0.1", "::1", "localhost"] {
            assert!(keeps_to_its_node(bound, real) && !keeps_to_its_node(bound, simulated), "{bound}");
        }
        assert!(!keeps_to_its_node("0.0.0.0", real) && !keeps_to_its_node("::", real));
    }

    #[test]
    fn a_message_shows_the_beginning_of_a_body() {
        assert_eq!(given(200, "ok\n").observed(), "200 'ok'");
        assert_eq!(
            given(200, "[+]ping ok\nhealthz check passed\n").observed(),
            "200 '[+]ping ok; healthz check passed'"
        );
        assert!(given(200, &"x".repeat(1000)).observed().ends_with("x'..."));
        let status = r#"{"kind": "Status", "message": "Unauthorized", "code": 401}"#;
        assert_eq!(given(401, status).observed(), "401 'Unauthorized'");
    }

    #[tokio::test]
    async fn a_plain_http_server_gives_no_answer_over_https() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        });
        let error = client().expect("a client").get(format!("https://{at}/healthz")).send().await;
        assert!(chain(&error.expect_err("no TLS")).contains("corrupt message"));
    }
}
