//! Services of a check, in a namespace of its own.

use super::nodes::gone;
use super::{CheckCx, Undo};
use crate::check::{Facility, Stop};
use crate::cloud::{Inventory, LoadBalancer};
use crate::k8s::F_LB;
use crate::probe::poll;
use k8s_openapi::api::core::v1::{Namespace, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A Service to be created.
#[derive(Clone, Debug)]
pub struct ServicePlan {
    name: String,
    annotations: BTreeMap<String, String>,
    spec: ServiceSpec,
}

/// A Service of type LoadBalancer with no port yet.
pub fn load_balancer(name: &str) -> ServicePlan {
    let spec = ServiceSpec {
        type_: Some("LoadBalancer".to_owned()),
        selector: Some(BTreeMap::from([("app".to_owned(), name.to_owned())])),
        ..ServiceSpec::default()
    };
    ServicePlan { name: name.to_owned(), annotations: BTreeMap::new(), spec }
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

    /// With an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> ServicePlan {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Whatever else the spec needs.
    pub fn with(mut self, change: impl FnOnce(&mut ServiceSpec)) -> ServicePlan {
        change(&mut self.spec);
        self
    }
}

/// Which Service: the uid tells it from a namesake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRef {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Whom its load balancers say they belong to, in the cloud.
    pub owner: String,
}

impl CheckCx {
    /// This check's namespace, created on first use; it goes when the check ends.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn namespace(&self) -> Result<String, Stop> {
        let made = self.namespace.get_or_try_init(|| async {
            let name = self.prefix.clone();
            let labels = BTreeMap::from([("ccm-conformance.io/check".to_owned(), self.id.to_string())]);
            let namespace = Namespace {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                },
                ..Namespace::default()
            };
            let api: Api<Namespace> = Api::all(self.client.clone());
            api.create(&PostParams::default(), &namespace).await?;
            self.on_end(Undo::Namespace(name.clone()));
            Ok::<String, Stop>(name)
        });
        made.await.cloned()
    }

    /// Creates a Service; when the check ends it is deleted, its load balancer with it.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn create_service(&self, plan: ServicePlan) -> Result<ServiceRef, Stop> {
        let namespace = self.namespace().await?;
        let service = Service {
            metadata: ObjectMeta {
                name: Some(plan.name),
                annotations: Some(plan.annotations),
                ..ObjectMeta::default()
            },
            spec: Some(plan.spec),
            status: None,
        };
        let created = self.services_api(&namespace).create(&PostParams::default(), &service).await?;
        let uid = created.uid().unwrap_or_default();
        let owner = self.session.plan().profile.load_balancer_owner.owner(&uid);
        let made = ServiceRef { namespace, name: created.name_any(), uid, owner };
        self.on_end(Undo::Service(made.clone()));
        self.services_made.lock().expect("no holder of this lock panics").push(made.clone());
        self.caught_up_service(&made, &created).await?;
        Ok(made)
    }

    /// The Service as it is now; a namesake with another uid is not it.
    pub fn find_service(&self, service: &ServiceRef) -> Option<Arc<Service>> {
        let found = self.session.world().services.find(&service.namespace, &service.name);
        found.filter(|s| s.metadata.uid.as_deref() == Some(&service.uid))
    }

    /// Merges `patch` into a Service.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_service(&self, service: &ServiceRef, patch: &serde_json::Value) -> Result<(), Stop> {
        let api = self.services_api(&service.namespace);
        let patched = api.patch(&service.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.caught_up_service(service, &patched).await
    }

    /// Asks for a Service's deletion; does not wait for its end.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_service(&self, service: &ServiceRef) -> Result<(), Stop> {
        self.services_api(&service.namespace).delete(&service.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Services of a namespace, through this check's own client.
    pub fn services_api(&self, namespace: &str) -> Api<Service> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The cloud's load balancers that belong to a Service.
    ///
    /// # Errors
    /// When the fake cloud does not answer.
    pub async fn load_balancers(
        &self,
        service: &ServiceRef,
    ) -> Result<Vec<LoadBalancer>, crate::probe::ReadError> {
        Ok(self.inventory_of(service).await?.load_balancers)
    }

    /// Everything in the cloud that belongs to a Service.
    ///
    /// # Errors
    /// When the fake cloud does not answer.
    pub async fn inventory_of(&self, service: &ServiceRef) -> Result<Inventory, crate::probe::ReadError> {
        let all = self.inventory().await?;
        Ok(all.owned_by(&service.owner))
    }

    async fn caught_up_service(&self, service: &ServiceRef, now: &Service) -> Result<(), Stop> {
        let version = now.resource_version().unwrap_or_default();
        let world = self.session.world();
        self.caught_up(|| world.services.has_caught_up(&service.namespace, &service.name, &version)).await
    }

    /// Deletes the Service and waits for its end; where the CCM does not let go, takes finalizer and load balancer
    /// away itself, so that the next check finds a clean cloud.
    pub(super) async fn undo_service(&self, service: &ServiceRef) -> Result<(), String> {
        let api = self.services_api(&service.namespace);
        gone(api.delete(&service.name, &DeleteParams::default()).await)?;
        let absent = async |seen: &mut String| {
            *seen = "the Service is still there".to_owned();
            Ok(self.find_service(service).is_none().then_some(()))
        };
        let limit = self.limits().watch();
        if poll("the Service is gone", limit, Duration::from_millis(50), absent).await.is_ok() {
            return Ok(());
        }
        let finalizers: Vec<String> = self
            .find_service(service)
            .map(|s| s.finalizers().iter().filter(|f| *f != F_LB).cloned().collect())
            .unwrap_or_default();
        let patch = json!({"metadata": {"finalizers": finalizers}});
        gone(api.patch(&service.name, &PatchParams::default(), &Patch::Merge(&patch)).await)
    }

    /// Whether anything of this check's Services is left in the cloud after cleanup (contract TEST-04). What is left
    /// is taken away, so that it harms this check alone.
    ///
    /// # Errors
    /// [`Stop::Unmet`] with what is left.
    pub async fn leaks(&self) -> Result<(), Stop> {
        let made = self.services_made.lock().expect("no holder of this lock panics").clone();
        let inventory = self.inventory().await?;
        let mut left = Vec::new();
        for service in &made {
            let owned = inventory.owned_by(&service.owner);
            for lb in &owned.load_balancers {
                left.push(format!("load balancer {} of Service {}", lb.id, service.name));
                // What a driver cannot remove stays, and is reported all the same.
                if self.session.cloud().facilities().contains(&Facility::Machines) {
                    self.remove_load_balancer(lb).await?;
                }
            }
            for aux in &owned.auxiliaries {
                left.push(format!("{} {} of Service {}", aux.kind, aux.id, service.name));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(Stop::unmet(
            "the cloud is as it was before the check",
            "nothing of its Services left",
            left.join(", "),
        ))
    }

    pub(super) async fn undo_namespace(&self, name: &str) -> Result<(), String> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        gone(api.delete(name, &DeleteParams::background()).await)
    }
}
