//! Blocked connections: replicas that cannot reach the API server, and processes that are frozen.

use super::CheckCx;
use super::replicas::Replica;
use super::undo_steps::Undo;
use harness_clusters::{ApiReach, Cluster, ClusterError, ContainerOp, Operation, PodTraffic, PowerOp};
use harness_core::check::{CheckError, Verdict, chain};
use harness_core::probe::{ReadError, poll};
use harness_session::ccm::TOKEN_ID;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::Api;
use std::time::Duration;

/// Interval between two requests to an API server that is starting.
const AGAIN: Duration = Duration::from_millis(200);

/// A block of connections to the API server, until it is removed, at the latest when the check ends.
#[derive(Debug)]
#[must_use = "it lasts until the check ends it"]
pub struct Partition<'a> {
    cx: &'a CheckCx,
}

impl Partition<'_> {
    /// Removes the block.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn restore(self) -> Verdict {
        self.cx.undo_reach().await.map_err(CheckError::Error)
    }
}

/// A frozen process, until it is resumed, at the latest when the check ends.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let leader = cx.active_replica().await?;
/// let led = cx.lease().becomes(held()).await?;
/// let before = transitions_of(&led);
/// leader.will_end();
/// let frozen: Frozen<'_> = leader.freezes().await?;
/// cx.lease().becomes(taken_over(before)).within(cx.limits().failover()).await?;
/// frozen.wake().await
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it lasts until the process is resumed"]
pub struct Frozen<'a> {
    cx: &'a CheckCx,
    node: String,
    id: String,
}

impl Frozen<'_> {
    /// Resumes it.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn wake(self) -> Verdict {
        self.cx
            .session
            .signal_container(&self.node, &self.id, ContainerOp::Thaw)
            .await
            .map_err(CheckError::Error)
    }
}

impl<'a> Replica<'a> {
    /// Cuts it off from the API server: it receives no watch events and its requests fail until this is undone. It still
    /// reaches the cloud.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn is_cut_off(&self) -> Result<Partition<'a>, CheckError> {
        let token = self.token_id().await?;
        let traffic = |pod| PodTraffic { token: token.clone(), ..PodTraffic::of(pod) };
        let pods: Vec<PodTraffic> = self.pods().iter().map(|pod| traffic(pod)).collect();
        self.cx.on_end(Undo::Reach);
        self.cx.reach(ApiReach::AllBut(&pods)).await?;
        Ok(Partition { cx: self.cx })
    }

    /// The id of the token of a hosted replica, which identifies it to the API server, as that server does not know its
    /// Pods; `None` for other replicas.
    async fn token_id(&self) -> Result<Option<String>, CheckError> {
        let session = &self.cx.session;
        if session.state().management.is_none() {
            return Ok(None);
        }
        let workload = session.ccm().workload_of(self.name());
        let workload =
            workload.ok_or_else(|| CheckError::Error(format!("no workload of replica {}", self.name())))?;
        let api: Api<Deployment> = Api::namespaced(self.cx.pods_client(), &workload.namespace);
        match api.get(&workload.name).await?.annotations().get(TOKEN_ID) {
            Some(id) => Ok(Some(id.clone())),
            None => Err(CheckError::Error(format!("{workload} has no annotation {TOKEN_ID}"))),
        }
    }

    /// Freezes its process, as on an overloaded machine.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn freezes(&self) -> Result<Frozen<'a>, CheckError> {
        let (node, id) = self.container()?;
        self.cx.on_end(Undo::Frozen { node: node.clone(), id: id.clone() });
        self.cx.session.signal_container(&node, &id, ContainerOp::Freeze).await.map_err(CheckError::Error)?;
        Ok(Frozen { cx: self.cx, node, id })
    }
}

impl CheckCx {
    /// Makes the API server unreachable for the CCM.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn api_server_is_away(&self) -> Result<Partition<'_>, CheckError> {
        self.on_end(Undo::Reach);
        self.reach(ApiReach::None).await?;
        Ok(Partition { cx: self })
    }

    /// Makes the API server unreachable for the CCM for that long, counted where packets are refused. Returns how long it
    /// was at most.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn api_server_is_away_for(&self, lasts: Duration) -> Result<Duration, CheckError> {
        self.on_end(Undo::Reach);
        Ok(self.place_of_reach().api_outage(lasts).await?)
    }

    /// Switches off all machines at once and then on again; returns when the API server answers.
    ///
    /// # Errors
    /// When the cluster cannot do it, or its API server does not come back.
    pub async fn power_fails(&self) -> Verdict {
        let all = self.session.real_nodes();
        self.on_end(Undo::Power(all.clone()));
        self.session.through_absence(self.loses_power(&all)).await
    }

    async fn loses_power(&self, all: &[String]) -> Verdict {
        self.power(all, PowerOp::Off).await.map_err(CheckError::Error)?;
        self.power(all, PowerOp::On).await.map_err(CheckError::Error)?;
        let answers = async |seen: &mut String| {
            let version = self.client.apiserver_version().await;
            version.map(Some).map_err(|error| {
                *seen = "no answer".to_owned();
                ReadError::passing(chain(&error))
            })
        };
        let what = "the API server answers after a power failure";
        poll(what, self.limits().start(), AGAIN, answers).await?;
        Ok(())
    }

    /// Switches the power of machines with these names on or off.
    pub(super) async fn power(&self, names: &[String], op: PowerOp) -> Result<(), String> {
        let change = |machine| self.session.cluster().operate(Operation::Power { machine, op });
        let named = self.session.machines().iter().filter(|machine| names.contains(&machine.name));
        futures::future::try_join_all(named.map(change)).await.map(drop).map_err(|error| chain(&error))
    }

    /// Sets which clients reach the served API server.
    async fn reach(&self, reach: ApiReach<'_>) -> Result<(), ClusterError> {
        self.place_of_reach().operate(Operation::ApiServer(reach)).await
    }

    /// The cluster that decides it: where packets of a hosted CCM's Pods leave, if they can be distinguished there,
    /// otherwise where they arrive.
    fn place_of_reach(&self) -> &Cluster {
        let by_packets = self.session.state().cluster.replica_group.is_some();
        if by_packets { self.session.ccm_site().cluster() } else { self.session.cluster() }
    }

    pub(super) async fn undo_reach(&self) -> Result<(), String> {
        self.reach(ApiReach::All).await.map_err(|error| chain(&error))
    }

    /// Resumes processes that may still be frozen; those that are gone need nothing.
    pub(super) async fn undo_frozen(&self, node: &str, id: &str) -> Result<(), String> {
        if let Err(error) = self.session.signal_container(node, id, ContainerOp::Thaw).await {
            tracing::debug!(%error, node, "a frozen process was not resumed");
        }
        Ok(())
    }
}
