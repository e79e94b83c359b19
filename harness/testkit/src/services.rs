//! Services of a check, in a namespace of its own, and what the cloud holds for them.

use super::matchers::{keeps_finalizer, one_active, publishes};
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

/// A Service of type LoadBalancer with no port yet.
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
    /// With a TCP port more.
    pub fn port(self, port: u16) -> ServicePlan {
        self.named_port(&format!("p{port}"), port, "TCP")
    }

    /// With a port more.
    pub fn named_port(mut self, name: &str, port: u16, protocol: &str) -> ServicePlan {
        self.spec.ports.get_or_insert_default().push(ServicePort {
            name: Some(name.to_owned()),
            port: i32::from(port),
            protocol: Some(protocol.to_owned()),
            ..ServicePort::default()
        });
        self
    }

    /// With a label.
    pub fn label(mut self, key: &str, value: &str) -> ServicePlan {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> ServicePlan {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With a finalizer of somebody else's.
    pub fn finalizer(mut self, finalizer: &str) -> ServicePlan {
        self.finalizers.push(finalizer.to_owned());
        self
    }

    /// In a second namespace of the check's.
    pub fn elsewhere(mut self) -> ServicePlan {
        self.elsewhere = true;
        self
    }

    /// One that does not want a load balancer yet: what is bound to its uid can be put in force first. See
    /// [`Service::wants_a_balancer`].
    pub fn not_yet(self) -> ServicePlan {
        self.with(|spec| spec.type_ = Some("ClusterIP".to_owned()))
    }

    /// Whatever else the spec needs.
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
    /// As the API server made it, before anybody could touch it.
    pub fn as_made(&self) -> &core::Service {
        &self.made
    }

    /// Merges `patch` into it.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch(&self, patch: &Value) -> Result<(), CheckError> {
        self.patched(patch).await.map(drop)
    }

    /// Merges `patch` into it, and tells what the API server made of that, before anybody could touch it.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patched(&self, patch: &Value) -> Result<core::Service, CheckError> {
        let api = self.cx.services_api(&self.key);
        let patched = api.patch(&self.key.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.cx.caught_up_service(&self.key, &patched).await?;
        Ok(patched)
    }

    /// Makes it one of type LoadBalancer.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn wants_a_balancer(&self) -> Result<(), CheckError> {
        self.patch(&json!({"spec": {"type": "LoadBalancer"}})).await
    }

    /// Asks for its deletion; does not wait for its end.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self) -> Result<(), CheckError> {
        delete_as_it_is(&self.cx.services_api(&self.key), &self.key.name).await?;
        Ok(())
    }

    /// Takes every finalizer off it and deletes it, as an operator does who has lost patience.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn vanishes(&self) -> Result<(), CheckError> {
        self.delete().await?;
        self.patch(&json!({"metadata": {"finalizers": null}})).await
    }

    /// Its spec as the API server has it, with what that has filled in.
    ///
    /// # Errors
    /// When the API server does not answer, or the Service is not there.
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

    /// The owner that its load balancer names in the cloud.
    pub(super) fn cloud_owner(&self) -> &str {
        &self.key.owner
    }

    /// The check that made it.
    pub(super) fn check(&self) -> &'a CheckCx {
        self.cx
    }

    /// Its namespace and its name.
    pub(super) fn place(&self) -> (String, String) {
        (self.key.namespace.clone(), self.key.name.clone())
    }

    /// What the cloud holds for it.
    pub fn balancer(&self) -> Balancer<'a> {
        Balancer { service: self.clone() }
    }

    /// Faults and barriers for calls about what the cloud holds for it.
    pub fn cloud(&self) -> Target<'a> {
        Target { cx: self.cx, about: self.name(), names: vec![self.key.owner.clone()] }
    }

    /// Calls to the cloud about it.
    pub fn calls(&self) -> Calls<'a> {
        let this = self.clone();
        Calls::about(self.cx, self.name(), move |call| this.concerns(call))
    }

    /// Calls to the cloud that can have shown what it holds for it: those about it, and lists of all load balancers.
    pub fn looks(&self) -> Calls<'a> {
        let this = self.clone();
        let lists_all =
            |call: &Entry| call.op == Op::LbList && call.resource.is_none() && call.owner.is_none();
        Calls::about(self.cx, self.name(), move |call| this.concerns(call) || lists_all(call))
    }

    /// Waits until the CCM is done with it: until no call about it has come for a second, or, where they come for ever, ten
    /// seconds have passed. What a check then does is what the CCM answers to, and nothing from before.
    ///
    /// # Errors
    /// While the cloud is not heard.
    pub async fn rests(&self) -> Result<(), CheckError> {
        let began = Instant::now();
        let mut seen = (usize::MAX, began);
        let at_rest = async |said: &mut String| {
            let calls = self.calls().now()?.len();
            if calls != seen.0 {
                seen = (calls, Instant::now());
            }
            *said = format!("{calls} calls, the last {:.1?} ago", seen.1.elapsed());
            let over = seen.1.elapsed() >= REST || began.elapsed() >= REST * 10;
            Ok(over.then_some(()))
        };
        poll("the CCM is done with the Service", REST * 15, REST / 20, at_rest).await?;
        Ok(())
    }

    /// Waits until its load balancer is active and published, and it carries the finalizer.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when that takes longer than B-WATCH and what the cloud takes itself.
    pub async fn provisioned(self) -> Result<Service<'a>, CheckError> {
        self.gets_published().await?;
        Ok(self)
    }

    /// As [`Service::provisioned`]; yields the load balancer.
    ///
    /// # Errors
    /// As there.
    pub async fn gets_published(&self) -> Result<LoadBalancer, CheckError> {
        let limit = self.cx.limits().load_balancer();
        let lb = self.balancer().becomes(one_active()).within(limit).await?;
        self.becomes(publishes(&lb)).within(limit).await?;
        self.becomes(keeps_finalizer()).await?;
        Ok(lb)
    }
}

