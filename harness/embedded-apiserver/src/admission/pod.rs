//! The parts that every new pod gets: a service account with its token, and a priority.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/{serviceaccount,priority}`.

use embedded_objects::kinds::{self, Kind};
use embedded_objects::status::{self, Status};
use embedded_semantics::lifecycle::mount_token;
use serde_json::{Value, json};

use embedded_state::store::Key;
use embedded_state::{Api, collection_of, suffix};

const MIRROR: &str = "kubernetes.io/config.mirror";

fn pods() -> Result<&'static Kind, Status> {
    kinds::find("", "v1", "pods").ok_or_else(status::no_such_resource)
}

fn refuse(pod: &Value, why: &str) -> Status {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    pods().map_or_else(|status| status, |kind| status::forbidden(kind, name, why))
}

/// Changes parts of the pod only if they have the expected form: validation rejects the others.
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

/// Reads an object of a kind without namespaces.
fn of_cluster(api: &Api, group: &str, plural: &str, name: &str) -> Option<Value> {
    let kind = kinds::find(group, "v1", plural)?;
    api.store.get(collection_of(kind), &Key::new("", name)).map(|object| object.value())
}

/// Checks that the RuntimeClass of a Pod exists.
pub(super) fn runtime_class(api: &Api, pod: &Value) -> Result<(), Status> {
    let class = pod["spec"]["runtimeClassName"].as_str().unwrap_or_default();
    if class.is_empty() || of_cluster(api, "node.k8s.io", "runtimeclasses", class).is_some() {
        return Ok(());
    }
    Err(refuse(pod, &format!("pod rejected: RuntimeClass {class:?} not found")))
}

/// Sets the priority of a Pod to that of its class, and rejects a different value.
pub(super) fn priority(api: &Api, kind: &Kind, pod: &mut Value) -> Result<(), Status> {
    if !pod["spec"].is_object() {
        return Ok(());
    }
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let priority = match of_cluster(api, "scheduling.k8s.io", "priorityclasses", &class) {
        Some(found) => {
            if let Some(policy) = found["preemptionPolicy"].as_str() {
                pod["spec"]["preemptionPolicy"] = json!(policy);
            }
            found["value"].as_i64().unwrap_or_default()
        }
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
    pod["spec"]["priority"] = json!(priority);
    Ok(())
}
