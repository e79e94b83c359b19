//! The order of writes around a change of leader (HA-04). Pure functions.

use harness_testkit::prelude::*;

/// A write that came too early, and the writes around it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    /// The replica that wrote before the old leader's last write.
    pub early: String,
    /// The writes from just before that one to just after the old leader's last.
    pub around: Vec<Entry>,
}

/// How many writes are shown before and after an overlap.
const AROUND: u64 = 5;
/// How many writes are shown at most.
const SHOWN: usize = 12;

/// The first write by another replica that precedes the last one of `leader`, if there is one. `writes` are
/// in the order of their arrival.
pub(super) fn overlap(writes: &[Entry], leader: &str) -> Option<Overlap> {
    let is_leaders = |write: &&Entry| write.credential.as_deref() == Some(leader);
    let last = writes.iter().rfind(is_leaders)?.seq;
    let early = writes.iter().find(|write| !is_leaders(write) && write.seq < last)?;
    let near = |write: &&Entry| write.seq + AROUND > early.seq && write.seq < last + AROUND;
    Some(Overlap {
        early: early.credential.clone().unwrap_or_else(|| "unknown".to_owned()),
        around: writes.iter().filter(near).take(SHOWN).cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes by the replicas that the letters name, one after the other.
    fn writes(by: &str) -> Vec<Entry> {
        let write = |(at, who): (usize, char)| Entry {
            seq: at as u64 + 1,
            at_ms: at as u64 * 10,
            took_ms: Some(1),
            peer: [127, 0, 0, 1].into(),
            credential: (who != '?').then(|| who.to_string()),
            op: Op::LbUpdate,
            write: true,
            resource: None,
            owner: None,
            request: "PUT /lb".into(),
            outcome: Outcome::Answered { status: 200 },
            user_agent: None,
            unknown: None,
            change: None,
        };
        by.chars().enumerate().map(write).collect()
    }

    #[test]
    fn writes_in_turn_do_not_overlap() {
        for by in ["", "aaa", "aaabbb", "bbb", "aaabbbcc"] {
            assert_eq!(overlap(&writes(by), "a"), None, "{by}");
        }
    }

    #[test]
    fn a_write_before_the_old_leaders_last_is_an_overlap() {
        for (by, early) in [("aabab", "b"), ("aacba", "c"), ("ba", "b"), ("a?a", "unknown")] {
            let found = overlap(&writes(by), "a").map(|overlap| overlap.early);
            assert_eq!(found.as_deref(), Some(early), "{by}");
        }
        let found = overlap(&writes(&format!("{}ba{}", "a".repeat(20), "b".repeat(20))), "a");
        let around: Vec<u64> = found.expect("an overlap").around.iter().map(|write| write.seq).collect();
        assert_eq!(around, (17..=26).collect::<Vec<u64>>());
    }
}
