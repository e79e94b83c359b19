//! How a Deployment's replicas move from old ReplicaSets to the new one. Pure functions.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// How a percentage is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    Up,
    Down,
}

/// Converts a number or a percentage of the replicas to a number; any other value counts as zero.
pub(super) fn resolve(value: Option<&IntOrString>, replicas: i32, round: Round) -> i32 {
    match value {
        Some(IntOrString::Int(number)) => (*number).max(0),
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.strip_suffix('%').and_then(|number| number.parse().ok()).unwrap_or(0);
            let product = percent.saturating_mul(i64::from(replicas));
            let share = match round {
                Round::Up => product.saturating_add(99) / 100,
                Round::Down => product / 100,
            };
            i32::try_from(share.max(0)).unwrap_or(i32::MAX)
        }
        None => 0,
    }
}

/// One ReplicaSet in a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of replicas in its spec.
    pub(super) wanted: i32,
    /// How many of its Pods are available.
    pub(super) available: i32,
}

/// The limits of a rolling update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) replicas: i32,
    pub(super) surge: i32,
    pub(super) unavailable: i32,
}

/// The next number of replicas for each ReplicaSet: for the new one, and for the old ones in their order
/// (oldest first).
pub(super) fn rolling(limits: Limits, new: Part, old: &[Part]) -> (i32, Vec<i32>) {
    // One of the two must be possible, or nothing would ever change.
    let unavailable = if limits.surge == 0 && limits.unavailable == 0 { 1 } else { limits.unavailable };
    let unavailable = unavailable.min(limits.replicas.max(0));
    let old_total: i32 = old.iter().map(|part| part.wanted).fold(0, i32::saturating_add);
    let room = limits.replicas.saturating_add(limits.surge).saturating_sub(old_total);
    let next_new = if new.wanted >= limits.replicas {
        limits.replicas
    } else {
        new.wanted.max(room.min(limits.replicas)).max(0)
    };
    let needed = limits.replicas.saturating_sub(unavailable);
    let available: i32 =
        old.iter().chain([&new]).map(|part| part.available.min(part.wanted)).fold(0, i32::saturating_add);
    // Pods that are not available can be removed without a loss.
    let mut next_old: Vec<i32> = Vec::with_capacity(old.len());
    let new_unavailable = new.wanted.saturating_sub(new.available.min(new.wanted));
    let total = old_total.saturating_add(new.wanted);
    let mut may_go = total.saturating_sub(needed).saturating_sub(new_unavailable).max(0);
    for part in old {
        let unhealthy = part.wanted.saturating_sub(part.available).max(0).min(may_go);
        may_go -= unhealthy;
        next_old.push(part.wanted - unhealthy);
    }
    let mut spare = available.saturating_sub(needed).max(0).min(may_go);
    for next in &mut next_old {
        let healthy = spare.min(*next);
        spare -= healthy;
        *next -= healthy;
    }
    (next_new, next_old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_asked() {
        let percent = IntOrString::String("25%".to_owned());
        assert_eq!(resolve(Some(&percent), 3, Round::Up), 1);
        assert_eq!(resolve(Some(&percent), 3, Round::Down), 0);
        assert_eq!(resolve(Some(&IntOrString::String("x".to_owned())), 3, Round::Up), 0);
        assert_eq!(resolve(Some(&IntOrString::Int(-1)), 3, Round::Up), 0);
    }

    /// Simulates a rollout in which every new Pod becomes available; returns the fewest available and the
    /// most wanted Pods.
    fn play(limits: Limits, mut old: Part) -> (i32, i32) {
        let mut new = Part { wanted: 0, available: 0 };
        let (mut fewest, mut most) = (old.available, old.wanted);
        for _ in 0..100 {
            let (next_new, next_old) = rolling(limits, new, &[old]);
            new.wanted = next_new;
            old.wanted = next_old[0];
            old.available = old.available.min(old.wanted);
            fewest = fewest.min(new.available + old.available);
            most = most.max(new.wanted + old.wanted);
            new.available = new.wanted;
            if new.wanted == limits.replicas && old.wanted == 0 {
                return (fewest, most);
            }
        }
        panic!("the rollout never ended: {new:?} {old:?}");
    }

    #[test]
    fn a_rolling_update_keeps_its_limits_and_ends() {
        for replicas in 1..8 {
            for surge in 0..3 {
                for unavailable in 0..3 {
                    if surge == 0 && unavailable == 0 {
                        continue;
                    }
                    let limits = Limits { replicas, surge, unavailable };
                    let (fewest, most) = play(limits, Part { wanted: replicas, available: replicas });
                    assert!(fewest >= replicas - unavailable.min(replicas), "{limits:?}: {fewest}");
                    assert!(most <= replicas + surge, "{limits:?}: {most}");
                }
            }
        }
    }

    #[test]
    fn broken_old_pods_make_room_at_once() {
        let limits = Limits { replicas: 1, surge: 1, unavailable: 0 };
        let broken = Part { wanted: 1, available: 0 };
        // No new Pod is available yet: the broken one stays, because it still counts as one of the required ones.
        assert_eq!(rolling(limits, Part { wanted: 0, available: 0 }, &[broken]), (1, vec![1]));
        assert_eq!(rolling(limits, Part { wanted: 1, available: 1 }, &[broken]), (1, vec![0]));
    }
}
