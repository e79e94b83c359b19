//! Files that change with every round, such as a log of `dev` itself in a folder that it watches: their changes mean nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So soon after the beginning of a round no user has changed a file because of it.
const SOON: Duration = Duration::from_secs(3);
/// So many rounds in a row are not ended so soon by the same file by accident.
const OFTEN: u32 = 3;

/// Which files are known to change with every round.
#[derive(Debug, Default)]
pub(super) struct Noise {
    ignored: BTreeSet<PathBuf>,
    /// The file that ended the last rounds soon after they had begun, and how many.
    last: Option<(PathBuf, u32)>,
}

impl Noise {
    /// Whether a change of this file counts.
    pub(super) fn counts(&self, path: &Path) -> bool {
        !self.ignored.contains(path)
    }

    /// A change has ended a round so long after its beginning. Returns whether changes of this file no longer count.
    pub(super) fn ended_a_round(&mut self, path: &Path, after: Duration) -> bool {
        if after > SOON {
            self.last = None;
            return false;
        }
        let rounds = match self.last.take() {
            Some((last, rounds)) if last == path => rounds + 1,
            _ => 1,
        };
        if rounds == OFTEN {
            return self.ignored.insert(path.to_owned());
        }
        self.last = Some((path.to_owned(), rounds));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_ends_three_rounds_at_once_is_noise() {
        let mut noise = Noise::default();
        let (log, code, soon) =
            (Path::new("/src/dev.log"), Path::new("/src/main.go"), Duration::from_millis(400));
        assert!(!noise.ended_a_round(log, soon) && !noise.ended_a_round(log, soon));
        assert!(!noise.ended_a_round(code, soon), "another file");
        assert!(!noise.ended_a_round(log, soon) && !noise.ended_a_round(log, soon) && noise.counts(log));
        assert!(noise.ended_a_round(log, soon) && !noise.counts(log) && noise.counts(code));
        for _ in 0..5 {
            assert!(!noise.ended_a_round(code, Duration::from_secs(20)), "a user edits it again and again");
        }
    }
}
