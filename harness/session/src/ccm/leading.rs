//! Waits until a deployed CCM leads, and tells who is to blame if it does not.

use super::cannot_run::{crash_loops, has_ended, unrecoverable};
use super::deploy::{CcmError, last_lines};
use super::handle::{Ccm, Form, is_running};
use super::render::Rendered;
use harness_core::probe::{Observed, ReadError, poll};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The beginnings of the names of Kubernetes' own Leases.
const OF_KUBERNETES: &[&str] = &["kube-scheduler", "kube-controller-manager", "apiserver-", "coredns"];
/// How many other Leases a message shows.
const SHOWN: usize = 3;

impl Ccm {
    /// Waits until the CCM leads: the Lease has a holder that has renewed it since, or, without leader election, all Pods
    /// run. All Pods of the form must run by then.
    ///
    /// # Errors
    /// [`CcmError::Broken`] as soon as waiting is useless (image missing), [`CcmError::CrashLoops`] when its process
    /// crash-loops; after `limit`, [`CcmError::NeverLeads`] if all Pods run, otherwise [`CcmError::NotReady`]. All with
    /// the last log lines.
    pub async fn leading(&self, form: Form, limit: Duration) -> Result<(), CcmError> {
        let expected = if form == Form::Replicas { self.replicas.len() } else { 1 };
        self.leads(|| self.pods(form), expected, limit).await
    }

    /// Like [`Ccm::leading`], for one release in an upgrade; one of its Pods must run by then.
    ///
    /// # Errors
    /// As [`Ccm::leading`].
    pub async fn leading_as(&self, rendered: &Rendered, limit: Duration) -> Result<(), CcmError> {
        self.leads(|| self.pods_of_rendered(rendered), 1, limit).await
    }

    /// Leases that may be the CCM's if it does not hold the one that the profile names; empty if there are none.
    fn other_leases(&self) -> String {
        if self.find_lease().is_some() {
            return String::new();
        }
        let all = self.served.world.leases.all();
        let may_be = |lease: &&Arc<Lease>| {
            let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
            namespace != "kube-node-lease" && !OF_KUBERNETES.iter().any(|known| name.starts_with(known))
        };
        let others: Vec<String> =
            all.iter().filter(may_be).take(SHOWN).map(|lease| lease.observed()).collect();
        match others.as_slice() {
            [] => String::new(),
            some => format!(
                "; there is {}: if that is the CCM's, name it as 'lease' in the profile",
                some.join("; ")
            ),
        }
    }

    async fn leads(
        &self,
        pods_now: impl Fn() -> Vec<Arc<Pod>>,
        expected: usize,
        limit: Duration,
    ) -> Result<(), CcmError> {
        let began = Instant::now();
        let renewed_at_first = self.find_lease().and_then(|lease| renew_time(&lease));
        let mut last_seen = (String::new(), String::new());
        let state = async |seen: &mut String| {
            let pods = pods_now();
            *seen = pods.observed();
            let hopeless = |pod: &Arc<Pod>| unrecoverable(pod).or_else(|| crash_loops(pod));
            if let Some(why) = pods.iter().find_map(hopeless) {
                return Err(ReadError { text: why, fatal: true });
            }
            let running = pods.iter().filter(|pod| is_running(pod)).count();
            if running < expected {
                return Ok(None);
            }
            let Some(key) = &self.lease else { return Ok(Some(())) };
            let lease = self.find_lease();
            let absent = || format!("no Lease {}/{}", key.namespace, key.name);
            let of_lease = lease.as_ref().map_or_else(absent, |lease| lease.observed());
            last_seen = (of_lease, std::mem::take(seen));
            *seen = format!("{}; Pods: {}", last_seen.0, last_seen.1);
            let held = lease.as_ref().is_some_and(|lease| {
                let holder = lease.spec.as_ref().and_then(|s| s.holder_identity.as_deref());
                holder.is_some_and(|h| !h.is_empty()) && renew_time(lease) != renewed_at_first
            });
            Ok(held.then_some(()))
        };
        let outcome = poll("the CCM leads", limit, Duration::from_millis(50), state).await;
        let Err(error) = outcome else {
            tracing::info!(took = ?began.elapsed(), "the CCM leads");
            return Ok(());
        };
        let pods = pods_now();
        let all_run = pods.iter().filter(|pod| is_running(pod)).count() >= expected;
        // The claim that it breaks says what was expected.
        let mut text = match all_run && self.lease.is_some() && !error.fatal {
            true => {
                let (of_lease, of_pods) = last_seen;
                format!("after {} s: {of_lease}{}; Pods: {of_pods}", limit.as_secs(), self.other_leases())
            }
            false => error.text.clone(),
        };
        for pod in &pods {
            text.push_str(&last_lines(&self.pods_side().client, pod, 12).await);
        }
        for why in self.in_the_way().await {
            text.push('\n');
            text.push_str(&why);
        }
        Err(not_up(&pods, expected, self.lease.is_some(), text))
    }
}

/// Why a CCM does not lead, from the state of its Pods at the end of the wait; this determines who is to blame.
fn not_up(pods: &[Arc<Pod>], expected: usize, elects: bool, text: String) -> CcmError {
    if pods.iter().any(|pod| unrecoverable(pod).is_some()) {
        CcmError::Broken(text)
    } else if pods.iter().any(|pod| has_ended(pod)) {
        CcmError::CrashLoops(text)
    } else if elects && pods.iter().filter(|pod| is_running(pod)).count() >= expected {
        CcmError::NeverLeads(text)
    } else {
        CcmError::NotReady(text)
    }
}

fn renew_time(lease: &Lease) -> Option<String> {
    lease.spec.as_ref().and_then(|s| s.renew_time.as_ref()).map(|t| t.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Blocker;
    use serde_json::{Value, json};

    fn pod(restarts: i32, state: Value) -> Arc<Pod> {
        let phase = "Running";
        let pod = json!({"metadata": {"name": "p"}, "status": {"phase": phase, "containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": restarts, "state": state,
        }]}});
        Arc::new(serde_json::from_value(pod).expect("a Pod"))
    }

    #[test]
    fn the_blocker_depends_on_how_the_ccm_failed_to_start() {
        let running = || json!({"running": {}});
        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        let by = |pods: &[Arc<Pod>], elects| not_up(pods, 2, elects, String::new()).blocker();
        let up = || pod(0, running());
        assert_eq!(by(&[up(), up()], true), Some(Blocker::Elects));
        assert_eq!(by(&[up(), up()], false), None, "it need not be elected: another holder is in the way");
        assert_eq!(by(&[up()], true), None, "one does not run yet");
        for down in [
            pod(1, waiting("CrashLoopBackOff")),
            pod(3, running()),
            pod(0, json!({"terminated": {"exitCode": 1}})),
        ] {
            assert_eq!(by(&[up(), down], true), Some(Blocker::StaysUp));
        }
        assert_eq!(by(&[pod(0, waiting("ErrImagePull")), pod(2, running())], true), None, "no image");
        assert_eq!(by(&[], true), None);
    }
}
