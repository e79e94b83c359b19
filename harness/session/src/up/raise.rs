//! Creates a cluster while its images and the cloud are prepared, so that everything is undone if one of them fails.

use super::prepared::Artifacts;
use super::stage::stage;
use super::teardown::Teardown;
use crate::SessionError;
use futures::FutureExt;
use harness_clusters::{Backend, CloudSite, ClusterRecord};
use harness_core::check::chain;
use harness_core::events::Events;
use std::sync::Arc;

/// What has been created.
pub(super) struct Raised<'a, C> {
    pub(super) cluster: ClusterRecord,
    /// The management cluster, if there is one.
    pub(super) management: Option<ClusterRecord>,
    pub(super) artifacts: &'a Artifacts,
    /// The cloud, if it could be started while the cluster was created.
    pub(super) cloud: Option<C>,
}

/// The backends of a lane.
pub(super) struct Backends {
    /// The one of the served cluster.
    pub(super) served: Arc<dyn Backend>,
    /// The one of the management cluster of a hosted CCM.
    pub(super) management: Option<Arc<dyn Backend>>,
}

/// Creates the clusters while `artifacts` are built, and calls `start_cloud` at the same time if the served cluster's site is
/// known before it is up; then loads the artifacts into their nodes. The first failure ends everything. The backends are
/// registered with the teardown before anything is started.
///
/// # Errors
/// What is missing on this machine, before anything is compiled; or what failed.
pub(super) async fn raise<'a, C>(
    Backends { served, management }: Backends,
    teardown: &mut Teardown,
    events: &Events,
    artifacts: impl Future<Output = Result<&'a Artifacts, SessionError>>,
    start_cloud: impl AsyncFnOnce(&mut Teardown, CloudSite, &'a Artifacts) -> Result<C, SessionError>,
) -> Result<Raised<'a, C>, SessionError> {
    for (what, going) in [("management cluster", management.clone()), ("cluster", Some(served.clone()))] {
        let Some(going) = going else { continue };
        teardown.push(what, move || {
            async move { going.down().await.map_err(|error| chain(&error)) }.boxed_local()
        });
    }
    for warning in served.preflight().await? {
        events.say(format!("warning: {warning}"));
    }
    // The network of both clusters exists by now.
    let site = served.cloud_site().await?;
    let up = async { Ok(stage(events, "cluster", served.up()).await?) };
    let managed = async {
        match &management {
            Some(backend) => Ok(Some(stage(events, "management cluster", backend.up()).await?)),
            None => Ok(None),
        }
    };
    let rest = async {
        let artifacts = artifacts.await?;
        let cloud = match site {
            Some(site) => Some(start_cloud(teardown, site, artifacts).await?),
            None => None,
        };
        Ok::<_, SessionError>((artifacts, cloud))
    };
    let (cluster, (artifacts, cloud), managed) = tokio::try_join!(up, rest, managed)?;
    let archives = artifacts.archives();
    if !archives.is_empty() {
        let there = async {
            match (&management, &managed) {
                (Some(backend), Some(managed)) => backend.load(managed, &archives).await,
                _ => Ok(()),
            }
        };
        let load = async { tokio::try_join!(served.load(&cluster, &archives), there) };
        stage(events, "images into the nodes", load).await?;
    }
    Ok(Raised { cluster, management: managed, artifacts, cloud })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::LocalBoxFuture;
    use harness_clusters::{About, ClusterError, Ownership};
    use harness_config::BackendKind;
    use std::sync::Mutex;

    /// The behaviour of a scripted backend.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Script {
        Comes,
        /// Like `Comes`, but the cloud's site is known only then.
        ComesAnywhere,
        LacksSomething,
        Fails,
        NeverComes,
        ComesAndStays,
    }

    /// A backend that records the calls to it.
    #[derive(Debug)]
    struct Scripted {
        script: Script,
        asked: Mutex<Vec<&'static str>>,
    }

    impl Scripted {
        fn of(script: Script) -> Arc<Scripted> {
            Arc::new(Scripted { script, asked: Mutex::default() })
        }

        fn was_asked(&self) -> Vec<&'static str> {
            self.asked.lock().expect("no holder of this lock panics").clone()
        }

        fn note(&self, what: &'static str) {
            self.asked.lock().expect("no holder of this lock panics").push(what);
        }
    }

    fn trouble(what: &str) -> ClusterError {
        ClusterError::NotRemoved { what: what.to_owned() }
    }

    impl Backend for Scripted {
        fn preflight(&self) -> LocalBoxFuture<'_, Result<Vec<String>, ClusterError>> {
            self.note("preflight");
            let lacks = self.script == Script::LacksSomething;
            let found = if lacks { Err(trouble("no kind")) } else { Ok(Vec::new()) };
            futures::future::ready(found).boxed_local()
        }

        fn cloud_site(&self) -> LocalBoxFuture<'_, Result<Option<CloudSite>, ClusterError>> {
            let known = self.script != Script::ComesAnywhere;
            futures::future::ready(Ok(known.then_some(CloudSite::NextToNodes))).boxed_local()
        }

        fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
            async {
                self.note("up");
                match self.script {
                    Script::NeverComes => std::future::pending().await,
                    Script::Fails => Err(trouble("no disk")),
                    _ => Ok(record()),
                }
            }
            .boxed_local()
        }

        fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>> {
            self.note("down");
            let stays = self.script == Script::ComesAndStays;
            futures::future::ready(if stays { Err(trouble("a container stays")) } else { Ok(()) })
                .boxed_local()
        }
    }

    fn record() -> ClusterRecord {
        ClusterRecord {
            backend: BackendKind::Existing,
            name: "scripted".to_owned(),
            kubeconfig: "/nowhere".into(),
            ownership: Ownership::Ours,
            machines: Vec::new(),
            facilities: Default::default(),
            pod_network: None,
            api_server_for_pods: None,
            api_server_for_other_clusters: None,
            replica_group: None,
            cloud_site: CloudSite::NextToNodes,
            about: About::default(),
            own: serde_json::Value::Null,
        }
    }

    /// The calls to the backend until it is down again, the result of creating the cluster (`None`: cancelled by the
    /// caller) and the result of removing it.
    async fn through(
        script: Script,
        artifacts: Result<(), &str>,
    ) -> (Vec<&'static str>, Option<Result<(), String>>, Result<(), String>) {
        let backend = Scripted::of(script);
        let (mut teardown, events) = (Teardown::default(), Events::unrecorded(Vec::new()));
        let made = Artifacts::default();
        let making = async {
            match artifacts {
                Ok(()) => Ok(&made),
                Err(why) => Err(SessionError::Precondition(why.to_owned())),
            }
        };
        let cloud = async |teardown: &mut Teardown, _: CloudSite, _: &Artifacts| {
            let noted = backend.clone();
            teardown.push("cloud", move || {
                noted.note("cloud down");
                futures::future::ready(Ok(())).boxed_local()
            });
            backend.note("cloud");
            Ok(())
        };
        let backends = Backends { served: backend.clone(), management: None };
        let raised = raise(backends, &mut teardown, &events, making, cloud);
        let ended = tokio::select! {
            ended = raised => Some(ended.map(drop).map_err(|error| chain(&error))),
            () = harness_core::probe::pause(std::time::Duration::from_secs(3600)) => None,
        };
        let down = teardown.run().await;
        (backend.was_asked(), ended, down)
    }

    #[tokio::test(start_paused = true)]
    async fn the_backend_is_removed_once_and_last_after_any_end() {
        let all = vec!["preflight", "up", "down"];
        let with_cloud = vec!["preflight", "up", "cloud", "cloud down", "down"];
        let failed = |why: &str| Some(Err(why.to_owned()));
        assert_eq!(through(Script::Comes, Ok(())).await, (with_cloud.clone(), Some(Ok(())), Ok(())));
        assert_eq!(through(Script::Fails, Ok(())).await, (all.clone(), failed("no disk"), Ok(())));
        // A failure to build images ends a cluster that is still starting.
        assert_eq!(
            through(Script::NeverComes, Err("no image")).await,
            (all.clone(), failed("no image"), Ok(()))
        );
        // Cancelled by the caller: the future is dropped half-way. The cloud does not wait for the cluster.
        assert_eq!(through(Script::NeverComes, Ok(())).await, (with_cloud.clone(), None, Ok(())));
        assert_eq!(
            through(Script::ComesAndStays, Ok(())).await,
            (with_cloud, Some(Ok(())), Err("cluster: a container stays".to_owned()))
        );
        // If the running cluster must be queried, the caller starts the cloud.
        assert_eq!(through(Script::ComesAnywhere, Ok(())).await, (all, Some(Ok(())), Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn missing_requirements_are_reported_before_anything_is_created() {
        let (asked, ended, down) = through(Script::LacksSomething, Err("never asked for")).await;
        assert_eq!(asked, ["preflight", "down"]);
        assert_eq!((ended, down), (Some(Err("no kind".to_owned())), Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn both_clusters_start_in_parallel_and_both_are_removed_after_any_failure() {
        for (served, hosting, ends) in [
            (Script::Comes, Script::Comes, Ok(true)),
            (Script::Comes, Script::Fails, Err("no disk".to_owned())),
            (Script::NeverComes, Script::Fails, Err("no disk".to_owned())),
            (Script::Fails, Script::NeverComes, Err("no disk".to_owned())),
        ] {
            let (served, hosting) = (Scripted::of(served), Scripted::of(hosting));
            let (mut teardown, events, made) =
                (Teardown::default(), Events::unrecorded(Vec::new()), Artifacts::default());
            let backends = Backends { served: served.clone(), management: Some(hosting.clone()) };
            let cloud = async |_: &mut Teardown, _: CloudSite, _: &Artifacts| Ok(());
            let raised = raise(backends, &mut teardown, &events, async { Ok(&made) }, cloud).await;
            let raised = raised.map(|raised| raised.management.is_some()).map_err(|error| chain(&error));
            assert_eq!(raised, ends, "{served:?} {hosting:?}");
            assert_eq!(teardown.run().await, Ok(()));
            assert_eq!(hosting.was_asked().last(), Some(&"down"), "{hosting:?}");
            assert_eq!(served.was_asked(), ["preflight", "up", "down"], "{served:?}");
        }
    }
}
