//! The time of one request, in the forms that objects use.

use jiff::Timestamp;
use uuid::Uuid;

/// One moment.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The moment itself.
    pub at: Timestamp,
    /// RFC 3339 with whole seconds.
    pub seconds: String,
    /// RFC 3339 with microseconds.
    pub micros: String,
}

impl Clock {
    /// The current moment.
    #[must_use]
    pub fn now() -> Self {
        Self::at(Timestamp::now())
    }

    /// A given moment.
    #[must_use]
    pub fn at(at: Timestamp) -> Self {
        Self {
            seconds: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            micros: at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            at,
        }
    }

    /// The moment this many seconds later, with whole seconds.
    #[must_use]
    pub fn seconds_later(&self, seconds: i64) -> String {
        let later = self.at.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        Self::at(later).seconds
    }
}

/// A new unique id.
#[must_use]
pub fn unique_id() -> String {
    Uuid::new_v4().to_string()
}

/// Five random characters that complete a generated name.
#[must_use]
pub fn suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // The random bytes of a unique id: its version and variant bits are in bytes 6 and 8.
    let random = Uuid::new_v4();
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).map_or('b', |b| char::from(*b));
    random.as_bytes().iter().take(5).map(letter).collect()
}
