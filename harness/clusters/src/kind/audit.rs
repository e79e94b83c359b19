//! The API server's audit log of service accounts' requests, on each control plane.
//!
//! kube-apiserver writes it (`--audit-policy-file`, `--audit-log-path`), so its policy must be on the machine before
//! kubeadm starts the API server. kind cannot copy files there, and a mounted file would have to be on the engine's own
//! machine. So the policy is written to each control plane as soon as its container runs, several seconds before kubeadm.

use super::access::KindMachines;
use super::exec::{Stdin, exec_ok};
use super::watching::{CLUSTER_LABEL, container_events};
use crate::audit::{Asked, AuditQuery};
use crate::error::ClusterError;
use crate::images::Engine;
use crate::record::{Machine, Role};
use bollard::models::EventMessage;
use futures::{Stream, StreamExt};
use harness_core::check::chain;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The folder of policy and log, the same on the machine and in the API server's container.
const FOLDER: &str = "/var/lib/ccm-conformance-audit";
/// How long a file may take to be written.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// How long the log may take to be read.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// What is logged: requests of service accounts with their answers when they end, or when they begin for those that
/// continue (watches). Requests of the control plane's own controllers' accounts are not logged.
const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    userGroups: [system:nodes, system:masters, kubeadm:cluster-admins, system:unauthenticated]
  - level: None
    users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler, system:kube-proxy]
  - level: Metadata
    userGroups: [system:serviceaccounts]
  - level: None
"#;

/// Writes `$1/policy.yaml` from the standard input.
const WRITE: &str = r#"umask 077; mkdir -p "$1" && cat > "$1/policy.yaml""#;

/// Lines of service accounts whose name begins with `$2`, oldest first. It is not an error if there are none.
const READ: &str = r#"
cd "$1" || exit 1
for file in audit-*.log audit.log; do
  [ -e "$file" ] || continue
  grep -F "\"user\":{\"username\":\"$2" "$file" || [ $? -eq 1 ] || exit 2
done
"#;

/// The arguments of an API server with this log, as name and value.
pub(super) fn arguments() -> [(&'static str, Option<String>); 4] {
    [
        ("audit-policy-file", Some(format!("{FOLDER}/policy.yaml"))),
        ("audit-log-path", Some(format!("{FOLDER}/audit.log"))),
        // MiB; a full run needs about 30.
        ("audit-log-maxsize", Some("64".to_owned())),
        ("audit-log-maxbackup", Some("3".to_owned())),
    ]
}

/// The volume that makes policy and log available in its container, in kubeadm's format.
pub(super) fn volume() -> Value {
    json!({
        "name": "ccm-conformance-audit",
        "hostPath": FOLDER,
        "mountPath": FOLDER,
        "pathType": "DirectoryOrCreate",
    })
}

/// Writes the policy to each control plane of a cluster that is about to be created, as soon as its container starts.
/// Returns an error if that is not possible: an API server without its policy does not start.
pub(super) async fn provide(
    engine: &Engine,
    cluster: &str,
    events: impl Stream<Item = EventMessage>,
) -> String {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let actor = event.actor.unwrap_or_default();
        let labels = actor.attributes.unwrap_or_default();
        let Some(machine) = control_plane(cluster, actor.id.unwrap_or_default(), &labels) else { continue };
        let command = ["sh", "-c", WRITE, "sh", FOLDER];
        if let Err(error) = exec_ok(engine, &machine, &command, Stdin::Text(POLICY), WRITE_LIMIT).await {
            return format!("the audit policy of {} was not written: {}", machine.name, chain(&error));
        }
    }
    "the Docker engine's events ended while the cluster was created".to_owned()
}

/// Containers of the cluster that start from now on.
pub(super) fn starts(engine: &Engine, cluster: &str) -> impl Stream<Item = EventMessage> + use<> {
    let events = container_events(engine, cluster, "start", Timestamp::now().as_second());
    events.filter_map(|event| futures::future::ready(event.ok()))
}

const ROLE_LABEL: &str = "io.x-k8s.kind.role";

/// The control plane of that cluster that is a container with those labels.
fn control_plane(cluster: &str, container_id: String, labels: &HashMap<String, String>) -> Option<Machine> {
    let label = |name: &str| labels.get(name).map(String::as_str);
    (label(CLUSTER_LABEL) == Some(cluster) && label(ROLE_LABEL) == Some("control-plane")).then(|| Machine {
        name: label("name").unwrap_or(&container_id).to_owned(),
        role: Role::ControlPlane,
        container_id,
        ipv4: None,
        ipv6: None,
        reached_at: None,
    })
}

impl KindMachines {
    /// The log entries of all control planes for this query, in order.
    pub(super) async fn read_audit_log(&self, query: &AuditQuery) -> Result<Vec<Asked>, ClusterError> {
        let command = ["sh", "-c", READ, "sh", FOLDER, &query.user];
        let mut text = String::new();
        for machine in self.machines.iter().filter(|machine| machine.role == Role::ControlPlane) {
            let log = exec_ok(&self.engine, machine, &command, Stdin::Empty, READ_LIMIT).await?;
            text.push_str(&log.stdout);
        }
        Ok(select(text.lines(), query))
    }
}

