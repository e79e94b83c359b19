//! Runs a check in its own environment: a cluster and a cloud that are created for it and removed afterwards.

use super::ready_environment::{is_trouble, leave_after, say_kept};
use harness_clouds::Settings;
use harness_clusters::{ClusterError, Lifetime, Role, facts, has_version, planned_machines};
use harness_config::{BackendKind, Kubernetes, NodeIp, OwnCluster, RunPlan, ServingCertificates, Topology};
use harness_core::check::{Environment as Wanted, Facility, chain};
use harness_core::events::Events;
use harness_core::ledger::{Entry, INTERRUPTED, Outcome, SkipReason};
use harness_session::up::{Environment, Leave, Prepared};
use harness_session::{Session, SessionError};
use std::fs::File;
use std::sync::Arc;

/// Offset from the lane's number to the number of such an environment in the stream. No run has that many lanes.
const FIRST_OWN_LANE: u32 = 100;
/// Minimum number of machines in addition to those of its control plane.
const WORKERS: usize = 2;

/// The events of such a check and its environment.
pub(super) fn events_of(session: &Session) -> Events {
    session.events().of_lane(lane_of(session))
}

/// The number of the check's environment in the stream.
fn lane_of(session: &Session) -> u32 {
    FIRST_OWN_LANE + session.events().lane().unwrap_or_default()
}

/// The plan of the run on Kubernetes 1.`minor`, changed to the cluster that a check needs.
fn wanted(plan: RunPlan, environment: Option<Wanted>, minor: u32) -> RunPlan {
    let cluster = plan.cluster.clone().with(|own| match environment {
        None => {}
        Some(Wanted::TwoWorkers) => own.topology = of_two_workers(own),
        Some(Wanted::Earlier { minors }) => {
            own.topology = of_two_workers(own);
            own.kubernetes = Kubernetes::Version { minor: minor.saturating_sub(minors), patch: None };
        }
        Some(Wanted::ServingCertificates) => {
            (own.node_ip, own.serving) = (NodeIp::Dropped, ServingCertificates::Requested);
        }
    });
    plan.on(cluster)
}

/// The requested topology, if it is suitable.
fn of_two_workers(own: &OwnCluster) -> Topology {
    let machines = planned_machines(&own.topology).unwrap_or_default();
    let enough = machines.iter().filter(|machine| machine.role == Role::Worker).count() >= WORKERS;
    if enough { own.topology.clone() } else { Topology::ThreeNode }
}

/// Why a cluster of an earlier version cannot move up to that of the run; `None` if it can. Nothing is downloaded for it.
async fn lacks_versions(
    plan: &RunPlan,
    environment: Option<Wanted>,
    minor: u32,
) -> Result<Option<String>, ClusterError> {
    let Some(Wanted::Earlier { minors }) = environment else { return Ok(None) };
    let backend = plan.cluster.backend();
    let earlier = wanted(plan.clone(), environment, minor);
    let planes = earlier
        .cluster
        .desired()
        .own()
        .and_then(|own| planned_machines(&own.topology).ok())
        .unwrap_or_default();
    let planes = planes.iter().filter(|machine| machine.role == Role::ControlPlane).count();
    if backend == BackendKind::Kind && planes > 1 {
        return Ok(Some(format!(
            "a kind cluster with {planes} machines of the control plane is not upgraded"
        )));
    }
    for needed in minor.saturating_sub(minors)..=minor {
        if !has_version(backend, needed).await? {
            return Ok(Some(format!(
                "the cluster would begin with Kubernetes 1.{}, and cluster '{backend}' lacks Kubernetes 1.{needed} on \
                 this machine",
                minor.saturating_sub(minors)
            )));
        }
    }
    Ok(None)
}

/// How the environment is left after this outcome; one that lives in this process ends with its check.
pub(super) fn leave_after_check(plan: &RunPlan, outcome: &Outcome) -> Leave {
    match facts(plan.cluster.backend()).lifetime {
        Lifetime::Process => Leave::Nothing,
        Lifetime::UntilRemoved => leave_after(plan.keep, is_trouble(outcome)),
    }
}

/// The settings with which every check of the lane finds its cloud; for a driver without settings every cloud starts
/// alike.
async fn usual_settings(session: &Session) -> Result<Option<Settings>, SessionError> {
    if !session.cloud().facilities().contains(&Facility::Settings) {
        return Ok(None);
    }
    // A check that changes settings has the lane's cluster to itself meanwhile.
    let _turn = session.dir().hold_cluster(false)?;
    Ok(Some(session.cloud().settings().await?))
}

