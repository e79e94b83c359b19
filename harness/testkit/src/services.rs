//! Services of a check, in its own namespace, and their resources in the cloud.

use super::matchers::{keeps_finalizer, nothing_left, one_active, publishes};
use super::undo_steps::{ServiceKey, Undo, delete_as_it_is, gone};
use super::{Calls, CheckCx, Subject, Target};
use harness_clouds::{Entry, Inventory, LoadBalancer, Op};
use harness_config::Targets;
use harness_core::check::{CheckError, SubjectName};
use harness_core::probe::{ReadError, ReadSource, poll};
use harness_session::k8s::Version;
use k8s_openapi::api::core::v1::{self as core, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// A Service to be created.
#[derive(Clone, Debug)]
pub struct ServicePlan {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
    elsewhere: bool,
    spec: ServiceSpec,
}

/// A Service of type LoadBalancer without ports.
pub fn load_balancer(name: &str) -> ServicePlan {
    let spec = ServiceSpec {
        type_: Some("LoadBalancer".to_owned()),
        selector: Some(BTreeMap::from([("app".to_owned(), name.to_owned())])),
        ..ServiceSpec::default()
    };
    let (labels, annotations, finalizers) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    ServicePlan { name: name.to_owned(), labels, annotations, finalizers, elsewhere: false, spec }
}

impl ServicePlan {
    /// Adds a TCP port.
    pub fn port(self, port: u16) -> ServicePlan {
        self.named_port(&format!("p{port}"), port, "TCP")
    }

    /// Adds a port.
    pub fn named_port(mut self, name: &str, port: u16, protocol: &str) -> ServicePlan {
        self.spec.ports.get_or_insert_default().push(ServicePort {
            name: Some(name.to_owned()),
            port: i32::from(port),
            protocol: Some(protocol.to_owned()),
            ..ServicePort::default()
        });
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> ServicePlan {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> ServicePlan {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a foreign finalizer.
    pub fn finalizer(mut self, finalizer: &str) -> ServicePlan {
        self.finalizers.push(finalizer.to_owned());
        self
    }

    /// Uses a second namespace of the check.
    pub fn elsewhere(mut self) -> ServicePlan {
        self.elsewhere = true;
        self
    }

    /// Does not request a load balancer yet, so that faults for its uid can be injected first. See
    /// [`Service::wants_a_balancer`].
    pub fn not_yet(self) -> ServicePlan {
        self.with(|spec| spec.type_ = Some("ClusterIP".to_owned()))
    }

    /// Changes any other part of the spec.
    pub fn with(mut self, change: impl FnOnce(&mut ServiceSpec)) -> ServicePlan {
        change(&mut self.spec);
        self
    }
}

/// A Service.
#[derive(Clone)]
pub struct Service<'a> {
    cx: &'a CheckCx,
    key: ServiceKey,
    made: Arc<core::Service>,
}

impl<'a> Service<'a> {
    /// The Service as the API server created it, before any other change.
    pub fn as_made(&self) -> &core::Service {
        &self.made
    }

    /// Applies `patch` as a merge patch.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch(&self, patch: &Value) -> Result<(), CheckError> {
        self.patched(patch).await.map(drop)
    }

    /// Applies `patch` as a merge patch, and returns the result before any other change.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patched(&self, patch: &Value) -> Result<core::Service, CheckError> {
        let api = self.cx.services_api(&self.key);
        self.cx.will_edit();
        let patched = api.patch(&self.key.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.cx.caught_up_service(&self.key, &patched).await?;
        Ok(patched)
    }

    /// Applies `patch` to its status as a merge patch, as another controller does.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_status(&self, patch: &Value) -> Result<(), CheckError> {
        let api = self.cx.services_api(&self.key);
        let patched = api.patch_status(&self.key.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.cx.caught_up_service(&self.key, &patched).await
    }

    /// Changes its type to LoadBalancer.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn wants_a_balancer(&self) -> Result<(), CheckError> {
        self.patch(&json!({"spec": {"type": "LoadBalancer"}})).await
    }

    /// Starts its deletion; does not wait for the end.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self) -> Result<(), CheckError> {
        self.cx.will_edit();
        delete_as_it_is(&self.cx.services_api(&self.key), &self.key.name).await?;
        Ok(())
    }

    /// Removes all of its finalizers and deletes it, as an impatient operator does.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn vanishes(&self) -> Result<(), CheckError> {
        self.delete().await?;
        self.patch(&json!({"metadata": {"finalizers": null}})).await
    }

    /// Its spec in the API server, including defaults.
    ///
    /// # Errors
    /// When the API server does not answer, or the Service does not exist.
    pub async fn spec(&self) -> Result<ServiceSpec, CheckError> {
        let stored = self.cx.services_api(&self.key).get(&self.key.name).await?;
        Ok(stored.spec.unwrap_or_default())
    }

    /// Its recent versions as a watch showed them, oldest first.
    ///
    /// # Errors
    /// When the watch is broken or behind.
    pub fn history(&self) -> Result<Vec<Version<core::Service>>, CheckError> {
        let mut versions =
            self.cx.session.world().services.current()?.history(&self.key.namespace, &self.key.name);
        versions.retain(|version| version.object.metadata.uid.as_ref() == Some(&self.key.uid));
        Ok(versions)
    }

    /// The owner of its load balancer in the cloud.
    pub(super) fn cloud_owner(&self) -> &str {
        &self.key.owner
    }

    /// The check that created it.
    pub(super) fn check(&self) -> &'a CheckCx {
        self.cx
    }

    /// Its namespace and its name.
    pub(super) fn place(&self) -> (String, String) {
        (self.key.namespace.clone(), self.key.name.clone())
    }

    /// Its resources in the cloud.
    pub fn balancer(&self) -> Balancer<'a> {
        Balancer { service: self.clone() }
    }

    /// The target of faults and barriers for calls about its resources in the cloud.
    pub fn cloud(&self) -> Target<'a> {
        Target { cx: self.cx, about: self.name(), names: vec![self.key.owner.clone()] }
    }

    /// Calls to the cloud about it.
    pub fn calls(&self) -> Calls<'a> {
        let this = self.clone();
        Calls::about(self.cx, self.name(), move |call| this.concerns(call))
    }

    /// Calls to the cloud that may have returned its resources: those about it, and lists of all load balancers.
    pub fn looks(&self) -> Calls<'a> {
        let this = self.clone();
        let lists_all =
            |call: &Entry| call.op == Op::LbList && call.resource.is_none() && call.owner.is_none();
        Calls::about(self.cx, self.name(), move |call| this.concerns(call) || lists_all(call))
    }

    /// Whether it has a load balancer in service: what calls that create one are for.
    ///
    /// # Errors
    /// [`CheckError::Violation`] if it has none.
    pub async fn is_served(&self) -> Result<(), CheckError> {
        self.balancer().is(one_active()).await.map(drop)
    }

    /// Whether the cloud has nothing left for it: what calls that delete are for.
    ///
    /// # Errors
    /// [`CheckError::Violation`] if it has.
    pub async fn is_cleaned_up(&self) -> Result<(), CheckError> {
        self.balancer().is(nothing_left()).await
    }

    /// Waits until the CCM has finished with it: until there was no call about it for a second, or, if calls never stop,
    /// for ten seconds. The CCM's later calls are then reactions to what the check does next.
    ///
    /// # Errors
    /// While the cloud's journal cannot be read.
    pub async fn rests(&self) -> Result<(), CheckError> {
        let began = Instant::now();
        let mut seen = (usize::MAX, began);
        let at_rest = async |said: &mut String| {
            let calls = self.calls().now()?.len();
            if calls != seen.0 {
                seen = (calls, Instant::now());
            }
            *said = format!("{calls} calls, the last {:.1} s ago", seen.1.elapsed().as_secs_f64());
            let over = seen.1.elapsed() >= REST || began.elapsed() >= REST * 10;
            Ok(over.then_some(()))
        };
        poll("the CCM has finished with the Service", REST * 15, REST / 20, at_rest).await?;
        Ok(())
    }

    /// Waits until its load balancer is active and published, and it has the finalizer.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when that takes longer than B-WATCH plus the time that the cloud itself takes.
    pub async fn provisioned(self) -> Result<Service<'a>, CheckError> {
        self.gets_published().await?;
        Ok(self)
    }

    /// Like [`Service::provisioned`]; returns the load balancer.
    ///
    /// # Errors
    /// Those of [`Service::provisioned`].
    pub async fn gets_published(&self) -> Result<LoadBalancer, CheckError> {
        let limit = self.cx.limits().load_balancer();
        let lb = self.balancer().becomes(one_active()).within(limit).await?;
        self.becomes(publishes(&lb)).within(limit).await?;
        self.becomes(keeps_finalizer()).await?;
        Ok(lb)
    }
}

