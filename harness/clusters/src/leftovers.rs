//! Leftovers of runs in the Docker engine: found by label and name, and removed in whatever state they are.

use super::error::ClusterError;
use super::frozen;
use super::network;
use crate::images::{
    COMPONENT_LABEL, Engine, EngineError, NAME_PREFIX, OWNER_LABEL, RUN_LABEL, RunId, is_named, settled,
};
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
};
use futures::future::join_all;
use harness_core::owner::Owner;
use harness_core::probe::{ReadError, poll};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// kind's label with the cluster's name on its containers.
pub(super) const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
/// Time limit for one query or removal.
const LIMIT: Duration = Duration::from_secs(60);
/// Time limit for removing everything of one cluster.
const REMOVAL_LIMIT: Duration = Duration::from_secs(120);
/// How long to wait before looking again for a container that was still being created, or removed by another client.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A leftover of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// Its kind. Containers come before the networks that they use.
    pub kind: LeftoverKind,
    /// Its name.
    pub name: String,
    /// The run that created it; `None` for what several runs share.
    pub run: Option<RunId>,
    /// The process that created it, if its labels say so; kind's machines do not have our labels.
    pub owner: Option<Owner>,
    /// The kind cluster whose machine it is.
    cluster: Option<String>,
    id: String,
    /// All names of an image: it may have several, or none.
    names: Vec<String>,
}

impl Leftover {
    /// A container of that run, created by that process; for tests of this and other crates.
    ///
    /// # Panics
    /// When `run` is not a run's id.
    pub fn of_run(run: &str, owner: Option<Owner>) -> Leftover {
        let run = run.parse::<RunId>().expect("a run's id");
        let (name, id) = (run.name_of("cloud"), run.to_string());
        let (kind, names) = (LeftoverKind::Container, Vec::new());
        Leftover { kind, name, run: Some(run), owner, cluster: None, id, names }
    }

    /// A container that was not created by a particular run.
    pub fn of_no_run(self) -> Leftover {
        Leftover { run: None, owner: None, ..self }
    }
}

/// The kinds of leftovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftoverKind {
    /// A container: a machine of a cluster or a fake cloud.
    Container,
    /// A network.
    Network,
    /// An image that was built here.
    Image,
}

impl fmt::Display for LeftoverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LeftoverKind::Container => "container",
            LeftoverKind::Network => "network",
            LeftoverKind::Image => "image",
        })
    }
}

/// A removal that did not succeed entirely.
#[derive(Debug, thiserror::Error)]
#[error("not removed: {}", left.iter().map(|(thing, error)| format!("{} {} ({})", thing.kind, thing.name, harness_core::check::chain(error))).collect::<Vec<_>>().join("; "))]
pub struct LeftBehind {
    /// What still exists, and why.
    pub left: Vec<(Leftover, EngineError)>,
}

/// Everything in the engine that runs of the harness have created and that still exists. Node images are not included:
/// they are meant to stay.
///
/// # Errors
/// The engine does not answer.
pub async fn list_leftovers(engine: &Engine) -> Result<Vec<Leftover>, EngineError> {
    let (containers, networks, images) =
        tokio::try_join!(containers(engine), networks(engine), images(engine))?;
    let mut all: Vec<Leftover> = containers.into_iter().chain(networks).chain(images).collect();
    all.sort();
    Ok(all)
}

/// Removes what `filter` accepts, containers first, and tries everything. Images in use stay without an error. Things
/// that are gone in the meantime count as removed.
///
/// # Errors
/// The engine does not answer, or something could not be removed.
pub async fn remove_leftovers(
    engine: &Engine,
    filter: impl Fn(&Leftover) -> bool,
) -> Result<Vec<Leftover>, RemovalError> {
    let chosen: Vec<Leftover> = list_leftovers(engine).await?.into_iter().filter(filter).collect();
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for kind in [LeftoverKind::Container, LeftoverKind::Network, LeftoverKind::Image] {
        let these: Vec<&Leftover> = chosen.iter().filter(|thing| thing.kind == kind).collect();
        let outcomes = join_all(these.iter().map(|thing| remove(engine, thing))).await;
        for (thing, outcome) in these.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => removed.push(thing.clone()),
                Err(error) if kind == LeftoverKind::Image && error.is_conflict() => {}
                Err(error) => left.push((thing.clone(), error)),
            }
        }
    }
    if left.is_empty() { Ok(removed) } else { Err(LeftBehind { left }.into()) }
}

/// Why leftovers still exist.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The engine does not answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Some could not be removed.
    #[error(transparent)]
    LeftBehind(#[from] LeftBehind),
}

/// Removes everything that one run has created, in whatever state it is, and unused images that were built here. For the
/// end of a run that was interrupted at any point.
///
/// # Errors
/// As [`remove_leftovers`].
pub async fn cleanup(engine: &Engine, run: &RunId) -> Result<Vec<Leftover>, RemovalError> {
    let of_run = |thing: &Leftover| thing.run.as_ref() == Some(run) || thing.kind == LeftoverKind::Image;
    let first = remove_leftovers(engine, of_run).await;
    // What was being created when the run was interrupted appears late, and may have kept the network. The first removal
    // ends commands in machines, on which children of kind may still wait.
    settled(REMOVAL_LIMIT).await;
    let second = remove_leftovers(engine, of_run).await?;
    Ok(first.unwrap_or_default().into_iter().chain(second).collect())
}

