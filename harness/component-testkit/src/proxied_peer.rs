//! A Pod behind the network proxy, and the ways in which an API server connects to it and its Node.

use super::proxied_cluster::{ProxiedCluster, apply, removing};
use super::streams::upgraded;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness_clusters::images::own_program;
use harness_components::network_proxy::tunnel::{GREETING, GROUP, PEER, SERVER_FILES, write_certificates};
use harness_core::check::{CheckError, Verdict, chain};
use harness_core::probe::{ReadError, poll};
use harness_testkit::CheckCx;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Its ports on the network of its Node: with TLS, and without.
const PORTS: [u16; 2] = [18_443, 18_080];
/// How long one try may take: an API server waits 30 s for a dial.
const TRY: Duration = Duration::from_secs(35);
/// Interval between two tries.
const AGAIN: Duration = Duration::from_millis(200);
/// How long a Pod may take to run.
const UP: Duration = Duration::from_secs(60);
/// The label of a check's namespace.
const LABEL: &str = "ccm-conformance.io/check";

/// The ways in which an API server connects to something on a Node.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(peer: &Peer<'_>) -> Verdict {
/// for way in Way::ALL {
///     peer.is_reached(way, "the API server reaches the Node", DIAL_LIMIT).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Logs of a Pod.
    Logs,
    /// Execution of a program in a Pod's container.
    Exec,
    /// The output of a Pod's container.
    Attach,
    /// A port of a Pod.
    PortForward,
    /// The metrics of a kubelet.
    Metrics,
    /// A webhook addressed by its Service.
    Webhook,
    /// An API addressed by its Service.
    Aggregated,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 7] =
        [Way::Logs, Way::Exec, Way::Attach, Way::PortForward, Way::Metrics, Way::Webhook, Way::Aggregated];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Logs => "logs",
            Way::Exec => "exec",
            Way::Attach => "attach",
            Way::PortForward => "port-forward",
            Way::Metrics => "metrics of a kubelet",
            Way::Webhook => "a webhook",
            Way::Aggregated => "an aggregated API",
        })
    }
}

/// Why a way did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    /// The API server's status, if it answered.
    pub status: Option<u16>,
    /// What was observed.
    pub seen: String,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Astray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.map_or("no status".to_owned(), |status| format!("status {status}"));
        write!(f, "{status} after {:.1} s: {}", self.took.as_secs_f64(), self.seen)
    }
}

/// The Pod, with a Service for it.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let proxy = NetworkProxy::of(cx)?;
/// let cluster = proxy.on_a_cluster().await?;
/// let peer: Peer<'_> = cluster.peer().await?;
/// peer.is_reached(Way::Logs, "logs can be read through the proxy", DIAL_LIMIT).await
/// # }
/// ```
#[derive(Debug)]
pub struct Peer<'a> {
    cluster: &'a ProxiedCluster<'a>,
    namespace: String,
}

