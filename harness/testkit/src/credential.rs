//! Runs the CCM with a credential for the cloud that a check replaces. It runs alone, as its manifests define it, so that
//! it is restarted if it exits because of that.

use super::CheckCx;
use super::undo_steps::{Undo, gone};
use harness_clouds::Credential;
use harness_core::check::{CheckError, Verdict, chain};
use harness_session::ccm::Rendered;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

/// The credential's name in the cloud's journal, also used for the replica's objects.
const NAME: &str = "replaced";
/// Annotation of a Pod that makes its kubelet sync it again.
const LOOKED_AT: &str = "ccm-conformance.io/credential";

/// One replica of the CCM with its own credential, while no other replica runs.
pub struct Replaceable<'a> {
    cx: &'a CheckCx,
    /// The replica with the new credential.
    then: Rendered,
}

impl Replaceable<'_> {
    /// Makes the cloud refuse the credential with which it was started, and accept the new one.
    ///
    /// # Errors
    /// When the cloud refuses or does not answer.
    pub async fn expires(&self) -> Verdict {
        Ok(self.cx.cloud.admit(&self.cx.credentials()?.1).await?)
    }

    /// Replaces the credential everywhere in the manifests. Kubelets update a changed Secret in a Pod's volumes only once
    /// a minute, so they are made to do it immediately.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn is_replaced(&self) -> Verdict {
        let ccm = self.cx.session.ccm();
        ccm.apply_rendered(&self.then).await?;
        let look = Patch::Merge(json!({"metadata": {"annotations": {LOOKED_AT: "replaced"}}}));
        for pod in ccm.pods_of_rendered(&self.then) {
            let api = self.api_of(&pod);
            match api.patch(&pod.name_any(), &PatchParams::default(), &look).await {
                // If its template contains the credential, the Pod is replaced, and the next one gets the new credential.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Restarts it, as `kubectl rollout restart` would.
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn restarts(&self) -> Verdict {
        for pod in self.cx.session.ccm().pods_of_rendered(&self.then) {
            let (api, now) = (self.api_of(&pod), DeleteParams::default().grace_period(0));
            self.cx.leaves_its_ports(&pod).await;
            gone(async || api.delete(&pod.name_any(), &now).await).await.map_err(CheckError::Error)?;
        }
        Ok(())
    }

    /// A failure about it, with its last log lines.
    ///
    /// # Errors
    /// The given failure.
    pub async fn explained<T>(&self, outcome: Result<T, CheckError>) -> Result<T, CheckError> {
        let pods = self.cx.session.ccm().pods_of_rendered(&self.then);
        self.cx.explained_by(&pods, outcome).await
    }

    fn api_of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.cx.pods_client(), &pod.namespace().unwrap_or_default())
    }
}

impl CheckCx {
    /// Removes the CCM and starts one replica of it with its own credential. The replica is removed when the check ends.
    /// Only for checks that declare this ([`Check::on_a_fresh_cluster`](harness_core::check::Check::on_a_fresh_cluster)).
    ///
    /// # Errors
    /// [`CheckError::Violation`] when there is no CCM, [`CheckError::NotObservable`] when its manifests do not take the credential from the
    /// harness, [`CheckError::Error`] when API server or cloud refuse.
    pub async fn ccm_with_own_credential(&self) -> Result<Replaceable<'_>, CheckError> {
        let ccm = self.session.ccm();
        if !ccm.exists() {
            return Err(CheckError::violation("the CCM starts", "a CCM", "the profile deploys none"));
        }
        let (first, then) = self.credentials()?;
        let rendered = |credential| {
            let rendered = ccm.with_credential(credential, &self.without_routes(&[]));
            rendered.ok_or_else(|| CheckError::Error("a CCM without manifests".to_owned()))
        };
        let (with_first, with_then) = (rendered(&first)?, rendered(&then)?);
        if with_first.documents == with_then.documents {
            let why = "the manifests do not take the credential for the cloud from ${CLOUD_TOKEN}";
            return Err(CheckError::NotObservable(why.to_owned()));
        }
        self.withdraw_ccm().await?;
        self.cloud.admit(&first).await?;
        self.on_end(Undo::Replaced);
        ccm.apply_rendered(&with_first).await?;
        Ok(Replaceable { cx: self, then: with_then })
    }

    /// The initial credential, and its replacement.
    fn credentials(&self) -> Result<(Credential, Credential), CheckError> {
        let tokens = self.session.state().replaced.clone();
        let tokens = tokens.ok_or_else(|| CheckError::Error("a run without a CCM".to_owned()))?;
        let named = |token| Credential { name: NAME.to_owned(), token };
        Ok((named(tokens.first), named(tokens.then)))
    }

    pub(super) async fn undo_replaced(&self) -> Result<(), String> {
        let Ok((first, _)) = self.credentials() else { return Ok(()) };
        let ccm = self.session.ccm();
        match ccm.with_credential(&first, &[]) {
            Some(rendered) => ccm.remove_rendered(rendered).await.map_err(|error| chain(&error)),
            None => Ok(()),
        }
    }
}
