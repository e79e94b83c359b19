//! Whether attempts are paced (SVC-ERR-01, -02). Pure.

/// How long a client may go on repeating one call by itself, and how many calls that makes. One in wide use repeats a call
/// twice, after up to 2 and up to 4 s; who calls more often than that is told by the number.
const REPEATS_MS: u64 = 6_000;
const REPEATS: usize = 4;
/// The least pause between two attempts. The controller's own is 5 s and doubles; a provider may ask for a fixed one, which
/// should be 1 s or more, and who repeats every second for ever hammers the cloud.
const PAUSE_MS: u64 = 1_500;

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// When it arrived, on the cloud's clock.
    pub at_ms: u64,
    /// How often the Nodes that load balancers could use had changed when it was seen. Each change may bring an attempt
    /// forward (contract section 24).
    pub changes: usize,
}

/// Calls that are one attempt: a first one, and what a client repeats of it by itself.
struct Attempt {
    first: Call,
    last_ms: u64,
    calls: usize,
}

fn grouped(calls: &[Call]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for call in calls {
        match attempts.last_mut() {
            Some(one) if one.calls < REPEATS && call.at_ms - one.first.at_ms <= REPEATS_MS => {
                one.last_ms = call.at_ms;
                one.calls += 1;
            }
            _ => attempts.push(Attempt { first: *call, last_ms: call.at_ms, calls: 1 }),
        }
    }
    attempts
}

/// How many attempts these calls are.
pub(super) fn attempts(calls: &[Call]) -> usize {
    grouped(calls).len()
}

/// The pause between two attempts that was too short with nothing to excuse it, and when it began; the first there is.
pub(super) fn hurry(calls: &[Call]) -> Option<(u64, u64)> {
    let attempts = grouped(calls);
    // A worker may be late: what changed before the last attempt may have brought this one forward.
    let known = |at: usize| attempts[at.saturating_sub(2)].first.changes;
    (1..attempts.len()).find_map(|at| {
        let (before, after) = (&attempts[at - 1], &attempts[at]);
        let pause = after.first.at_ms - before.last_ms;
        (pause < PAUSE_MS && after.first.changes == known(at)).then_some((before.last_ms, pause))
    })
}

/// How long after the first call somebody came back before the time that it was told, with nothing to excuse it. Each change
/// of Nodes excuses one call: it may have been waiting when the first one was made.
pub(super) fn too_early(calls: &[Call], told_ms: u64) -> Option<u64> {
    let first = calls.first()?;
    let early = calls[1..]
        .iter()
        .zip(1..)
        .find(|(call, nth)| call.at_ms < first.at_ms + told_ms && call.changes < *nth);
    early.map(|(call, _)| call.at_ms - first.at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(at_ms: &[u64]) -> Vec<Call> {
/// How many attempts have failed for certain, of calls in their order of which some failed: a client that repeats a call by
/// itself does so with no other in between, so whatever comes after the first that failed ends an attempt, and the others
/// are taken to be as long.
pub(super) fn failed(calls: impl IntoIterator<Item = bool>) -> usize {
    let calls: Vec<bool> = calls.into_iter().skip_while(|failed| !failed).collect();
    let first = calls.iter().position(|failed| !failed);
    first.map_or(0, |first| calls.iter().filter(|failed| **failed).count() / first)
}

        at_ms.iter().map(|at_ms| Call { at_ms: *at_ms, changes: 7 }).collect()
    }

    #[test]
    fn who_backs_off_is_in_no_hurry_whatever_its_client_repeats() {
        for right in [
            &[][..],
            &[100],
            &[100, 5_100, 15_100, 35_100],
            &[100, 2_100, 4_105, 6_103, 8_110],
            &[0, 300, 900, 1_800, 6_800, 7_100, 7_700, 8_600],
            &[0, 300, 900, 1_800, 3_800, 4_100, 4_700, 5_600, 7_600],
            // As a vendor's was seen.
            &[0, 1_349, 4_939, 9_983, 10_853, 12_333],
        ] {
            assert_eq!(hurry(&quiet(right)), None, "{right:?}");
        }
    }

    #[test]
    fn who_is_told_to_wait_comes_early_only_where_nodes_changed() {
        let calls = |calls: &[(u64, usize)]| -> Vec<Call> {
            calls.iter().map(|(at_ms, changes)| Call { at_ms: *at_ms, changes: *changes }).collect()
        };
        assert_eq!(too_early(&[], 4_000), None);
        assert_eq!(too_early(&calls(&[(100, 0), (4_200, 0)]), 4_000), None);
        assert_eq!(too_early(&calls(&[(100, 0), (1_100, 0)]), 4_000), Some(1_000));
        // A change that was seen together with the first call may have been waiting.
        assert_eq!(too_early(&calls(&[(100, 1), (151, 1)]), 4_000), None);
        assert_eq!(too_early(&calls(&[(100, 1), (151, 1), (900, 1)]), 4_000), Some(800));
    }

    #[test]
    fn what_a_client_repeats_by_itself_is_one_attempt() {
        for (calls, expected) in [
            (&[][..], 0),
            (&[0], 1),
            (&[0, 1_349, 4_939, 9_983], 2),
            (&[0, 5_000, 15_000], 2),
            (&[0, 300, 900, 1_800, 6_800], 2),
        ] {
            assert_eq!(attempts(&quiet(calls)), expected, "{calls:?}");
        }
        let each_second: Vec<u64> = (0..30).map(|n| n * 1_000).collect();
        assert_eq!(attempts(&quiet(&each_second)), 8);
    }

    #[test]
    fn a_loop_is_a_hurry() {
        let every = |ms: u64| (0..20).map(|n| n * ms).collect::<Vec<u64>>();
        assert_eq!(hurry(&quiet(&every(10))), Some((30, 10)));
        assert_eq!(hurry(&quiet(&every(200))), Some((600, 200)));
        assert_eq!(hurry(&quiet(&every(1_000))), Some((3_000, 1_000)));
    }

    #[test]
    fn a_change_of_nodes_excuses_the_attempts_after_it_and_no_others() {
        let with = |calls: &[(u64, usize)]| -> Vec<Call> {
            calls.iter().map(|(at_ms, changes)| Call { at_ms: *at_ms, changes: *changes }).collect()
        };
        assert_eq!(hurry(&with(&[(0, 1), (2_500, 1), (3_000, 2), (4_900, 2), (5_200, 3)])), None);
        let after = [
            (0, 1),
            (6_100, 2),
            (12_200, 2),
            (18_300, 2),
            (18_500, 2),
            (18_700, 2),
            (18_900, 2),
            (19_900, 2),
        ];
        assert_eq!(hurry(&with(&after)), Some((18_900, 1_000)));
    }
}
