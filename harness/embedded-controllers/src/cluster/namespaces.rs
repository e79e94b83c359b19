//! Namespaces: their default objects, and how a deleted one is emptied and removed.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, ResourceExt};
use serde_json::json;

use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

/// The account of Pods that name none.
const ACCOUNT: &str = "default";
/// The ConfigMap with the API server's certificate authority.
const ROOT_CA: &str = "kube-root-ca.crt";
/// The finalizer of a Namespace's spec.
const FINALIZER: &str = "kubernetes";
/// The pause until a Namespace that was not empty is checked again, if no change triggers a check.
const AGAIN: Duration = Duration::from_secs(1);

struct Controller {
    world: Arc<ControllerContext>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<String>> = Queue::new();
    let own = queue.clone();
    world.namespaces.on_key(move |key| own.add(key.name));
    let own = queue.clone();
    world.service_accounts.on_change(move |before, after| {
        if let (Some(account), None) = (before, after) {
            own.add(account.namespace().unwrap_or_default());
        }
    });
    let own = queue.clone();
    world.config_maps.on_change(move |before, after| {
        if let Some(map) = before
            && map.name_any() == ROOT_CA
            && after.is_none_or(|after| after.data != map.data)
        {
            own.add(map.namespace().unwrap_or_default());
        }
    });
    let (own, known) = (queue.clone(), world.clone());
    world.pods.on_change(move |before, after| {
        if let (Some(pod), None) = (before, after) {
            let namespace = pod.namespace().unwrap_or_default();
            let leaving = known.namespaces.get(&Key::cluster(&namespace));
            if leaving.is_some_and(|one| one.metadata.deletion_timestamp.is_some()) {
                own.add(namespace);
            }
        }
    });
    let controller = Arc::new(Controller { world: world.clone() });
    queue.spawn(&world.tasks, "namespace", 4, move |name| {
        let controller = controller.clone();
        async move { controller.look(&name).await }
    });
}

impl Controller {
    async fn look(&self, name: &str) -> Outcome {
        let Some(namespace) = self.world.namespaces.get(&Key::cluster(name)) else { return Ok(Next::Done) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return self.empty(&namespace, name).await;
        }
        self.create_defaults(name).await?;
        Ok(Next::Done)
    }

    async fn create_defaults(&self, name: &str) -> Result<(), kube::Error> {
        let client = self.world.client();
        if self.world.service_accounts.get(&Key::new(name, ACCOUNT)).is_none() {
            let mut account = ServiceAccount::default();
            account.metadata.name = Some(ACCOUNT.to_owned());
            account.metadata.namespace = Some(name.to_owned());
            let api = writing::api_in(&client, name);
            ignore_existing(writing::create(&api, &self.world.service_accounts, &account).await)?;
        }
        let wanted = [("ca.crt".to_owned(), self.world.settings.cluster_ca.clone())].into();
        let api: Api<ConfigMap> = writing::api_in(&client, name);
        match self.world.config_maps.get(&Key::new(name, ROOT_CA)) {
            None => {
                let mut map = ConfigMap { data: Some(wanted), ..ConfigMap::default() };
                map.metadata.name = Some(ROOT_CA.to_owned());
                map.metadata.namespace = Some(name.to_owned());
                let about = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                             endpoints such as the internal service IP or kubernetes.default.svc.";
                map.annotations_mut().insert("kubernetes.io/description".to_owned(), about.to_owned());
                ignore_existing(writing::create(&api, &self.world.config_maps, &map).await)?;
            }
            Some(known) if known.data.as_ref() != Some(&wanted) => {
                let change = json!({"data": wanted});
                writing::merge_if_unchanged(&api, &self.world.config_maps, known.as_ref(), change).await?;
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Deletes everything in the namespace; when nothing is left, its finalizer is removed.
    async fn empty(&self, namespace: &Namespace, name: &str) -> Outcome {
        let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.clone()).unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return Ok(Next::Done);
        }
        let client = self.world.client();
        let kinds = self.ask_for_kinds().await?;
        let mut left = 0_usize;
        for kind in &kinds {
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), name, kind);
            let there = match api.list_metadata(&ListParams::default()).await {
                Ok(there) => there.items.len(),
                Err(error) if writing::is_not_found(&error) => 0,
                Err(error) => return Err(error),
            };
            if there > 0 {
                api.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
                left += api.list_metadata(&ListParams::default()).await?.items.len();
            }
        }
        if left > 0 {
            return Ok(Next::After(AGAIN));
        }
        let mut finalized = namespace.clone();
        finalized.spec.get_or_insert_default().finalizers =
            Some(finalizers.into_iter().filter(|finalizer| finalizer != FINALIZER).collect());
        let api: Api<Namespace> = writing::api(&client);
        match api.replace_subresource("finalize", name, &PostParams::default(), &finalized).await {
            Ok(_) => Ok(Next::Done),
            Err(error) if writing::is_not_found(&error) => Ok(Next::Done),
            Err(error) => Err(error),
        }
    }

    /// Discovers every namespaced kind. Custom resources come and go, so this is done each time.
    async fn ask_for_kinds(&self) -> Result<Vec<ApiResource>, kube::Error> {
        let discovered = Discovery::new(self.world.client()).run_aggregated().await?;
        let mut kinds = Vec::new();
        for group in discovered.groups() {
            // Each kind once, in any version: a group's preferred version need not serve it.
            for (resource, capabilities) in group.resources_by_stability() {
                let deletable = capabilities.supports_operation(verbs::LIST)
                    && capabilities.supports_operation(verbs::DELETE_COLLECTION);
                if capabilities.scope == Scope::Namespaced && deletable {
                    kinds.push(resource);
                }
            }
        }
        Ok(kinds)
    }
}

/// Ignores that the object already exists, or that the namespace is being deleted.
fn ignore_existing<K>(created: Result<K, kube::Error>) -> Result<(), kube::Error> {
    match created {
        Err(error) if writing::is_already_exists(&error) || writing::is_forbidden(&error) => Ok(()),
        other => other.map(|_| ()),
    }
}
