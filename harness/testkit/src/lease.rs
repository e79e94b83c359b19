//! The Lease with which the CCM's replicas elect their leader.

use super::undo_steps::{Undo, gone};
use super::{CheckCx, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName};
use harness_core::probe::{Matcher, Observation, ReadError, ReadSource, matcher, pause};
use harness_session::ccm::LeaseKey;
use k8s_openapi::api::coordination::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The identity that holds the Lease while it is stolen.
const THIEF: &str = "ccm-conformance-thief";
/// How often a stolen Lease is renewed.
const RENEWAL: Duration = Duration::from_millis(500);

/// The CCM's Lease.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let lease: Lease<'_> = cx.lease();
/// let led = lease.becomes(held()).await?;
/// cx.record("transitions", transitions_of(&led));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lease<'a> {
    cx: &'a CheckCx,
    /// `None` if the profile does not name one.
    key: Option<LeaseKey>,
}

/// The holder of a Lease, by its identity.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let led = cx.lease().becomes(held()).await?;
/// cx.record("holder", holder_of(&led).unwrap_or_default());
/// # Ok(()) }
/// ```
pub fn holder_of(lease: &core::Lease) -> Option<String> {
    lease.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty())
}

/// `spec.leaseTransitions` of a Lease; 0 where absent.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let led = cx.lease().becomes(held()).await?;
/// cx.record("transitions", transitions_of(&led));
/// # Ok(()) }
/// ```
pub fn transitions_of(lease: &core::Lease) -> i32 {
    lease.spec.as_ref().and_then(|s| s.lease_transitions).unwrap_or(0)
}

/// A replica holds it; returns the Lease.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// cx.deploy_ccm().await?;
/// cx.lease().becomes(held()).within(cx.limits().start()).await?;
/// # Ok(()) }
/// ```
pub fn held() -> Matcher<Option<Arc<core::Lease>>, Arc<core::Lease>> {
    matcher("is held by a replica", |lease: &Option<Arc<core::Lease>>| match lease {
        Some(lease) if holder_of(lease).is_some_and(|holder| holder != THIEF) => {
            Observation::Matched(lease.clone())
        }
        Some(_) => Observation::Pending(String::new()),
        None => Observation::Pending("no Lease".to_owned()),
    })
}

/// It was taken over since it had `before` transitions; returns the Lease.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, leader: &Replica<'_>) -> Verdict {
/// let led = cx.lease().becomes(held()).await?;
/// let before = transitions_of(&led);
/// leader.will_end();
/// leader.kill().await?;
/// cx.lease().becomes(taken_over(before)).within(cx.limits().failover()).await?;
/// # Ok(()) }
/// ```
pub fn taken_over(before: i32) -> Matcher<Option<Arc<core::Lease>>, Arc<core::Lease>> {
    let expected = format!("a Lease with more than {before} transitions");
    matcher("is taken over by another replica", move |lease: &Option<Arc<core::Lease>>| match lease {
        Some(lease) if transitions_of(lease) > before => Observation::Matched(lease.clone()),
        Some(_) => Observation::Pending(String::new()),
        None => Observation::Pending("no Lease".to_owned()),
    })
    .expecting(expected)
}

impl<'a> Lease<'a> {
    /// Namespace and name; empty if the profile does not name one.
    pub(super) fn place(&self) -> (String, String) {
        self.key.as_ref().map(|key| (key.namespace.clone(), key.name.clone())).unwrap_or_default()
    }

    /// The check that uses it.
    pub(super) fn check(&self) -> &'a CheckCx {
        self.cx
    }

    /// The times of renewal that a watch has shown.
    ///
    /// # Errors
    /// When the watch is broken or behind.
    pub fn renewals(&self) -> Result<BTreeSet<String>, ReadError> {
        let leases = self.cx.session.world().leases.current()?;
        let history = self.key.iter().flat_map(|key| leases.history(&key.namespace, &key.name));
        let time = |lease: &core::Lease| lease.spec.as_ref()?.renew_time.as_ref().map(|t| t.0.to_string());
        Ok(history.filter_map(|version| time(&version.object)).collect())
    }

    /// When the holder with this identity renewed it last, according to a watch.
    ///
    /// # Errors
    /// When the watch is broken or behind.
    pub fn last_renewal_by(&self, holder: &str) -> Result<Option<Timestamp>, ReadError> {
        let leases = self.cx.session.world().leases.current()?;
        let history = self.key.iter().flat_map(|key| leases.history(&key.namespace, &key.name));
        let its = history.filter(|version| holder_of(&version.object).as_deref() == Some(holder));
        Ok(its.filter_map(|version| Some(version.object.spec.as_ref()?.renew_time.as_ref()?.0)).max())
    }

    /// Takes it over at once and renews it, so that its holder can no longer renew it: for the leader this looks like an
    /// API server that refuses renewals, on any cluster.
    ///
    /// # Errors
    /// When the profile names no Lease, or the API server refuses.
    pub async fn steal(&self) -> Result<StolenLease, CheckError> {
        let key =
            self.key.as_ref().ok_or_else(|| CheckError::Error("the profile names no Lease".to_owned()))?;
        let (api, name) = (self.api(key), key.name.clone());
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&stolen())).await?;
        Ok(StolenLease::renewed(api, name))
    }

    /// Gives it to another holder from the start, if it does not exist yet: another component that elects its leader by a
    /// Lease of that name. It is removed when the check ends.
    ///
    /// # Errors
    /// When the profile names no Lease, or the API server refuses.
    pub async fn is_taken(&self) -> Result<StolenLease, CheckError> {
        let key =
            self.key.as_ref().ok_or_else(|| CheckError::Error("the profile names no Lease".to_owned()))?;
        self.cx.on_end(Undo::Lease { namespace: key.namespace.clone(), name: key.name.clone() });
        let (api, name) = (self.api(key), key.name.clone());
        let mut written = stolen();
        written["apiVersion"] = json!("coordination.k8s.io/v1");
        written["kind"] = json!("Lease");
        written["metadata"] = json!({"name": name});
        written["spec"]["leaseDurationSeconds"] = json!(15);
        let params = PatchParams::apply(harness_session::ccm::FIELD_MANAGER).force();
        api.patch(&name, &params, &Patch::Apply(&written)).await?;
        Ok(StolenLease::renewed(api, name))
    }

    fn api(&self, key: &LeaseKey) -> Api<core::Lease> {
        Api::namespaced(self.cx.client.clone(), &key.namespace)
    }
}

