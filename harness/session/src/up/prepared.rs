//! What the lanes of a run share: the images or programs of cloud and CCM. They are built once, by the first lane that
//! needs them, and kept as long as any lane may need them.

use super::own_image::own_image;
use super::stage::stage;
use crate::ccm::Manifests;
use crate::choose::stood_for;
use crate::{RunDir, SessionError, load_manifests};
use harness_clusters::images::{
    Engine, Folders, IMAGE_REGISTRY, ImageError, ImageSource, PreparedImage, Program, RunId, file_digest,
    of_commands, own_program, prepare, static_binary,
};
use harness_clusters::{InsideCluster, ProgramImage, Runs, facts};
use harness_config::{Image, RunPlan};
use harness_core::events::Events;
use harness_core::files;
use harness_core::ledger::{SetBy, Setting};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Flag with which a CCM on the framework chooses its address. Replicas on simulated machines share this machine, so each
/// listens on the loopback address of its simulated one.
const BIND_ADDRESS: &str = "bind-address";

/// The command of this program that runs the fake cloud; with `idle` it does nothing.
const FAKE_CLOUD: &str = "fake-cloud";

/// A run before any of its lanes is up: its plan and id, and the artifacts of its lanes, once the first needs them.
#[derive(Debug)]
pub struct Prepared {
    pub(super) plan: Arc<RunPlan>,
    pub(super) run: RunId,
    /// The Pod of this process, if it runs in the cluster.
    inside: Option<InsideCluster>,
    made: OnceCell<Artifacts>,
}

impl Prepared {
    /// A run without artifacts yet.
    pub fn new(plan: Arc<RunPlan>) -> Arc<Prepared> {
        let inside = InsideCluster::of(plan.cluster.desired());
        Arc::new(Prepared { plan, run: RunId::fresh(), inside, made: OnceCell::new() })
    }

    /// Whether containers are created by an engine on this machine.
    pub(super) fn uses_engine(&self) -> bool {
        facts(self.plan.cluster.backend()).runs == Runs::Images && self.inside.is_none()
    }

    /// Images that the cluster's nodes have or pull themselves: the CCM's by its name, and that of this Pod.
    async fn of_nodes(&self, inside: &InsideCluster) -> Result<Artifacts, SessionError> {
        let own = own_image(inside).await?;
        let idle_command = own.command(FAKE_CLOUD);
        let (idle_image, profile) = (own.image.clone(), &self.plan.profile);
        let (ccm_image, ccm_image_digest, ccm_command) = match &profile.image {
            None => Default::default(),
            Some(Image::Command(command)) => {
                (own.image.clone(), own.digest.clone(), own.command(command.as_str()))
            }
            Some(Image::Reference(reference)) => {
                let digest = reference.split_once('@').map(|(_, digest)| digest.to_owned());
                (reference.clone(), digest.unwrap_or_default(), Vec::new())
            }
            Some(Image::Build(build)) => {
                return Err(SessionError::Usage(format!(
                    "profile '{}' builds its image from package {}, which is not possible in a Pod: pass an image that \
                     the cluster's nodes have or can pull with '--image REFERENCE'",
                    profile.name, build.package
                )));
            }
        };
        Ok(Artifacts {
            ccm_image,
            ccm_image_digest,
            ccm_command,
            idle_image,
            idle_command,
            ..Artifacts::default()
        })
    }

    /// The artifacts of cloud and CCM. The first caller builds them, and the others wait; if that fails or is cancelled,
    /// the next caller starts again.
    pub(super) async fn artifacts(&self, events: &Events) -> Result<&Artifacts, SessionError> {
        let make = || async {
            match facts(self.plan.cluster.backend()).runs {
                Runs::Images => match &self.inside {
                    Some(inside) => stage(events, "CCM image", self.of_nodes(inside)).await,
                    None => self.images(events).await,
                },
                Runs::Programs => stage(events, "CCM program", self.program()).await,
            }
        };
        self.made.get_or_try_init(make).await
    }

    /// The fake cloud's image and the CCM's, if the profile has one.
    async fn images(&self, events: &Events) -> Result<Artifacts, SessionError> {
        let folder = SharedFolder(Some(RunDir::create(&format!("{}-images", self.run))?));
        let engine = Engine::connect().await.map_err(ImageError::from)?;
        let image = self.plan.profile.image.clone();
        let mut commands = vec![FAKE_CLOUD];
        if let Some(Image::Command(command)) = &image {
            commands.push(command.as_str());
        }
        let made = stage(events, "images of this program", of_commands(&commands, folder.path())).await?;
        let mut own = made.into_iter();
        let cloud = own.next().expect("there are as many images as commands");
        let source = match image {
            None | Some(Image::Command(_)) => None,
            Some(Image::Reference(reference)) => Some(ImageSource::Reference(reference)),
            Some(Image::Build(build)) => {
                let features = (!build.features.is_empty()).then(|| build.features.into_iter().collect());
                Some(ImageSource::Build(Program { package: build.package, bin: build.binary, features }))
            }
        };
        let folders = Folders { sources: self.plan.profile.folder(), scratch: folder.path() };
        let ccm = match source {
            None => own.next(),
            Some(source) => Some(stage(events, "CCM image", prepare(&engine, &source, folders)).await?),
        };
        Ok(Artifacts {
            ccm_image: ccm.as_ref().map(|image| image.reference.clone()).unwrap_or_default(),
            ccm_image_digest: ccm.as_ref().map(|image| image.digest.clone()).unwrap_or_default(),
            idle_image: cloud.reference.clone(),
            images: Some(Images { cloud, ccm, _folder: folder }),
            ..Artifacts::default()
        })
    }

