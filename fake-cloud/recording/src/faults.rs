//! The active faults, and which of them hits a call. Pure functions; the server implements the effects.

use crate::used_ids::UsedIds;
use fake_cloud_driver::{ActiveFault, Effect, Fault, Inventory, Match};
use std::sync::Arc;
use std::time::Duration;

pub use crate::used_ids::Taken;

/// How many faults that have ended can still be read.
const SPENT_LIMIT: usize = 1000;

/// The reason why a fault is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The status is not an error.
    #[error("status {0} is not an error: 400 to 599 are")]
    Status(u16),
    /// It would end before it begins.
    #[error("{0} must be at least 1, or absent for no limit")]
    Never(&'static str),
    /// Its id was used before.
    #[error("fault {0}")]
    Taken(#[from] Taken),
}

/// All faults that were not cleared, in the order of their activation.
#[derive(Debug, Default)]
pub struct Faults {
    ended: UsedIds,
    list: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    id: u64,
    fault: Fault,
    hits: u64,
    /// When it ends.
    until: Option<Duration>,
    /// The inventory from when it was activated, for lists that show it.
    then: Option<Arc<Inventory>>,
}

/// A fault that hits a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The fault's id.
    pub id: u64,
    /// The effect.
    pub effect: Effect,
    /// The inventory from when it was activated; only for [`Effect::Stale`].
    pub then: Option<Arc<Inventory>>,
}

impl Slot {
    fn in_force(&self, now: Duration) -> bool {
        self.fault.calls.is_none_or(|calls| self.hits < calls) && self.until.is_none_or(|until| now < until)
    }

    fn status(&self, now: Duration) -> ActiveFault {
        ActiveFault { id: self.id, fault: self.fault.clone(), hits: self.hits, in_force: self.in_force(now) }
    }
}

impl Faults {
    /// Whether a fault may get this id. An id can be used once. So an ended fault stays ended, even if the
    /// call that activates it is carried out after the one that ends it.
    ///
    /// # Errors
    /// There is a fault with this id, or there was one.
    pub fn is_free(&self, id: u64) -> Result<(), Taken> {
        let stands = self.list.iter().any(|slot| slot.id == id);
        self.ended.is_free(id, stands)
    }

    /// Activates a fault. `inventory` is called for a fault that has to remember the current state.
    ///
    /// # Errors
    /// It could never hit, or its id is used.
    pub fn inject(
        &mut self,
        id: u64,
        fault: Fault,
        now: Duration,
        inventory: impl FnOnce() -> Inventory,
    ) -> Result<ActiveFault, FaultError> {
        if let Effect::Status { status, .. } = fault.effect
            && !(400..=599).contains(&status)
        {
            return Err(FaultError::Status(status));
        }
        if fault.calls == Some(0) {
            return Err(FaultError::Never("calls"));
        }
        if fault.for_ms == Some(0) {
            return Err(FaultError::Never("for_ms"));
        }
        if fault.matching.from_page == Some(0) {
            return Err(FaultError::Never("from_page"));
        }
        self.is_free(id)?;
        self.forget_spent(now);
        let then = (fault.effect == Effect::Stale).then(|| Arc::new(inventory()));
        let until = fault.for_ms.map(|ms| now.saturating_add(Duration::from_millis(ms)));
        let slot = Slot { id, fault, hits: 0, until, then };
        let status = slot.status(now);
        self.list.push(slot);
        Ok(status)
    }

    /// The first active fault that applies to a call; counts the hit.
    pub fn hit(&mut self, now: Duration, applies: impl Fn(&Match) -> bool) -> Option<Hit> {
        let slot = self.list.iter_mut().find(|slot| slot.in_force(now) && applies(&slot.fault.matching))?;
        slot.hits += 1;
        Some(Hit { id: slot.id, effect: slot.fault.effect.clone(), then: slot.then.clone() })
    }

    /// One fault.
    pub fn find(&self, id: u64, now: Duration) -> Option<ActiveFault> {
        self.list.iter().find(|slot| slot.id == id).map(|slot| slot.status(now))
    }

    /// All faults.
    pub fn all(&self, now: Duration) -> Vec<ActiveFault> {
        self.list.iter().map(|slot| slot.status(now)).collect()
    }

    /// Ends a fault and removes it; returns whether there was one. Its id cannot be used again.
    pub fn clear(&mut self, id: u64) -> bool {
        self.ended.use_up(id);
        let before = self.list.len();
        self.list.retain(|slot| slot.id != id);
        self.list.len() < before
    }

    /// Ends all faults and removes them.
    pub fn clear_all(&mut self) {
        self.list.drain(..).for_each(|slot| self.ended.use_up(slot.id));
    }

    fn forget_spent(&mut self, now: Duration) {
        let spent = self.list.iter().filter(|slot| !slot.in_force(now)).count();
        let mut too_many = spent.saturating_sub(SPENT_LIMIT);
        self.list.retain(|slot| {
            let forget = too_many > 0 && !slot.in_force(now);
            too_many -= usize::from(forget);
            !forget
        });
    }
}

