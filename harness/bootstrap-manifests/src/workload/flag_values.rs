//! Values of flags with which a program of the framework ends at its start (`k8s.io/cloud-provider` options, `Validate`).

use super::duration::seconds;
use super::hindrance::Hindrance;
use super::kind::Role;
use super::pods::Workload;
use super::refs::Stage;

/// Flags with a duration.
const DURATIONS: &[&str] = &[
    "controller-start-interval",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
    "min-resync-period",
    "node-monitor-period",
    "node-status-update-frequency",
    "node-sync-period",
    "route-reconciliation-period",
];

/// Flags with a whole number.
const NUMBERS: &[&str] = &[
    "concurrent-node-status-updates",
    "concurrent-node-syncs",
    "concurrent-service-syncs",
    "kube-api-burst",
    "secure-port",
    "webhook-secure-port",
];

/// The port of webhooks, if no flag sets another one. It is reserved even if there are none.
const OF_WEBHOOKS: i64 = 10260;

/// The longest pause between the starts of controllers with which a boot still goes on, in seconds.
const LONGEST_WAIT: f64 = 120.0;

/// Whether a value is known: not one with a variable, a placeholder or what a shell replaces.
pub fn is_plain(value: &str) -> bool {
    !value.contains(['$', '`', '(', ')', '|', '&', '<', '>', '{', '@', '"', '\''])
}

/// The first flag whose value ends the program.
pub(super) fn refused(workload: &Workload) -> Option<Hindrance> {
    let is_of_framework = ["cloud-provider", "leader-elect"].iter().any(|flag| workload.flag(flag).is_some());
    if workload.role != Role::Ccm || !is_of_framework {
        return None;
    }
    let known = |name: &str| workload.flag(name).filter(|(value, _)| is_plain(value));
    let exits = |words: String, place, advice: &str| {
        Some(Hindrance::new(Stage::Work, format!("the process exits, as {words}"), place, advice.to_owned()))
    };
    for name in DURATIONS {
        if let Some((value, place)) = known(name).filter(|(value, _)| seconds(value).is_none()) {
            let words = format!("'{value}' in --{name} is not a duration");
            return exits(words, place, "write a number with a unit, such as 10s or 5m");
        }
    }
    for name in NUMBERS {
        if let Some((value, place)) = known(name).filter(|(value, _)| value.parse::<i32>().is_err()) {
            return exits(
                format!("'{value}' in --{name} is not a whole number"),
                place,
                "write a whole number",
            );
        }
    }
    let number =
        |name: &str| known(name).and_then(|(value, place)| Some((value.parse::<i64>().ok()?, place)));
    for name in ["secure-port", "webhook-secure-port"] {
        if let Some((port, place)) = number(name).filter(|(port, _)| !(0..=65535).contains(port)) {
            return exits(
                format!("--{name}={port} is not a port"),
                place,
                "write a port between 0 and 65535",
            );
        }
    }
    let of_webhooks = if workload.flag("webhook-secure-port").is_some() {
        number("webhook-secure-port").map(|(port, _)| port)
    } else {
        Some(OF_WEBHOOKS)
    };
    if let Some((port, place)) =
        number("secure-port").filter(|(port, _)| *port != 0 && Some(*port) == of_webhooks)
    {
        let words = format!("--secure-port={port} is also its port for webhooks (--webhook-secure-port)");
        return exits(words, place, "choose another port");
    }
    if let Some((pause, place)) = known("controller-start-interval")
        && let Some(wait) = seconds(&pause).filter(|wait| *wait > LONGEST_WAIT)
    {
        let words = format!(
            "it waits at least {wait} s after the start of each controller, and initialises Nodes only after the last one"
        );
        let advice = String::from("remove --controller-start-interval");
        return Some(Hindrance::new(Stage::Work, words, place, advice));
    }
    let unlimited =
        known("kube-api-qps").is_some_and(|(value, _)| value.parse::<f32>().is_ok_and(|qps| qps <= 0.0));
    if let Some((burst, place)) = number("kube-api-burst").filter(|(burst, _)| *burst <= 0 && !unlimited) {
        let words = format!("its client library refuses --kube-api-burst={burst}");
        return exits(words, place, "set --kube-api-burst to more than 0");
    }
    None
}
