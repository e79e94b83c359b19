//! Chooses the node image of a cluster: a local one, or one that can be pulled.

use super::published::{KIND_REPOSITORY, Published, published};
use super::record::KubeProxy;
use crate::error::ClusterError;
use crate::images::{Engine, EngineError, ImageError, begin, is_named, pull};
use crate::version::Version;
use bollard::models::{ContainerCreateBody, ImageSummary};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, ListImagesOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use futures::TryStreamExt;
use harness_config::Kubernetes;
use std::collections::HashMap;
use std::io::Read;
use std::time::Duration;

/// Label of the node images that ci/node-image/build builds.
pub(super) const NODE_IMAGE_LABEL: &str = "io.ccm-conformance.node-image";
const VERSION_LABEL: &str = "io.ccm-conformance.kubernetes";
const KUBE_PROXY_LABEL: &str = "io.ccm-conformance.kube-proxy";
/// The newest minor version of Kubernetes that the contract covers: a result on a newer one means less.
pub(super) const JUDGED: u32 = bootstrap::Version::DEFAULT.minor;
/// What to do without access to a registry.
pub(super) const WITHOUT_A_REGISTRY: &str = "give Docker access to a registry, load an image with 'docker load', build \
                                             one with ci/node-image/build, or run with '--cluster embedded', which \
                                             needs no node image";
/// The oldest Kubernetes that kind and the harness support.
const LEAST: Version = Version::release(1, 20, 0);
/// Time limit for a query to the engine.
const LIMIT: Duration = Duration::from_secs(60);
/// How much of the archive with the version file is read, in bytes.
const MOST: usize = 64 << 10;

/// The node image of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeImage {
    /// Its name for kind; `None` lets kind choose and pull its own.
    pub(super) reference: Option<String>,
    /// Its Kubernetes version, if it is known before a machine runs.
    pub(super) version: Option<Version>,
    /// Whether it has kube-proxy.
    pub(super) kube_proxy: KubeProxy,
}

/// Chooses a node image: the named one, the newest suitable local one, or one that can be pulled.
pub(super) async fn choose(engine: &Engine, wanted: &Kubernetes) -> Result<NodeImage, ClusterError> {
    if let Kubernetes::Image(reference) = wanted {
        return named(engine, reference).await;
    }
    let present = present(engine).await?;
    if let Some(image) = pick(wanted, &present) {
        return Ok(image.clone());
    }
    let unknown = |why: String| ClusterError::Usage {
        what: format!("Kubernetes {wanted}"),
        why,
        way_out: format!("available: {}", listed(&present)),
    };
    let reference = match *wanted {
        Kubernetes::Version { minor, .. } if minor < LEAST.minor => {
            return Err(unknown(format!("the oldest supported version is {LEAST}")));
        }
        Kubernetes::Version { minor, patch: Some(patch) } => format!("{KIND_REPOSITORY}:v1.{minor}.{patch}"),
        Kubernetes::Version { minor, patch: None } => published_as(engine, minor, &present).await?,
        Kubernetes::Newest | Kubernetes::Image(_) => match published(engine, JUDGED).await {
            Published::As(reference) => reference,
            // kind may have access to more than the engine reports, and only kind knows which image it pulls.
            Published::Not | Published::Unknown(_) => {
                return Ok(NodeImage { reference: None, version: None, kube_proxy: KubeProxy::Present });
            }
        },
    };
    match pull(engine, &reference).await {
        Ok(()) => named(engine, &reference).await,
        Err(ImageError::NotThere { why, .. }) => Err(unknown(format!(
            "there is no local node image of it, and {reference} cannot be pulled ({why})"
        ))),
        Err(other) => Err(other.into()),
    }
}

