//! Ends watches and discards history on request. A real server does both now and then, and tests use it to
//! see how clients react.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::auth::user::User;

/// Whether watches of service accounts may continue. Other users, including the cluster's own components, are
/// not affected.
#[derive(Debug, Default)]
pub struct Interruption {
    state: watch::Sender<State>,
    /// Whether the next paged list breaks off after its first page.
    cuts_pages: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How many times all watches have been ended.
    times: u64,
    /// Whether new watches have to wait.
    held: bool,
}

/// Notifies one watch that it has to end.
#[derive(Debug)]
pub struct Ending {
    state: watch::Receiver<State>,
    times: u64,
}

impl Interruption {
    /// Ends all watches, and makes new ones wait until [`Interruption::release`].
    pub fn interrupt(&self) {
        self.state.send_modify(|state| *state = State { times: state.times + 1, held: true });
    }

    /// Ends all watches; new ones may begin at once.
    pub fn end(&self) {
        self.state.send_modify(|state| state.times += 1);
    }

    /// Allows new watches; the next paged list is cut.
    pub fn release(&self) {
        self.cuts_pages.store(true, Ordering::Relaxed);
        self.state.send_modify(|state| state.held = false);
    }

    /// Waits until a watch of this user may begin; `None` if the user is not affected.
    pub async fn admits(&self, user: &User) -> Option<Ending> {
        user.as_service_account()?;
        let mut state = self.state.subscribe();
        // This object owns the sender, so the wait cannot fail.
        let times = state.wait_for(|state| !state.held).await.ok()?.times;
        Some(Ending { state, times })
    }

    /// The size of a page for this user, who requested `limit`: one object if the rest will be refused.
    pub fn page(&self, user: &User, limit: usize) -> usize {
        let cuts = self.cuts_pages.load(Ordering::Relaxed) && user.as_service_account().is_some();
        if cuts { limit.min(1) } else { limit }
    }

    /// Whether this user's next page must be refused once, as if its revision had expired.
    pub fn refuses_page(&self, user: &User) -> bool {
        user.as_service_account().is_some() && self.cuts_pages.swap(false, Ordering::Relaxed)
    }
}

impl Ending {
    /// Waits until the watch has to end.
    pub async fn comes(ending: &mut Option<Ending>) {
        let Some(Ending { state, times }) = ending else { return std::future::pending().await };
        let times = *times;
        if state.wait_for(|state| state.times > times).await.is_err() {
            // The server is gone, which ends the watch anyway.
            std::future::pending::<()>().await;
        }
    }
}
