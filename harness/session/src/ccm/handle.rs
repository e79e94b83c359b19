//! The deployed CCM: deploys it in one of its forms, removes it, finds its Pods and its leader.

use super::arguments::{Flag, flag_of};
use super::deploy::{CcmError, pods_of};
use super::hosting::Hosting;
use super::manifests::{Manifests, ObjectKey, key_of};
use super::render::{RenderContext, Rendered, Replica, as_shipped, replicas};
use super::side::Side;
use super::trial::trial;
use crate::k8s::webhooks_in_the_way;
use harness_clouds::Credential;
use harness_core::ledger::SetBy;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Preconditions};
use serde_json::Value;
use std::sync::Arc;

/// How the CCM is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// It is not deployed.
    Absent,
    /// The vendor's manifests unchanged.
    AsShipped,
    /// One single-replica copy per replica; see [`super::render`].
    Replicas,
}

/// The Lease with which the CCM elects its leader.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// The CCM under test of one cluster.
pub struct Ccm {
    /// The cluster that it serves.
    pub(super) served: Side,
    /// The cluster of its Pods, if that is another one.
    hosting: Option<Hosting>,
    pub(super) manifests: Option<Manifests>,
    pub(super) surroundings: RenderContext,
    pub(super) replicas: Vec<Replica>,
    newcomers: Vec<Replica>,
    pub(super) lease: Option<LeaseKey>,
}

impl std::fmt::Debug for Ccm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ccm").finish_non_exhaustive()
    }
}

impl Ccm {
    /// Creates a handle; deploys nothing. `hosting` is the cluster of its Pods if that is not the one that it serves.
    /// `newcomers` are additional replicas that checks can start. `manifests` is `None` for a profile without a CCM.
    pub fn new(
        served: Side,
        hosting: Option<Hosting>,
        manifests: Option<Manifests>,
        surroundings: RenderContext,
        (replicas, newcomers): (Vec<Replica>, Vec<Replica>),
        lease: Option<LeaseKey>,
    ) -> Ccm {
        Ccm { served, hosting, manifests, surroundings, replicas, newcomers, lease }
    }

    /// The cluster of its Pods.
    pub(super) fn pods_side(&self) -> &Side {
        self.hosting.as_ref().map_or(&self.served, |hosting| &hosting.side)
    }

    /// Whether the profile runs a CCM.
    pub fn exists(&self) -> bool {
        self.manifests.is_some()
    }

    /// The replicas of [`Form::Replicas`].
    pub fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// The additional replicas that checks can start.
    pub fn newcomers(&self) -> &[Replica] {
        &self.newcomers
    }

    /// Their objects, in addition to those of [`Form::Replicas`]; `None` if there is no CCM.
    pub fn rendered_newcomers(&self) -> Option<Rendered> {
        let all: Vec<Replica> = self.replicas.iter().chain(&self.newcomers).cloned().collect();
        let mut rendered = replicas(self.manifests.as_ref()?, &all, &self.surroundings);
        let there: Vec<ObjectKey> = self.rendered(Form::Replicas)?.documents.iter().map(key_of).collect();
        rendered.documents.retain(|document| !there.contains(&key_of(document)));
        rendered.workloads.drain(..self.replicas.len());
        Some(rendered)
    }

    /// The Lease of its leader; `None` without leader election.
    pub fn lease_key(&self) -> Option<&LeaseKey> {
        self.lease.as_ref()
    }

    /// The objects of a form; `None` if nothing is deployed in it.
    pub fn rendered(&self, form: Form) -> Option<Rendered> {
        let manifests = self.manifests.as_ref()?;
        match form {
            Form::Absent => None,
            Form::AsShipped => Some(as_shipped(manifests, self.replicas.first(), &self.surroundings)),
            Form::Replicas => Some(replicas(manifests, &self.replicas, &self.surroundings)),
        }
    }

    /// Whether the manifests as shipped run more than one Pod of it; true if no manifests are shipped.
    pub fn ships_replicas(&self) -> bool {
        self.manifests.as_ref().is_none_or(Manifests::ask_for_several)
    }

    /// The objects of a trial with that name: one CCM process, with these arguments after its others. `None` if there is
    /// no CCM.
    pub fn trial(&self, name: &str, arguments: &[String]) -> Option<Rendered> {
        let (manifests, like) = (self.manifests.as_ref()?, self.replicas.first()?);
        let nodes = self.pods_side().world.nodes.all();
        Some(trial(manifests, name, like, &self.surroundings, (&nodes, arguments)))
    }