/// Waits, for a call that is slow or never answered.
#[expect(clippy::disallowed_methods, reason = "a slow cloud is one that lets time pass")]
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_cloud_driver::Op;

    fn fault(op: Op, calls: Option<u64>, for_ms: Option<u64>) -> Fault {
        let effect = Effect::Status { status: 503, retry_after_s: None };
        Fault { matching: Match { ops: vec![op], ..Match::default() }, effect, calls, for_ms }
    }

    fn about(op: Op) -> impl Fn(&Match) -> bool {
        move |matching| matching.ops.contains(&op)
    }

    const T0: Duration = Duration::ZERO;

    #[test]
    fn the_first_that_applies_wins_until_it_is_used_up() {
        let mut faults = Faults::default();
        let first = faults.inject(1, fault(Op::LbGet, Some(2), None), T0, Inventory::default).expect("valid");
        let second = faults.inject(2, fault(Op::LbGet, None, None), T0, Inventory::default).expect("valid");
        let hit = |faults: &mut Faults| faults.hit(T0, about(Op::LbGet)).map(|hit| hit.id);
        assert_eq!(
            [hit(&mut faults), hit(&mut faults), hit(&mut faults)],
            [Some(first.id), Some(first.id), Some(second.id)]
        );
        assert_eq!(faults.hit(T0, about(Op::LbList)), None);
        let spent = faults.find(first.id, T0).expect("readable");
        assert_eq!((spent.hits, spent.in_force), (2, false));
        assert!(faults.clear(first.id) && !faults.clear(first.id));
        assert_eq!(faults.find(first.id, T0), None);
    }

    #[test]
    fn a_fault_ends_with_its_time() {
        let mut faults = Faults::default();
        let start = Duration::from_secs(5);
        faults.inject(3, fault(Op::LbGet, None, Some(100)), start, Inventory::default).expect("valid");
        let at = |ms| start + Duration::from_millis(ms);
        assert!(faults.hit(at(99), about(Op::LbGet)).is_some());
        assert!(faults.hit(at(100), about(Op::LbGet)).is_none());
        assert!(!faults.all(at(100))[0].in_force);
    }

    #[test]
    fn limits_at_the_end_of_the_range_mean_unlimited() {
        let mut faults = Faults::default();
        faults
            .inject(1, fault(Op::LbGet, Some(u64::MAX), Some(u64::MAX)), Duration::MAX, Inventory::default)
            .expect("valid");
        assert!(faults.hit(T0, about(Op::LbGet)).is_some());
    }

    #[test]
    fn faults_that_can_never_hit_are_refused() {
        let mut faults = Faults::default();
        assert_eq!(
            faults.inject(4, fault(Op::LbGet, Some(0), None), T0, Inventory::default),
            Err(FaultError::Never("calls"))
        );
        assert_eq!(
            faults.inject(5, fault(Op::LbGet, None, Some(0)), T0, Inventory::default),
            Err(FaultError::Never("for_ms"))
        );
        let mut no_page = fault(Op::LbList, None, None);
        no_page.matching.from_page = Some(0);
        assert_eq!(faults.inject(6, no_page, T0, Inventory::default), Err(FaultError::Never("from_page")));
        let mut fine = fault(Op::LbGet, None, None);
        fine.effect = Effect::Status { status: 200, retry_after_s: None };
        assert_eq!(faults.inject(7, fine, T0, Inventory::default), Err(FaultError::Status(200)));
    }

    #[test]
    fn only_a_stale_list_remembers_what_there_was() {
        let mut faults = Faults::default();
        let mut stale = fault(Op::LbList, None, None);
        stale.effect = Effect::Stale;
        faults.inject(8, stale, T0, Inventory::default).expect("valid");
        let unasked = || unreachable!("the fault needs no such fact");
        faults.inject(9, fault(Op::LbGet, None, None), T0, unasked).expect("valid");
        let then = |hit: Option<Hit>| hit.expect("a hit").then;
        assert!(then(faults.hit(T0, about(Op::LbList))).is_some());
        assert!(then(faults.hit(T0, about(Op::LbGet))).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut faults = Faults::default();
        for id in 0..SPENT_LIMIT as u64 + 10 {
            faults.inject(id, fault(Op::LbGet, Some(1), None), T0, Inventory::default).expect("valid");
            assert!(faults.hit(T0, about(Op::LbGet)).is_some());
        }
        let lasting =
            faults.inject(u64::MAX, fault(Op::LbGet, None, None), T0, Inventory::default).expect("valid");
        assert!(faults.list.len() <= SPENT_LIMIT + 1);
        assert!(faults.find(lasting.id, T0).is_some());
    }

    #[test]
    fn an_ended_fault_stays_ended_whichever_call_comes_first() {
        let mut faults = Faults::default();
        let inject = |faults: &mut Faults, id| {
            faults.inject(id, fault(Op::LbGet, None, None), T0, Inventory::default).map(|fault| fault.id)
        };
        assert!(!faults.clear(7), "it is not there yet");
        assert_eq!(inject(&mut faults, 7), Err(FaultError::Taken(Taken::Ended(7))));
        assert_eq!(inject(&mut faults, 8), Ok(8));
        assert_eq!(inject(&mut faults, 8), Err(FaultError::Taken(Taken::Stands(8))));
        faults.clear_all();
        assert_eq!(inject(&mut faults, 8), Err(FaultError::Taken(Taken::Ended(8))));
        assert!(faults.hit(T0, about(Op::LbGet)).is_none());
    }
}