impl Subject for Service<'_> {
    type Seen = Option<Arc<core::Service>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let ServiceKey { namespace, name, uid, .. } = &self.key;
        SubjectName { kind: "Service", name: format!("{namespace}/{name}"), uid: Some(uid.clone()) }
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Seen, ReadError> {
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

/// How long a CCM is silent about a Service that it is done with.
const REST: Duration = Duration::from_secs(1);

/// What the cloud holds for a Service: load balancers and what belongs to them.
#[derive(Clone)]
pub struct Balancer<'a> {
    service: Service<'a>,
}

impl Balancer<'_> {
    /// Deletes the load balancer behind the CCM's back, with everything that belongs to it.
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
    type Seen = Inventory;

    fn cx(&self) -> &CheckCx {
        self.service.cx
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
    /// Creates a Service; when the check ends it is deleted, its load balancer with it.
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

    /// What the CCM's load balancers send traffic to.
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

    /// Deletes the Service and waits for its end; where the CCM does not let go, takes finalizer and load balancer
    /// away itself, so that the next check finds a clean cloud.
    pub(super) async fn undo_service(&self, key: &ServiceKey) -> Result<(), String> {
        let api = self.services_api(key);
        gone(async || delete_as_it_is(&api, &key.name).await).await?;
        let absent = async |seen: &mut String| {
            *seen = "the Service is still there".to_owned();
            Ok(self.find_service(key).is_none().then_some(()))
        };
        // Not a promise: a CCM that is slow to delete, or has others to delete first, gets its time.
        let limit = 3 * self.limits().watch() + self.limits().load_balancer_work();
        if poll("the Service is gone", limit, Duration::from_millis(50), absent).await.is_ok() {
            return Ok(());
        }
        // The check has made the Service, so every finalizer on it is the check's or the CCM's.
        let patch = json!({"metadata": {"finalizers": null}});
        gone(async || api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await).await
    }
}
