//! Rollouts that do not come to their end: one that stands still while both releases run, and one of a release that cannot
//! start.

use super::boot::is_running;
use super::releases::{Rolled, sets_of};
use super::undo_steps::gone;
use super::{CheckCx, Rollout, Subject};
use harness_core::check::{CheckError, Verdict};
use harness_core::probe::{Matcher, Observation, ReadSource, matcher};
use harness_session::ccm::Release;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

/// For so long a Pod has to be ready before a rollout goes on to the next one, in seconds: longer than any check takes.
const HELD: u32 = 3600;
/// The name of an image that no kubelet can pull: names of images have no capital letters. Unlike a name that no registry
/// knows, it needs no network.
const NO_IMAGE: &str = "ccm-conformance.invalid/No-Such-Release:0";

/// A Pod of the release that replaces the other runs.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let rollout = cx.roll_out_and_hold().await?;
/// rollout.becomes(begun()).within(cx.limits().start()).await
/// # }
/// ```
pub fn begun() -> Matcher<Rolled> {
    matcher("begins to replace the release before", |seen: &Rolled| {
        Observation::when(seen.new.iter().any(|pod| is_running(pod)))
    })
    .expecting("a Pod of it that runs")
}

/// A Pod of the release that replaces the other cannot pull its image.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let rollout = cx.roll_out_what_cannot_start().await?;
/// rollout.becomes(failing()).within(cx.limits().start()).await
/// # }
/// ```
pub fn failing() -> Matcher<Rolled> {
    matcher("cannot start", |seen: &Rolled| Observation::when(seen.new.iter().any(|pod| fails(pod))))
        .expecting("a Pod of it whose image cannot be pulled")
}

fn fails(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut states = statuses.filter_map(|status| status.state.as_ref());
    states.any(|state| {
        let waits = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
        waits == Some("InvalidImageName")
    })
}

/// A workload whose rollout stops after its first Pods.
fn hold(workload: &mut Value) {
    workload["spec"]["minReadySeconds"] = json!(HELD);
    if workload["kind"] == "Deployment" {
        // The API server wants it to be longer.
        workload["spec"]["progressDeadlineSeconds"] = json!(2 * HELD);
    }
}

/// A workload whose image does not exist.
fn disable(workload: &mut Value) {
    let containers = workload.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        container["image"] = json!(NO_IMAGE);
    }
}

impl CheckCx {
    /// Applies the manifests of the CCM under test over those of the old release, as [`CheckCx::roll_out`] does, but stops the
    /// rollout once its first Pods run, until [`Rollout::goes_on`].
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn roll_out_and_hold(&self) -> Result<Rollout<'_>, CheckError> {
        self.roll_out_edited(Release::New, hold).await
    }

    /// Applies the manifests of the CCM under test over those of the old release, with an image that does not exist, until
    /// [`Rollout::repaired`].
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn roll_out_what_cannot_start(&self) -> Result<Rollout<'_>, CheckError> {
        self.roll_out_edited(Release::New, disable).await
    }
}

impl<'a> Rollout<'a> {
    /// How many Pods the release before had.
    pub fn had(&self) -> usize {
        self.before.len()
    }

    /// How many Pods of the release before are left.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn left(&self) -> Result<usize, CheckError> {
        Ok(self.now().await?.old.len())
    }

    async fn now(&self) -> Result<Rolled, CheckError> {
        self.read(ReadSource::Origin).await.map_err(|error| CheckError::Error(error.text))
    }

    /// Deletes the Pods of one of the releases, as someone does who drains their machine; the workload makes others.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn lose(&self, release: Release) -> Verdict {
        let Rolled { old, new, .. } = self.now().await?;
        for pod in if release == self.release { new } else { old } {
            let api: Api<Pod> = Api::namespaced(self.cx.pods_client(), &pod.namespace().unwrap_or_default());
            gone(async || api.delete(&pod.name_any(), &DeleteParams::default()).await)
                .await
                .map_err(CheckError::Error)?;
        }
        Ok(())
    }

    /// Lets it come to its end: applies the manifests as they are.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn goes_on(&self) -> Verdict {
        let (ccm, rendered) = self.cx.release(self.release)?;
        Ok(ccm.replace(&rendered, &rendered).await?)
    }

    /// Applies the manifests with the right image. All Pods that there are now belong to the release before.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn repaired(mut self) -> Result<Rollout<'a>, CheckError> {
        let seen = self.now().await?;
        let all = || seen.old.iter().chain(&seen.new);
        self.before = all().filter_map(|pod| pod.uid()).collect();
        self.sets = all().flat_map(|pod| sets_of(pod)).collect();
        self.goes_on().await?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_rollout_is_valid_and_a_disabled_one_has_no_image() {
        let of = |kind: &str| json!({"kind": kind, "spec": {"template": {"spec": {"containers": [{"name": "ccm", "args": ["-x"]}]}}}});
        let (mut deployment, mut daemons) = (of("Deployment"), of("DaemonSet"));
        hold(&mut deployment);
        hold(&mut daemons);
        assert_eq!(
            (&deployment["spec"]["minReadySeconds"], &daemons["spec"]["minReadySeconds"]),
            (&json!(3600), &json!(3600))
        );
        assert_eq!(deployment["spec"]["progressDeadlineSeconds"], json!(7200));
        assert_eq!(daemons["spec"].get("progressDeadlineSeconds"), None);
        disable(&mut daemons);
        let container = &daemons["spec"]["template"]["spec"]["containers"][0];
        assert_eq!((&container["image"], &container["args"]), (&json!(NO_IMAGE), &json!(["-x"])));
    }

    #[test]
    fn a_container_without_a_usable_image_fails() {
        let pod = |state: Value| -> Pod {
            let status = json!({"containerStatuses": [{"name": "ccm", "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": state}]});
            serde_json::from_value(json!({"metadata": {}, "status": status})).expect("a Pod")
        };
        assert!(!fails(&pod(json!({"waiting": {"reason": "ContainerCreating"}}))));
        assert!(!fails(&pod(json!({"running": {}}))));
        assert!(fails(&pod(json!({"waiting": {"reason": "InvalidImageName"}}))));
    }
}
