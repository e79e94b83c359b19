//! The state that the two APIs share.

use super::tls::Tls;
use super::unknown::Unknown;
use fake_cloud_kit::Dialect;
use fake_cloud_kit::DialectInfo;
use fake_cloud_model::Cloud;
use fake_cloud_recording::barriers::Barriers;
use fake_cloud_recording::credentials::{Credentials, Secret};
use fake_cloud_recording::faults::Faults;
use fake_cloud_recording::journal::Journal;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The part that changes.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) cloud: Cloud,
    pub(crate) faults: Faults,
    pub(crate) barriers: Barriers,
    pub(crate) journal: Journal,
    pub(crate) credentials: Credentials,
}

/// The addresses of a cloud.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The cloud API.
    pub(crate) cloud: SocketAddr,
    /// The driver API.
    pub(crate) driver: SocketAddr,
    /// The metadata service, if there is one.
    pub(crate) metadata: Option<SocketAddr>,
}

/// One cloud, shared by all connections of both APIs.
pub(crate) struct Shared {
    pub(crate) info: &'static DialectInfo,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) unknown: Unknown,
    pub(crate) driver_token: Secret,
    /// Its addresses.
    pub(crate) places: Places,
    /// Its CA, if the dialect answers for hosts of its vendor.
    pub(crate) tls: Option<Tls>,
    /// Notifies when a call has arrived.
    pub(crate) arrivals: Notify,
    started: Instant,
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(
        info: &'static DialectInfo,
        unknown: Unknown,
        driver_token: Secret,
        places: Places,
        tls: Option<Tls>,
        credentials: Credentials,
    ) -> Shared {
        let dialect = info.make();
        let cloud = Cloud::new(dialect.ids(), dialect.gone_backends(), dialect.naming());
        Shared {
            info,
            dialect,
            unknown,
            driver_token,
            places,
            tls,
            arrivals: Notify::new(),
            started: Instant::now(),
            state: Mutex::new(State { cloud, credentials, ..State::default() }),
        }
    }

    /// The state, for a moment: nothing waits while holding it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic only ended its own call; the others continue with the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
