//! Files of its Pod that the CCM's program cannot find because of the machine, not because of the CCM.

use super::{Session, SessionError};
use crate::ccm::{Form, last_lines, unstated_mounts};
use embedded_cluster::{Confinement, Obstacle, confinement};
use harness_config::BackendKind;
use harness_core::check::{CheckError, Facility};
use harness_core::probe::{Observed, poll};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often a CCM without its files must have been restarted until it counts as unable to work without them. The cluster
/// existed before it.
const STARTED_AGAIN: i32 = 2;
/// Number of its last log lines in the message.
const LINES: usize = 10;

impl Session {
    /// Whether the CCM's programs run without their own file system here, and so without the mounts of their Pods at
    /// fixed paths.
    pub(super) fn has_no_mounts(&self) -> bool {
        // If they have one, they know the cloud by a name.
        let named = self.cluster.facilities().contains(&Facility::CloudName);
        self.state.cluster.backend == BackendKind::Embedded && !named && self.ccm.exists()
    }

    /// Prints that the CCM is not sandboxed on this machine, if so.
    pub(super) async fn tell_of_confinement(&self) {
        if !self.has_no_mounts() {
            return;
        }
        if let Confinement::None(obstacle) = confinement(self.dir.path()).await {
            self.events.say(format!(
                "the CCM is not sandboxed on this machine: it can read the files and signal the processes that you \
                 can, because {}",
                obstacle.cause
            ));
            self.events.say(format!("  to sandbox it: {}", obstacle.way_out));
        }
    }

    /// Mounts of its Pods at paths that are built into its program and that it does not have here; `None` if there are
    /// none.
    pub(super) fn out_of_reach(&self, form: Form) -> Option<String> {
        if !self.has_no_mounts() {
            return None;
        }
        let paths: BTreeSet<String> =
            self.ccm.pods(form).iter().flat_map(|pod| unstated_mounts(pod)).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        (!paths.is_empty()).then(|| {
            let Obstacle { cause, way_out } = Obstacle::here("");
            format!(
                "the CCM cannot find what its Pod mounts at {}, because programs cannot create mount namespaces on \
                 this machine: {cause}. To change that, {way_out}; 'ccm-conformance doctor' checks it",
                paths.join(", ")
            )
        })
    }

    /// Starts the CCM to see whether it works without the missing files. A CCM that does not cannot be judged here: all
    /// of its forms would lack them, and checks could not distinguish that from a bug.
    ///
    /// # Errors
    /// It does not start and files are missing: both.
    pub(super) async fn comes_up_without_mounts(&self) -> Result<(), SessionError> {
        let came_up = tokio::select! {
            came_up = self.ensure_ccm(Form::Replicas) => came_up,
            why = self.ends_again(Form::Replicas) => Err(CheckError::Error(why)),
        };
        match came_up {
            Err(stop) if self.out_of_reach(Form::Replicas).is_some() => {
                Err(SessionError::Precondition(stop.in_words()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The missing files, once a Pod that lacks them has exited repeatedly, with the last lines of its program. Never
    /// returns if no Pod does.
    async fn ends_again(&self, form: Form) -> String {
        let ends = async |seen: &mut String| {
            let pods = self.ccm.pods(form);
            *seen = pods.observed();
            let ended = pods.iter().find(|pod| restarts(pod) >= STARTED_AGAIN).cloned();
            Ok(ended.zip(self.out_of_reach(form)))
        };
        let ended = poll("the CCM exits", self.limits().start(), Duration::from_millis(200), ends).await;
        match ended {
            Ok((pod, missed)) => {
                format!("{missed}; {}", last_lines(self.ccm_site().client(), &pod, LINES).await)
            }
            Err(_) => std::future::pending().await,
        }
    }
}

/// How often its programs were restarted.
fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|status| status.restart_count).sum()
}