/// Removes the machines of a cluster with their volumes; waits until they are gone.
pub(super) async fn remove_cluster(engine: &Engine, cluster: &str) -> Result<(), ClusterError> {
    let mut gone = async |seen: &mut String| {
        let all = containers(engine)
            .await
            .map_err(|error| ReadError::passing(harness_core::check::chain(&error)))?;
        let own: Vec<Leftover> =
            all.into_iter().filter(|thing| thing.cluster.as_deref() == Some(cluster)).collect();
        if own.is_empty() {
            return Ok(Some(()));
        }
        let outcomes = join_all(own.iter().map(|thing| remove(engine, thing))).await;
        match own.iter().zip(outcomes).find_map(|(thing, outcome)| Some((thing, outcome.err()?))) {
            None => Ok(Some(())),
            Some((thing, error)) => {
                *seen = format!("{} {}: {}", thing.kind, thing.name, harness_core::check::chain(&error));
                Ok(None)
            }
        }
    };
    let what = format!("the removal of cluster {cluster}");
    match poll(&what, REMOVAL_LIMIT, LOOK_AGAIN, &mut gone).await {
        Ok(()) => Ok(()),
        Err(error) => Err(ClusterError::TimedOut { what, limit: REMOVAL_LIMIT, seen: error.text }),
    }
}

async fn containers(engine: &Engine) -> Result<Vec<Leftover>, EngineError> {
    let options = ListContainersOptionsBuilder::new().all(true).build();
    let listing = engine.docker().list_containers(Some(options));
    let found = engine.call("list containers of", "the engine", LIMIT, listing).await?;
    Ok(found.into_iter().filter_map(container).collect())
}

/// A container as a leftover, if a run created it or had kind create it.
fn container(found: ContainerSummary) -> Option<Leftover> {
    let labels = found.labels.unwrap_or_default();
    let cluster = labels.get(CLUSTER_LABEL).filter(|name| name.starts_with(NAME_PREFIX)).cloned();
    let run = match labels.get(RUN_LABEL) {
        Some(run) => run.parse().ok(),
        None => RunId::of_name(cluster.as_deref()?),
    };
    let owner = labels.get(OWNER_LABEL).and_then(|owner| owner.parse().ok());
    let id = found.id?;
    // A container that is half removed has none any more.
    let name = found.names.and_then(|names| names.into_iter().next());
    let name = name.map_or_else(|| id.clone(), |name| name.trim_start_matches('/').to_owned());
    Some(Leftover { kind: LeftoverKind::Container, name, run, owner, cluster, id, names: Vec::new() })
}

async fn networks(engine: &Engine) -> Result<Vec<Leftover>, EngineError> {
    let filters = HashMap::from([("label", vec![RUN_LABEL.to_owned()])]);
    let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
    let found = engine
        .call("list networks of", "the engine", LIMIT, engine.docker().list_networks(Some(options)))
        .await?;
    let ours = found.into_iter().filter_map(|network| {
        let label = |key: &str| network.labels.as_ref()?.get(key);
        let run = label(RUN_LABEL).and_then(|run| run.parse().ok());
        let owner = label(OWNER_LABEL).and_then(|owner| owner.parse().ok());
        Some(Leftover {
            kind: LeftoverKind::Network,
            name: network.name?,
            run,
            owner,
            cluster: None,
            id: network.id?,
            names: Vec::new(),
        })
    });
    Ok(ours.collect())
}

async fn images(engine: &Engine) -> Result<Vec<Leftover>, EngineError> {
    let filters = HashMap::from([("label", vec![COMPONENT_LABEL.to_owned()])]);
    let options = ListImagesOptionsBuilder::new().filters(&filters).build();
    let found = engine
        .call("list images of", "the engine", LIMIT, engine.docker().list_images(Some(options)))
        .await?;
    let ours = found.into_iter().map(|image| {
        let names: Vec<String> = image.repo_tags.into_iter().filter(|name| is_named(name)).collect();
        let name = names.first().unwrap_or(&image.id).clone();
        Leftover {
            kind: LeftoverKind::Image,
            name,
            run: None,
            owner: None,
            cluster: None,
            id: image.id,
            names,
        }
    });
    Ok(ours.collect())
}

async fn remove(engine: &Engine, thing: &Leftover) -> Result<(), EngineError> {
    let docker = engine.docker();
    let outcome = match thing.kind {
        LeftoverKind::Container => {
            let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            let removal = async || {
                let removed = docker.remove_container(&thing.id, Some(options.clone()));
                engine.call("remove container", &thing.name, LIMIT, removed).await
            };
            match removal().await {
                Err(error) if !error.is_not_found() && frozen::thaw(&thing.id) > 0 => removal().await,
                other => other,
            }
        }
        LeftoverKind::Network => network::remove(engine, &thing.id).await,
        LeftoverKind::Image => remove_image(engine, thing).await,
    };
    match outcome {
        // Another client is removing it, or has removed it.
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.message().is_some_and(|words| words.contains("already in progress")) => Ok(()),
        other => other,
    }
}