/// The image to pull for a version without a local image.
async fn published_as(engine: &Engine, minor: u32, present: &[NodeImage]) -> Result<String, ClusterError> {
    match published(engine, minor).await {
        Published::As(reference) => Ok(reference),
        Published::Not => Err(ClusterError::Usage {
            what: format!("Kubernetes 1.{minor}"),
            why: format!("there is no local node image of it, and {KIND_REPOSITORY} has none"),
            way_out: format!("available: {}", listed(present)),
        }),
        Published::Unknown(why) => Err(ClusterError::Unavailable {
            what: format!("a node image of Kubernetes 1.{minor}"),
            why: format!("there is no local one ({}), and none can be pulled ({why})", listed(present)),
            way_out: format!("name a full version such as 1.{minor}.1, {WITHOUT_A_REGISTRY}"),
        }),
    }
}

/// The local node image of this minor version from which the programs of its control plane can be read: one that
/// ci/node-image/build has made. Those of kind contain them only in compressed layers.
///
/// # Errors
/// The engine does not answer.
pub(super) async fn unpacked(engine: &Engine, minor: u32) -> Result<Option<(String, Version)>, ClusterError> {
    let inspect = async |reference: &str| {
        let call = engine.docker().inspect_image(reference);
        let labels = engine
            .call("inspect image", reference, LIMIT, call)
            .await?
            .config
            .and_then(|config| config.labels);
        Ok::<_, EngineError>(labels.unwrap_or_default().contains_key(NODE_IMAGE_LABEL))
    };
    for (reference, version) in list_available(engine).await? {
        if (version.major, version.minor) == (1, minor) && inspect(&reference).await? {
            return Ok(Some((reference, version)));
        }
    }
    Ok(None)
}

/// The node image that [`choose`] would use without pulling; `None` if it would have to pull.
///
/// # Errors
/// The engine does not answer.
pub(super) async fn available(engine: &Engine, wanted: &Kubernetes) -> Result<Option<String>, ClusterError> {
    if let Kubernetes::Image(reference) = wanted {
        return Ok(Some(reference.clone()));
    }
    Ok(pick(wanted, &present(engine).await?).and_then(|image| image.reference.clone()))
}

/// The node images in the local engine, newest Kubernetes first, each with its Kubernetes version.
///
/// # Errors
/// The engine does not answer.
pub(super) async fn list_available(engine: &Engine) -> Result<Vec<(String, Version)>, ClusterError> {
    let named = |image: NodeImage| Some((image.reference?, image.version?));
    Ok(present(engine).await?.into_iter().filter_map(named).collect())
}

/// An image that the user has named, pulled if it is not local.
async fn named(engine: &Engine, reference: &str) -> Result<NodeImage, ClusterError> {
    let inspect = || engine.call("inspect image", reference, LIMIT, engine.docker().inspect_image(reference));
    let found = match inspect().await {
        Err(error) if error.is_not_found() => {
            pull(engine, reference).await?;
            inspect().await?
        }
        other => other?,
    };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    let version = match version_by_name(&labels, &[reference.to_owned()]) {
        Some(version) => Some(version),
        None => version_by_looking(engine, reference).await?,
    };
    let Some(version) = version else {
        return Err(ClusterError::Usage {
            what: format!("node image {reference}"),
            why: "it has no file /kind/version, so it is not a node image".to_owned(),
            way_out: "images of kindest/node and those of ci/node-image/build are".to_owned(),
        });
    };
    if version < LEAST {
        return Err(ClusterError::Usage {
            what: format!("node image {reference}"),
            why: format!("it holds Kubernetes {version}"),
            way_out: format!("the oldest supported version is {LEAST}"),
        });
    }
    Ok(NodeImage {
        reference: Some(reference.to_owned()),
        version: Some(version),
        kube_proxy: kube_proxy(&labels),
    })
}