    /// A replica with its own credential and these arguments after its others, which its cluster restarts when it exits;
    /// `None` if there is no CCM.
    pub fn with_credential(&self, credential: &Credential, arguments: &[&str]) -> Option<Rendered> {
        let (manifests, like) = (self.manifests.as_ref()?, self.replicas.first()?);
        let Credential { name, token } = credential.clone();
        let own = Replica { name, token, ..like.clone() };
        let mut around = self.surroundings.clone();
        around.flags.extend(arguments.iter().map(|argument| Flag::of(argument, SetBy::Harness)));
        Some(replicas(manifests, std::slice::from_ref(&own), &around))
    }

    /// The Pods of rendered objects.
    pub fn pods_of_rendered(&self, rendered: &Rendered) -> Vec<Arc<Pod>> {
        rendered.workloads.iter().flat_map(|workload| pods_of(&self.pods_side().world, workload)).collect()
    }

    /// The value of a flag, named without dashes, among the arguments of a replica; `None` if it is not set.
    pub fn flag(&self, name: &str) -> Option<String> {
        let container = self.manifests.as_ref()?.container;
        let rendered = self.rendered(Form::Replicas)?;
        let first = rendered.workloads.first()?;
        let workload = rendered.documents.iter().find(|document| key_of(document) == *first)?;
        flag_of(&workload["spec"]["template"]["spec"]["containers"][container], name)
    }

    /// The workload of a replica in [`Form::Replicas`].
    pub fn workload_of(&self, replica: &str) -> Option<ObjectKey> {
        let place = |list: &[Replica]| list.iter().position(|r| r.name == replica);
        let (rendered, place) = match place(&self.replicas) {
            Some(place) => (self.rendered(Form::Replicas)?, place),
            None => (self.rendered_newcomers()?, place(&self.newcomers)?),
        };
        rendered.workloads.get(place).cloned()
    }

    /// The Pods of a form.
    pub fn pods(&self, form: Form) -> Vec<Arc<Pod>> {
        self.rendered(form).map(|rendered| self.pods_of_rendered(&rendered)).unwrap_or_default()
    }

    /// The Pods of one replica in [`Form::Replicas`].
    pub fn pods_of_replica(&self, replica: &str) -> Vec<Arc<Pod>> {
        self.workload_of(replica)
            .map(|workload| pods_of(&self.pods_side().world, &workload))
            .unwrap_or_default()
    }

    /// The port on which a replica serves HTTPS in [`Form::Replicas`].
    pub fn secure_port_of(&self, replica: &str) -> Option<u16> {
        let own = self.replicas.iter().chain(&self.newcomers).find(|r| r.name == replica)?.secure_port;
        Some(if self.surroundings.takes_secure_port { own } else { self.surroundings.secure_port })
    }

    /// Webhooks that block it, on the cluster of its Pods and on the one that it serves; see [`webhooks_in_the_way`].
    pub async fn in_the_way(&self) -> Vec<String> {
        let mut all = webhooks_in_the_way(&self.served.client).await;
        if let Some(hosting) = &self.hosting {
            all.extend(webhooks_in_the_way(&hosting.side.client).await);
        }
        all
    }

    /// The current Lease.
    pub fn find_lease(&self) -> Option<Arc<Lease>> {
        let key = self.lease.as_ref()?;
        self.served.world.leases.find(&key.namespace, &key.name)
    }

