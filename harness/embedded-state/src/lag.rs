//! A watch cache that is behind: its readers see an earlier state until it has caught up.
//!
//! A real API server answers watches, and lists with resource version 0, from a cache that follows etcd. On a busy
//! control plane with several API servers it can be seconds behind, and a client that starts then begins with an old
//! state (staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go, `GetList`).

use tokio::sync::watch;

use crate::auth::user::User;

/// Whether service accounts see a state of the past. Other users, including the cluster's own components, are not
/// affected.
#[derive(Debug, Default)]
pub struct Lag {
    /// The last revision that can be seen; `None`: the latest.
    until: watch::Sender<Option<u64>>,
}

/// One reader's view.
#[derive(Clone, Debug)]
pub struct View(watch::Receiver<Option<u64>>);

impl Lag {
    /// Makes changes after this revision invisible until [`Lag::end`].
    pub fn begin(&self, revision: u64) {
        self.until.send_replace(Some(revision));
    }

    /// Makes all changes visible.
    pub fn end(&self) {
        self.until.send_replace(None);
    }

    /// The view of a user; `None` if the user always sees the latest state.
    pub fn view_of(&self, user: &User) -> Option<View> {
        user.as_service_account().map(|_| View(self.until.subscribe()))
    }
}

impl View {
    /// The last revision that can be seen now; `None`: the latest.
    pub fn until(&self) -> Option<u64> {
        *self.0.borrow()
    }

    /// Waits until more or less can be seen than before.
    pub async fn changes(&mut self) {
        if self.0.changed().await.is_err() {
            // The server is gone, which ends its watches anyway.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_service_accounts_see_the_past() {
        let lag = Lag::default();
        lag.begin(7);
        assert!(lag.view_of(&User::admin()).is_none());
        let mut view = lag.view_of(&User::service_account("kube-system", "ccm", "")).expect("a view");
        assert_eq!(view.until(), Some(7));
        let mut changes = Box::pin(view.changes());
        assert!(futures::poll!(&mut changes).is_pending());
        lag.end();
        changes.await;
        assert_eq!(view.until(), None);
    }
}
