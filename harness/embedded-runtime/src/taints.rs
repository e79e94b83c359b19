//! Taints and tolerations: which Pod may be on which Node. Pure functions.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// Taint of a Node whose kubelet waits for a cloud controller manager.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Taint of a Node whose kubelet reports that it is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a Node whose kubelet does not report any more.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Taint of a cordoned Node.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Taint of a Node whose network is not set up.
pub const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
/// Taints of Nodes that run out of something.
pub const PRESSURES: [(&str, &str); 3] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
];

/// The effect that keeps new Pods off the Node.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// The effect that keeps new Pods off the Node and evicts those on it.
pub const NO_EXECUTE: &str = "NoExecute";

/// Whether this toleration applies to this taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    if key.is_empty() {
        return exists;
    }
    key == taint.key
        && (exists
            || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default())
}

/// The first taint that keeps a Pod with these tolerations from being placed.
pub fn first_untolerated<'t>(taints: &'t [Taint], tolerations: &[Toleration]) -> Option<&'t Taint> {
    taints
        .iter()
        .filter(|taint| taint.effect == NO_SCHEDULE || taint.effect == NO_EXECUTE)
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// The effect of a Node's NoExecute taints on a Pod there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// It may stay.
    Forever,
    /// It is evicted when it has been tainted for so long; zero: now.
    For(Duration),
}

/// How long a Pod with these tolerations may stay on a Node with these taints.
pub fn may_stay(taints: &[Taint], tolerations: &[Toleration]) -> Stay {
    let mut shortest: Option<Duration> = None;
    for taint in taints.iter().filter(|taint| taint.effect == NO_EXECUTE) {
        let mut tolerated = false;
        for toleration in tolerations.iter().filter(|toleration| tolerates(toleration, taint)) {
            tolerated = true;
            if let Some(seconds) = toleration.toleration_seconds {
                let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                shortest = Some(shortest.map_or(limit, |known| known.min(limit)));
            }
        }
        if !tolerated {
            return Stay::For(Duration::ZERO);
        }
    }
    shortest.map_or(Stay::Forever, Stay::For)
}

/// A taint without a value.
pub fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), value: None, time_added: None }
}

/// Whether Kubernetes considers both the same taint: equal key and effect.
pub fn same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, operator: &str, value: &str, effect: &str, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: Some(key.to_owned()).filter(|text| !text.is_empty()),
            operator: Some(operator.to_owned()).filter(|text| !text.is_empty()),
            value: Some(value.to_owned()).filter(|text| !text.is_empty()),
            effect: Some(effect.to_owned()).filter(|text| !text.is_empty()),
            toleration_seconds: seconds,
        }
    }

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let mut tainted = taint(UNINITIALIZED, NO_SCHEDULE);
        tainted.value = Some("true".to_owned());
        let cases = [
            (toleration(UNINITIALIZED, "Exists", "", "", None), true),
            (toleration(UNINITIALIZED, "Equal", "true", NO_SCHEDULE, None), true),
            (toleration(UNINITIALIZED, "", "true", "", None), true),
            (toleration(UNINITIALIZED, "Equal", "false", "", None), false),
            (toleration(UNINITIALIZED, "Exists", "", NO_EXECUTE, None), false),
            (toleration("", "Exists", "", "", None), true),
            (toleration("", "Equal", "", "", None), false),
            (toleration("other", "Exists", "", "", None), false),
        ];
        for (toleration, expected) in cases {
            assert_eq!(tolerates(&toleration, &tainted), expected, "{toleration:?}");
        }
        assert!(first_untolerated(&[taint("x", "PreferNoSchedule")], &[]).is_none());
    }

    #[test]
    fn the_shortest_toleration_counts_and_an_untolerated_taint_ends_it() {
        let taints = [taint(UNREACHABLE, NO_EXECUTE), taint("x", NO_SCHEDULE)];
        assert_eq!(may_stay(&taints, &[]), Stay::For(Duration::ZERO));
        let five_minutes = toleration(UNREACHABLE, "Exists", "", NO_EXECUTE, Some(300));
        let ten_seconds = toleration(UNREACHABLE, "Exists", "", NO_EXECUTE, Some(10));
        assert_eq!(may_stay(&taints, &[five_minutes, ten_seconds]), Stay::For(Duration::from_secs(10)));
        let for_ever = toleration(UNREACHABLE, "Exists", "", "", None);
        assert_eq!(may_stay(&taints, &[for_ever]), Stay::Forever);
        let negative = toleration(UNREACHABLE, "Exists", "", "", Some(-5));
        assert_eq!(may_stay(&taints, &[negative]), Stay::For(Duration::ZERO));
        assert_eq!(may_stay(&[taint("x", NO_SCHEDULE)], &[]), Stay::Forever);
    }
}
