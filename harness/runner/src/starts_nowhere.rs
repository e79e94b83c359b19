//! A CCM that crash-loops on the clusters of the run cannot pass a check that starts it on a cluster of its own either.
//! Such a check does not wait for its time limit.

use harness_core::check::{Blocker, CheckError, Isolation};
use harness_core::probe::{ReadError, poll};
use harness_session::{CcmState, Session};
use std::sync::Arc;
use std::time::Duration;

/// How often the states of the clusters are read.
const EVERY: Duration = Duration::from_secs(1);
/// Far longer than any check waits.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Whether a check of this kind starts the CCM itself.
fn starts_it_itself(isolation: Isolation) -> bool {
    matches!(isolation, Isolation::DedicatedCluster | Isolation::FreshCluster)
}

/// Returns once the CCM has crash-looped on a cluster of the run and has never led; never for a check that does not start
/// the CCM itself.
pub(super) async fn starts_nowhere(isolation: Isolation, lanes: &[Arc<Session>]) -> CheckError {
    if !starts_it_itself(isolation) {
        return std::future::pending().await;
    }
    let look = async |seen: &mut String| {
        let states: Vec<CcmState> = lanes.iter().filter_map(|lane| lane.ccm_state().ok()).collect();
        *seen = format!(
            "it crash-looped on {} of {} clusters",
            states.iter().filter(|one| loops(one)).count(),
            lanes.len()
        );
        let has_led = || lanes.iter().any(|lane| lane.events().fold().conduct().has_led());
        Ok(crash_looped(&states).filter(|_| !has_led()))
    };
    match poll("the CCM crash-loops on every cluster", LONGEST, EVERY, look).await {
        Ok(seen) => CheckError::Blocked { by: Blocker::StaysUp, seen },
        Err::<_, ReadError>(_) => std::future::pending().await,
    }
}

fn loops(state: &CcmState) -> bool {
    matches!(state, CcmState::Broken { by: Some(Blocker::StaysUp), .. })
}

/// What was seen of a CCM that crash-looped on one of the clusters.
fn crash_looped(states: &[CcmState]) -> Option<String> {
    states.iter().filter(|state| loops(state)).find_map(|state| match state {
        CcmState::Broken { why, .. } => Some(why.clone()),
        CcmState::Settled { .. } | CcmState::Returning { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_session::ccm::Form;

    #[test]
    fn a_ccm_starts_nowhere_once_it_crash_looped_on_one_cluster() {
        let broken = |by| CcmState::Broken { why: "exit code 1".to_owned(), by };
        let loops = || broken(Some(Blocker::StaysUp));
        let absent = || CcmState::Settled { form: Form::Absent };
        let seen = Some("exit code 1".to_owned());
        assert_eq!(crash_looped(&[absent(), loops()]), seen);
        assert_eq!(crash_looped(&[absent()]), None, "it was not tried yet");
        assert_eq!(crash_looped(&[broken(Some(Blocker::Elects))]), None, "it runs");
        assert_eq!(crash_looped(&[broken(None)]), None, "the environment is to blame");
    }

    #[test]
    fn only_a_check_that_starts_the_ccm_is_cut_short() {
        for isolation in [Isolation::Shared, Isolation::Alone, Isolation::AfterTheRun, Isolation::NoCluster] {
            assert!(!starts_it_itself(isolation));
        }
        assert!(starts_it_itself(Isolation::FreshCluster) && starts_it_itself(Isolation::DedicatedCluster));
    }
}
