//! The permissions of the CCM, read from the cluster, and a service account of a check with reduced permissions.

use super::CheckCx;
use super::account::Account;
use super::undo_steps::{Undo, gone};
use harness_core::check::{CheckError, chain};
use harness_core::probe::{ReadError, poll};
use harness_session::ccm::{Form, key_of, pod_spec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

/// The label of objects that an API server creates for itself when it starts.
const BOOTSTRAP: &str = "kubernetes.io/bootstrapping";
const GROUP: &str = "rbac.authorization.k8s.io";
/// How long an API server may take to apply a change of roles.
const NOTICED: Duration = Duration::from_secs(10);

/// A granted rule, with its role and its scope.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let without_events = |granted: &[Grant]| -> Vec<Grant> {
///     let is_of_events = |grant: &&Grant| grant.rule.resources.iter().flatten().any(|name| name == "events");
///     granted.iter().filter(|grant| !is_of_events(grant)).cloned().collect()
/// };
/// let alone = cx.ccm_as(without_events, &[]).await?;
/// alone.becomes(is_up()).within(cx.limits().start()).await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The role, e.g. `ClusterRole system:acme-ccm`.
    pub by: String,
    /// The namespace in which it applies; `None`: all.
    pub within: Option<String>,
    /// The permitted actions.
    pub rule: PolicyRule,
}

/// One action that is permitted or not.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(trial: &Trial<'_>, less: &[Grant]) -> Verdict {
/// let right = Right {
///     verb: "patch".to_owned(),
///     group: String::new(),
///     resource: "nodes/status".to_owned(),
///     within: None,
/// };
/// trial.may(less, &right, false).await?;
/// trial.keeps(keeps_running()).when("without that right").await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The verb, e.g. `patch`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with `/` and the subresource if there is one; a value that begins with `/` is a non-resource path.
    pub resource: String,
    /// The namespace; `None`: all.
    pub within: Option<String>,
}

/// A binding of either scope: subjects, role, scope.
struct Binding {
    subjects: Vec<Subject>,
    role: RoleRef,
    within: Option<String>,
    is_default: bool,
}

impl CheckCx {
    /// Whether the CCM uses separate accounts for its controllers (contract AUTH-13).
    pub fn makes_accounts(&self) -> bool {
        self.session.ccm().flag("use-service-account-credentials").is_some_and(|said| said != "false")
    }

    /// The service account of the CCM.
    ///
    /// # Errors
    /// [`CheckError::Violation`] if the profile deploys no CCM.
    pub fn ccm_account(&self) -> Result<Account, CheckError> {
        let rendered = self.session.ccm().rendered(Form::Replicas);
        let workload = rendered.as_ref().and_then(|rendered| {
            let first = rendered.workloads.first()?;
            rendered.documents.iter().find(|document| key_of(document) == *first)
        });
        let promise = "the CCM runs as a service account";
        let workload =
            workload.ok_or_else(|| CheckError::violation(promise, "a CCM", "the profile deploys none"))?;
        let name = pod_spec(workload)["serviceAccountName"].as_str().unwrap_or("default");
        Ok(Account { namespace: key_of(workload).namespace, name: name.to_owned() })
    }