/// Node images in the local engine, newest Kubernetes first.
async fn present(engine: &Engine) -> Result<Vec<NodeImage>, ClusterError> {
    let options = ListImagesOptionsBuilder::new().all(false).build();
    let all = engine
        .call("list images of", "the engine", LIMIT, engine.docker().list_images(Some(options)))
        .await?;
    let mut found = Vec::new();
    for image in all.into_iter().filter(is_node_image) {
        // An image that was pulled by digest has no tag; one without any name was replaced by a newer build.
        let names = image.repo_tags.iter().chain(&image.repo_digests);
        let Some(reference) = names.into_iter().find(|name| is_named(name)).cloned() else {
            continue;
        };
        let version = match version_by_name(&image.labels, &image.repo_tags) {
            Some(version) => Some(version),
            None => version_by_looking(engine, &reference).await?,
        };
        if version.as_ref().is_some_and(|version| *version >= LEAST) {
            found.push(NodeImage {
                reference: Some(reference),
                version,
                kube_proxy: kube_proxy(&image.labels),
            });
        }
    }
    found.sort_by(|one, two| two.version.cmp(&one.version).then_with(|| one.reference.cmp(&two.reference)));
    Ok(found)
}

fn is_node_image(image: &ImageSummary) -> bool {
    let kinds = |name: &String| name.split(['@', ':']).next() == Some(KIND_REPOSITORY);
    image.labels.contains_key(NODE_IMAGE_LABEL)
        || image.repo_tags.iter().chain(&image.repo_digests).any(kinds)
}

/// The first suitable one; the list is newest first. Versions newer than the contract are used only if there is nothing
/// else.
fn pick<'a>(wanted: &Kubernetes, present: &'a [NodeImage]) -> Option<&'a NodeImage> {
    let is_judged =
        |image: &&NodeImage| image.version.as_ref().is_some_and(|version| version.minor <= JUDGED);
    if *wanted == Kubernetes::Newest
        && let Some(image) = present.iter().find(is_judged)
    {
        return Some(image);
    }
    present.iter().find(|image| {
        let Some(version) = &image.version else { return false };
        match wanted {
            Kubernetes::Newest => true,
            Kubernetes::Version { minor, patch } => {
                (version.major, version.minor) == (1, *minor)
                    && patch.is_none_or(|patch| patch == version.patch)
            }
            Kubernetes::Image(_) => false,
        }
    })
}

fn listed(present: &[NodeImage]) -> String {
    let mut versions: Vec<String> =
        present.iter().filter_map(|image| image.version.as_ref()).map(Version::to_string).collect();
    versions.dedup();
    if versions.is_empty() { "none; ci/node-image/build builds one".to_owned() } else { versions.join(", ") }
}

fn kube_proxy(labels: &HashMap<String, String>) -> KubeProxy {
    if labels.get(KUBE_PROXY_LABEL).is_some_and(|value| value == "none") {
        KubeProxy::Absent
    } else {
        KubeProxy::Present
    }
}

fn version_by_name(labels: &HashMap<String, String>, names: &[String]) -> Option<Version> {
    let tagged = |name: &String| {
        let (repository, tag) = name.split('@').next()?.rsplit_once(':')?;
        if repository == KIND_REPOSITORY { tag.parse().ok() } else { None }
    };
    labels
        .get(VERSION_LABEL)
        .and_then(|version| version.parse().ok())
        .or_else(|| names.iter().find_map(tagged))
}

/// Reads `/kind/version` from the image, using a container that is never started. The container is removed even if the
/// caller is gone.
async fn version_by_looking(engine: &Engine, reference: &str) -> Result<Option<Version>, EngineError> {
    let (engine, reference) = (engine.clone(), reference.to_owned());
    begin(async move { look_into(&engine, &reference).await }).await
}

