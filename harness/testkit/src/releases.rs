//! Two releases of the CCM, one after the other: the one that the run upgrades from, and the CCM under test.

use super::undo_steps::Undo;
use super::{Calls, CheckCx, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Verdict, chain};
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, matcher};
use harness_session::ccm::{Ccm, Form, Release, Rendered, crash_loops, key_of, unrecoverable};
use k8s_openapi::api::coordination::v1 as core;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

/// The replacement of one release by the other.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// cx.old_release().await?;
/// let rollout: Rollout<'_> = cx.roll_out(Release::New).await?;
/// rollout.becomes(rolled_out()).within(cx.limits().start() + cx.limits().failover()).await
/// # }
/// ```
pub struct Rollout<'a> {
    pub(super) cx: &'a CheckCx,
    pub(super) release: Release,
    /// The uids of the Pods of the release before.
    pub(super) before: BTreeSet<String>,
    /// The uids of their ReplicaSets, which may make others.
    pub(super) sets: BTreeSet<String>,
    /// Who held the Lease of the CCM before.
    holder: Option<String>,
    /// The position of the cloud's journal before it.
    pub mark: u64,
    /// When it began.
    pub at: Instant,
}

/// The progress of a rollout.
pub struct Rolled {
    /// Pods of the release before.
    pub(super) old: Vec<Arc<Pod>>,
    /// Pods of the release that replaces it.
    pub(super) new: Vec<Arc<Pod>>,
    /// The Lease; `None` if the CCM elects no leader.
    lease: Option<Option<Arc<core::Lease>>>,
    /// Who held it before.
    holder: Option<String>,
}

impl Observed for Rolled {
    fn observed(&self) -> String {
        let lease = self.lease.as_ref().map(|lease| format!("; Lease: {}", lease.observed()));
        format!(
            "Pods of the release before: {}; of the one that replaces it: {}{}",
            self.old.observed(),
            self.new.observed(),
            lease.unwrap_or_default()
        )
    }
}

/// The release before is gone, and the one that replaces it leads, or runs if it elects no leader.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// cx.old_release().await?;
/// let back = cx.roll_out(Release::New).await?;
/// back.becomes(rolled_out()).within(cx.limits().start() + cx.limits().failover()).await
/// # }
/// ```
pub fn rolled_out() -> Matcher<Rolled> {
    matcher("replaces the release before", |seen: &Rolled| {
        let hopeless = |pod: &Arc<Pod>| unrecoverable(pod).or_else(|| crash_loops(pod));
        if let Some(why) = seen.new.iter().find_map(hopeless) {
            return Observation::Impossible(why);
        }
        let leads = seen.lease.as_ref().is_none_or(|lease| {
            let holder = lease.as_ref().and_then(|lease| super::holder_of(lease));
            holder.is_some() && holder != seen.holder
        });
        Observation::when(seen.old.is_empty() && seen.new.iter().any(|pod| super::boot::is_running(pod)) && leads)
    })
    .expecting("no Pod of the release before, and one of the other that runs and, if it elects a leader, holds the Lease")
}

/// The uids of the ReplicaSets that own a Pod. Each has the Pods of one release, unlike a DaemonSet.
pub(super) fn sets_of(pod: &Pod) -> impl Iterator<Item = String> {
    let owners = pod.owner_references().iter();
    owners.filter(|owner| owner.kind == "ReplicaSet").map(|owner| owner.uid.clone())
}

impl<'a> Rollout<'a> {
    /// The calls to the cloud since it began, by the release that replaces the other.
    pub fn calls(&self) -> Calls<'a> {
        self.cx.calls_of(self.release).since(self.mark)
    }
}

impl Subject for Rollout<'_> {
    type Snapshot = Rolled;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let name = match self.release {
            Release::Old => "before, in a rollback",
            Release::New => "under test, in an upgrade",
        };
        SubjectName { kind: "the release", name: name.to_owned(), uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<Rolled, ReadError> {
        let mut pods: Vec<Arc<Pod>> = Vec::new();
        for release in [Release::Old, Release::New] {
            let (ccm, rendered) = self.cx.release(release)?;
            // A workload that both have is the same one.
            let others = ccm.pods_of_rendered(&rendered).into_iter();
            pods.extend(
                others.filter(|pod| pods.iter().all(|known| known.uid() != pod.uid())).collect::<Vec<_>>(),
            );
        }
        let is_old = |pod: &Arc<Pod>| {
            pod.uid().is_some_and(|uid| self.before.contains(&uid))
                || sets_of(pod).any(|set| self.sets.contains(&set))
        };
        let (old, new) = pods.into_iter().partition(is_old);
        let lease = match self.cx.session.ccm().lease_key() {
            None => None,
            Some(_) => Some(self.cx.lease().read(reach).await?),
        };
        Ok(Rolled { old, new, lease, holder: self.holder.clone() })
    }

    fn concerns(&self, call: &Entry) -> bool {
        call.write
    }
}