impl<'a> ProxiedCluster<'a> {
    /// Creates a Pod on a Node with an agent, until the check ends.
    ///
    /// # Errors
    /// It does not run.
    pub async fn peer(&'a self) -> Result<Peer<'a>, CheckError> {
        let cx = self.proxy.cx;
        let namespace = cx.namespace().await?;
        let host = format!("{PEER}.{namespace}.svc");
        let folder = cx.session().dir().path().join(cx.prefix());
        write_certificates(&folder, &[host])?;
        let mut secret = BTreeMap::new();
        for file in SERVER_FILES {
            secret.insert(file, std::fs::read_to_string(folder.join(file))?);
        }
        let ca = STANDARD.encode(&secret[SERVER_FILES[0]]);
        let own = own_program()?;
        let program = format!("/{}", own.file_name().unwrap_or_default().to_string_lossy());
        let addresses = PORTS.map(|port| format!("0.0.0.0:{port}"));
        let meta = |name: &str| json!({"name": name, "namespace": namespace, "labels": {"app": PEER}});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": meta(PEER),
            "spec": {
                "nodeName": self.node, "hostNetwork": true, "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": false, "enableServiceLinks": false,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": "peer", "image": cx.session().state().idle_image,
                    "command": [program, PEER, addresses[0], addresses[1], "/files"],
                    "volumeMounts": [{"name": "files", "mountPath": "/files"}],
                }],
                "volumes": [{"name": "files", "secret": {"secretName": PEER}}],
            },
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": meta(PEER),
            "spec": {
                "selector": {"app": PEER}, "publishNotReadyAddresses": true,
                "ports": [{"port": 443, "targetPort": PORTS[0], "protocol": "TCP"}],
            },
        });
        let to_service = json!({"namespace": namespace, "name": PEER, "port": 443, "path": "/admit"});
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": cx.prefix()},
            "webhooks": [{
                "name": GROUP, "clientConfig": {"service": to_service, "caBundle": ca},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                "namespaceSelector": {"matchLabels": {LABEL: cx.id().to_string()}},
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 10,
            }],
        });
        let api = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{GROUP}")},
            "spec": {
                "group": GROUP, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10, "caBundle": ca,
                "service": {"namespace": namespace, "name": PEER, "port": 443},
            },
        });
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta(PEER), "stringData": secret});
        cx.undo_at_end(removing(cx.client(), &[pod.clone(), webhook.clone(), api.clone()]));
        apply(cx, &self.applier, &[secret, service, pod, webhook]).await?;
        // API servers of 1.20 panic when one of these is applied.
        let made = http::Request::post("/apis/apiregistration.k8s.io/v1/apiservices")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(api.to_string().into_bytes());
        let made = cx.client().request_text(made.map_err(kube::Error::HttpError)?);
        cx.session().unless_interrupted(async { Ok(made.await?) }).await?;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{PEER}");
        let runs = async |seen: &mut String| {
            let pod: Value = get(cx, &path).await.map_err(|(_, why)| ReadError::passing(why))?;
            *seen = pod["status"].to_string();
            Ok((pod["status"]["phase"] == "Running").then_some(()))
        };
        let waited = async { Ok(poll("the Pod behind the proxy runs", UP, AGAIN, runs).await?) };
        cx.session().unless_interrupted(waited).await?;
        Ok(Peer { cluster: self, namespace })
    }
}

async fn get(cx: &CheckCx, path: &str) -> Result<Value, (Option<u16>, String)> {
    let text = get_text(cx, path).await?;
    serde_json::from_str(&text).map_err(|error| (None, format!("{error}: {text}")))
}

async fn get_text(cx: &CheckCx, path: &str) -> Result<String, (Option<u16>, String)> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| (None, error.to_string()))?;
    cx.client().request_text(request).await.map_err(|error| failed(&error))
}

/// Lists Nodes, and creates and deletes a ConfigMap; returns how long that took.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let took = reads_and_writes(cx).await.map_err(CheckError::Error)?;
/// cx.record("took_ms", took.as_millis());
/// # Ok(()) }
/// ```
///
/// # Errors
/// The API server's error.
pub async fn reads_and_writes(cx: &CheckCx) -> Result<Duration, String> {
    let began = Instant::now();
    // Not in the check's own namespace, which may have a webhook.
    let maps: Api<ConfigMap> = Api::namespaced(cx.client().clone(), "default");
    let name = cx.prefix();
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap_or_default();
    let all = async {
        Api::<Node>::all(cx.client().clone()).list(&ListParams::default()).await?;
        maps.create(&PostParams::default(), &map).await?;
        maps.delete(name, &DeleteParams::default()).await.map(drop)
    };
    match timeout(TRY, all).await {
        Ok(Ok(())) => Ok(began.elapsed()),
        Ok(Err(error)) => Err(chain(&error)),
        Err(_) => Err(format!("nothing in {} s", TRY.as_secs())),
    }
}

/// The API server's metrics with this prefix, each series with its value.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let since = api_server_counts(cx, "process_start_time_seconds").await?;
/// cx.record("series", since.len());
/// # Ok(()) }
/// ```
///
/// # Errors
/// The API server does not answer.
pub async fn api_server_counts(cx: &CheckCx, prefix: &str) -> Result<BTreeMap<String, f64>, CheckError> {
    let text = get_text(cx, "/metrics").await.map_err(|(_, why)| CheckError::Error(why))?;
    let ours = text.lines().filter(|line| line.starts_with(prefix));
    let split = ours.filter_map(|line| line.rsplit_once(' '));
    Ok(split.filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect())
}

fn failed(error: &kube::Error) -> (Option<u16>, String) {
    match error {
        kube::Error::Api(status) => (Some(status.code), status.message.clone()),
        other => (None, chain(other)),
    }
}