    /// Applies a form; does not wait for it.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn apply(&self, form: Form) -> Result<(), CcmError> {
        match self.rendered(form) {
            Some(rendered) => self.apply_rendered(&rendered).await,
            None => Ok(()),
        }
    }

    /// The manifests as shipped, with `name` in place of the cloud's `address` in [`Form::AsShipped`]; `None` if nothing
    /// is deployed or the manifests do not get the address from the harness.
    pub fn with_cloud_named(&self, address: &str, name: &str) -> Option<Rendered> {
        let manifests = self.manifests.as_ref()?;
        let first = self.replicas.first().cloned()?;
        let named = Replica { endpoint: first.endpoint.replace(address, name), ..first };
        let rendered = as_shipped(manifests, Some(&named), &self.surroundings);
        let differs = self.rendered(Form::AsShipped)?.documents != rendered.documents;
        differs.then_some(rendered)
    }

    /// Applies rendered objects; does not wait. A hosted CCM gets a kubeconfig for the service account of its Pods.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn apply_rendered(&self, rendered: &Rendered) -> Result<(), CcmError> {
        match (&self.hosting, &self.manifests) {
            (Some(hosting), Some(manifests)) => {
                let usual = &manifests.documents[manifests.workload];
                hosting.apply(&self.served, rendered, usual).await
            }
            _ => self.served.applier.apply(&rendered.documents).await,
        }
    }

    /// Removes a form with all of its objects and waits until its Pods are gone. Then removes its Lease too, so that the
    /// next form need not wait for it to expire. No CCM runs then, so no holder loses it (contract HA-17).
    ///
    /// # Errors
    /// Objects that could not be removed, or Pods that still exist.
    pub async fn remove(&self, form: Form) -> Result<(), CcmError> {
        match self.rendered(form) {
            Some(rendered) => self.remove_rendered(rendered).await,
            None => Ok(()),
        }
    }

    /// Like [`Ccm::remove`], for rendered objects.
    ///
    /// # Errors
    /// Objects that could not be removed, or Pods that still exist.
    pub async fn remove_rendered(&self, rendered: Rendered) -> Result<(), CcmError> {
        self.remove_additional(rendered).await?;
        self.forget_lease(None).await
    }

    /// Like [`Ccm::remove_rendered`], while other replicas and the Lease stay.
    ///
    /// # Errors
    /// Objects that could not be removed, or Pods that still exist.
    pub async fn remove_additional(&self, rendered: Rendered) -> Result<(), CcmError> {
        let (workloads, others): (Vec<Value>, Vec<Value>) = rendered
            .documents
            .into_iter()
            .partition(|document| rendered.workloads.contains(&key_of(document)));
        self.pods_side().applier.remove(&workloads).await?;
        // A ReplicaSet that outlives its Deployment replaces Pods, and the garbage collector of a new cluster does not
        // work for the first ten seconds. If the Secrets of such a Pod are deleted, an older kubelet waits two minutes
        // for them before it lets the Pod go.
        self.pods_side().remove_replica_sets(&rendered.workloads).await?;
        self.pods_side().evict(&rendered.workloads).await?;
        match &self.hosting {
            Some(hosting) => hosting.remove(&self.served, &others).await,
            None => self.served.applier.remove(&others).await,
        }
    }

    /// Starts every replica again; does not wait for them.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn start(&self) -> Result<(), CcmError> {
        for workload in self.rendered(Form::Replicas).map(|r| r.workloads).unwrap_or_default() {
            self.pods_side().applier.scale(&workload, 1).await?;
        }
        Ok(())
    }

    /// Keeps one replica from coming back until [`Ccm::start`].
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn hold_down(&self, replica: &str) -> Result<(), CcmError> {
        match self.workload_of(replica) {
            Some(workload) => self.pods_side().applier.scale(&workload, 0).await,
            None => Ok(()),
        }
    }

    /// Removes the Lease of a leader that has exited while no replica runs, so that the next one need not wait for it to
    /// expire, as after [`Ccm::remove`]. A Lease that was taken in between stays.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn forget_ended_leader(&self) -> Result<(), CcmError> {
        let seen = self.find_lease().and_then(|lease| lease.resource_version());
        let runs = self.pods(Form::Replicas).iter().any(|pod| is_running(pod));
        if seen.is_none() || runs { Ok(()) } else { self.forget_lease(seen).await }
    }

    /// The same for a leader that was killed, even if a standby runs. The caller knows that the leader has ended.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn forget_killed_leader(&self) -> Result<(), CcmError> {
        let seen = self.find_lease().and_then(|lease| lease.resource_version());
        if seen.is_some() { self.forget_lease(seen).await } else { Ok(()) }
    }

    /// Removes the Lease if it still has that version.
    async fn forget_lease(&self, version: Option<String>) -> Result<(), CcmError> {
        let Some(key) = &self.lease else { return Ok(()) };
        let api: Api<Lease> = Api::namespaced(self.served.client.clone(), &key.namespace);
        let preconditions = Preconditions { resource_version: version, uid: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match api.delete(&key.name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(CcmError::Remove {
                object: format!("Lease {}/{}", key.namespace, key.name),
                cause: harness_core::check::chain(&error),
            }),
        }
    }
}

/// Whether all containers of a Pod run.
pub(super) fn is_running(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let running = status.and_then(|s| s.phase.as_deref()) == Some("Running");
    let up = status.and_then(|s| s.container_statuses.as_ref());
    running
        && up.is_some_and(|list| list.iter().all(|c| c.state.as_ref().is_some_and(|s| s.running.is_some())))
}
