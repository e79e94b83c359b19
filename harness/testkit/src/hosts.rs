//! Machines on which the CCM's Pods are placed: which they are, what runs there, and how one of them is lost.

use super::boot::{Boot, is_running};
use super::undo_steps::Undo;
use super::{CheckCx, Cold, Subject};
use harness_clusters::{PowerOp, Role};
use harness_core::check::{CheckError, Verdict};
use harness_core::probe::{Matcher, Observation, matcher};
use harness_session::Network;
use harness_session::ccm::Form;
use harness_session::k8s::L_CONTROL_PLANE;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How many there are: enough to lose one of them.
const HOSTS: usize = 2;

/// A machine of the cluster on which the CCM may run, and which can be switched off.
#[derive(Clone)]
pub struct Host<'a> {
    cx: &'a CheckCx,
    name: String,
}

/// The loss of a machine, until its power is back.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let cold = cx.cold_cluster(Network::Present).await?;
/// let [first, _] = cx.two_hosts(&cold).await?;
/// let lost: Loss<'_> = first.loses_power().await?;
/// lost.returns(&cold).await
/// # }
/// ```
pub struct Loss<'a> {
    host: Host<'a>,
    /// The ids of the CCM's containers that ran there.
    ran: BTreeSet<String>,
}

/// Replicas of the CCM run on two machines; never, if all of several are placed on one.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let cold = cx.cold_cluster(Network::Present).await?;
/// cx.apply_as_shipped().await?;
/// cx.boot(&cold).becomes(runs_on_two_machines()).within(cx.limits().start()).await
/// # }
/// ```
pub fn runs_on_two_machines() -> Matcher<Boot> {
    matcher("runs its CCM on two machines", |seen: &Boot| {
        let staying: Vec<&Arc<Pod>> =
            seen.pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
        let running = staying.iter().filter(|pod| is_running(pod)).filter_map(|pod| place_of(pod));
        if running.collect::<BTreeSet<&str>>().len() > 1 {
            return Observation::Matched(());
        }
        let places: Vec<&str> = staying.iter().filter_map(|pod| place_of(pod)).collect();
        match places.as_slice() {
            [first, others @ ..]
                if !others.is_empty()
                    && places.len() == staying.len()
                    && others.iter().all(|one| one == first) =>
            {
                Observation::Impossible(format!(
                    "all {} are on {first} and would be lost with it",
                    places.len()
                ))
            }
            _ => Observation::Pending(String::new()),
        }
    })
    .expecting("running Pods of the CCM on two machines")
}

/// The CCM runs on that machine in a container other than these.
fn runs_again_on(host: &str, ran: BTreeSet<String>) -> Matcher<Boot> {
    let place = host.to_owned();
    matcher("runs its CCM there again", move |seen: &Boot| {
        let there = seen.pods.iter().filter(|pod| place_of(pod) == Some(&place));
        Observation::when(there.flat_map(|pod| running_containers(pod)).any(|id| !ran.contains(&id)))
    })
    .expecting(format!("a container of the CCM on {host} that was started since"))
}

fn place_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn running_containers(pod: &Pod) -> Vec<String> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let running = statuses.filter(|one| one.state.as_ref().is_some_and(|state| state.running.is_some()));
    running.filter_map(|one| one.container_id.clone()).collect()
}

impl<'a> Host<'a> {
    /// Its name, and that of its Node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Switches its power off at once, with everything that runs there. It is switched on at the latest when the check
    /// ends.
    ///
    /// # Errors
    /// When the cluster cannot do it.
    pub async fn loses_power(&self) -> Result<Loss<'a>, CheckError> {
        let there = self.cx.pods_as_shipped().into_iter().filter(|pod| place_of(pod) == Some(&self.name));
        let ran = there.flat_map(|pod| running_containers(&pod)).collect();
        let machine = vec![self.name.clone()];
        self.cx.on_end(Undo::Power(machine.clone()));
        self.cx.power(&machine, PowerOp::Off).await.map_err(CheckError::Error)?;
        Ok(Loss { host: self.clone(), ran })
    }
}

impl Loss<'_> {
    /// Switches the machine on; returns when its Node is Ready and the CCM runs there.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when the CCM does not come back; otherwise that the cluster could not do it.
    pub async fn returns(self, cold: &Cold) -> Verdict {
        let Loss { host: Host { cx, name }, ran } = self;
        let machine = vec![name.clone()];
        cx.power(&machine, PowerOp::On).await.map_err(CheckError::Error)?;
        cx.is_undone(&Undo::Power(machine));
        // The routes of its pod network were lost with it.
        cx.session.unless_interrupted(async { Ok(cx.session.set_network(Network::Present).await?) }).await?;
        let again = runs_again_on(&name, ran);
        cx.boot(cold).becomes(again).within(cx.limits().start()).when(format!("once {name} is back")).await
    }
}

