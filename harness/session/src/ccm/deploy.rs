//! Applies and removes manifests, and finds out what keeps Pods from running.

use super::logs::{containers_of, log_end};
use super::manifests::{ObjectKey, key_of};
use crate::k8s::ClusterCaches;
use harness_core::check::{Blocker, chain};
use harness_core::probe::{Observed, ReadError, poll};
use harness_core::secrets;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Field manager of everything the harness applies.
pub const FIELD_MANAGER: &str = "ccm-conformance";

/// The CCM could not be deployed, or does not start.
#[derive(Debug, thiserror::Error)]
pub enum CcmError {
    /// The API server refused a manifest.
    #[error("applying {object}: {cause}")]
    Apply {
        /// The object.
        object: String,
        /// The API server's message.
        cause: String,
        /// Whether the API server refused, instead of not answering.
        refused: bool,
    },
    /// An object could not be removed.
    #[error("removing {object}: {cause}")]
    Remove {
        /// The object.
        object: String,
        /// The API server's message.
        cause: String,
    },
    /// It cannot start, for a reason that waiting does not change and that is not its own.
    #[error("{0}")]
    Broken(String),
    /// None of its Pods can run, because of what its manifests say.
    #[error("{0}")]
    NeverRuns(String),
    /// Its process crash-loops.
    #[error("{0}")]
    CrashLoops(String),
    /// All replicas run, but none leads.
    #[error("{0}")]
    NeverLeads(String),
    /// It did not start in time.
    #[error("{0}")]
    NotReady(String),
}

impl CcmError {
    /// The claim that the CCM violated; `None` if the environment is to blame.
    pub fn blocker(&self) -> Option<Blocker> {
        match self {
            CcmError::NeverRuns(_) => Some(Blocker::Boots),
            CcmError::CrashLoops(_) => Some(Blocker::StaysUp),
            CcmError::NeverLeads(_) => Some(Blocker::Elects),
            CcmError::Apply { .. }
            | CcmError::Remove { .. }
            | CcmError::Broken(_)
            | CcmError::NotReady(_) => None,
        }
    }
}

/// How long, and how often, an object is applied again if the API server asks for a retry: on a busy machine
/// kube-controller-manager creates service account tokens late, and old API servers accept no Pods before that.
const AGAIN_FOR: Duration = Duration::from_secs(30);
const AGAIN_EVERY: Duration = Duration::from_millis(200);

/// Whether the API server says that the same request may succeed in a moment: before Kubernetes 1.24 it does so for a Pod
/// whose service account has no token yet (plugin/pkg/admission/serviceaccount).
fn is_worth_another_try(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "ServerTimeout")
}

/// Applies dynamic objects and caches the API server's resource names for their kinds.
pub struct Applier {
    client: Client,
    kinds: Mutex<BTreeMap<(String, String), (ApiResource, ApiCapabilities)>>,
}

impl std::fmt::Debug for Applier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Applier")
    }
}

impl Applier {
    /// An applier that uses `client`.
    pub fn new(client: Client) -> Applier {
        Applier { client, kinds: Mutex::new(BTreeMap::new()) }
    }

