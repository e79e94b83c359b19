//! Makes the server unreachable for some users on request, like a network partition. Their watches end, and
//! their requests wait until the server is reachable for them again.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::auth::user::User;

/// The key under which a service account's token names the Pod that it is bound to.
const POD: &str = "authentication.kubernetes.io/pod-name";
/// The key under which a token has its id.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// The users who cannot reach the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// None.
    #[default]
    None,
    /// Every service account.
    ServiceAccounts,
    /// The programs of these Pods, recognised by the token that is bound to each.
    Pods(BTreeSet<String>),
    /// The holders of these tokens, by their ids (`JTI=...`).
    Credentials(BTreeSet<String>),
}

/// The current partition.
#[derive(Debug, Default)]
pub struct CurrentPartition(watch::Sender<Partition>);

impl Partition {
    /// Whether this user cannot reach the server.
    fn holds(&self, user: &User) -> bool {
        match self {
            Partition::None => false,
            Partition::ServiceAccounts => user.as_service_account().is_some(),
            Partition::Pods(names) => says_one_of(user, POD, names),
            Partition::Credentials(ids) => says_one_of(user, CREDENTIAL, ids),
        }
    }
}

fn says_one_of(user: &User, key: &str, values: &BTreeSet<String>) -> bool {
    user.extra.get(key).is_some_and(|said| said.iter().any(|one| values.contains(one)))
}

impl CurrentPartition {
    /// Replaces the current partition.
    pub fn set(&self, partition: Partition) {
        self.0.send_replace(partition);
    }

    /// Waits until this user can reach the server.
    pub async fn admits(&self, user: &User) {
        // This object owns the sender, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|partition| !partition.holds(user)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_holds_those_it_names() {
        let mut of_a = User::service_account("kube-system", "ccm", "");
        of_a.extra.insert(POD.to_owned(), vec!["ccm-a".to_owned()]);
        let only_a = Partition::Pods(BTreeSet::from(["ccm-a".to_owned()]));
        of_a.extra.insert(CREDENTIAL.to_owned(), vec!["JTI=1".to_owned()]);
        let unbound = User::service_account("kube-system", "ccm", "");
        assert!(only_a.holds(&of_a) && !only_a.holds(&unbound) && !only_a.holds(&User::admin()));
        assert!(
            Partition::ServiceAccounts.holds(&unbound) && !Partition::ServiceAccounts.holds(&User::admin())
        );
        let first = Partition::Credentials(BTreeSet::from(["JTI=1".to_owned()]));
        let second = Partition::Credentials(BTreeSet::from(["JTI=2".to_owned()]));
        assert!(first.holds(&of_a) && !first.holds(&unbound) && !second.holds(&of_a));
        assert!(!Partition::None.holds(&of_a));
    }

    #[tokio::test]
    async fn requests_are_answered_when_the_partition_ends() {
        let reach = CurrentPartition::default();
        reach.set(Partition::ServiceAccounts);
        let user = User::service_account("kube-system", "ccm", "");
        let mut waits = Box::pin(reach.admits(&user));
        assert!(futures::poll!(&mut waits).is_pending());
        reach.set(Partition::None);
        waits.await;
    }
}