impl Subject for Lease<'_> {
    type Snapshot = Option<Arc<core::Lease>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let name = self.key.as_ref().map(|key| format!("{}/{}", key.namespace, key.name));
        let name = name.unwrap_or_else(|| "which the profile does not name".to_owned());
        SubjectName { kind: "Lease", name, uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Snapshot, ReadError> {
        let Some(key) = &self.key else { return Ok(None) };
        match reach {
            ReadSource::Cache => {
                Ok(self.cx.session.world().leases.current()?.find(&key.namespace, &key.name))
            }
            ReadSource::Origin => Ok(self.api(key).get_opt(&key.name).await?.map(Arc::new)),
        }
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

/// A stolen Lease: held and renewed until it is released or dropped.
#[derive(Debug)]
pub struct StolenLease {
    api: Api<core::Lease>,
    name: String,
    renewal: JoinHandle<()>,
}

impl Drop for StolenLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

fn stolen() -> Value {
    json!({"spec": {"holderIdentity": THIEF, "renewTime": MicroTime(Timestamp::now())}})
}

impl StolenLease {
    /// A Lease that was just taken, renewed from now on.
    fn renewed(api: Api<core::Lease>, name: String) -> StolenLease {
        let (renewed, renewed_name) = (api.clone(), name.clone());
        let renewal = tokio::spawn(async move {
            loop {
                pause(RENEWAL).await;
                let patch = Patch::Merge(stolen());
                if let Err(error) = renewed.patch(&renewed_name, &PatchParams::default(), &patch).await {
                    tracing::debug!(%error, "the stolen Lease was not renewed");
                }
            }
        });
        StolenLease { api, name, renewal }
    }

    /// Stops renewing and releases it, as a regular holder does.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn let_go(self) -> Result<(), CheckError> {
        self.renewal.abort();
        let released = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&released)).await?;
        Ok(())
    }
}

impl CheckCx {
    /// The CCM's Lease.
    pub fn lease(&self) -> Lease<'_> {
        Lease { cx: self, key: self.session.ccm().lease_key().cloned() }
    }

    /// A Lease with another name. It is removed when the check ends.
    pub fn lease_named(&self, name: &str) -> Lease<'_> {
        let (namespace, name) = (self.lease_namespace(), name.to_owned());
        self.on_end(Undo::Lease { namespace: namespace.clone(), name: name.clone() });
        Lease { cx: self, key: Some(LeaseKey { namespace, name }) }
    }

    pub(super) async fn undo_lease(&self, namespace: &str, name: &str) -> Result<(), String> {
        let api: Api<core::Lease> = Api::namespaced(self.client.clone(), namespace);
        gone(async || api.delete(name, &DeleteParams::default()).await).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, transitions: i32) -> Option<Arc<core::Lease>> {
        let spec = json!({"holderIdentity": holder, "leaseTransitions": transitions});
        Some(Arc::new(serde_json::from_value(json!({"spec": spec})).expect("a Lease")))
    }

    #[test]
    fn a_lease_is_held_by_a_replica_only() {
        assert!(matches!(held().matches(&lease("a_1", 0)), Observation::Matched(_)));
        for other in [lease("", 0), lease(THIEF, 0), None] {
            assert!(matches!(held().matches(&other), Observation::Pending(_)));
        }
    }

    #[test]
    fn a_takeover_is_a_transition_more() {
        assert!(matches!(taken_over(3).matches(&lease("b_2", 4)), Observation::Matched(_)));
        for other in [lease("b_2", 3), None] {
            assert!(matches!(taken_over(3).matches(&other), Observation::Pending(_)));
        }
    }
}