    /// The permissions of an account by the roles that are bound to it, beyond the API server's defaults for all
    /// accounts.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn granted_to(&self, account: &Account) -> Result<Vec<Grant>, CheckError> {
        let mut grants = Vec::new();
        for binding in self.bindings().await? {
            if binding.is_default || !binding.subjects.iter().any(|subject| account.is(subject)) {
                continue;
            }
            let by = format!("{} {}", binding.role.kind, binding.role.name);
            let rules = self.rules_of(&binding.role, binding.within.as_deref()).await?;
            let granted = |rule| Grant { by: by.clone(), within: binding.within.clone(), rule };
            grants.extend(rules.into_iter().map(granted));
        }
        Ok(grants)
    }

    async fn bindings(&self) -> Result<Vec<Binding>, CheckError> {
        let everywhere: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let within: Api<RoleBinding> = Api::all(self.client.clone());
        let mut bindings = Vec::new();
        for binding in everywhere.list(&ListParams::default()).await? {
            let is_default = binding.labels().contains_key(BOOTSTRAP);
            let subjects = binding.subjects.unwrap_or_default();
            bindings.push(Binding { subjects, role: binding.role_ref, within: None, is_default });
        }
        for binding in within.list(&ListParams::default()).await? {
            let (is_default, within) = (binding.labels().contains_key(BOOTSTRAP), binding.namespace());
            let subjects = binding.subjects.unwrap_or_default();
            bindings.push(Binding { subjects, role: binding.role_ref, within, is_default });
        }
        Ok(bindings)
    }

    /// The rules of a role; empty if it does not exist.
    async fn rules_of(&self, role: &RoleRef, within: Option<&str>) -> Result<Vec<PolicyRule>, CheckError> {
        let rules = match within.filter(|_| role.kind == "Role") {
            Some(namespace) => {
                let api: Api<Role> = Api::namespaced(self.client.clone(), namespace);
                api.get_opt(&role.name).await?.and_then(|role| role.rules)
            }
            None => {
                let api: Api<ClusterRole> = Api::all(self.client.clone());
                api.get_opt(&role.name).await?.and_then(|role| role.rules)
            }
        };
        Ok(rules.unwrap_or_default())
    }

    /// Creates a service account in that namespace with these permissions and the defaults of all accounts. It is removed
    /// when the check ends.
    pub(super) async fn account_with(
        &self,
        namespace: &str,
        grants: &[Grant],
    ) -> Result<Account, CheckError> {
        let account = Account { namespace: namespace.to_owned(), name: self.fresh("account") };
        self.on_end(Undo::Account(account.clone()));
        let made = ServiceAccount { metadata: named(&account.name), ..ServiceAccount::default() };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        accounts.create(&PostParams::default(), &made).await?;
        self.grant(&account, grants).await?;
        Ok(account)
    }

    /// Replaces the permissions of an account of [`CheckCx::account_with`]; in namespaces that are not mentioned its
    /// permissions stay.
    pub(super) async fn grant(&self, account: &Account, grants: &[Grant]) -> Result<(), CheckError> {
        let mut places: BTreeMap<Option<&str>, Vec<&PolicyRule>> = BTreeMap::from([(None, Vec::new())]);
        for grant in grants {
            places.entry(grant.within.as_deref()).or_default().push(&grant.rule);
        }
        let subjects =
            json!([{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}]);
        for (within, rules) in places {
            let role = |kind: &str| json!({"apiGroup": GROUP, "kind": kind, "name": account.name});
            match within {
                None => {
                    let all = self.client.clone();
                    put(&Api::<ClusterRole>::all(all.clone()), &account.name, json!({"rules": rules}))
                        .await?;
                    let binding = json!({"roleRef": role("ClusterRole"), "subjects": subjects});
                    put(&Api::<ClusterRoleBinding>::all(all), &account.name, binding).await?;
                }
                Some(within) => {
                    put(&self.within::<Role>(within), &account.name, json!({"rules": rules})).await?;
                    let binding = json!({"roleRef": role("Role"), "subjects": subjects});
                    put(&self.within::<RoleBinding>(within), &account.name, binding).await?;
                }
            }
        }
        Ok(())
    }

    fn within<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Waits until the API server permits an account to do something, or no longer does: the proof that a role is in
    /// effect.
    ///
    /// # Errors
    /// [`CheckError::Error`] if that does not happen.
    pub(super) async fn has_right(
        &self,
        account: &Account,
        right: &Right,
        allowed: bool,
    ) -> Result<(), CheckError> {
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review =
            SubjectAccessReview { spec: review_of(account, right), ..SubjectAccessReview::default() };
        let as_wanted = async |seen: &mut String| {
            let answer = api.create(&PostParams::default(), &review).await;
            let answer = answer.map_err(|error| ReadError::passing(chain(&error)))?;
            let may = answer.status.is_some_and(|status| status.allowed);
            *seen = if may { "allowed".to_owned() } else { "not allowed".to_owned() };
            Ok((may == allowed).then_some(()))
        };
        let Right { verb, resource, .. } = right;
        let what =
            format!("{} {} {verb} {resource}", account.user(), if allowed { "may" } else { "may not" });
        poll(&what, NOTICED, Duration::from_millis(50), as_wanted).await?;
        Ok(())
    }

    /// Removes the default permission to GET `/healthz` of the API server from all accounts, until the check ends.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn withholds_healthz(&self) -> Result<(), CheckError> {
        let api: Api<ClusterRole> = Api::all(self.client.clone());
        let defaults = ListParams::default().labels(BOOTSTRAP);
        for role in api.list(&defaults).await? {
            let (name, rules) = (role.name_any(), role.rules.unwrap_or_default());
            let (before, mut now) = (json!(rules), rules);
            for rule in &mut now {
                // Administrators with all permissions are not affected.
                rule.non_resource_urls
                    .iter_mut()
                    .for_each(|urls| urls.retain(|url| !url.starts_with("/healthz")));
            }
            now.retain(|rule| rule.non_resource_urls.as_ref().is_none_or(|urls| !urls.is_empty()));
            if json!(now) != before {
                self.on_end(Undo::Rules { role: name.clone(), rules: before });
                let patch = Patch::Merge(json!({"rules": now}));
                api.patch(&name, &PatchParams::default(), &patch).await?;
            }
        }
        let right = Right {
            verb: "get".to_owned(),
            group: String::new(),
            resource: "/healthz".to_owned(),
            within: None,
        };
        self.has_right(&self.ccm_account()?, &right, false).await
    }

    pub(super) async fn undo_rules(&self, role: &str, rules: &serde_json::Value) -> Result<(), String> {
        let api: Api<ClusterRole> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"rules": rules}));
        api.patch(role, &PatchParams::default(), &patch).await.map(drop).map_err(|error| chain(&error))
    }

    pub(super) async fn undo_account(&self, account: &Account) -> Result<(), String> {
        let (name, now) = (account.name.as_str(), DeleteParams::default());
        let everywhere: Api<Role> = Api::all(self.client.clone());
        let own = ListParams::default().fields(&format!("metadata.name={name}"));
        let roles = everywhere.list(&own).await.map_err(|error| chain(&error))?;
        for place in roles.iter().filter_map(ResourceExt::namespace) {
            let place = &place;
            let (bindings, roles) = (self.within::<RoleBinding>(place), self.within::<Role>(place));
            gone(async || bindings.delete(name, &now).await).await?;
            gone(async || roles.delete(name, &now).await).await?;
        }
        self.undo_right(name).await?;
        let accounts: Api<ServiceAccount> = self.within(&account.namespace);
        gone(async || accounts.delete(name, &now).await).await
    }
}