fn holds(text: &str) -> Result<(), (Option<u16>, String)> {
    match text.contains(GREETING) {
        true => Ok(()),
        false => Err((None, format!("without the greeting: {}", text.chars().take(300).collect::<String>()))),
    }
}

impl Peer<'_> {
    fn cx(&self) -> &CheckCx {
        self.cluster.proxy.cx
    }

    async fn goes(&self, way: Way) -> Result<(), (Option<u16>, String)> {
        let (cx, namespace, node) = (self.cx(), &self.namespace, &self.cluster.node);
        let pod = format!("/api/v1/namespaces/{namespace}/pods/{PEER}");
        let limit = TRY;
        match way {
            Way::Logs => holds(&get_text(cx, &format!("{pod}/log?tailLines=5")).await?),
            Way::Metrics => {
                let text = get_text(cx, &format!("/api/v1/nodes/{node}/proxy/metrics")).await?;
                match text.contains("kubelet_") {
                    true => Ok(()),
                    false => Err((None, "no metric of a kubelet".to_owned())),
                }
            }
            Way::Exec => {
                let own = own_program().map_err(|error| (None, error.to_string()))?;
                let program = format!("%2F{}", own.file_name().unwrap_or_default().to_string_lossy());
                let path = format!("{pod}/exec?stdout=true&command={program}&command={PEER}&command=say");
                let mut channels = upgraded(cx, &path).await?;
                channels.says(GREETING, limit).await.map_err(|why| (None, why))
            }
            Way::Attach => {
                let mut channels = upgraded(cx, &format!("{pod}/attach?stdout=true")).await?;
                channels.says(GREETING, limit).await.map_err(|why| (None, why))
            }
            Way::PortForward => {
                let mut channels = upgraded(cx, &format!("{pod}/portforward?ports={}", PORTS[1])).await?;
                let request = b"GET / HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n\r\n";
                channels.send(0, request).await.map_err(|error| (None, error.to_string()))?;
                channels.says(GREETING, limit).await.map_err(|why| (None, why))
            }
            Way::Webhook => {
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refused"}})
                    .to_string();
                let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
                let request = http::Request::post(path)
                    .header(http::header::CONTENT_TYPE, "application/json")
                    .body(map.into_bytes())
                    .map_err(|error| (None, error.to_string()))?;
                match cx.client().request_text(request).await {
                    Ok(_) => Err((None, "the API server does not know the webhook yet".to_owned())),
                    Err(kube::Error::Api(status)) if status.message.contains(GREETING) => Ok(()),
                    Err(error) => Err(failed(&error)),
                }
            }
            Way::Aggregated => holds(&get_text(cx, &format!("/apis/{GROUP}/v1/greetings")).await?),
        }
    }

    /// Tries a way once.
    ///
    /// # Errors
    /// The run is interrupted.
    pub async fn tried(&self, way: Way) -> Result<Result<Duration, Astray>, CheckError> {
        let began = Instant::now();
        let tried = async { Ok(timeout(TRY, self.goes(way)).await) };
        let outcome = self.cx().session().unless_interrupted(tried).await?;
        let took = began.elapsed();
        let silent = || (None, format!("nothing in {} s", TRY.as_secs()));
        Ok(match outcome.unwrap_or_else(|_| Err(silent())) {
            Ok(()) => Ok(took),
            Err((status, seen)) => Err(Astray { status, seen, took }),
        })
    }

    /// Verifies that a way works within this time.
    ///
    /// # Errors
    /// It does not.
    pub async fn is_reached(&self, way: Way, promise: &str, limit: Duration) -> Verdict {
        let reached = async |seen: &mut String| match self.tried(way).await {
            Ok(Ok(_)) => Ok(Some(())),
            Ok(Err(astray)) => {
                *seen = astray.to_string();
                Ok(None)
            }
            Err(_) => Err(ReadError { text: "the run was interrupted".to_owned(), fatal: true }),
        };
        let what = format!("{way} of the Pod behind the proxy");
        let waited = async { Ok(poll(&what, limit, AGAIN, reached).await) };
        let waited = self.cx().session().unless_interrupted(waited).await?;
        waited.map_err(|error| {
            self.cluster.proxy.violation(promise, &format!("{way} through the proxy"), error.text)
        })
    }
}
