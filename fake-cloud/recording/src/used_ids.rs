//! Ids that callers choose, each of which serves once.

use std::collections::VecDeque;

/// How many ids that were used up are remembered: more than calls can be under way at once.
const REMEMBERED: usize = 10_000;

/// Why an id cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Taken {
    /// There is one of that id.
    #[error("{0} is there already: an id serves once")]
    Stands(u64),
    /// It was ended, perhaps before it was there.
    #[error("{0} was ended: an id serves once")]
    Ended(u64),
}

/// The ids that were used up last.
#[derive(Debug, Default)]
pub(crate) struct UsedIds(VecDeque<u64>);

impl UsedIds {
    /// Whether `id` can be had; `stands` is whether there is one.
    pub(crate) fn is_free(&self, id: u64, stands: bool) -> Result<(), Taken> {
        if stands {
            return Err(Taken::Stands(id));
        }
        if self.0.contains(&id) { Err(Taken::Ended(id)) } else { Ok(()) }
    }

    /// `id` cannot be had from now on.
    pub(crate) fn use_up(&mut self, id: u64) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }
}