/// Creates the environment, judges the check in it with `judge`, which locks its cluster, and removes it, whatever the
/// outcome. Its cloud has the settings of the lane's cloud (`session`); nothing else of the lane is affected.
pub(super) async fn judge_apart(
    session: &Session,
    environment: Option<Wanted>,
    entry: &mut Entry,
    judge: impl AsyncFnOnce(Arc<Session>, File, &mut Entry),
) {
    match lacks_versions(session.plan(), environment, session.state().served_minor).await {
        Ok(None) => {}
        Ok(Some(detail)) => {
            entry.outcome = Outcome::Skip { reason: SkipReason::NotDeclared, detail };
            return;
        }
        Err(error) => {
            entry.outcome = Outcome::Error { message: chain(&error) };
            return;
        }
    }
    let plan = Arc::new(wanted(session.plan().clone(), environment, session.state().served_minor));
    let mut environment = Environment::new(Prepared::new(plan.clone()), lane_of(session));
    let judged = async {
        let without_stages = events_of(session).without_stages();
        let usual = usual_settings(session).await?;
        let own = environment.up(&without_stages, session.interruption()).await?;
        if let Some(usual) = usual {
            own.cloud().change_settings(&usual).await?;
        }
        let turn = own.dir().hold_cluster(true)?;
        judge(own, turn, entry).await;
        Ok::<(), SessionError>(())
    };
    if let Err(error) = judged.await {
        let message = match error {
            SessionError::Interrupted => INTERRUPTED.to_owned(),
            other => format!("the check's own environment did not come up: {}", chain(&other)),
        };
        entry.outcome = Outcome::Error { message };
    }
    let leave = leave_after_check(&plan, &entry.outcome);
    if leave == Leave::Everything {
        say_kept(&environment, session.events());
    }
    super::conclude::say_left_behind(environment.down(leave).await, session.events());
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::{RunFile, Source, plan};

    #[test]
    fn it_has_several_machines_whatever_the_run_has() {
        let asked = plan(&Source::Defaults, RunFile::default()).expect("a plan");
        let cluster = asked.cluster.clone().settled(BackendKind::Embedded);
        let single = asked.on(cluster);
        let topology = |plan: &RunPlan| plan.cluster.desired().own().map(|own| own.topology.clone());
        let on_several_machines = |plan| wanted(plan, Some(Wanted::TwoWorkers), 36);
        assert_eq!(topology(&single), Some(Topology::Single));
        assert_eq!(topology(&on_several_machines(single.clone())), Some(Topology::ThreeNode));
        let five = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n\
                    nodes: [{role: control-plane}, {role: worker}, {role: worker}, {role: worker}, {role: worker}]\n";
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("five.yaml");
        std::fs::write(&file, five).expect("written");
        let cluster = single.cluster.clone().with(|own| own.topology = Topology::File(file.clone()));
        assert_eq!(topology(&on_several_machines(single.on(cluster))), Some(Topology::File(file)));
    }

    #[test]
    fn an_earlier_one_has_the_version_before_that_of_the_run() {
        let run = plan(&Source::Defaults, RunFile::default()).expect("a plan");
        let cluster = run.cluster.clone().settled(BackendKind::Embedded);
        let own = wanted(run.on(cluster), Some(Wanted::Earlier { minors: 3 }), 35);
        let own = own.cluster.desired().own().expect("a cluster of its own");
        assert_eq!(own.kubernetes, Kubernetes::Version { minor: 32, patch: None });
        assert_eq!(own.topology, Topology::ThreeNode);
    }

    #[tokio::test]
    async fn a_version_that_the_backend_does_not_have_is_named() {
        let run = plan(&Source::Defaults, RunFile::default()).expect("a plan");
        let cluster = run.cluster.clone().settled(BackendKind::Embedded);
        let run = run.on(cluster);
        let earlier = Some(Wanted::Earlier { minors: 3 });
        let lacks = async |environment, minor| {
            lacks_versions(&run, environment, minor).await.expect("the embedded cluster needs no engine")
        };
        assert_eq!(lacks(earlier, 36).await, None);
        assert_eq!(lacks(Some(Wanted::TwoWorkers), 20).await, None);
        assert!(lacks(earlier, 22).await.is_some_and(|why| why.contains("lacks Kubernetes 1.19")));
    }

    #[test]
    fn one_for_serving_certificates_has_the_machines_of_the_run() {
        let run = plan(&Source::Defaults, RunFile::default()).expect("a plan");
        let cluster = run.cluster.clone().settled(BackendKind::Embedded);
        let run = run.on(cluster);
        let own = wanted(run.clone(), Some(Wanted::ServingCertificates), 36);
        let (run, own) = (run.cluster.desired().own(), own.cluster.desired().own());
        let asked = own.map(|own| (own.node_ip, own.serving));
        assert_eq!(asked, Some((NodeIp::Dropped, ServingCertificates::Requested)));
        assert_eq!(run.map(|run| &run.topology), own.map(|own| &own.topology));
    }
}
