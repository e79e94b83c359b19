//! Conditional writes, whose answers go straight into the caches.

use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ClusterResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cache::{Cache, Key, Kind};

/// The API of an object's namespace.
pub fn api_in<K>(client: &Client, namespace: &str) -> Api<K>
where
    K: Kind + Resource<Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), namespace)
}

/// The API of a cluster-scoped kind.
pub fn api<K>(client: &Client) -> Api<K>
where
    K: Kind + Resource<Scope = ClusterResourceScope>,
{
    Api::all(client.clone())
}

/// Creates the object and puts the answer into the cache.
pub async fn create<K: Kind + Serialize>(
    api: &Api<K>,
    cache: &Cache<K>,
    object: &K,
) -> Result<K, kube::Error> {
    let created = api.create(&PostParams::default(), object).await?;
    cache.observe(created.clone());
    Ok(created)
}

/// Changes the object with a merge patch, unless it has been changed since it was read.
pub async fn merge_if_unchanged<K: Kind>(
    api: &Api<K>,
    cache: &Cache<K>,
    read: &K,
    mut change: Value,
) -> Result<(), kube::Error> {
    if let Some(change) = change.as_object_mut()
        && let Some(metadata) = change.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
    {
        metadata.insert("resourceVersion".to_owned(), json!(read.resource_version()));
        metadata.insert("uid".to_owned(), json!(read.uid()));
    }
    let changed = api.patch(&read.name_any(), &PatchParams::default(), &Patch::Merge(change)).await?;
    cache.observe(changed);
    Ok(())
}

/// Changes the status as kubelets and controllers do: conditions are merged by their type.
pub async fn patch_status<K: Kind>(
    api: &Api<K>,
    cache: &Cache<K>,
    name: &str,
    uid: Option<String>,
    status: Value,
) -> Result<(), kube::Error> {
    let mut patch = json!({"status": status});
    if let Some(uid) = uid {
        patch["metadata"] = json!({"uid": uid});
    }
    let changed = api.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    cache.observe(changed);
    Ok(())
}

/// Replaces the status, unless the object has been changed since it was read. Ignores that it is already gone.
pub async fn replace_status<K>(client: &Client, cache: &Cache<K>, object: &K) -> Result<(), kube::Error>
where
    K: Kind + Serialize + Resource<Scope = NamespaceResourceScope>,
{
    let api = api_in::<K>(client, &object.namespace().unwrap_or_default());
    match api.replace_status(&object.name_any(), &PostParams::default(), object).await {
        Ok(changed) => {
            cache.observe(changed);
            Ok(())
        }
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Deletes exactly this object. Ignores that it is already gone.
pub async fn delete<K: Kind>(
    api: &Api<K>,
    cache: &Cache<K>,
    object: &K,
    mut how: DeleteParams,
) -> Result<(), kube::Error> {
    how.preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
    let uid = object.uid().unwrap_or_default();
    match api.delete(&object.name_any(), &how).await {
        Ok(answer) => {
            match answer.left() {
                // The answer is the object itself if it is a Pod with a grace period, or has finalizers.
                Some(left) if waits(&left) => cache.observe(left),
                _ => cache.forget(&Key::of(object), &uid),
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {
            cache.forget(&Key::of(object), &uid);
            Ok(())
        }
        // Another object has this name now: the old one is gone.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a deleted object still exists, because it has a grace period or finalizers.
fn waits<K: Resource>(object: &K) -> bool {
    let meta = object.meta();
    meta.deletion_timestamp.is_some()
        && (meta.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
            || meta.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty()))
}

/// Whether the error means that the object does not exist.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the error means that the object already exists.
pub fn is_already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

/// Whether the error means that the namespace accepts no new objects.
pub fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}
