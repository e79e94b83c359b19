//! Files of its Pod that the CCM's program cannot find, for which it is not to blame.

use super::{Session, SessionError};
use crate::ccm::{Form, last_lines, untold_mounts};
use embedded_cluster::{Confinement, Obstacle, confinement};
use harness_config::BackendKind;
use harness_core::check::{CheckError, Facility};
use harness_core::probe::{Observed, poll};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often a CCM that lacks files has to have been started again until it is taken not to do without them. The cluster was
/// there before it was.
const STARTED_AGAIN: i32 = 2;
/// How many of its last lines are told.
const LINES: i64 = 10;

impl Session {
    /// Whether the CCM's programs have no files of their own here, and so none of what their Pods mount at paths that nobody tells
    /// them.
    pub(super) fn has_no_mounts(&self) -> bool {
        // They know the cloud by a name where they have some.
        let named = self.cluster.facilities().contains(&Facility::CloudName);
        self.state.cluster.backend == BackendKind::Embedded && !named && self.ccm.exists()
    }

    /// Tells that the CCM is not confined on this machine, where that is so.
    pub(super) async fn tell_of_confinement(&self) {
        if !self.has_no_mounts() {
            return;
        }
        if let Confinement::None(obstacle) = confinement(self.dir.path()).await {
            self.events.say(format!(
                "the CCM is not confined on this machine: it can read and signal what you can, because {}",
                obstacle.cause
            ));
            self.events.say(format!("  to confine it: {}", obstacle.way_out));
        }
    }

    /// What its Pods mount at paths that are built into its program and that it has not here; `None` where there is nothing like
    /// that.
    pub(super) fn out_of_reach(&self, form: Form) -> Option<String> {
        if !self.has_no_mounts() {
            return None;
        }
        let paths: BTreeSet<String> = self.ccm.pods(form).iter().flat_map(|pod| untold_mounts(pod)).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        (!paths.is_empty()).then(|| {
            let Obstacle { cause, way_out } = Obstacle::here("");
            format!(
                "the CCM cannot find what its Pod mounts at {}, because this machine gives programs no mount namespaces: \
                 {cause}. To change that, {way_out}; 'ccm-conformance doctor' checks it",
                paths.join(", ")
            )
        })
    }

    /// Starts the CCM to see whether it does without what is out of reach. One that does not cannot be judged here at all: every
    /// form of it would miss the same, and no check could tell that from a fault of its own.
    ///
    /// # Errors
    /// When it does not come up and something is out of reach: both.
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

    /// What is out of reach, once a Pod that lacks it has ended again and again, with the last that its program said. Never, where
    /// none does.
    async fn ends_again(&self, form: Form) -> String {
        let ends = async |seen: &mut String| {
            let pods = self.ccm.pods(form);
            *seen = pods.observed();
            let ended = pods.iter().find(|pod| restarts(pod) >= STARTED_AGAIN).cloned();
            Ok(ended.zip(self.out_of_reach(form)))
        };
        let ended = poll("the CCM ends", self.limits().start(), Duration::from_millis(200), ends).await;
        match ended {
            Ok((pod, missed)) => {
                format!("{missed}; {}", last_lines(self.ccm_site().client(), &pod, LINES).await)
            }
            Err(_) => std::future::pending().await,
        }
    }
}

/// How often its programs were started again.
fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|status| status.restart_count).sum()
}
