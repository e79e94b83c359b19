//! Ids that callers choose, each of which can be used once.

use std::collections::VecDeque;

/// How many used ids are remembered: more than there can be calls in progress.
const REMEMBERED: usize = 10_000;

/// The reason why an id is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Taken {
    /// There is an object with this id.
    #[error("{0} is there already: an id serves once")]
    Stands(u64),
    /// The object with this id was ended, possibly before it existed.
    #[error("{0} was ended: an id serves once")]
    Ended(u64),
}

/// The ids that were used last.
#[derive(Debug, Default)]
pub(crate) struct UsedIds(VecDeque<u64>);

impl UsedIds {
    /// Whether `id` is available; `stands` says whether there is an object with it.
    pub(crate) fn is_free(&self, id: u64, stands: bool) -> Result<(), Taken> {
        if stands {
            return Err(Taken::Stands(id));
        }
        if self.0.contains(&id) { Err(Taken::Ended(id)) } else { Ok(()) }
    }

    /// Makes `id` unavailable from now on.
    pub(crate) fn use_up(&mut self, id: u64) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }
}
