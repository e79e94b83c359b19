//! Work queues: keys to process, each at most once at a time, now or later.
//!
//! This is the only place in the crate that waits for time to pass. A queue is both the work queue of a
//! controller and the timer of thousands of simulated kubelets: keys that are due are in one ordered set, and
//! a single timer waits for the first of them.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::tasks::Tasks;

/// The result of processing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing is left to do until something changes.
    Done,
    /// Process the key again after this time, or earlier if something changes.
    After(Duration),
}

/// The result of a worker: an error is retried with back-off.
pub type Outcome = Result<Next, kube::Error>;

/// The first pause after a failure; it doubles with each further failure in a row.
const FIRST_RETRY: Duration = Duration::from_millis(10);
/// The longest pause between two tries.
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// Keys that wait to be processed.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    wake: Notify,
}

struct State<T> {
    ready: VecDeque<T>,
    queued: HashSet<T>,
    delayed: BTreeSet<(Instant, T)>,
    due: HashMap<T, Instant>,
    busy: HashSet<T>,
    again: HashSet<T>,
    failures: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash + Ord + Debug + Send + 'static> Queue<T> {
    /// An empty queue.
    pub fn new() -> Arc<Queue<T>> {
        Arc::new(Queue {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                queued: HashSet::new(),
                delayed: BTreeSet::new(),
                due: HashMap::new(),
                busy: HashSet::new(),
                again: HashSet::new(),
                failures: HashMap::new(),
            }),
            wake: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A poisoned queue still has a usable list of keys: every update only moves a few keys.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules the key for now.
    pub fn add(&self, key: T) {
        self.lock().make_ready(key);
        self.wake.notify_one();
    }

    /// Schedules the key after this time, unless it is already due earlier.
    pub fn add_after(&self, key: T, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let at = Instant::now() + delay;
        {
            let mut state = self.lock();
            match state.due.get(&key) {
                Some(earlier) if *earlier <= at => return,
                Some(later) => {
                    let later = *later;
                    state.delayed.remove(&(later, key.clone()));
                }
                None => {}
            }
            state.due.insert(key.clone(), at);
            state.delayed.insert((at, key));
        }
        self.wake.notify_one();
    }

    /// Removes the key with its timer and its failures.
    pub fn forget(&self, key: &T) {
        let mut state = self.lock();
        if let Some(at) = state.due.remove(key) {
            state.delayed.remove(&(at, key.clone()));
        }
        state.failures.remove(key);
    }

    /// Waits for the next key. It counts as being processed until [`Queue::done`].
    async fn next(&self) -> T {
        loop {
            let first = {
                let mut state = self.lock();
                state.move_due(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    state.queued.remove(&key);
                    state.busy.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.wake.notify_one();
                    }
                    return key;
                }
                state.delayed.first().map(|(at, _)| *at)
            };
            match first {
                None => self.wake.notified().await,
                Some(at) => {
                    tokio::select! {
                        () = self.wake.notified() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    fn done(&self, key: T, outcome: &Outcome) {
        let mut state = self.lock();
        state.busy.remove(&key);
        if state.again.remove(&key) {
            state.make_ready(key.clone());
            self.wake.notify_one();
        }
        let delay = match outcome {
            Ok(next) => {
                state.failures.remove(&key);
                match next {
                    Next::Done => return,
                    Next::After(delay) => *delay,
                }
            }
            Err(_) => {
                let failures = state.failures.entry(key.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                retry_pause(*failures)
            }
        };
        drop(state);
        self.add_after(key, delay);
    }

    /// Starts workers that process keys until the tasks are stopped.
    pub fn spawn<F, Fut>(self: &Arc<Self>, tasks: &Tasks, name: &'static str, workers: usize, look: F)
    where
        T: Sync,
        F: Fn(T) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        for _ in 0..workers {
            let (queue, look) = (self.clone(), look.clone());
            tasks.spawn(async move {
                loop {
                    let key = queue.next().await;
                    let outcome = look(key.clone()).await;
                    if let Err(error) = &outcome {
                        tracing::debug!(controller = name, key = ?key, %error, "will be tried again");
                    }
                    queue.done(key, &outcome);
                }
            });
        }
    }
}

impl<T: Clone + Eq + Hash + Ord> State<T> {
    fn make_ready(&mut self, key: T) {
        if let Some(at) = self.due.remove(&key) {
            self.delayed.remove(&(at, key.clone()));
        }
        if self.busy.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn move_due(&mut self, now: Instant) {
        while let Some((at, _)) = self.delayed.first()
            && *at <= now
            && let Some((_, key)) = self.delayed.pop_first()
        {
            self.due.remove(&key);
            self.make_ready(key);
        }
    }
}

/// The pause after this many failures in a row.
fn retry_pause(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(LONGEST_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_queued_once_and_delays_keep_the_earliest() {
        let queue = Queue::<u32>::new();
        queue.add(1);
        queue.add(1);
        queue.add_after(2, Duration::from_secs(9));
        queue.add_after(2, Duration::from_secs(3));
        queue.add_after(2, Duration::from_secs(5));
        let started = Instant::now();
        assert_eq!(queue.next().await, 1);
        queue.done(1, &Ok(Next::Done));
        assert_eq!(queue.next().await, 2);
        assert_eq!(started.elapsed().as_secs(), 3);
        queue.done(2, &Ok(Next::Done));
        let nothing = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(nothing.is_err(), "no key was left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_changes_while_it_is_looked_at_is_looked_at_again() {
        let queue = Queue::<u32>::new();
        queue.add(7);
        let key = queue.next().await;
        queue.add(7);
        assert!(tokio::time::timeout(Duration::from_secs(1), queue.next()).await.is_err(), "still busy");
        queue.done(key, &Ok(Next::Done));
        assert_eq!(queue.next().await, 7);
    }

    #[test]
    fn pauses_grow_up_to_a_limit() {
        assert_eq!(retry_pause(1), FIRST_RETRY);
        assert_eq!(retry_pause(3), FIRST_RETRY * 4);
        assert_eq!(retry_pause(u32::MAX), LONGEST_RETRY);
    }
}