    /// The program of the CCM: the one that the user names, or the profile's; none if nothing is deployed.
    async fn program(&self) -> Result<Artifacts, SessionError> {
        // There is no program for it: its containers are simulated.
        let idle_image = format!("{IMAGE_REGISTRY}/idle");
        let profile = &self.plan.profile;
        if profile.deploys_nothing() {
            return Ok(Artifacts { idle_image, ..Artifacts::default() });
        }
        let mut first_arguments = Vec::new();
        let (path, name) = match (&self.plan.binary, &profile.image) {
            (Some(binary), _) => (absolute(binary), "binary".to_owned()),
            (None, Some(Image::Command(command))) => {
                first_arguments.push(command.to_string());
                let unknown = |error| {
                    SessionError::Precondition(format!(
                        "cannot find this program's own file: {}",
                        files::why(&error)
                    ))
                };
                (own_program().map_err(unknown)?, command.to_string())
            }
            (None, Some(Image::Build(build))) => {
                let features = (!build.features.is_empty()).then(|| build.features.iter().cloned().collect());
                let (package, bin) = (build.package.clone(), build.binary.clone());
                let program = Program { package: package.clone(), bin: bin.clone(), features };
                let compiled = static_binary(profile.folder(), &program).await;
                (compiled.map_err(|source| ImageError::Build { package, source })?, bin)
            }
            (None, Some(Image::Reference(_)) | None) => {
                return Err(SessionError::Usage(format!(
                    "profile '{}' runs an image, but the {} cluster runs programs: pass the CCM's program with \
                     '--binary PATH', or use '--cluster kind'",
                    profile.name,
                    self.plan.cluster.backend()
                )));
            }
        };
        let digest = file_digest(&path)?;
        let manifests = load_manifests(&self.plan)?;
        let written = manifests.as_ref().and_then(Manifests::image).filter(|_| profile.image.is_none());
        let written = written.and_then(|image| stood_for(image, &profile.placeholders));
        // A name that the harness makes up says nothing to a user.
        let is_ours = written.is_none();
        let reference = written.unwrap_or_else(|| {
            let content = digest.trim_start_matches("sha256:").get(..12).unwrap_or("0");
            format!("{IMAGE_REGISTRY}/{name}:{content}")
        });
        let own_address = format!("--{BIND_ADDRESS}=${{NODE_LOOPBACK}}");
        let more_arguments: Vec<String> =
            profile.accepts(BIND_ADDRESS).then_some(own_address).into_iter().collect();
        let by_us = |what: String| Setting::of_manifests(what, SetBy::Harness);
        let place =
            if is_ours { "the CCM's containers run".to_owned() } else { format!("image {reference} is") };
        let mut changes = vec![by_us(format!("{place} the program {}", path.display()))];
        if !more_arguments.is_empty() {
            changes.push(by_us(format!("--{BIND_ADDRESS} is the loopback address of the simulated machine")));
        }
        let program =
            ProgramImage { image: reference.clone(), program: path, first_arguments, more_arguments };
        Ok(Artifacts {
            ccm_image: reference,
            ccm_image_digest: digest,
            idle_image,
            programs: vec![program],
            changes,
            ..Artifacts::default()
        })
    }
}

/// The artifacts of cloud and CCM.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    /// The image in the CCM's Pods; empty for none.
    pub(super) ccm_image: String,
    /// The digest of the CCM's content; empty for none.
    pub(super) ccm_image_digest: String,
    /// The CCM's command in its containers; empty for the image's own.
    pub(super) ccm_command: Vec<String>,
    /// An image whose containers do nothing.
    pub(super) idle_image: String,
    /// Their command; empty for the image's own.
    pub(super) idle_command: Vec<String>,
    /// Programs that replace images.
    pub(super) programs: Vec<ProgramImage>,
    /// What this changes in the way the CCM runs.
    pub(super) changes: Vec<Setting>,
    /// Images, if the backend runs those.
    pub(super) images: Option<Images>,
}

impl Artifacts {
    /// The archives that the nodes need.
    pub(super) fn archives(&self) -> Vec<&Path> {
        let images = self.images.iter().flat_map(|images| std::iter::once(&images.cloud).chain(&images.ccm));
        // All commands of this program share one image.
        let archives: BTreeSet<&Path> = images.map(PreparedImage::archive).collect();
        archives.into_iter().collect()
    }
}

/// The images of a run.
#[derive(Debug)]
pub(super) struct Images {
    pub(super) cloud: PreparedImage,
    ccm: Option<PreparedImage>,
    /// Dropped after the archives in it, which remove themselves.
    _folder: SharedFolder,
}

/// A folder of the whole run, removed with its last lane.
#[derive(Debug)]
struct SharedFolder(Option<RunDir>);

impl SharedFolder {
    fn path(&self) -> &Path {
        self.0.as_ref().map(RunDir::path).expect("the folder goes only when it is dropped")
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(RunDir::remove) {
            tracing::warn!(error = harness_core::check::chain(&error), "a folder stays; 'clean' removes it");
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_program_stands_for_the_image_of_the_manifests_unless_they_leave_it_open() {
        let placeholders = BTreeMap::from([("REGISTRY".to_owned(), "registry.example".to_owned())]);
        let stood_for = |image: &str| stood_for(image, &placeholders);
        assert_eq!(stood_for("acme/ccm:v1").as_deref(), Some("acme/ccm:v1"));
        assert_eq!(stood_for("${REGISTRY}/ccm:v1").as_deref(), Some("registry.example/ccm:v1"));
        assert_eq!(stood_for("${IMAGE}"), None);
    }
}