    async fn api(&self, document: &Value) -> Result<Api<DynamicObject>, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&document["apiVersion"]), text(&document["kind"]));
        let gvk = match version.split_once('/') {
            Some((group, version)) => GroupVersionKind::gvk(group, version, &kind),
            None => GroupVersionKind::gvk("", &version, &kind),
        };
        let mut kinds = self.kinds.lock().await;
        let (resource, capabilities) = match kinds.entry((version.clone(), kind.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let found = pinned_kind(&self.client, &gvk).await.map_err(|error| match &error {
                    kube::Error::Api(status) if status.code == 404 => format!(
                        "the API server does not serve the kind {kind} of {version}; add its CustomResourceDefinition to \
                         the manifests, or leave the object out"
                    ),
                    _ => format!("the API server does not say whether it serves {kind} of {version}: {}", chain(&error)),
                })?;
                unknown.insert(found)
            }
        };
        Ok(match &capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), resource),
            Scope::Namespaced => {
                let namespace = document["metadata"]["namespace"].as_str().unwrap_or("default");
                Api::namespaced_with(self.client.clone(), namespace, resource)
            }
        })
    }

    /// Applies all documents, in order.
    ///
    /// # Errors
    /// The first document that the API server refuses.
    pub async fn apply(&self, documents: &[Value]) -> Result<(), CcmError> {
        for document in documents {
            let object = key_of(document);
            let failed = |cause, refused| CcmError::Apply { object: object.to_string(), cause, refused };
            let api = self.api(document).await.map_err(|cause| failed(cause, false))?;
            let params = PatchParams::apply(FIELD_MANAGER).force();
            let mut refusal = None;
            let tried = async |seen: &mut String| match api
                .patch(&object.name, &params, &Patch::Apply(document))
                .await
            {
                Ok(_) => Ok(Some(())),
                Err(error) if is_worth_another_try(&error) => {
                    *seen = chain(&error);
                    Ok(None)
                }
                Err(error) => {
                    refusal = Some(failed(chain(&error), matches!(error, kube::Error::Api(_))));
                    Ok(Some(()))
                }
            };
            let taken = poll("the API server accepts it", AGAIN_FOR, AGAIN_EVERY, tried).await;
            taken.map_err(|error: ReadError| failed(error.text, true))?;
            refusal.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Applies all documents, in order, also after one that the API server refuses, as kubectl does. Returns the refusals.
    ///
    /// # Errors
    /// The API server did not answer.
    pub async fn apply_each(&self, documents: &[Value]) -> Result<Vec<CcmError>, CcmError> {
        let mut refusals = Vec::new();
        for document in documents {
            match self.apply(std::slice::from_ref(document)).await {
                Err(error @ CcmError::Apply { refused: true, .. }) => refusals.push(error),
                applied => applied?,
            }
        }
        Ok(refusals)
    }

    /// Removes all documents, the last first; missing ones are not an error. A Pod gets one second: without a grace
    /// period its object is deleted at once, but its program, which still uses its ports and works, ends only when its
    /// kubelet gets to it.
    ///
    /// # Errors
    /// All objects that could not be removed, after trying everything.
    pub async fn remove(&self, documents: &[Value]) -> Result<(), CcmError> {
        let mut failures = Vec::new();
        for document in documents.iter().rev() {
            let object = key_of(document);
            let grace_s = u32::from(object.kind == "Pod");
            let outcome = match self.api(document).await {
                Ok(api) => {
                    match api.delete(&object.name, &DeleteParams::background().grace_period(grace_s)).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                        Err(error) => Err(chain(&error)),
                        Ok(_) => Ok(()),
                    }
                }
                Err(cause) => Err(cause),
            };
            if let Err(cause) = outcome {
                failures.push((object.to_string(), cause));
            }
        }
        match failures.into_iter().reduce(|(a, b), (c, d)| (format!("{a}, {c}"), format!("{b}; {d}"))) {
            None => Ok(()),
            Some((object, cause)) => Err(CcmError::Remove { object, cause }),
        }
    }

    /// Sets `spec.replicas` of a workload.
    ///
    /// # Errors
    /// The API server's message.
    pub(super) async fn scale(&self, workload: &ObjectKey, replicas: u32) -> Result<(), CcmError> {
        let document = json!({
            "apiVersion": "apps/v1", "kind": workload.kind,
            "metadata": {"name": workload.name, "namespace": workload.namespace},
        });
        let failed = |cause| CcmError::Apply { object: workload.to_string(), cause, refused: false };
        let api = self.api(&document).await.map_err(failed)?;
        let patch = json!({"spec": {"replicas": replicas}});
        api.patch(&workload.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .map_err(|error| failed(chain(&error)))?;
        Ok(())
    }
}

/// Pods of a workload: in its namespace, with its name as prefix, owned by it or its ReplicaSets.
pub fn pods_of(world: &ClusterCaches, workload: &ObjectKey) -> Vec<Arc<Pod>> {
    let owned = |pod: &Pod| {
        let owners = pod.owner_references();
        owners.iter().any(|owner| {
            owner.name == workload.name
                || (owner.kind == "ReplicaSet"
                    && owner.name.rsplit_once('-').is_some_and(|(deployment, _)| deployment == workload.name))
        }) || (workload.kind == "Pod" && pod.name_any() == workload.name)
    };
    let mut pods = world.pods.all();
    pods.retain(|pod| pod.namespace().unwrap_or_default() == workload.namespace && owned(pod));
    pods
}

/// Waits until no Pod of the workloads is left.
///
/// # Errors
/// After `limit`, naming the remaining Pods.
pub async fn pods_gone(
    world: &ClusterCaches,
    workloads: &[ObjectKey],
    limit: Duration,
) -> Result<(), ReadError> {
    let gone = async |seen: &mut String| {
        let left: Vec<Arc<Pod>> = workloads.iter().flat_map(|w| pods_of(world, w)).collect();
        *seen = format!("{} left: {}", left.len(), left.observed());
        Ok(left.is_empty().then_some(()))
    };
    poll("the CCM's Pods are gone", limit, Duration::from_millis(50), gone).await
}

/// Waits until no Pod of the workloads with a running program is left.
///
/// # Errors
/// After `limit`, naming the remaining Pods.
pub(super) async fn programs_ended(
    world: &ClusterCaches,
    workloads: &[ObjectKey],
    limit: Duration,
) -> Result<(), ReadError> {
    let ended = async |seen: &mut String| {
        let left: Vec<Arc<Pod>> = workloads.iter().flat_map(|w| pods_of(world, w)).collect();
        *seen = format!("{} left: {}", left.len(), left.observed());
        Ok(left.iter().all(|pod| is_at_rest(pod)).then_some(()))
    };
    poll("the CCM's programs have ended", limit, Duration::from_millis(50), ended).await
}

/// Whether all programs of a Pod that is being deleted have run and ended. One that has not started may still do so.
fn is_at_rest(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
    let terminated = |state: Option<&ContainerState>| state.is_some_and(|state| state.terminated.is_some());
    let ended = |status: &ContainerStatus| {
        let runs = status.state.as_ref().is_some_and(|state| state.running.is_some());
        !runs && (terminated(status.state.as_ref()) || terminated(status.last_state.as_ref()))
    };
    pod.metadata.deletion_timestamp.is_some() && !statuses.is_empty() && statuses.iter().all(ended)
}

/// The last lines of a Pod's containers, including those before a restart, and the reasons of crashes before them.
pub async fn last_lines(client: &Client, pod: &Pod, lines: usize) -> String {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let mut text = String::new();
    let containers = containers_of(pod);
    for (container, previous) in containers.iter().flat_map(|name| [(*name, true), (*name, false)]) {
        let name = pod.name_any();
        let Ok(log) = log_end(&api, (&name, Some(container)), SEARCHED, previous, false).await else {
            continue;
        };
        if log.text.trim().is_empty() {
            continue;
        }
        let when = if previous { "before its restart" } else { "now" };
        let whose = if containers.len() > 1 { format!(", container {container},") } else { String::new() };
        text.push_str(&format!("\n  {}{whose} {when}:", pod.name_any()));
        text.extend(shown_end(log.text, lines).iter().map(|line| format!("\n    {line}")));
    }
    if text.is_empty() { format!("\n  {} wrote nothing", pod.name_any()) } else { text }
}

/// How many lines at the end of a log are searched for the reason of a crash.
pub const SEARCHED: i64 = 400;

/// The last lines of a log as they are shown, after the first lines of a crash if that began before them: the reason of a
/// panic is above its stack.
pub fn shown_end(log: String, count: usize) -> Vec<String> {
    const REASON: usize = 2;
    let mut all = shown_lines(log);
    let end = all.split_off(all.len().saturating_sub(count));
    let Some(at) = all.iter().rposition(|line| begins_a_crash(line)) else { return end };
    let omits = all.len() - at > REASON;
    let reason = all.drain(at..).take(REASON);
    reason.chain(omits.then(|| "...".to_owned())).chain(end).collect()
}

/// Whether a crash of a program in Go, Rust, Python or Java begins with this line.
fn begins_a_crash(line: &str) -> bool {
    let begins = ["panic:", "fatal error:", "Traceback (most recent call last)", "Exception in thread"];
    begins.iter().any(|begin| line.starts_with(begin)) || line.contains("' panicked at ")
}

/// The lines of a log as they are shown: without secrets, not too long, and without what is not text.
fn shown_lines(log: String) -> Vec<String> {
    // Before anything is cut: a part of a secret might not be recognised.
    let log = secrets::redact(log);
    let lines: Vec<&str> = log.lines().collect();
    let groups = lines.chunk_by(|a, b| !is_text(a) && !is_text(b));
    let shown = groups.flat_map(|group| match group {
        [line] if is_text(line) => vec![beginning(line)],
        others => vec![format!("({} lines that are not text)", others.len())],
    });
    shown.collect()
}

/// Whether most of a line can be read; a log's bytes that are not UTF-8 have been replaced.
fn is_text(line: &str) -> bool {
    let is_odd =
        |c: &char| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !matches!(c, '\t' | '\u{1b}'));
    line.chars().filter(is_odd).count() <= line.chars().count() / 8
}