/// A line of the log, reduced to the needed fields (`audit.k8s.io/v1` Event).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

/// The entries of the lines that match the query. A request that continues has two lines; an incomplete line is ignored.
fn select<'a>(lines: impl Iterator<Item = &'a str>, query: &AuditQuery) -> Vec<Asked> {
    let mut seen = BTreeSet::new();
    let parsed = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let mut all: Vec<Asked> =
        parsed.filter(|line| seen.insert(line.audit_id.clone())).map(Line::asked).collect();
    all.retain(|asked| {
        asked.user.starts_with(&query.user)
            && asked.at_ms >= query.since_ms
            && !(query.refused && asked.authorized)
    });
    all.sort();
    if query.distinct {
        let mut rights = BTreeSet::new();
        all.retain(|asked| {
            let resource = if asked.resource.is_empty() { &asked.path } else { &asked.resource };
            let right =
                [&asked.user, &asked.verb, &asked.group, resource, &asked.namespace].map(String::clone);
            rights.insert((right, asked.authorized))
        });
    }
    all
}

impl Line {
    fn asked(self) -> Asked {
        let ObjectRef { resource, namespace, name, api_group, subresource } = self.object_ref;
        let resource = if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
        let decision = self.annotations.get("authorization.k8s.io/decision");
        Asked {
            at_ms: self.request_received_timestamp.as_millisecond(),
            user: self.user.username,
            verb: self.verb,
            group: api_group,
            resource,
            namespace,
            name,
            path: self.request_uri.split('?').next().unwrap_or_default().to_owned(),
            code: self.response_status.code,
            // Kubernetes includes it from 1.12 on for every request that was authorized.
            authorized: decision.map_or(self.response_status.code != 403, |decision| decision == "allow"),
            user_agent: self.user_agent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCHED: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseStarted","requestURI":"/api/v1/nodes?watch=true","verb":"watch","user":{"username":"system:serviceaccount:kube-system:ccm","groups":["system:serviceaccounts"]},"userAgent":"ccm/v1","objectRef":{"resource":"nodes","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-24T10:00:00.500000Z","stageTimestamp":"2026-11-24T10:00:00.600000Z","annotations":{"authorization.k8s.io/decision":"allow"}}"#;

    #[test]
    fn an_open_request_counts_once_and_a_refused_one_is_marked() {
        let refused = WATCHED
            .replace(r#""auditID":"1""#, r#""auditID":"2""#)
            .replace(r#""verb":"watch""#, r#""verb":"patch""#)
            .replace(r#""resource":"nodes""#, r#""resource":"nodes","name":"a","subresource":"status""#)
            .replace(r#""code":200"#, r#""code":403"#)
            .replace("\"allow\"", "\"forbid\"");
        let ended = WATCHED.replace("ResponseStarted", "ResponseComplete");
        let lines = [WATCHED, &ended, &refused, &WATCHED[..40]];
        let query =
            AuditQuery { user: "system:serviceaccount:kube-system:c".to_owned(), ..AuditQuery::default() };
        let all = select(lines.into_iter(), &query);
        assert_eq!(all.len(), 2, "{all:?}");
        let refused = select(lines.into_iter(), &AuditQuery { refused: true, ..query.clone() });
        let [one] = refused.as_slice() else { panic!("{refused:?}") };
        assert_eq!(
            (one.verb.as_str(), one.resource.as_str(), one.name.as_str()),
            ("patch", "nodes/status", "a")
        );
        assert_eq!((one.code, one.authorized, one.path.as_str()), (403, false, "/api/v1/nodes"));
        let later = AuditQuery { since_ms: one.at_ms + 1, ..query.clone() };
        assert_eq!(select(lines.into_iter(), &later), []);
        assert_eq!(
            select(
                lines.into_iter(),
                &AuditQuery { user: "system:serviceaccount:other:".to_owned(), ..query }
            ),
            []
        );
    }

    #[test]
    fn only_the_first_of_requests_for_the_same_right_is_reported() {
        let again =
            WATCHED.replace(r#""auditID":"1""#, r#""auditID":"2""#).replace(":00.500000Z", ":07.500000Z");
        let query = AuditQuery { distinct: true, ..AuditQuery::default() };
        let selected = select([again.as_str(), WATCHED].into_iter(), &query);
        assert_eq!(selected.len(), 1);
        assert_eq!(selected[0].at_ms % 60_000, 500);
    }

    #[test]
    fn only_control_planes_of_the_cluster_get_a_policy() {
        let labels = |cluster: &str, role: &str| {
            HashMap::from(
                [(CLUSTER_LABEL, cluster), (ROLE_LABEL, role), ("name", "x-control-plane")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
            )
        };
        let found = |labels| control_plane("x", "id".to_owned(), &labels).map(|machine| machine.name);
        assert_eq!(found(labels("x", "control-plane")).as_deref(), Some("x-control-plane"));
        assert_eq!(found(labels("x", "worker")), None);
        assert_eq!(found(labels("y", "control-plane")), None);
    }
}
