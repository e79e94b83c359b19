//! Bringing a cluster up beside the images it needs and the cloud, so that whatever ends it half-way is undone.

use super::prepared::Artifacts;
use super::stage::stage;
use super::teardown::Teardown;
use crate::check::chain;
use crate::cluster::{Backend, CloudSite, ClusterRecord};
use crate::events::Events;
use crate::session::SessionError;
use futures::FutureExt;
use std::sync::Arc;

/// What has been brought up.
pub(super) struct Raised<'a, C> {
    pub(super) cluster: ClusterRecord,
    pub(super) artifacts: &'a Artifacts,
    /// What was begun beside the cluster, where that was possible.
    pub(super) beside: Option<C>,
}

/// Brings the cluster up while `artifacts` are made, and `beside` of these where the cluster's place is known before it
/// is up; then puts the artifacts into its nodes. The first failure ends all. The backend is on the teardown before
/// anything is begun.
///
/// # Errors
/// What is missing on this machine, said before anything is compiled; or what failed.
pub(super) async fn raise<'a, C>(
    backend: Arc<dyn Backend>,
    teardown: &mut Teardown,
    events: &Events,
    artifacts: impl Future<Output = Result<&'a Artifacts, SessionError>>,
    beside: impl AsyncFnOnce(&mut Teardown, CloudSite, &'a Artifacts) -> Result<C, SessionError>,
) -> Result<Raised<'a, C>, SessionError> {
    let going = backend.clone();
    teardown.push("cluster", move || {
        async move { going.down().await.map_err(|error| chain(&error)) }.boxed_local()
    });
    for warning in backend.preflight().await? {
        events.say(format!("warning: {warning}"));
    }
    let site = backend.cloud_site().await?;
    let up = async { Ok(stage(events, "cluster", backend.up()).await?) };
    let rest = async {
        let artifacts = artifacts.await?;
        let beside = match site {
            Some(site) => Some(beside(teardown, site, artifacts).await?),
            None => None,
        };
        Ok::<_, SessionError>((artifacts, beside))
    };
    let (cluster, (artifacts, beside)) = tokio::try_join!(up, rest)?;
    let archives = artifacts.archives();
    if !archives.is_empty() {
        stage(events, "images into the nodes", backend.load(&cluster, &archives)).await?;
    }
    Ok(Raised { cluster, artifacts, beside })
}

/// Puts a management cluster on the teardown, and brings it up; `None` where there is none.
pub(super) fn manage(
    backend: Option<Arc<dyn Backend>>,
    teardown: &mut Teardown,
    events: &Events,
) -> impl Future<Output = Result<Option<ClusterRecord>, SessionError>> + use<> {
    if let Some(going) = backend.clone() {
        teardown.push("management cluster", move || {
            async move { going.down().await.map_err(|error| chain(&error)) }.boxed_local()
        });
    }
    let events = events.clone();
    async move {
        match backend {
            Some(backend) => Ok(Some(stage(&events, "management cluster", backend.up()).await?)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{About, ClusterError, Ownership};
    use crate::config::BackendKind;
    use futures::future::LocalBoxFuture;
    use std::sync::Mutex;

    /// What a scripted backend does when it is to come up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Script {
        Comes,
        /// As `Comes`; where a cloud has to be shows only then.
        ComesAnywhere,
        LacksSomething,
        Fails,
        NeverComes,
        ComesAndStays,
    }

    /// A backend that notes what is asked of it.
    #[derive(Debug)]
    struct Scripted {
        script: Script,
        asked: Mutex<Vec<&'static str>>,
    }

    impl Scripted {
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
            futures::future::ready(Ok(known.then_some(CloudSite::BesideNodes))).boxed_local()
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
            replica_group: None,
            cloud_site: CloudSite::BesideNodes,
            about: About::default(),
            own: serde_json::Value::Null,
        }
    }

    /// What was asked of the backend until it is down again, how coming up ended (`None`: given up by the caller) and how
    /// going down did.
    async fn through(
        script: Script,
        artifacts: Result<(), &str>,
    ) -> (Vec<&'static str>, Option<Result<(), String>>, Result<(), String>) {
        let backend = Arc::new(Scripted { script, asked: Mutex::default() });
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
        let raised = raise(backend.clone(), &mut teardown, &events, making, cloud);
        let ended = tokio::select! {
            ended = raised => Some(ended.map(drop).map_err(|error| chain(&error))),
            () = crate::probe::pause(std::time::Duration::from_secs(3600)) => None,
        };
        let down = teardown.run().await;
        let asked = backend.asked.lock().expect("no holder of this lock panics").clone();
        (asked, ended, down)
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_ends_it_the_backend_is_taken_down_once_and_last() {
        let all = vec!["preflight", "up", "down"];
        let with_cloud = vec!["preflight", "up", "cloud", "cloud down", "down"];
        let failed = |why: &str| Some(Err(why.to_owned()));
        assert_eq!(through(Script::Comes, Ok(())).await, (with_cloud.clone(), Some(Ok(())), Ok(())));
        assert_eq!(through(Script::Fails, Ok(())).await, (all.clone(), failed("no disk"), Ok(())));
        // Images that are not made end a cluster that is still coming up.
        assert_eq!(
            through(Script::NeverComes, Err("no image")).await,
            (all.clone(), failed("no image"), Ok(()))
        );
        // Given up by whoever waited: the future is dropped half-way. The cloud does not wait for the cluster.
        assert_eq!(through(Script::NeverComes, Ok(())).await, (with_cloud.clone(), None, Ok(())));
        assert_eq!(
            through(Script::ComesAndStays, Ok(())).await,
            (with_cloud, Some(Ok(())), Err("cluster: a container stays".to_owned()))
        );
        // Where the running cluster has to be asked, the cloud is left to whoever looks at it.
        assert_eq!(through(Script::ComesAnywhere, Ok(())).await, (all, Some(Ok(())), Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_is_said_before_anything_is_made() {
        let (asked, ended, down) = through(Script::LacksSomething, Err("never asked for")).await;
        assert_eq!(asked, ["preflight", "down"]);
        assert_eq!((ended, down), (Some(Err("no kind".to_owned())), Ok(())));
    }
}