impl CheckCx {
    /// Gives a group of users a permission until the check ends: a ClusterRole with these rules and a binding, both named
    /// like the check.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn allows_group(&self, group: &str, rules: serde_json::Value) -> Result<(), CheckError> {
        let name = self.prefix.clone();
        self.on_end(Undo::Right(name.clone()));
        put(&Api::<ClusterRole>::all(self.client.clone()), &name, json!({"rules": rules})).await?;
        let binding = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        });
        put(&Api::<ClusterRoleBinding>::all(self.client.clone()), &name, binding).await
    }
}

fn named(name: &str) -> kube::api::ObjectMeta {
    kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() }
}

/// Creates an object, or replaces it.
pub(super) async fn put<K>(api: &Api<K>, name: &str, mut written: serde_json::Value) -> Result<(), CheckError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    written["apiVersion"] = json!(K::api_version(&()));
    written["kind"] = json!(K::kind(&()));
    written["metadata"] = json!({"name": name});
    let params = PatchParams::apply(harness_session::ccm::FIELD_MANAGER).force();
    api.patch(name, &params, &Patch::Apply(&written)).await?;
    Ok(())
}

fn review_of(account: &Account, right: &Right) -> SubjectAccessReviewSpec {
    let groups = ["system:serviceaccounts", "system:authenticated"].map(str::to_owned);
    let of_namespace = format!("system:serviceaccounts:{}", account.namespace);
    let mut spec = SubjectAccessReviewSpec {
        user: Some(account.user()),
        groups: Some(groups.into_iter().chain([of_namespace]).collect()),
        ..SubjectAccessReviewSpec::default()
    };
    if right.resource.starts_with('/') {
        let (path, verb) = (Some(right.resource.clone()), Some(right.verb.clone()));
        spec.non_resource_attributes = Some(NonResourceAttributes { path, verb });
        return spec;
    }
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource.as_str(), None),
    };
    spec.resource_attributes = Some(ResourceAttributes {
        verb: Some(right.verb.clone()),
        group: Some(right.group.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        namespace: right.within.clone(),
        ..ResourceAttributes::default()
    });
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_asks_for_a_resource_or_a_path() {
        let account = Account { namespace: "n".into(), name: "a".into() };
        let right = |resource: &str| Right {
            verb: "patch".into(),
            group: String::new(),
            resource: resource.into(),
            within: None,
        };
        let status = review_of(&account, &right("nodes/status")).resource_attributes.expect("a resource");
        assert_eq!(
            (status.resource.as_deref(), status.subresource.as_deref()),
            (Some("nodes"), Some("status"))
        );
        let path = review_of(&account, &right("/healthz"));
        assert!(path.resource_attributes.is_none() && path.non_resource_attributes.is_some());
    }
}
