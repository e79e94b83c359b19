//! The flags of a framework CCM that set its pace, and the lease timing that follows from them.

use super::duration::in_words;
use super::formats::Span;
use super::schema::ordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The pace of leader election. Sound when `duration > renew_deadline > 1.2 * retry_period`, which framework CCMs
/// check at start (contract section 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct LeaseTiming {
    /// How long other replicas do not take over a Lease after it was renewed.
    #[serde(with = "in_words")]
    #[schemars(with = "Span")]
    pub duration: Duration,
    /// How long a leader tries to renew its Lease before it exits.
    #[serde(with = "in_words")]
    #[schemars(with = "Span")]
    pub renew_deadline: Duration,
    /// The pause between two attempts. A standby multiplies it by a random factor of up to 2.2.
    #[serde(with = "in_words")]
    #[schemars(with = "Span")]
    pub retry_period: Duration,
}

impl Default for LeaseTiming {
    fn default() -> Self {
        LeaseTiming::DEFAULT
    }
}

impl LeaseTiming {
    /// The defaults of framework CCMs: 15 s, 10 s, 2 s (contract section 21).
    pub const DEFAULT: LeaseTiming = LeaseTiming {
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    /// The timing with [`FAST_FLAGS`]: 6 s, 4 s, 1 s (contract section 21).
    pub const FAST: LeaseTiming = LeaseTiming {
        duration: Duration::from_secs(6),
        renew_deadline: Duration::from_secs(4),
        retry_period: Duration::from_secs(1),
    };

    /// The longest pause of a standby between two looks at the lease: the retry period and its jitter of 120 %.
    pub fn longest_poll(&self) -> Duration {
        self.retry_period.mul_f64(2.2)
    }

    /// The reason why a CCM would reject these values, if it would.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.duration <= self.renew_deadline {
            Some("'duration' must be longer than 'renewDeadline'")
        } else if self.renew_deadline <= self.retry_period.mul_f64(1.2) {
            Some("'renewDeadline' must be longer than 1.2 times 'retryPeriod'")
        } else {
            None
        }
    }
}

/// The time between two refreshes of all Nodes with [`FAST_FLAGS`].
pub(crate) const FAST_STATUS_PERIOD: Duration = Duration::from_secs(10);

/// The speed-up flags of contract section 21: name without dashes, value.
pub const FAST_FLAGS: &[(&str, &str)] = &[
    ("leader-elect-lease-duration", "6s"),
    ("leader-elect-renew-deadline", "4s"),
    ("leader-elect-retry-period", "1s"),
    ("node-status-update-frequency", "10s"),
];

/// The flag for the time between two reconciliations of routes, and its value with fast timing: name without
/// dashes, value.
pub(crate) const FAST_ROUTES: (&str, &str) = ("route-reconciliation-period", "2s");

/// The time between two reconciliations of routes with [`FAST_ROUTES`].
pub(crate) const FAST_ROUTE_PERIOD: Duration = Duration::from_secs(2);

/// The flags that every CCM of the framework accepts (contract section 17), names without dashes. In the
/// accepted flags of a profile, `framework` stands for these.
pub(crate) const FRAMEWORK_FLAGS: &[&str] = &[
    "allocate-node-cidrs",
    "authentication-kubeconfig",
    "authentication-skip-lookup",
    "authentication-tolerate-lookup-failure",
    "authorization-always-allow-paths",
    "authorization-kubeconfig",
    "bind-address",
    "cert-dir",
    "cidr-allocator-type",
    "cloud-config",
    "cloud-provider",
    "cluster-cidr",
    "cluster-name",
    "concurrent-node-status-updates",
    "concurrent-node-syncs",
    "concurrent-service-syncs",
    "configure-cloud-routes",
    "contention-profiling",
    "controller-start-interval",
    "controllers",
    "enable-leader-migration",
    "feature-gates",
    "http2-max-streams-per-connection",
    "kube-api-burst",
    "kube-api-content-type",
    "kube-api-qps",
    "kubeconfig",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "leader-migration-config",
    "logging-format",
    "master",
    "min-resync-period",
    "node-monitor-period",
    "node-status-update-frequency",
    "profiling",
    "route-reconciliation-period",
    "secure-port",
    "use-service-account-credentials",
    "v",
    "webhook-bind-address",
    "webhook-secure-port",
    "webhooks",
];

#[cfg(test)]
mod tests {
    use super::{
        FAST_FLAGS, FAST_ROUTE_PERIOD, FAST_ROUTES, FAST_STATUS_PERIOD, FRAMEWORK_FLAGS, LeaseTiming,
    };
    use crate::HumanDuration;
    use std::time::Duration;

    #[test]
    fn fast_flags_say_what_the_fast_timing_says() {
        let timing = [
            LeaseTiming::FAST.duration,
            LeaseTiming::FAST.renew_deadline,
            LeaseTiming::FAST.retry_period,
            FAST_STATUS_PERIOD,
            FAST_ROUTE_PERIOD,
        ];
        for ((name, value), expected) in FAST_FLAGS.iter().chain([&FAST_ROUTES]).zip(timing) {
            assert_eq!(HumanDuration(expected).to_string(), *value, "--{name}");
            assert!(FRAMEWORK_FLAGS.contains(name), "--{name}");
        }
        assert!(FRAMEWORK_FLAGS.is_sorted());
    }

    #[test]
    fn both_timings_are_sound() {
        assert_eq!(LeaseTiming::DEFAULT.fault(), None);
        assert_eq!(LeaseTiming::FAST.fault(), None);
        let tight = LeaseTiming { retry_period: Duration::from_secs(9), ..LeaseTiming::DEFAULT };
        assert_eq!(tight.fault(), Some("'renewDeadline' must be longer than 1.2 times 'retryPeriod'"));
    }
}
