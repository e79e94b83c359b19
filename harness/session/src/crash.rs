//! One crash of the leader for all checks that watch one.
//!
//! # Expected flow
//! Each such check becomes a [`Participant`] when it begins, prepares while other checks run, and arrives. When all
//! participants have arrived or ended, they hold the cluster exclusively until the last of them is dropped. Each makes
//! its last preparations and requests the crash; when all have requested it or ended, one of them causes it, and the
//! others get the same [`Crash`].
//!
//! # Assumptions
//! All expected checks run at the same time, otherwise the crash would wait for one that cannot begin. Where that is not
//! possible (few threads, a process per check), only one is expected, and each check has its own crash.

use super::folder::{RunDir, StateError};
use harness_core::check::CheckError;
use std::fs::File;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{Notify, OnceCell};

/// A leader that was killed, and the state just before.
#[derive(Clone, Debug)]
pub struct Crash {
    /// The replica that led.
    pub replica: String,
    /// The identity with which it held the Lease.
    pub holder: Option<String>,
    /// `leaseTransitions` of the Lease.
    pub transitions: i32,
    /// The journal's position.
    pub mark: u64,
    /// When it was killed.
    pub at: Instant,
}

/// Coordinates the participants of one crash after another.
#[derive(Debug)]
pub struct SharedCrashes {
    expected: Mutex<usize>,
    /// The crash that is still waiting for participants.
    filling: Mutex<Option<Arc<Round>>>,
}

impl Default for SharedCrashes {
    fn default() -> SharedCrashes {
        SharedCrashes { expected: Mutex::new(1), filling: Mutex::default() }
    }
}

#[derive(Debug)]
struct Round {
    size: usize,
    count: Mutex<Count>,
    changed: Notify,
    cluster: OnceCell<Result<File, String>>,
    crash: OnceCell<Result<Crash, CheckError>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    taken: usize,
    arrived: usize,
    asked: usize,
    /// Ended without having arrived.
    absent: usize,
    /// Arrived, and ended without having requested the crash.
    stopped: usize,
    /// Requested the crash, and have undone their changes.
    done: usize,
}

/// A check's participation in one crash; dropping it ends it.
#[derive(Debug)]
pub struct Participant {
    round: Arc<Round>,
    arrived: bool,
    asked: bool,
}

impl SharedCrashes {
    /// Sets how many checks will take part in one crash; at least one.
    pub fn expect_participants(&self, checks: usize) {
        *self.expected.lock().expect("no holder of this lock panics") = checks.max(1);
    }

    /// A participation in the crash that is still waiting for participants.
    pub fn participant(&self) -> Participant {
        let size = *self.expected.lock().expect("no holder of this lock panics");
        let mut filling = self.filling.lock().expect("no holder of this lock panics");
        let round = filling.take().unwrap_or_else(|| {
            Arc::new(Round {
                size,
                count: Mutex::default(),
                changed: Notify::new(),
                cluster: OnceCell::new(),
                crash: OnceCell::new(),
            })
        });
        let taken = round.with(|count| {
            count.taken += 1;
            count.taken
        });
        // A complete round belongs to its participants: the last of them releases the cluster.
        if taken < round.size {
            *filling = Some(round.clone());
        }
        Participant { round, arrived: false, asked: false }
    }
}

impl Round {
    fn with<T>(&self, change: impl FnOnce(&mut Count) -> T) -> T {
        let outcome = change(&mut self.count.lock().expect("no holder of this lock panics"));
        self.changed.notify_waiters();
        outcome
    }

    async fn until(&self, reached: impl Fn(&Count) -> usize) {
        loop {
            let changed = self.changed.notified();
            let count = *self.count.lock().expect("no holder of this lock panics");
            if reached(&count) >= self.size {
                return;
            }
            changed.await;
        }
    }
}

impl Participant {
    /// Waits until all participants have arrived or ended, and the cluster is exclusively theirs.
    ///
    /// # Errors
    /// When the lock file cannot be opened; the same for all.
    pub async fn arrive(&mut self, dir: &RunDir) -> Result<(), String> {
        if !self.arrived {
            self.arrived = true;
            self.round.with(|count| count.arrived += 1);
        }
        self.round.until(|count| count.arrived + count.absent).await;
        let hold =
            async || dir.hold_cluster(true).map_err(|error: StateError| harness_core::check::chain(&error));
        self.round.cluster.get_or_init(hold).await.as_ref().map(|_| ()).map_err(String::clone)
    }