impl Subject for Service<'_> {
    type Snapshot = Option<Arc<core::Service>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    /// The cloud may work on the load balancer, and the CCM waits for it.
    fn usual_limit(&self) -> Duration {
        self.cx().limits().load_balancer()
    }

    fn name(&self) -> SubjectName {
        let ServiceKey { namespace, name, uid, .. } = &self.key;
        SubjectName { kind: "Service", name: format!("{namespace}/{name}"), uid: Some(uid.clone()) }
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Snapshot, ReadError> {
        match reach {
            ReadSource::Cache => {
                self.cx.session.world().services.current()?;
                Ok(self.cx.find_service(&self.key))
            }
            ReadSource::Origin => {
                let found = self.cx.services_api(&self.key).get_opt(&self.key.name).await?;
                Ok(found.filter(|s| s.metadata.uid.as_deref() == Some(&self.key.uid)).map(Arc::new))
            }
        }
    }

    fn concerns(&self, call: &Entry) -> bool {
        call.owner.as_deref() == Some(&self.key.owner)
    }
}

/// How long a CCM makes no calls about a Service that it has finished with.
const REST: Duration = Duration::from_secs(1);

/// A Service's resources in the cloud: load balancers and their auxiliaries.
#[derive(Clone)]
pub struct Balancer<'a> {
    service: Service<'a>,
}

