//! Who asks.

use std::collections::BTreeMap;

/// The user of everybody who shows no credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of those who showed one that is good.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of those who showed none.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";
/// The group of all service accounts; with `:NAMESPACE` behind it those of one namespace.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// What the user name of a service account begins with; `NAMESPACE:NAME` follows.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Who asks, as authentication found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The unique id, empty where the credential gives none.
    pub uid: String,
    /// The groups, in the order the credential has them.
    pub groups: Vec<String>,
    /// What else the credential says, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody with a good credential: `groups` and the group of all such.
    #[must_use]
    pub fn authenticated(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(str::to_owned).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// The administrator of the cluster, as kubeadm names him.
    #[must_use]
    pub fn admin() -> Self {
        Self::authenticated("kubernetes-admin", &["kubeadm:cluster-admins"])
    }

    /// A component of the control plane that may do everything.
    #[must_use]
    pub fn master(name: &str) -> Self {
        Self::authenticated(name, &[MASTERS])
    }

    /// A service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let of_namespace = format!("{SERVICE_ACCOUNTS}:{namespace}");
        let mut user = Self::authenticated(
            &format!("{SERVICE_ACCOUNT}{namespace}:{name}"),
            &[SERVICE_ACCOUNTS, &of_namespace],
        );
        uid.clone_into(&mut user.uid);
        user
    }

    /// A node's kubelet.
    #[must_use]
    pub fn node(name: &str) -> Self {
        Self::authenticated(&format!("system:node:{name}"), &["system:nodes"])
    }

    /// Somebody without a credential.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Whether the user is in `group`.
    #[must_use]
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Namespace and name of the service account this is.
    #[must_use]
    pub fn as_service_account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
    }
}