/// Removes an unused image by its id: its name may by now belong to another image. If it has several names, they are
/// removed first, as the engine keeps the image for them.
async fn remove_image(engine: &Engine, image: &Leftover) -> Result<(), EngineError> {
    let names = if image.names.len() > 1 { image.names.as_slice() } else { &[] };
    for what in names.iter().chain([&image.id]) {
        let options = RemoveImageOptionsBuilder::new().force(false).build();
        let removing = engine.docker().remove_image(what, Some(options), None);
        match engine.call("remove image", &image.name, LIMIT, removing).await {
            // It was removed with the last of its names.
            Err(error) if error.is_not_found() => {}
            other => drop(other?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::FakeEngine;
    use serde_json::{Value, json};

    /// What is removed, as reported, and which deletions the engine was asked for.
    async fn removed(images: Value) -> (Vec<String>, Vec<String>) {
        let fake = FakeEngine::answering(move |asked| match asked {
            "GET /images/json" => (200, images.clone()),
            asked if asked.starts_with("GET ") => (200, json!([])),
            // The engine does not accept either of them as a name.
            asked if asked.contains("none") => (400, json!({"message": "invalid reference format"})),
            _ => (200, json!([])),
        })
        .await;
        let removed = remove_leftovers(&fake.engine, |_| true).await.expect("all of it goes");
        let asked = fake.asked().into_iter().filter(|asked| asked.starts_with("DELETE ")).collect();
        (removed.into_iter().map(|thing| thing.name).collect(), asked)
    }

    fn image(id: &str, tags: Value, digests: Value) -> Value {
        json!({"Id": id, "ParentId": "", "RepoTags": tags, "RepoDigests": digests, "Created": 0, "Size": 1,
            "SharedSize": 0, "Labels": {}, "Containers": 0})
    }

    #[tokio::test]
    async fn an_image_is_removed_by_its_id_and_listed_by_it_without_a_name() {
        for (tags, digests) in [
            (json!(["<none>:<none>"]), json!(["<none>@<none>"])),
            (json!([]), json!([])),
            (json!(null), json!(null)),
        ] {
            let (reported, asked) = removed(json!([image("sha256:12", tags, digests)])).await;
            assert_eq!(
                (reported, asked),
                (vec!["sha256:12".to_owned()], vec!["DELETE /images/sha256:12".to_owned()])
            );
        }
        let (reported, asked) =
            removed(json!([image("sha256:34", json!(["a.invalid/ccm:1"]), json!([]))])).await;
        assert_eq!(
            (reported, asked),
            (vec!["a.invalid/ccm:1".to_owned()], vec!["DELETE /images/sha256:34".to_owned()])
        );
        let (reported, asked) =
            removed(json!([image("sha256:56", json!(["a:1", "<none>:<none>", "b:1"]), json!([]))])).await;
        assert_eq!(reported, ["a:1"]);
        assert_eq!(asked, ["DELETE /images/a:1", "DELETE /images/b:1", "DELETE /images/sha256:56"]);
    }

    #[test]
    fn a_container_without_a_name_is_listed_by_its_id() {
        let labels = Some(HashMap::from([(RUN_LABEL.to_owned(), "abcdefgh".to_owned())]));
        let nameless = ContainerSummary { id: Some("0123".to_owned()), labels, ..Default::default() };
        assert_eq!(container(nameless).expect("one of ours").name, "0123");
    }

    fn listed(name: &str, labels: &[(&str, &str)]) -> Option<Leftover> {
        container(ContainerSummary {
            id: Some("0123".to_owned()),
            names: Some(vec![format!("/{name}")]),
            labels: Some(
                labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ),
            ..Default::default()
        })
    }

    #[test]
    fn containers_of_runs_are_distinguished_from_foreign_ones() {
        let machine =
            listed("ccm-conformance-abcdefgh-worker", &[(CLUSTER_LABEL, "ccm-conformance-abcdefgh")]);
        let machine = machine.expect("a machine of ours");
        let cloud =
            listed("ccm-conformance-abcdefgh-cloud", &[(RUN_LABEL, "abcdefgh"), (COMPONENT_LABEL, "cloud")]);
        let cloud = cloud.expect("a cloud of ours");
        assert_eq!((&machine.run, machine.name.as_str()), (&cloud.run, "ccm-conformance-abcdefgh-worker"));
        // Removing or recreating a cluster does not affect the cloud next to it.
        assert_eq!((machine.cluster.as_deref(), cloud.cluster), (Some("ccm-conformance-abcdefgh"), None));
        assert_eq!(listed("kind-control-plane", &[(CLUSTER_LABEL, "kind")]), None);
        assert_eq!(listed("ccm-conformance-abcdefgh-worker", &[]), None);
    }
}
