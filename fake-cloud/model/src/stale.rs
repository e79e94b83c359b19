//! Lists that may be older than the cloud (contract CLOUD-08).

use fake_cloud_driver::{Auxiliary, Instance, LoadBalancer, Route};
use std::time::Duration;

/// The last state that lists of each kind showed.
#[derive(Debug, Default)]
pub(super) struct LastListed {
    pub(super) instances: Snapshot<Instance>,
    pub(super) load_balancers: Snapshot<LoadBalancer>,
    pub(super) auxiliaries: Snapshot<Auxiliary>,
    pub(super) routes: Snapshot<Route>,
}

/// A list as it was at some time.
#[derive(Debug)]
pub(super) struct Snapshot<T>(Option<(Duration, Vec<T>)>);

impl<T> Default for Snapshot<T> {
    fn default() -> Snapshot<T> {
        Snapshot(None)
    }
}

impl<T: Clone> Snapshot<T> {
    /// The list as it was at most `max_age` ago; made again if it is older. Always the current one if
    /// `max_age` is zero.
    pub(super) fn view<'a, I>(
        &'a mut self,
        now: Duration,
        max_age: Duration,
        fresh: impl FnOnce() -> I,
    ) -> Vec<&'a T>
    where
        I: Iterator<Item = &'a T>,
    {
        if max_age.is_zero() {
            self.0 = None;
            return fresh().collect();
        }
        if self.0.as_ref().is_none_or(|(taken, _)| now.saturating_sub(*taken) >= max_age) {
            self.0 = Some((now, fresh().cloned().collect()));
        }
        self.0.iter().flat_map(|(_, list)| list).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_never_older_than_allowed() {
        let second = Duration::from_secs;
        let (old, new) = ([1, 2], [1, 2, 3]);
        let mut snapshot = Snapshot::default();
        assert_eq!(snapshot.view(second(1), second(10), || old.iter()).len(), 2);
        assert_eq!(snapshot.view(second(10), second(10), || new.iter()).len(), 2);
        assert_eq!(snapshot.view(second(11), second(10), || new.iter()).len(), 3);
        assert_eq!(snapshot.view(second(11), Duration::ZERO, || old.iter()).len(), 2);
    }
}
