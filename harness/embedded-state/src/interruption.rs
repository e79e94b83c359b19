//! Watches that end, and a past that is forgotten, on order: what a real server does now and then, when somebody wants to see
//! what its clients make of it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::auth::user::User;

/// Whether watches of service accounts may go on. Other users, the cluster's own components among them, are not concerned.
#[derive(Debug, Default)]
pub struct Interruption {
    state: watch::Sender<State>,
    /// Whether the next list that is read in pages breaks off after its first.
    cuts_pages: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How often all watches have been ended.
    times: u64,
    /// Whether none begins.
    held: bool,
}

/// Where one watch hears that it has to end.
#[derive(Debug)]
pub struct Ending {
    state: watch::Receiver<State>,
    times: u64,
}

impl Interruption {
    /// Ends all watches, and lets none begin until [`Interruption::release`]: whoever asks for one waits.
    pub fn interrupt(&self) {
        self.state.send_modify(|state| *state = State { times: state.times + 1, held: true });
    }

    /// Ends all watches; they may begin again at once.
    pub fn end(&self) {
        self.state.send_modify(|state| state.times += 1);
    }

    /// Lets watches begin again; the next list in pages is cut.
    pub fn release(&self) {
        self.cuts_pages.store(true, Ordering::Relaxed);
        self.state.send_modify(|state| state.held = false);
    }

    /// Waits until a watch of this user may begin; `None` where it is not concerned.
    pub async fn admits(&self, user: &User) -> Option<Ending> {
        user.as_service_account()?;
        let mut state = self.state.subscribe();
        // The sender is ours, so this does not end otherwise.
        let times = state.wait_for(|state| !state.held).await.ok()?.times;
        Some(Ending { state, times })
    }

    /// The size of a page for this user, who asked for `limit`: one object where the rest is to be refused.
    pub fn page(&self, user: &User, limit: usize) -> usize {
        let cuts = self.cuts_pages.load(Ordering::Relaxed) && user.as_service_account().is_some();
        if cuts { limit.min(1) } else { limit }
    }

    /// Whether this user's next page is to be refused, as if what it belongs to were forgotten: once.
    pub fn refuses_page(&self, user: &User) -> bool {
        user.as_service_account().is_some() && self.cuts_pages.swap(false, Ordering::Relaxed)
    }
}

impl Ending {
    /// Ends when the watch has to.
    pub async fn comes(ending: &mut Option<Ending>) {
        let Some(Ending { state, times }) = ending else { return std::future::pending().await };
        let times = *times;
        if state.wait_for(|state| state.times > times).await.is_err() {
            // The server is gone, which ends the watch by itself.
            std::future::pending::<()>().await;
        }
    }
}
