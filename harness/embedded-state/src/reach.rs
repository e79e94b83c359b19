//! Who is out of the server's reach, on order: what a partition of the network does to clients. Their watches end, and what
//! they ask is heard only when they are within reach again.

use std::collections::BTreeSet;

use tokio::sync::watch;

use crate::auth::user::User;

/// The key under which a service account's token says which Pod it is bound to.
const POD: &str = "authentication.kubernetes.io/pod-name";
/// The key under which a token says which one it is.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Who is out of reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// Nobody.
    #[default]
    None,
    /// Every service account.
    ServiceAccounts,
    /// The programs of these Pods, by the token that is bound to each.
    Pods(BTreeSet<String>),
    /// Whoever has these tokens, by their ids (`JTI=...`).
    Credentials(BTreeSet<String>),
}

/// The partition in force.
#[derive(Debug, Default)]
pub struct Reach(watch::Sender<Partition>);

impl Partition {
    /// Whether this user is out of reach.
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

impl Reach {
    /// Puts a partition in force in place of the one before.
    pub fn set(&self, partition: Partition) {
        self.0.send_replace(partition);
    }

    /// Waits until this user is within reach.
    pub async fn admits(&self, user: &User) {
        // The sender is ours, so this does not end otherwise.
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
    async fn who_is_out_of_reach_is_heard_when_the_partition_ends() {
        let reach = Reach::default();
        reach.set(Partition::ServiceAccounts);
        let user = User::service_account("kube-system", "ccm", "");
        let mut waits = Box::pin(reach.admits(&user));
        assert!(futures::poll!(&mut waits).is_pending());
        reach.set(Partition::None);
        waits.await;
    }
}
