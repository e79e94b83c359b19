//! Decides whether attempts are paced (SVC-ERR-01, -02). Pure functions.

/// How long a client may repeat one call by itself, and how many calls that makes. A widely used client repeats a call
/// twice, after up to 2 s and up to 4 s. More calls than that are not repeats by a client.
const REPEATS_MS: u64 = 6_000;
const REPEATS: usize = 4;
/// The shortest allowed pause between two attempts. The controller's own pause is 5 s and doubles. A provider
/// may request a fixed pause, which should be 1 s or more; a CCM that repeats every second for ever overloads
/// the cloud.
const PAUSE_MS: u64 = 1_500;

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// When the call arrived, by the cloud's clock.
    pub at_ms: u64,
    /// How often the eligible Nodes had changed when the call was seen. Each change may cause an earlier
    /// attempt (contract area SVC-ERR).
    pub changes: usize,
    /// The same a moment later: the CCM may have seen a change before the harness did.
    pub changes_later: usize,
}

/// Calls that form one attempt: a first one, and the client's repeats of it.
struct Attempt {
    first: Call,
    last_ms: u64,
    calls: usize,
    /// The longest pause between two of its calls.
    longest_ms: u64,
}

fn grouped(calls: &[Call]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for call in calls {
        match attempts.last_mut() {
            Some(one) if one.calls < REPEATS && call.at_ms - one.first.at_ms <= REPEATS_MS => {
                one.longest_ms = one.longest_ms.max(call.at_ms - one.last_ms);
                one.last_ms = call.at_ms;
                one.calls += 1;
            }
            _ => attempts.push(Attempt { first: *call, last_ms: call.at_ms, calls: 1, longest_ms: 0 }),
        }
    }
    attempts
}

/// Groups calls into attempts. If the pauses between two attempts are no longer than those within one, the
/// CCM keeps a steady pace: then each call that looks like a client's repeat counts as an attempt of its own.
pub(super) fn attempts(calls: &[Call]) -> usize {
    let attempts = grouped(calls);
    // Pauses that are meant to be equal differ a little.
    let paced = |at: usize| {
        let longest = attempts[at - 1].longest_ms;
        unprompted(&attempts, at).is_some_and(|pause| pause <= longest + longest / 10)
    };
    let singly = |at: usize| (at > 0 && paced(at)) || (at + 1 < attempts.len() && paced(at + 1));
    (0..attempts.len()).map(|at| if singly(at) { attempts[at].calls } else { 1 }).sum()
}

/// The pause before an attempt, unless a change of Nodes excuses it. A worker may be late: a change before
/// the previous attempt may have caused this one.
fn unprompted(attempts: &[Attempt], at: usize) -> Option<u64> {
    let (before, after) = (&attempts[at - 1], &attempts[at]);
    let known = attempts[at.saturating_sub(2)].first.changes;
    (after.first.changes_later == known).then_some(after.first.at_ms - before.last_ms)
}

/// The first pause between two attempts that was too short without an excuse, and when it began.
pub(super) fn hurry(calls: &[Call]) -> Option<(u64, u64)> {
    let attempts = grouped(calls);
    (1..attempts.len()).find_map(|at| {
        let pause = unprompted(&attempts, at).filter(|pause| *pause < PAUSE_MS)?;
        Some((attempts[at - 1].last_ms, pause))
    })
}

/// How many attempts have certainly failed. The calls are in their order, and some of them failed. A client
/// repeats a call without other calls in between, so whatever follows the first failed call ends an attempt;
/// the other attempts are assumed to be as long.
pub(super) fn failed(calls: impl IntoIterator<Item = bool>) -> usize {
    let calls: Vec<bool> = calls.into_iter().skip_while(|failed| !failed).collect();
    let first = calls.iter().position(|failed| !failed);
    first.map_or(0, |first| calls.iter().filter(|failed| **failed).count() / first)
}

