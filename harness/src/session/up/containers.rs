//! An environment of containers: a kind cluster, or one that was there before, with the fake cloud beside it.

use super::{Environment, Parts};
use crate::cloud::{Cloud, CloudSpec, network_of};
use crate::cluster::{Cluster, KindSpec, preflight};
use crate::config::{ClusterPlan, Image, workspace};
use crate::events::Events;
use crate::images::{Engine, Folders, ImageError, ImageSource, PreparedImage, Program, prepare};
use crate::k8s::addresses;
use crate::session::{RunState, SessionError};
use k8s_openapi::api::core::v1::Node;
use std::net::IpAddr;

impl Environment {
    pub(super) async fn bring_up_containers(&self, events: &Events) -> Result<RunState, SessionError> {
        let engine = Engine::connect().await.map_err(ImageError::from)?;
        if self.plan.cluster.own().is_some() {
            // What is missing on this machine is said before anything is compiled.
            let found = preflight(&engine).await.map_err(crate::cluster::ClusterError::from)?;
            found.warnings.iter().for_each(|warning| events.say(&format!("warning: {warning}")));
        }
        // Images are compiled while kind works; the first failure ends both.
        let (cluster, (fake, ccm)) = tokio::try_join!(
            self.stage(events, "cluster", self.create_cluster(&engine)),
            self.prepare_images(&engine, events),
        )?;
        let record = cluster.record().clone();
        if record.is_ours() {
            let loaded = async {
                for image in std::iter::once(&fake).chain(ccm.as_ref()) {
                    cluster.load_image(image.archive()).await?;
                }
                Ok(())
            };
            self.stage(events, "images into the nodes", loaded).await?;
        }
        let (served_minor, nodes) = self.inspect(&record).await?;
        let network = match record.kind() {
            Some(kind) => kind.network.clone(),
            None => self.network_beside(&engine, &nodes).await?,
        };
        let started = async {
            let dialect = &self.plan.profile.dialect;
            Ok(Cloud::start(
                &engine,
                CloudSpec { run: &self.run_id, network: &network, dialect, image: &fake },
            )
            .await?)
        };
        let cloud = self.stage(events, "fake cloud", started).await?.record().clone();
        self.state(Parts {
            cluster: record,
            cloud,
            ccm_image: ccm.as_ref().map(|image| image.reference.clone()).unwrap_or_default(),
            ccm_image_digest: ccm.as_ref().map(|image| image.digest.clone()).unwrap_or_default(),
            idle_image: fake.reference.clone(),
            served_minor,
            nodes,
            changes: Vec::new(),
        })
    }

    /// The fake cloud's image and the CCM's, if the profile has one; one after the other, as both are cargo's.
    async fn prepare_images(
        &self,
        engine: &Engine,
        events: &Events,
    ) -> Result<(PreparedImage, Option<PreparedImage>), SessionError> {
        let scratch = self.dir.as_ref().expect("made before").path().to_owned();
        let root = workspace();
        let folders = Folders { workspace: &root, scratch: &scratch };
        let program = |package: String, bin, features| ImageSource::Build(Program { package, bin, features });
        let fake = program("fake-cloud".to_owned(), "fake-cloud".to_owned(), Some(vec!["server".to_owned()]));
        let prepared = async { Ok(prepare(engine, &fake, folders).await?) };
        let fake = self.stage(events, "fake cloud image", prepared).await?;
        let source = match self.plan.profile.image.clone() {
            None => return Ok((fake, None)),
            Some(Image::Reference(reference)) => ImageSource::Reference(reference),
            Some(Image::Build(build)) => {
                let features = (!build.features.is_empty()).then(|| build.features.into_iter().collect());
                program(build.package, build.binary, features)
            }
        };
        let prepared = async { Ok(prepare(engine, &source, folders).await?) };
        let ccm = self.stage(events, "CCM image", prepared).await?;
        Ok((fake, Some(ccm)))
    }

    async fn create_cluster(&self, engine: &Engine) -> Result<Cluster, SessionError> {
        let folder = self.dir.as_ref().expect("made before").path().to_owned();
        match &self.plan.cluster {
            ClusterPlan::Auto(kind) | ClusterPlan::Kind(kind) | ClusterPlan::Embedded(kind) => {
                let spec = KindSpec {
                    run: self.run_id.clone(),
                    topology: kind.topology.clone(),
                    kubernetes: kind.kubernetes.clone(),
                    provider_id: self.provider_ids(kind),
                    node_ip: kind.node_ip,
                    folder,
                    evidence: Some(self.plan.output.join("evidence/cluster")),
                };
                let told = |step: &str| tracing::info!(step, "cluster");
                Ok(Cluster::create(engine, &spec, &told).await?)
            }
            ClusterPlan::Existing(existing) => Ok(Cluster::existing(existing.kubeconfig.as_deref())?),
        }
    }

    /// Where the fake cloud has to be so that the Nodes of a cluster that was there before can reach it.
    async fn network_beside(&self, engine: &Engine, nodes: &[Node]) -> Result<String, SessionError> {
        let own: Vec<IpAddr> =
            nodes.iter().flat_map(addresses).filter_map(|(_, address)| address.parse().ok()).collect();
        let found = network_of(engine, &own).await.map_err(ImageError::from)?;
        found.ok_or_else(|| {
            SessionError::Precondition(
                "the existing cluster's nodes are no containers of this Docker engine, so they could not reach a \
                 fake cloud that runs here; use a cluster on this engine (kind, k3d, minikube with Docker)"
                    .to_owned(),
            )
        })
    }
}