async fn look_into(engine: &Engine, reference: &str) -> Result<Option<Version>, EngineError> {
    let docker = engine.docker();
    let body = ContainerCreateBody {
        image: Some(reference.to_owned()),
        cmd: Some(vec!["true".to_owned()]),
        ..Default::default()
    };
    let options = CreateContainerOptionsBuilder::new().build();
    let container = engine
        .call("look into image", reference, LIMIT, docker.create_container(Some(options), body))
        .await?
        .id;
    let path = DownloadFromContainerOptionsBuilder::new().path("/kind/version").build();
    let read = docker.download_from_container(&container, Some(path)).try_fold(
        Vec::new(),
        |mut all: Vec<u8>, piece| async move {
            // The file is one line; a larger one must not use this process's memory.
            let fits = piece.len().min(MOST - all.len());
            all.extend_from_slice(&piece[..fits]);
            Ok(all)
        },
    );
    let read = engine.call("look into image", reference, LIMIT, read).await;
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    engine
        .call("remove container", &container, LIMIT, docker.remove_container(&container, Some(options)))
        .await?;
    let archive = match read {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other?,
    };
    let mut text = String::new();
    let mut archive = tar::Archive::new(archive.as_slice());
    let first = archive.entries().ok().and_then(|mut entries| entries.next()).and_then(Result::ok);
    let read = first.is_some_and(|mut entry| entry.read_to_string(&mut text).is_ok());
    Ok(if read { text.trim().parse().ok() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(reference: &str, version: &str) -> NodeImage {
        NodeImage {
            reference: Some(reference.into()),
            version: version.parse().ok(),
            kube_proxy: KubeProxy::Present,
        }
    }

    #[test]
    fn the_newest_that_fits_is_taken() {
        let present = [image("c", "v1.36.2"), image("b", "v1.36.0"), image("a", "v1.20.2")];
        let picked = |wanted: &str| {
            pick(&wanted.parse().expect("a version"), &present).and_then(|image| image.reference.clone())
        };
        assert_eq!(pick(&Kubernetes::Newest, &present), Some(&present[0]));
        let newer = [image("d", "v1.99.0"), image("c", "v1.36.2")];
        assert_eq!(pick(&Kubernetes::Newest, &newer), Some(&newer[1]), "the newest that is judged");
        assert_eq!(pick(&Kubernetes::Newest, &newer[..1]), Some(&newer[0]), "there is no other");
        assert_eq!(picked("1.36").as_deref(), Some("c"));
        assert_eq!(picked("v1.36.0").as_deref(), Some("b"));
        assert_eq!(picked("1.20").as_deref(), Some("a"));
        assert_eq!(picked("1.31"), None);
        assert_eq!(listed(&present), "v1.36.2, v1.36.0, v1.20.2");
        assert_eq!(listed(&[]), "none; ci/node-image/build builds one");
    }

    #[test]
    fn versions_come_from_our_label_or_kinds_tag() {
        let none = HashMap::new();
        let labelled = HashMap::from([(VERSION_LABEL.to_owned(), "v1.20.2".to_owned())]);
        assert_eq!(version_by_name(&labelled, &[]), Some(Version::release(1, 20, 2)));
        assert_eq!(
            version_by_name(&none, &["kindest/node:v1.36.1@sha256:00".into()]),
            Some(Version::release(1, 36, 1))
        );
        assert_eq!(version_by_name(&none, &["mine/node:v1.36.1".into()]), None);
        assert_eq!(version_by_name(&none, &["kindest/node@sha256:00".into()]), None);
    }

    #[test]
    fn only_our_images_and_kinds_are_node_images() {
        let of = |tags: &[&str], digests: &[&str], label: Option<&str>| {
            is_node_image(&ImageSummary {
                repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
                repo_digests: digests.iter().map(|digest| (*digest).to_owned()).collect(),
                labels: label.map(|label| (label.to_owned(), "1".to_owned())).into_iter().collect(),
                ..Default::default()
            })
        };
        assert!(of(&["kindest/node:v1.36.1"], &[], None));
        assert!(of(&[], &["kindest/node@sha256:00"], None));
        assert!(of(&["anything:1"], &[], Some(NODE_IMAGE_LABEL)));
        assert!(!of(&["kindest/base:v1"], &["kindest/node-like@sha256:00"], None));
    }
}
