//! Faults that a call has to meet and none has met: a check that passes although its fault had no effect has shown nothing.

use std::sync::{Mutex, MutexGuard};

/// A fault that no call has met so far.
#[derive(Clone, Debug)]
pub(super) struct One {
    pub(super) name: String,
    pub(super) ids: Vec<u64>,
    /// Whether it was cleared before any call met it.
    pub(super) is_over: bool,
}

/// The faults of a check that no call has met so far.
#[derive(Debug, Default)]
pub(super) struct Unmet(Mutex<Vec<One>>);

impl Unmet {
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<One>> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// A fault was injected.
    pub(super) fn add(&self, name: String, ids: &[u64]) {
        self.all().push(One { name, ids: ids.to_vec(), is_over: false });
    }

    /// Whether no call has met it so far.
    pub(super) fn has(&self, ids: &[u64]) -> bool {
        self.all().iter().any(|one| one.ids == ids)
    }

    /// A call has met it.
    pub(super) fn is_met(&self, ids: &[u64]) {
        self.all().retain(|one| one.ids != ids);
    }

    /// It is cleared, and no call has met it.
    pub(super) fn stays(&self, ids: &[u64]) {
        self.all().iter_mut().filter(|one| one.ids == ids).for_each(|one| one.is_over = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_unmet_until_a_call_meets_it() {
        let unmet = Unmet::default();
        unmet.add("'answers 503' for the Service web".to_owned(), &[1, 2]);
        unmet.add("'answers 500' for the machine a".to_owned(), &[3]);
        unmet.is_met(&[1, 2]);
        unmet.stays(&[3]);
        assert!(!unmet.has(&[1, 2]));
        assert!(unmet.has(&[3]) && unmet.all()[0].is_over);
    }
}