impl CheckCx {
    /// Two machines that look to the CCM like those of a control plane: their Nodes have its labels and taints. All other
    /// Nodes are cordoned and do not have such a label, so that Pods for control planes are placed on these two. The API
    /// server's machine is not one of them.
    ///
    /// # Errors
    /// [`CheckError::Error`] on a cluster without two workers, or when the API server refuses.
    pub async fn two_hosts(&self, cold: &Cold) -> Result<[Host<'_>; HOSTS], CheckError> {
        let machines = self.session.machines();
        let workers = machines.iter().filter(|machine| machine.role == Role::Worker);
        let hosts: Vec<Host<'_>> =
            workers.take(HOSTS).map(|machine| Host { cx: self, name: machine.name.clone() }).collect();
        let hosts = <[Host<'_>; HOSTS]>::try_from(hosts).map_err(|_| {
            CheckError::Error(
                "the cluster has fewer than two machines that are not control planes".to_owned(),
            )
        })?;
        let planes = machines.iter().filter(|machine| machine.role == Role::ControlPlane);
        let planes: Vec<&str> = planes.map(|machine| machine.name.as_str()).collect();
        let role = self.session.state().roles.iter().find(|role| planes.contains(&role.name.as_str()));
        let role = role.cloned().unwrap_or_default();
        for host in &hosts {
            for taint in &role.taints {
                let value = taint.value.as_deref().unwrap_or_default();
                self.taints_own_node(&host.name, &taint.key, value).await?;
            }
            let labels = role.labels.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
            self.labels_own_node(&host.name, labels.collect()).await?;
        }
        for name in cold.nodes.iter().filter(|name| !hosts.iter().any(|host| host.name == **name)) {
            self.on_end(Undo::Cordon(name.clone()));
            self.real_node(name).patch(&json!({"spec": {"unschedulable": true}})).await?;
            let roles = [L_CONTROL_PLANE, "node-role.kubernetes.io/master"];
            self.labels_own_node(name, roles.map(|key| (key.to_owned(), None)).into()).await?;
        }
        Ok(hosts)
    }

    /// Verifies that every running Pod of the CCM is on one of these machines: losing one cannot stop a leader elsewhere.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] naming one that is not.
    pub fn runs_nowhere_but_on(&self, hosts: &[Host<'_>]) -> Result<(), CheckError> {
        for pod in self.pods_as_shipped().iter().filter(|pod| is_running(pod)) {
            let place = place_of(pod).unwrap_or_default();
            if !hosts.iter().any(|host| host.name == place) {
                return Err(CheckError::NotObservable(format!(
                    "Pod {} of the CCM runs on {place}, the API server's machine, although its Node is cordoned and \
                     has no control plane label; this machine cannot be switched off, so a leader there cannot be lost",
                    pod.name_any()
                )));
            }
        }
        Ok(())
    }

    /// How long another replica of the CCM as shipped may take to become the leader: B-FAILOVER with the CCM's own
    /// timing.
    pub fn failover_as_shipped(&self) -> Duration {
        self.limits().failover_of(self.session.plan().profile.lease_timing)
    }

    /// How long a leader of the CCM as shipped tries to renew its Lease before it exits.
    pub fn renews_as_shipped(&self) -> Duration {
        self.session.plan().profile.lease_timing.renew_deadline
    }

    fn pods_as_shipped(&self) -> Vec<Arc<Pod>> {
        self.session.ccm().pods(Form::AsShipped)
    }

    /// Sets labels of one of the cluster's own Nodes, or removes them with `None`.
    async fn labels_own_node(
        &self,
        name: &str,
        labels: BTreeMap<String, Option<String>>,
    ) -> Result<(), CheckError> {
        let node = self.session.world().nodes.find("", name);
        let had = |key: &String| node.as_ref().and_then(|node| node.labels().get(key).cloned());
        let before = labels.keys().map(|key| (key.clone(), had(key))).collect();
        self.on_end(Undo::Labels { node: name.to_owned(), before });
        self.real_node(name).patch(&json!({"metadata": {"labels": labels}})).await
    }

    pub(super) async fn undo_labels(
        &self,
        node: &str,
        before: &BTreeMap<String, Option<String>>,
    ) -> Result<(), String> {
        let labels = json!({"metadata": {"labels": before}});
        self.real_node(node).patch(&labels).await.map_err(CheckError::in_words)
    }

    pub(super) async fn undo_cordon(&self, node: &str) -> Result<(), String> {
        self.real_node(node)
            .patch(&json!({"spec": {"unschedulable": null}}))
            .await
            .map_err(CheckError::in_words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn pod(place: Option<&str>, id: &str, state: Value) -> Arc<Pod> {
        let status = json!({"containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "containerID": id, "state": state,
        }]});
        let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": place, "containers": []}, "status": status});
        Arc::new(serde_json::from_value(pod).expect("a Pod"))
    }

    fn running(place: &str, id: &str) -> Arc<Pod> {
        pod(Some(place), id, json!({"running": {}}))
    }

    #[test]
    fn replicas_are_apart_when_two_run_on_two_machines_and_never_when_all_are_placed_on_one() {
        let seen = |pods: Vec<Arc<Pod>>| runs_on_two_machines().matches(&Boot::of_pods(pods));
        let waiting = || pod(None, "", json!({"waiting": {}}));
        let begins = |place| pod(Some(place), "", json!({"waiting": {}}));
        assert_eq!(seen(vec![running("a", "1"), running("b", "2")]), Observation::Matched(()));
        assert_eq!(
            seen(vec![running("a", "1"), running("b", "2"), waiting()]),
            Observation::Matched(()),
            "one more than fit"
        );
        for yet in [
            vec![],
            vec![running("a", "1")],
            vec![running("a", "1"), waiting()],
            vec![running("a", "1"), begins("b")],
        ] {
            assert_eq!(seen(yet), Observation::Pending(String::new()));
        }
        let never = Observation::Impossible("all 2 are on a and would be lost with it".to_owned());
        assert_eq!(seen(vec![running("a", "1"), begins("a")]), never);
    }

    #[test]
    fn an_old_container_does_not_count_as_running_again() {
        let seen = |pods: Vec<Arc<Pod>>| {
            runs_again_on("a", BTreeSet::from(["1".to_owned()])).matches(&Boot::of_pods(pods))
        };
        assert_eq!(seen(vec![running("a", "1"), running("b", "2")]), Observation::when(false));
        assert_eq!(
            seen(vec![pod(Some("a"), "3", json!({"terminated": {"exitCode": 1}}))]),
            Observation::when(false)
        );
        assert_eq!(seen(vec![running("a", "3")]), Observation::Matched(()));
    }
}
