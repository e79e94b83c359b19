//! What every new pod gets: a service account with its token, a priority, and patience with nodes in trouble.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/{serviceaccount,priority,defaulttolerationseconds}`.

use embedded_semantics::kinds::{self, Kind};
use embedded_semantics::status::{self, Status};
use serde_json::{Value, json};

use crate::api::{Api, shelf_of, suffix};
use crate::store::Key;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// How long a pod stays on a node in trouble, in seconds.
const PATIENCE_SECONDS: i64 = 300;

/// The priority classes that every cluster has.
const CLASSES: [(&str, i64); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn pods() -> Result<&'static Kind, Status> {
    kinds::find("", "v1", "pods").ok_or_else(status::no_such_resource)
}

fn refuse(pod: &Value, why: &str) -> Status {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    pods().map_or_else(|status| status, |kind| status::forbidden(kind, name, why))
}

/// The pod's parts are only touched where they have the form they should have: the rest is for validation to refuse.
pub(super) fn service_account(api: &Api, pod: &mut Value) -> Result<(), Status> {
    if !pod["spec"].is_object() {
        return Ok(());
    }
    let mirror = !pod["metadata"]["annotations"][MIRROR].is_null();
    let given = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default().to_owned();
    if mirror {
        if !given.is_empty() {
            return Err(refuse(pod, "a mirror pod may not reference service accounts"));
        }
        return Ok(());
    }
    let name = match (given.as_str(), pod["spec"]["serviceAccount"].as_str().unwrap_or_default()) {
        ("", "") => "default".to_owned(),
        ("", old) => old.to_owned(),
        (name, _) => name.to_owned(),
    };
    pod["spec"]["serviceAccountName"] = json!(name);
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let accounts = kinds::find("", "v1", "serviceaccounts").ok_or_else(status::no_such_resource)?;
    let Some(account) = api.store.get(shelf_of(accounts), &Key::new(&namespace, &name)) else {
        let why = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        return Err(refuse(pod, &why));
    };
    let account = account.value();
    let automount = [&pod["spec"], &account].into_iter().find_map(|one| one["automountServiceAccountToken"].as_bool());
    if automount.unwrap_or(true) {
        mount_token(pod);
    }
    let pulls = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty());
    if !pulls && account["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty()) {
        pod["spec"]["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    Ok(())
}

fn mount_token(pod: &mut Value) {
    let existing = pod["spec"]["volumes"]
        .as_array()
        .and_then(|volumes| volumes.iter().find_map(|volume| volume["name"].as_str().filter(|n| n.starts_with(VOLUME))))
        .map(str::to_owned);
    let volume = existing.clone().unwrap_or_else(|| format!("{VOLUME}{}", suffix()));
    let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut mounted = false;
    for containers in ["initContainers", "containers"] {
        let Some(list) = pod["spec"].get_mut(containers).and_then(Value::as_array_mut) else { continue };
        for container in list.iter_mut().filter_map(Value::as_object_mut) {
            let mounts = container.entry("volumeMounts").or_insert(Value::Null);
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if !mounts.iter().any(|one| one["mountPath"] == TOKEN_PATH) {
                mounts.push(mount.clone());
                mounted = true;
            } else if mounts.is_empty() {
                container.remove("volumeMounts");
            }
        }
    }
    if existing.is_some() || !mounted {
        return;
    }
    let source = json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ]}});
    let volumes = &mut pod["spec"]["volumes"];
    match volumes {
        Value::Null => *volumes = json!([source]),
        Value::Array(list) => list.push(source),
        _ => {}
    }
}

pub(super) fn priority(kind: &Kind, pod: &mut Value) -> Result<(), Status> {
    if !pod["spec"].is_object() {
        return Ok(());
    }
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default();
    let priority = match CLASSES.iter().find(|(name, _)| *name == class) {
        Some((_, value)) => *value,
        None if class.is_empty() => 0,
        None => {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            return Err(status::forbidden(kind, name, &format!("no PriorityClass with name {class} was found")));
        }
    };
    if let Some(given) = pod["spec"]["priority"].as_i64().filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(refuse(pod, &why));
    }
    pod["spec"]["priority"] = json!(priority);
    if pod["spec"]["preemptionPolicy"].is_null() {
        pod["spec"]["preemptionPolicy"] = json!("PreemptLowerPriority");
    }
    Ok(())
}

pub(super) fn tolerations(pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    let list = spec.entry("tolerations").or_insert(Value::Null);
    if list.is_null() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|one| {
            let (of, effect) = (one["key"].as_str().unwrap_or_default(), one["effect"].as_str().unwrap_or_default());
            (of == key || of.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !tolerated {
            list.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE_SECONDS,
            }));
        }
    }
}
