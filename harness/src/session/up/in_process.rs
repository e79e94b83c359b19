//! An environment without Docker: cluster and fake cloud in this process, the CCM a program of this machine.

use super::{Environment, Parts};
use crate::cloud::LocalCloud;
use crate::cluster::{EmbeddedCluster, EmbeddedWish};
use crate::config::{Image, workspace};
use crate::events::Events;
use crate::images::{IMAGE_REGISTRY, ImageError, Program, file_digest, static_binary};
use crate::session::{RunState, SessionError, load_manifests};
use std::path::{Path, PathBuf};

/// Flag by which a framework CCM chooses its address. Replicas on simulated machines share this one, so each listens on
/// its machine's own loopback address.
const BIND_ADDRESS: &str = "bind-address";

/// What runs in this process.
#[derive(Debug, Default)]
pub(super) struct InProcess {
    cluster: Option<EmbeddedCluster>,
    cloud: Option<LocalCloud>,
}

impl InProcess {
    pub(super) fn is_up(&self) -> bool {
        self.cluster.is_some()
    }

    /// Stops everything, last first.
    pub(super) async fn stop(&mut self) {
        if let Some(cluster) = self.cluster.take() {
            cluster.stop().await;
        }
        if let Some(cloud) = self.cloud.take() {
            cloud.stop().await;
        }
    }
}

/// The CCM as a program.
struct Ccm {
    /// The image that Pods name, which stands for it.
    reference: String,
    digest: String,
    path: PathBuf,
}

impl Environment {
    pub(super) async fn bring_up_in_process(&mut self, events: &Events) -> Result<RunState, SessionError> {
        let folder = self.dir.as_ref().expect("made before").path().to_owned();
        let ccm = self.stage(events, "CCM program", self.ccm_program()).await?;
        let Some(own) = self.plan.cluster.own() else {
            return Err(SessionError::Usage("an existing cluster cannot be embedded".to_owned()));
        };
        let programs: Vec<_> = ccm.iter().map(|ccm| self.program(ccm)).collect();
        let wish = EmbeddedWish {
            run: self.run_id.clone(),
            topology: own.topology.clone(),
            kubernetes: own.kubernetes.clone(),
            provider_id: self.provider_ids(own),
            node_ip: own.node_ip,
            programs: programs.clone(),
            folder,
        };
        let started = async { Ok(EmbeddedCluster::of_run(wish).await?) };
        let (cluster, record) = self.stage(events, "cluster", started).await?;
        self.in_process.cluster = Some(cluster);
        let started = async { Ok(LocalCloud::start(&self.plan.profile.dialect).await?) };
        let cloud = self.stage(events, "fake cloud", started).await?;
        let cloud_record = cloud.record();
        self.in_process.cloud = Some(cloud);
        let (served_minor, nodes) = self.inspect(&record).await?;
        let mut changes = Vec::new();
        if let Some(ccm) = &ccm {
            changes.push(format!("image {} is the program {}", ccm.reference, ccm.path.display()));
        }
        if programs.iter().any(|program| !program.more_arguments.is_empty()) {
            changes.push(format!("--{BIND_ADDRESS} is the loopback address of the simulated machine"));
        }
        self.state(Parts {
            cluster: record,
            cloud: cloud_record,
            ccm_image: ccm.as_ref().map(|ccm| ccm.reference.clone()).unwrap_or_default(),
            ccm_image_digest: ccm.map(|ccm| ccm.digest).unwrap_or_default(),
            // No program stands for it: its containers are simulated.
            idle_image: format!("{IMAGE_REGISTRY}/idle"),
            served_minor,
            nodes,
            changes,
        })
    }

    /// The program that is the CCM: the one the user names, or the profile's, compiled; `None` when nothing is deployed.
    async fn ccm_program(&self) -> Result<Option<Ccm>, SessionError> {
        let profile = &self.plan.profile;
        if profile.deploys_nothing() {
            return Ok(None);
        }
        let (path, name) = match (&self.plan.binary, &profile.image) {
            (Some(binary), _) => (absolute(binary), "binary".to_owned()),
            (None, Some(Image::Build(build))) => {
                let features = (!build.features.is_empty()).then(|| build.features.iter().cloned().collect());
                let (package, bin) = (build.package.clone(), build.binary.clone());
                let program = Program { package: package.clone(), bin: bin.clone(), features };
                let compiled = static_binary(&workspace(), &program).await;
                (compiled.map_err(|source| ImageError::Build { package, source })?, bin)
            }
            (None, Some(Image::Reference(_)) | None) => {
                return Err(SessionError::Usage(format!(
                    "profile '{}' runs an image, and the embedded cluster runs programs: name the CCM's with '--binary \
                     PATH', or use '--cluster kind'",
                    profile.name
                )));
            }
        };
        let digest = file_digest(&path)?;
        let reference = match (&profile.image, load_manifests(&self.plan)?) {
            // The manifests name an image of their own: it is this one that the program stands for.
            (None, Some(manifests)) => manifests.image().unwrap_or_default().to_owned(),
            _ => format!(
                "{IMAGE_REGISTRY}/{name}:{}",
                digest.trim_start_matches("sha256:").get(..12).unwrap_or("0")
            ),
        };
        Ok(Some(Ccm { reference, digest, path }))
    }

    fn program(&self, ccm: &Ccm) -> embedded_cluster::Program {
        let own_address = format!("--{BIND_ADDRESS}=${{NODE_LOOPBACK}}");
        embedded_cluster::Program {
            keeps_entry_point: true,
            more_arguments: self
                .plan
                .profile
                .accepts(BIND_ADDRESS)
                .then_some(own_address)
                .into_iter()
                .collect(),
            ..embedded_cluster::Program::new(&ccm.reference, [ccm.path.to_string_lossy()])
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
