//! The user of a request.

use std::collections::BTreeMap;

/// The user name of requests without a credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of users with a valid credential.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of users without a credential.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";
/// The group of all service accounts; followed by `:NAMESPACE`, that of one namespace.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// The prefix of a service account's user name; `NAMESPACE:NAME` follows.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The user of a request, as authentication has determined it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The unique id; empty if the credential has none.
    pub uid: String,
    /// The groups, in the order of the credential.
    pub groups: Vec<String>,
    /// The other attributes of the credential, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with a valid credential: `groups`, and the group of all such users.
    #[must_use]
    pub fn authenticated(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(str::to_owned).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// The administrator of the cluster, with kubeadm's name.
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

    /// A user without a credential.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Whether the user is in `group`.
    #[must_use]
    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// The namespace and name of the service account, if this is one.
    #[must_use]
    pub fn as_service_account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
    }
}
