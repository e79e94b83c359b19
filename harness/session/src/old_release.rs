//! The start of the release that is installed before the CCM under test in an upgrade.

use super::Session;
use super::object_events::last_lines_of;
use super::starting::given_up;
use crate::ccm::{Ccm, CcmError, Rendered, Starts};
use harness_core::check::chain;
use harness_core::probe::{Observed, poll};
use std::time::Duration;

/// How often to look for programs that have exited.
const EVERY: Duration = Duration::from_millis(200);

/// How many of its last lines are shown.
const LINES: usize = 10;

impl Session {
    /// The release that is installed before the CCM under test in an upgrade, if the run names one.
    pub fn old_release(&self) -> Option<&Ccm> {
        self.old_release.as_ref()
    }

    /// Deploys the old release and waits until it leads. If its program exits again and again, this is known at once, and for all
    /// checks of this lane.
    ///
    /// # Errors
    /// Why it does not start.
    pub async fn start_old_release(&self, ccm: &Ccm, rendered: &Rendered) -> Result<(), CcmError> {
        if let Some(why) = self.old_release_fails.get() {
            return Err(CcmError::Broken(why.clone()));
        }
        let started = async {
            ccm.apply_rendered(rendered).await?;
            tokio::select! {
                biased;
                led = ccm.leading_as(rendered, self.limits().start()) => led,
                why = self.only_exits(ccm, rendered) => Err(CcmError::CrashLoops(why)),
            }
        };
        let outcome = started.await;
        if let Err(error) = &outcome {
            // Another check may have found it out meanwhile, which says the same.
            let _ = self.old_release_fails.set(chain(error));
        }
        outcome
    }

    /// A message once a program of the old release has exited too often. Never returns if there is none.
    async fn only_exits(&self, ccm: &Ccm, rendered: &Rendered) -> String {
        let mut starts = Starts::default();
        let mut look = async |seen: &mut String| {
            let pods = ccm.pods_of_rendered(rendered);
            *seen = pods.observed();
            for (end, times) in starts.news(&pods) {
                if starts.count(&end, times) {
                    let pod = pods.iter().find(|pod| pod.metadata.uid.as_deref() == Some(end.uid.as_str()));
                    let lines = match pod {
                        Some(pod) => {
                            last_lines_of(self.ccm_site().client(), pod, &end.container, LINES).await
                        }
                        None => Vec::new(),
                    };
                    return Ok(Some(given_up(&end, &lines)));
                }
            }
            Ok(None)
        };
        match poll("the programs of the old release exit", self.limits().start(), EVERY, &mut look).await {
            Ok(why) => why,
            Err(_) => std::future::pending().await,
        }
    }
}
