//! What runs have left in the Docker engine: found by label and name, removed whatever state it is in.

use super::error::ClusterError;
use super::frozen;
use super::network;
use crate::images::{
    COMPONENT_LABEL, Engine, EngineError, NAME_PREFIX, OWNER_LABEL, RUN_LABEL, RunId, settled,
};
use crate::owner::Owner;
use crate::probe::{ReadError, poll};
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
};
use futures::future::join_all;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// kind's label with the cluster's name on its containers.
pub(super) const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
/// How long one question or removal may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long removing what belongs to one cluster may take in all.
const REMOVAL_LIMIT: Duration = Duration::from_secs(120);
/// How long to wait before looking again for a container that was still being made, or removed by somebody else.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Something a run has left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// What it is. Containers come before the networks they are on.
    pub kind: LeftoverKind,
    /// Its name.
    pub name: String,
    /// The run that made it; `None` for what several runs share.
    pub run: Option<RunId>,
    /// The process that made it, where that is noted on it; kind's machines have no labels of ours.
    pub owner: Option<Owner>,
    /// The kind cluster whose machine it is.
    cluster: Option<String>,
    id: String,
}

#[cfg(test)]
impl Leftover {
    /// A container of that run, made by that process.
    pub(crate) fn of_run(run: &str, owner: Option<Owner>) -> Leftover {
        let run = run.parse::<RunId>().expect("a run's id");
        let (name, id) = (run.name_of("cloud"), run.to_string());
        Leftover { kind: LeftoverKind::Container, name, run: Some(run), owner, cluster: None, id }
    }

    /// The same, made by no run in particular.
    pub(crate) fn of_no_run(self) -> Leftover {
        Leftover { run: None, owner: None, ..self }
    }
}

/// What kind of thing was left.
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
#[error("not removed: {}", left.iter().map(|(thing, error)| format!("{} {} ({})", thing.kind, thing.name, crate::check::chain(error))).collect::<Vec<_>>().join("; "))]
pub struct LeftBehind {
    /// What is still there, and why.
    pub left: Vec<(Leftover, EngineError)>,
}

/// Everything in the engine that runs of the harness have made, and is still there. Node images are not: they are
/// meant to stay.
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

/// Removes what `filter` says yes to, containers first, and tries everything. Images in use stay without complaint.
/// What has gone meanwhile counts as removed.
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

/// Why leftovers are still there.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// The engine does not answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Some could not be removed.
    #[error(transparent)]
    LeftBehind(#[from] LeftBehind),
}

/// Removes everything one run has made, in whatever state it is, and images built here that nobody uses. For the end of
/// a run that was interrupted anywhere.
///
/// # Errors
/// As [`remove_leftovers`].
pub(crate) async fn cleanup(engine: &Engine, run: &RunId) -> Result<Vec<Leftover>, RemovalError> {
    let of_run = |thing: &Leftover| thing.run.as_ref() == Some(run) || thing.kind == LeftoverKind::Image;
    let first = remove_leftovers(engine, of_run).await;
    // What was being made when the run was cut short shows up late, and may have kept the network. The first removal
    // ends commands in machines, on which children of kind may still wait.
    settled(REMOVAL_LIMIT).await;
    let second = remove_leftovers(engine, of_run).await?;
    Ok(first.unwrap_or_default().into_iter().chain(second).collect())
}

/// Removes the machines of a cluster with their volumes; waits until they are gone.
pub(super) async fn remove_cluster(engine: &Engine, cluster: &str) -> Result<(), ClusterError> {
    let mut gone = async |seen: &mut String| {
        let all =
            containers(engine).await.map_err(|error| ReadError::passing(crate::check::chain(&error)))?;
        let own: Vec<Leftover> =
            all.into_iter().filter(|thing| thing.cluster.as_deref() == Some(cluster)).collect();
        if own.is_empty() {
            return Ok(Some(()));
        }
        let outcomes = join_all(own.iter().map(|thing| remove(engine, thing))).await;
        match own.iter().zip(outcomes).find_map(|(thing, outcome)| Some((thing, outcome.err()?))) {
            None => Ok(Some(())),
            Some((thing, error)) => {
                *seen = format!("{} {}: {}", thing.kind, thing.name, crate::check::chain(&error));
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

/// A container as a leftover, when a run has made it or had kind make it.
fn container(found: ContainerSummary) -> Option<Leftover> {
    let labels = found.labels.unwrap_or_default();
    let cluster = labels.get(CLUSTER_LABEL).filter(|name| name.starts_with(NAME_PREFIX)).cloned();
    let run = match labels.get(RUN_LABEL) {
        Some(run) => run.parse().ok(),
        None => RunId::of_name(cluster.as_deref()?),
    };
    let owner = labels.get(OWNER_LABEL).and_then(|owner| owner.parse().ok());
    let name = found.names.and_then(|names| names.into_iter().next()).unwrap_or_default();
    let name = name.trim_start_matches('/').to_owned();
    Some(Leftover { kind: LeftoverKind::Container, name, run, owner, cluster, id: found.id? })
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
        let name = image.repo_tags.first().unwrap_or(&image.id).clone();
        Leftover { kind: LeftoverKind::Image, name, run: None, owner: None, cluster: None, id: image.id }
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
        LeftoverKind::Image => {
            let options = RemoveImageOptionsBuilder::new().force(false).build();
            engine
                .call(
                    "remove image",
                    &thing.name,
                    LIMIT,
                    docker.remove_image(&thing.name, Some(options), None),
                )
                .await
                .map(drop)
        }
    };
    match outcome {
        // Somebody else removes it, or has.
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.message().is_some_and(|words| words.contains("already in progress")) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn containers_of_runs_are_told_from_those_of_others() {
        let machine =
            listed("ccm-conformance-abcdefgh-worker", &[(CLUSTER_LABEL, "ccm-conformance-abcdefgh")]);
        let machine = machine.expect("a machine of ours");
        let cloud =
            listed("ccm-conformance-abcdefgh-cloud", &[(RUN_LABEL, "abcdefgh"), (COMPONENT_LABEL, "cloud")]);
        let cloud = cloud.expect("a cloud of ours");
        assert_eq!((&machine.run, machine.name.as_str()), (&cloud.run, "ccm-conformance-abcdefgh-worker"));
        // A cluster that is removed or begun anew leaves the cloud beside it alone.
        assert_eq!((machine.cluster.as_deref(), cloud.cluster), (Some("ccm-conformance-abcdefgh"), None));
        assert_eq!(listed("kind-control-plane", &[(CLUSTER_LABEL, "kind")]), None);
        assert_eq!(listed("ccm-conformance-abcdefgh-worker", &[]), None);
    }
}
