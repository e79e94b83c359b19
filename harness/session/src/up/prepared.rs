//! What the lanes of a run share: the images or programs of cloud and CCM. They are built once, by the first lane that
//! needs them, and kept as long as any lane may need them.

use super::own_image::own_image;
use super::stage::stage;
use crate::ccm::Manifests;
use crate::choose::stood_for;
use crate::{ReleaseImage, RunDir, SessionError, load_manifests};
use harness_clusters::images::{
    Engine, Folders, IMAGE_REGISTRY, ImageError, ImageSource, PreparedImage, Program, RunId, file_digest,
    of_commands, own_program, prepare, static_binary,
};
use harness_clusters::{InsideCluster, ProgramImage, Runs, facts};
use harness_config::{Image, OldRelease, Profile, RunPlan};
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
        let old_image = match self.other_release().and_then(|old| old.profile.image.as_ref()) {
            Some(Image::Reference(reference)) => {
                Some(ReleaseImage { image: reference.clone(), ..ReleaseImage::default() })
            }
            Some(Image::Command(command)) => Some(ReleaseImage {
                image: own.image.clone(),
                digest: own.digest.clone(),
                command: own.command(command.as_str()),
            }),
            Some(Image::Build(_)) | None => None,
        };
        Ok(Artifacts {
            ccm_image,
            ccm_image_digest,
            ccm_command,
            old_image,
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

    /// The old release of the run, if its image or program is another one than that of the CCM under test.
    fn other_release(&self) -> Option<&OldRelease> {
        let RunPlan { profile, binary, old_release, .. } = &*self.plan;
        old_release.as_ref().filter(|old| (&old.profile.image, &old.binary) != (&profile.image, binary))
    }

    /// The fake cloud's image and those of the CCM and of the old release, if their profiles have one.
    async fn images(&self, events: &Events) -> Result<Artifacts, SessionError> {
        let folder = SharedFolder(Some(RunDir::create(&format!("{}-images", self.run))?));
        let engine = Engine::connect().await.map_err(ImageError::from)?;
        let releases = [Some(&self.plan.profile), self.other_release().map(|old| &old.profile)];
        let mut commands = vec![FAKE_CLOUD];
        let own = releases.iter().flatten().filter_map(|profile| match &profile.image {
            Some(Image::Command(command)) => Some(command.as_str()),
            _ => None,
        });
        commands.extend(own);
        let made = stage(events, "images of this program", of_commands(&commands, folder.path())).await?;
        let mut own = made.into_iter();
        let cloud = own.next().expect("there are as many images as commands");
        let mut prepared = Vec::new();
        for (profile, what) in releases.into_iter().zip(["CCM image", "image of the old release"]) {
            let source = match profile.and_then(|profile| profile.image.clone()) {
                None => None,
                Some(Image::Command(_)) => {
                    prepared.push(own.next());
                    continue;
                }
                Some(Image::Reference(reference)) => Some(ImageSource::Reference(reference)),
                Some(Image::Build(build)) => {
                    let features = (!build.features.is_empty()).then(|| build.features.into_iter().collect());
                    Some(ImageSource::Build(Program { package: build.package, bin: build.binary, features }))
                }
            };
            let sources = profile.map_or(Path::new("."), Profile::folder);
            let folders = Folders { sources, scratch: folder.path() };
            prepared.push(match source {
                None => None,
                Some(source) => Some(stage(events, what, prepare(&engine, &source, folders)).await?),
            });
        }
        let (old, ccm) = (prepared.pop().flatten(), prepared.pop().flatten());
        Ok(Artifacts {
            ccm_image: ccm.as_ref().map(|image| image.reference.clone()).unwrap_or_default(),
            ccm_image_digest: ccm.as_ref().map(|image| image.digest.clone()).unwrap_or_default(),
            old_image: old.as_ref().map(|image| ReleaseImage {
                image: image.reference.clone(),
                digest: image.digest.clone(),
                command: Vec::new(),
            }),
            idle_image: cloud.reference.clone(),
            images: Some(Images { cloud, ccm, old, _folder: folder }),
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
        let Runnable { path, name, first_arguments } =
            self.runnable(profile, self.plan.binary.as_deref()).await?;
        let digest = file_digest(&path)?;
        let manifests = load_manifests(&self.plan)?;
        let written = manifests.as_ref().and_then(Manifests::image).filter(|_| profile.image.is_none());
        let written = written.and_then(|image| stood_for(image, &profile.placeholders));
        // A name that the harness makes up says nothing to a user.
        let is_ours = written.is_none();
        let reference = written.unwrap_or_else(|| format!("{IMAGE_REGISTRY}/{name}:{}", shortened(&digest)));
        let more_arguments = own_address(profile);
        let by_us = |what: String| Setting::of_manifests(what, SetBy::Harness);
        let place =
            if is_ours { "the CCM's containers run".to_owned() } else { format!("image {reference} is") };
        let mut changes = vec![by_us(format!("{place} the program {}", path.display()))];
        if !more_arguments.is_empty() {
            changes.push(by_us(format!("--{BIND_ADDRESS} is the loopback address of the simulated machine")));
        }
        let image = reference.clone();
        let mut programs = vec![ProgramImage { image, program: path, first_arguments, more_arguments }];
        let mut old_image = None;
        if let Some(old) = self.other_release() {
            let (program, image) = self.old_program(old).await?;
            changes.push(by_us(format!("the old release is the program {}", program.program.display())));
            programs.push(program);
            old_image = Some(image);
        }
        Ok(Artifacts {
            ccm_image: reference,
            ccm_image_digest: digest,
            old_image,
            idle_image,
            programs,
            changes,
            ..Artifacts::default()
        })
    }

    /// The program of an old release.
    async fn old_program(&self, old: &OldRelease) -> Result<(ProgramImage, ReleaseImage), SessionError> {
        let Runnable { path, name, first_arguments } =
            self.runnable(&old.profile, old.binary.as_deref()).await?;
        let digest = file_digest(&path)?;
        // The manifests of both releases may name the same image.
        let image = format!("{IMAGE_REGISTRY}/{name}-old:{}", shortened(&digest));
        let more_arguments = own_address(&old.profile);
        let program = ProgramImage { image: image.clone(), program: path, first_arguments, more_arguments };
        Ok((program, ReleaseImage { image, digest, command: Vec::new() }))
    }

    /// The program of a profile's CCM: `binary`, or what its image contains.
    async fn runnable(&self, profile: &Profile, binary: Option<&Path>) -> Result<Runnable, SessionError> {
        let mut first_arguments = Vec::new();
        let (path, name) = match (binary, &profile.image) {
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
        Ok(Runnable { path, name, first_arguments })
    }
}

/// A program on this machine that runs in place of an image.
struct Runnable {
    path: PathBuf,
    /// The name of the image that the harness makes up.
    name: String,
    first_arguments: Vec<String>,
}

/// The arguments that give a program the address of its simulated machine, if it accepts them.
fn own_address(profile: &Profile) -> Vec<String> {
    let own_address = format!("--{BIND_ADDRESS}=${{NODE_LOOPBACK}}");
    profile.accepts(BIND_ADDRESS).then_some(own_address).into_iter().collect()
}

/// The beginning of a digest, for a name.
fn shortened(digest: &str) -> &str {
    digest.trim_start_matches("sha256:").get(..12).unwrap_or("0")
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
    /// The image of the old release, if it is another one.
    pub(super) old_image: Option<ReleaseImage>,
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
        let images = self
            .images
            .iter()
            .flat_map(|Images { cloud, ccm, old, .. }| std::iter::once(cloud).chain(ccm).chain(old));
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
    old: Option<PreparedImage>,
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