/// How long after the first call another call came before the announced time, without an excuse. Each change
/// of Nodes excuses one call, because it may have been queued when the first call was made.
pub(super) fn too_early(calls: &[Call], announced_ms: u64) -> Option<u64> {
    let first = calls.first()?;
    let early = calls[1..]
        .iter()
        .zip(1..)
        .find(|(call, nth)| call.at_ms < first.at_ms + announced_ms && call.changes_later < *nth);
    early.map(|(call, _)| call.at_ms - first.at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at_ms: u64, changes: usize) -> Call {
        Call { at_ms, changes, changes_later: changes }
    }

    fn quiet(at_ms: &[u64]) -> Vec<Call> {
        at_ms.iter().map(|at_ms| call(*at_ms, 7)).collect()
    }

    #[test]
    fn back_off_is_recognised_despite_repeats_of_the_client() {
        for right in [
            &[][..],
            &[100],
            &[100, 5_100, 15_100, 35_100],
            &[100, 2_100, 4_105, 6_103, 8_110],
            &[0, 300, 900, 1_800, 6_800, 7_100, 7_700, 8_600],
            &[0, 300, 900, 1_800, 3_800, 4_100, 4_700, 5_600, 7_600],
            // The times of a vendor's CCM.
            &[0, 1_349, 4_939, 9_983, 10_853, 12_333],
        ] {
            assert_eq!(hurry(&quiet(right)), None, "{right:?}");
        }
    }

    #[test]
    fn an_announced_wait_is_shortened_only_where_nodes_changed() {
        let calls = |calls: &[(u64, usize)]| -> Vec<Call> {
            calls.iter().map(|(at_ms, changes)| call(*at_ms, *changes)).collect()
        };
        assert_eq!(too_early(&[], 4_000), None);
        assert_eq!(too_early(&calls(&[(100, 0), (4_200, 0)]), 4_000), None);
        assert_eq!(too_early(&calls(&[(100, 0), (1_100, 0)]), 4_000), Some(1_000));
        // A change that was seen together with the first call may have been queued.
        assert_eq!(too_early(&calls(&[(100, 1), (151, 1)]), 4_000), None);
        assert_eq!(too_early(&calls(&[(100, 1), (151, 1), (900, 1)]), 4_000), Some(800));
        // The CCM saw the changes before the harness did.
        let late = |at_ms, changes_later| Call { at_ms, changes: 1, changes_later };
        assert_eq!(too_early(&[late(100, 1), late(151, 3), late(900, 3)], 4_000), None);
        assert_eq!(too_early(&[late(100, 1), late(151, 1), late(900, 1)], 4_000), Some(800));
    }

    #[test]
    fn repeats_of_a_client_are_one_attempt() {
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
        assert_eq!(attempts(&quiet(&each_second)), 30);
    }

    #[test]
    fn a_steady_pace_is_not_a_repeat() {
        let every = |ms: u64| (0..=30_000 / ms).map(|n| n * ms).collect::<Vec<u64>>();
        for (ms, expected) in [(1_500, 21), (2_000, 16), (5_000, 7), (7_000, 5), (10_000, 4)] {
            assert_eq!(attempts(&quiet(&every(ms))), expected, "{ms}");
        }
        // A client's repeats after 2 and 4 s, and the controller's own pauses.
        let right = [0, 2_000, 6_000, 11_000, 13_000, 17_000, 27_000, 29_000];
        assert_eq!(attempts(&quiet(&right)), 3);
        // A change of Nodes causes an earlier second attempt.
        let calls: Vec<Call> =
            [(0, 7), (300, 7), (900, 7), (1_800, 7), (2_000, 8), (2_300, 8), (2_900, 8), (3_800, 8)]
                .map(|(at_ms, changes)| call(at_ms, changes))
                .into();
        assert_eq!(attempts(&calls), 2);
    }

    #[test]
    fn an_attempt_has_failed_once_something_else_is_called() {
        for (calls, expected) in [("", 0), (".", 0), ("..xxx", 0), (".x.", 1), (".x.x", 2)] {
            assert_eq!(failed(calls.chars().map(|call| call == 'x')), expected, "{calls}");
        }
        for (calls, expected) in [(".xxxx.", 1), (".xxxx.xxx", 1), (".xxxx.xxxx.xxxx", 3)] {
            assert_eq!(failed(calls.chars().map(|call| call == 'x')), expected, "{calls}");
        }
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
            calls.iter().map(|(at_ms, changes)| call(*at_ms, *changes)).collect()
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