impl Balancer<'_> {
    /// Deletes the load balancer and all its resources without the CCM.
    ///
    /// # Errors
    /// When there is none, or the cloud refuses.
    pub async fn vanishes(&self) -> Result<(), CheckError> {
        for lb in self.read(ReadSource::Origin).await?.load_balancers {
            self.service.cx.remove_load_balancer(&lb).await?;
        }
        Ok(())
    }
}

impl Subject for Balancer<'_> {
    type Snapshot = Inventory;

    fn cx(&self) -> &CheckCx {
        self.service.cx
    }

    /// The cloud may work on the load balancer, and the CCM waits for it.
    fn usual_limit(&self) -> Duration {
        self.cx().limits().load_balancer()
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "the load balancer of Service", ..self.service.name() }
    }

    async fn read(&self, _: ReadSource) -> Result<Inventory, ReadError> {
        Ok(self.service.cx.inventory().await?.owned_by(&self.service.key.owner))
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.service.concerns(call)
    }
}

impl CheckCx {
    /// Creates a Service; when the check ends it is deleted together with its load balancer.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn service(&self, plan: ServicePlan) -> Result<Service<'_>, CheckError> {
        let namespace = match plan.elsewhere {
            false => self.namespace().await?,
            true => self.made_namespace(&self.other_namespace, format!("{}-2", self.prefix)).await?,
        };
        let profile = &self.session.plan().profile;
        let place = format!("{namespace}/{}", plan.name);
        let of_all = profile.service_annotations.iter();
        let mut annotations: BTreeMap<String, String> =
            of_all.map(|(key, value)| (key.clone(), value.replace("${SERVICE}", &place))).collect();
        annotations.extend(plan.annotations);
        let service = core::Service {
            metadata: ObjectMeta {
                name: Some(plan.name),
                labels: Some(plan.labels),
                annotations: Some(annotations),
                finalizers: Some(plan.finalizers),
                ..ObjectMeta::default()
            },
            spec: Some(plan.spec),
            status: None,
        };
        let api: Api<core::Service> = Api::namespaced(self.client.clone(), &namespace);
        let created = api.create(&PostParams::default(), &service).await?;
        let uid = created.uid().unwrap_or_default();
        let owner = profile.load_balancer_owner.owner(&uid, &place);
        let key = ServiceKey { namespace, name: created.name_any(), uid, owner };
        self.on_end(Undo::Service(key.clone()));
        self.caught_up_service(&key, &created).await?;
        Ok(Service { cx: self, key, made: Arc::new(created) })
    }

    /// The targets of the CCM's load balancers.
    pub fn balancers_target(&self) -> Targets {
        self.session.plan().profile.capabilities.targets
    }

    fn find_service(&self, key: &ServiceKey) -> Option<Arc<core::Service>> {
        let found = self.session.world().services.find(&key.namespace, &key.name);
        found.filter(|s| s.metadata.uid.as_deref() == Some(&key.uid))
    }

    fn services_api(&self, key: &ServiceKey) -> Api<core::Service> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    async fn remove_load_balancer(&self, lb: &LoadBalancer) -> Result<(), CheckError> {
        self.cloud.remove_load_balancer(&lb.id).await?;
        Ok(())
    }

    async fn caught_up_service(&self, key: &ServiceKey, now: &core::Service) -> Result<(), CheckError> {
        let version = now.resource_version().unwrap_or_default();
        let world = self.session.world();
        self.caught_up(|| world.services.has_caught_up(&key.namespace, &key.name, &version)).await
    }

    /// Deletes the Service and waits for its end. If the CCM does not release it in time, removes its finalizers.
    pub(super) async fn undo_service(&self, key: &ServiceKey) -> Result<(), String> {
        let api = self.services_api(key);
        gone(async || delete_as_it_is(&api, &key.name).await).await?;
        let absent = async |seen: &mut String| {
            *seen = "the Service still exists".to_owned();
            Ok(self.find_service(key).is_none().then_some(()))
        };
        // Not judged: a CCM that is slow to delete, or is busy with other deletions, gets its time.
        let limit = 3 * self.limits().watch() + self.limits().load_balancer_work();
        if poll("the Service is gone", limit, Duration::from_millis(50), absent).await.is_ok() {
            return Ok(());
        }
        // The check created the Service, so all of its finalizers belong to the check or the CCM.
        self.released.store(true, Ordering::SeqCst);
        let patch = json!({"metadata": {"finalizers": null}});
        gone(async || api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await).await
    }
}