/// The beginning of a line, which may be very long.
fn beginning(line: &str) -> String {
    const SHOWN: usize = 500;
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}... ({} bytes)", &line[..at], line.len()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_crash_is_shown_above_its_last_lines() {
        let log = |head: &str| format!("starting\n{head}\ncause\n{}", "frame\n".repeat(60));
        assert_eq!(
            shown_end(log("panic: no cloud"), 2),
            ["panic: no cloud", "cause", "...", "frame", "frame"]
        );
        assert_eq!(shown_end(log("I1130 all is well"), 2), ["frame", "frame"]);
        assert_eq!(shown_end("panic: x\na\nb\n".to_owned(), 2), ["panic: x", "a", "b"]);
        assert_eq!(shown_end("panic: x\na\n".to_owned(), 5), ["panic: x", "a"]);
    }
    use kube::core::Status;

    #[test]
    fn lines_that_are_not_text_are_counted() {
        let odd = "\u{fffd}\u{1}\u{fffd}x\n".repeat(3);
        let shown =
            shown_lines(format!("starting\n{odd}\n\u{1b}[31mred\u{1b}[0m\ttext\n{}", "y".repeat(600)));
        assert_eq!(shown[..2], ["starting", "(3 lines that are not text)"]);
        assert_eq!(shown[2..4], ["", "\u{1b}[31mred\u{1b}[0m\ttext"]);
        assert!(shown[4].ends_with("... (600 bytes)"), "{}", shown[4]);
    }

    #[test]
    fn a_pod_is_at_rest_when_what_began_in_it_has_ended() {
        let at_rest = |state: Value, last: Value, removed: Option<&str>| {
            let pod = json!({
                "metadata": {"name": "p", "deletionTimestamp": removed},
                "status": {"containerStatuses": [{"name": "c", "ready": false, "restartCount": 0, "image": "i",
                    "imageID": "i", "state": state, "lastState": last}]},
            });
            is_at_rest(&serde_json::from_value(pod).expect("a Pod"))
        };
        let (ended, runs, waits) = (
            json!({"terminated": {"exitCode": 0}}),
            json!({"running": {}}),
            json!({"waiting": {"reason": "ContainerCreating"}}),
        );
        let removed = Some("2026-01-01T00:00:00Z");
        assert!(at_rest(ended.clone(), json!({}), removed));
        assert!(
            at_rest(waits.clone(), ended.clone(), removed),
            "it waits for its next start, which does not come"
        );
        assert!(!at_rest(waits, json!({}), removed), "its kubelet may be about to start it");
        assert!(!at_rest(runs, ended.clone(), removed));
        assert!(!at_rest(ended, json!({}), None), "it may be started again");
        assert!(!is_at_rest(&Pod::default()));
    }

    #[test]
    fn only_what_the_api_server_wants_to_be_sent_again_is_sent_again() {
        let said = |reason: &str| kube::Error::Api(Box::new(Status::failure("no API token found", reason)));
        assert!(is_worth_another_try(&said("ServerTimeout")));
        assert!(!is_worth_another_try(&said("Forbidden")) && !is_worth_another_try(&said("Timeout")));
    }
}
