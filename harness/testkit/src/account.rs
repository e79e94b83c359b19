//! Service accounts, and which accounts bindings of roles apply to.

use k8s_openapi::api::rbac::v1::Subject;

/// A service account.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let account = cx.ccm_account()?;
/// let grants = cx.granted_to(&account).await?;
/// cx.record("rules", format!("{} has {} rules", account.user(), grants.len()));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// Its user name for the API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    pub(super) fn is(&self, subject: &Subject) -> bool {
        let namespace = subject.namespace.as_deref();
        match subject.kind.as_str() {
            "ServiceAccount" => subject.name == self.name && namespace == Some(&self.namespace),
            "User" => subject.name == self.user(),
            "Group" => {
                subject.name == "system:serviceaccounts"
                    || subject.name == format!("system:serviceaccounts:{}", self.namespace)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_bound_by_itself_by_its_user_and_by_its_groups() {
        let account = Account { namespace: "kube-system".into(), name: "ccm".into() };
        let subject = |kind: &str, name: &str, namespace: Option<&str>| Subject {
            kind: kind.into(),
            name: name.into(),
            namespace: namespace.map(str::to_owned),
            api_group: None,
        };
        assert!(account.is(&subject("ServiceAccount", "ccm", Some("kube-system"))));
        assert!(account.is(&subject("User", "system:serviceaccount:kube-system:ccm", None)));
        assert!(account.is(&subject("Group", "system:serviceaccounts:kube-system", None)));
        assert!(!account.is(&subject("ServiceAccount", "ccm", Some("default"))));
        assert!(!account.is(&subject("Group", "system:authenticated", None)));
    }
}