    /// Waits until all other participants have requested the crash or ended. Two participants that wait here wait for
    /// each other.
    ///
    /// # Errors
    /// Those of [`Participant::arrive`].
    pub async fn last(&mut self, dir: &RunDir) -> Result<(), String> {
        self.arrive(dir).await?;
        self.round.until(|count| count.asked + count.stopped + count.absent + 1).await;
        Ok(())
    }

    /// The crash, once all participants that arrived have requested it or ended. `make` causes it, for one of them.
    ///
    /// # Errors
    /// Why it could not be caused; the same for all.
    pub async fn crash<F: Future<Output = Result<Crash, CheckError>>>(
        &mut self,
        dir: &RunDir,
        make: impl FnOnce() -> F,
    ) -> Result<Crash, CheckError> {
        self.arrive(dir).await.map_err(CheckError::Error)?;
        if !self.asked {
            self.asked = true;
            self.round.with(|count| count.asked += 1);
        }
        self.round.until(|count| count.asked + count.stopped + count.absent).await;
        self.round.crash.get_or_init(make).await.clone()
    }

    /// The replica that was killed.
    pub fn crashed(&self) -> Option<&str> {
        self.round.crash.get()?.as_ref().ok().map(|crash| crash.replica.as_str())
    }

    /// Records that this check has undone all of its own changes; returns whether it was the last one that had requested
    /// the crash.
    pub fn finish(&self) -> bool {
        self.round.with(|count| {
            count.done += 1;
            count.done == count.asked
        })
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        match (self.arrived, self.asked) {
            (false, _) => self.round.with(|count| count.absent += 1),
            (true, false) => self.round.with(|count| count.stopped += 1),
            (true, true) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn crash() -> Crash {
        Crash { replica: "a".into(), holder: None, transitions: 0, mark: 0, at: Instant::now() }
    }

    #[tokio::test]
    async fn one_may_wait_until_the_crash_waits_for_it_alone() {
        let dir = RunDir::create(harness_clusters::images::RunId::fresh().as_str()).expect("a folder");
        let crashes = SharedCrashes::default();
        crashes.expect_participants(3);
        let [mut last, mut other, gone] = [(); 3].map(|()| crashes.participant());
        drop(gone);
        let asked = AtomicUsize::new(0);
        let ready = async {
            last.last(&dir).await.expect("the cluster is held");
            assert_eq!(asked.load(Ordering::SeqCst), 1);
            last.crash(&dir, async || Ok(crash())).await
        };
        let asks = async {
            other.arrive(&dir).await.expect("the cluster is held");
            tokio::task::yield_now().await;
            asked.store(1, Ordering::SeqCst);
            other.crash(&dir, async || Ok(crash())).await
        };
        let (first, second) = tokio::join!(ready, asks);
        assert!(first.is_ok() && second.is_ok());
        dir.remove().expect("removed");
    }

    #[tokio::test]
    async fn all_that_ask_see_one_crash_and_the_last_cleans_up() {
        let dir = RunDir::create(harness_clusters::images::RunId::fresh().as_str()).expect("a folder");
        let crashes = SharedCrashes::default();
        crashes.expect_participants(3);
        let (mut first, mut second, mut third) =
            (crashes.participant(), crashes.participant(), crashes.participant());
        let made = AtomicUsize::new(0);
        let make = || async {
            made.fetch_add(1, Ordering::Relaxed);
            Ok(crash())
        };
        // The third ends after it arrived and before its request, so the others do not wait for it.
        let (one, two, ()) = tokio::join!(first.crash(&dir, make), second.crash(&dir, make), async {
            third.arrive(&dir).await.expect("the cluster is free");
            tokio::task::yield_now().await;
            drop(third);
        });
        assert!(one.is_ok() && two.is_ok());
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert_eq!((first.finish(), second.finish()), (false, true));
        let held = File::open(dir.path().join("cluster.lock")).expect("the lock file");
        assert!(held.try_lock().is_err(), "the cluster is held until the last participant has ended");
        drop((first, second));
        assert!(held.try_lock().is_ok(), "the cluster is free again");
        drop(held);
        // A later check starts its own crash, and does not wait for one that never happens.
        crashes.expect_participants(2);
        let (mut late, never) = (crashes.participant(), crashes.participant());
        drop(never);
        assert!(late.crash(&dir, make).await.is_ok());
        assert_eq!(made.load(Ordering::Relaxed), 2);
        drop((late, crashes));
        dir.remove().expect("removed");
    }
}
