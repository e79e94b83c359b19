//! What every new pod gets: a service account with its token, and a priority.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/{serviceaccount,priority}`.

use embedded_semantics::kinds::{self, Kind};
use embedded_semantics::lifecycle::mount_token;
use embedded_semantics::status::{self, Status};
use serde_json::{Value, json};

use crate::api::{Api, collection_of, suffix};
use crate::store::Key;

const MIRROR: &str = "kubernetes.io/config.mirror";

/// The priority classes that every cluster has.
const CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

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
    let Some(account) = api.store.get(collection_of(accounts), &Key::new(&namespace, &name)) else {
        let why =
            format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        return Err(refuse(pod, &why));
    };
    mount_token(pod, &account.value(), &suffix());
    Ok(())
}

/// No runtime class is served here, so that none is found.
pub(super) fn runtime_class(pod: &Value) -> Result<(), Status> {
    match pod["spec"]["runtimeClassName"].as_str().unwrap_or_default() {
        "" => Ok(()),
        class => Err(refuse(pod, &format!("pod rejected: RuntimeClass {class:?} not found"))),
    }
}

/// The priority itself is a default of the kind; here is refused what contradicts it.
pub(super) fn priority(kind: &Kind, pod: &Value) -> Result<(), Status> {
    if !pod["spec"].is_object() {
        return Ok(());
    }
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default();
    let priority = match CLASSES.iter().find(|(name, _)| *name == class) {
        Some((_, value)) => *value,
        None if class.is_empty() => 0,
        None => {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            return Err(status::forbidden(
                kind,
                name,
                &format!("no PriorityClass with name {class} was found"),
            ));
        }
    };
    if let Some(given) = pod["spec"]["priority"].as_i64().filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(refuse(pod, &why));
    }
    Ok(())
}
