//! What a run still has to do when it is ended though it is not down: to write its reports. Whoever comes first does it, the run
//! itself or who ends it.

use std::fmt;
use std::sync::{Arc, Mutex};

/// What is still to be done.
type Word = Box<dyn FnOnce() + Send>;

/// The place for it. Clones are the same place.
#[derive(Clone, Default)]
pub struct LastWord(Arc<Mutex<Option<Word>>>);

impl LastWord {
    /// From now on this is to be done before the process ends.
    pub fn set(&self, word: impl FnOnce() + Send + 'static) {
        *self.0.lock().expect("no holder of this lock panics") = Some(Box::new(word));
    }

    /// What is to be done, for whoever asks first; `None` where it was taken, or there is nothing.
    pub fn take(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.0.lock().expect("no holder of this lock panics").take()
    }
}

impl fmt::Debug for LastWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastWord")
    }
}