impl CheckCx {
    /// Removes the CCM, deploys the release that the run upgrades from, and waits until it leads. Undone when the check ends.
    ///
    /// # Errors
    /// [`CheckError::Error`] when that release does not start: it is not the one under test.
    pub async fn old_release(&self) -> Verdict {
        self.session.ensure_ccm(Form::Absent).await?;
        self.on_end(Undo::Releases);
        let (ccm, rendered) = self.release(Release::Old)?;
        let started = async { self.session.start_old_release(ccm, &rendered).await.map_err(not_started) };
        self.session.unless_interrupted(started).await
    }

    /// Applies the manifests of this release over those of the other one, as users do. Does not wait.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn roll_out(&self, release: Release) -> Result<Rollout<'_>, CheckError> {
        self.roll_out_edited(release, |_| ()).await
    }

    /// Applies them with an edit of each workload.
    pub(super) async fn roll_out_edited(
        &self,
        release: Release,
        edit: impl Fn(&mut Value),
    ) -> Result<Rollout<'_>, CheckError> {
        let other = if release == Release::New { Release::Old } else { Release::New };
        let ((from, before), (ccm, mut rendered)) = (self.release(other)?, self.release(release)?);
        let pods = from.pods_of_rendered(&before);
        let lease = self.lease().read(ReadSource::Origin).await?;
        let (mark, at) = (self.session.journal().position(), Instant::now());
        let Rendered { documents, workloads, .. } = &mut rendered;
        documents.iter_mut().filter(|document| workloads.contains(&key_of(document))).for_each(edit);
        ccm.replace(&before, &rendered).await?;
        Ok(Rollout {
            cx: self,
            release,
            before: pods.iter().filter_map(|pod| pod.uid()).collect(),
            sets: pods.iter().flat_map(|pod| sets_of(pod)).collect(),
            holder: lease.as_ref().and_then(|lease| super::holder_of(lease)),
            mark,
            at,
        })
    }

    /// The calls of one release to the cloud since the check began.
    pub fn calls_of(&self, release: Release) -> Calls<'_> {
        let caller = self.caller_of(release);
        self.cloud().calls().that(move |call| call.credential.as_deref() == Some(&caller))
    }

    /// The name of a release's credential in the cloud.
    pub fn caller_of(&self, release: Release) -> String {
        let ccm = match release {
            Release::Old => self.session.old_release(),
            Release::New => Some(self.session.ccm()),
        };
        ccm.and_then(|ccm| ccm.replicas().first()).map(|replica| replica.name.clone()).unwrap_or_default()
    }

    /// A release and its objects.
    pub(super) fn release(&self, release: Release) -> Result<(&Ccm, Rendered), NoRelease> {
        let ccm = match release {
            Release::Old => self.session.old_release(),
            Release::New => Some(self.session.ccm()),
        };
        ccm.and_then(|ccm| Some((ccm, ccm.released(release, &self.session.real_nodes())?))).ok_or(NoRelease)
    }

    /// Removes both releases.
    pub(super) async fn undo_releases(&self) -> Result<(), String> {
        for release in [Release::New, Release::Old] {
            let (ccm, rendered) = self.release(release).map_err(|NoRelease| NO_RELEASE.to_owned())?;
            ccm.remove_rendered(rendered).await.map_err(|error| chain(&error))?;
        }
        Ok(())
    }
}

fn not_started(error: harness_session::ccm::CcmError) -> CheckError {
    CheckError::Error(format!("the release to upgrade from does not start: {}", chain(&error)))
}

const NO_RELEASE: &str =
    "the run names no release to upgrade from (--upgrade-from), or a release deploys nothing";

/// The run has no such release, which a check of upgrades is never given.
pub(super) struct NoRelease;

impl From<NoRelease> for CheckError {
    fn from(_: NoRelease) -> CheckError {
        CheckError::Error(NO_RELEASE.to_owned())
    }
}

impl From<NoRelease> for ReadError {
    fn from(_: NoRelease) -> ReadError {
        ReadError { text: NO_RELEASE.to_owned(), fatal: true }
    }
}
