//! Values of flags with which a program of the framework ends at its start (`k8s.io/cloud-provider` options, `Validate`).

use super::duration::seconds;
use super::go_values::{TRUTHS, is_plain};
use super::hindrance::Hindrance;
use super::kind::Role;
use super::pods::Workload;
use super::refs::Stage;
use std::net::IpAddr;

/// What values of some flags look like.
struct Form {
    flags: &'static [&'static str],
    /// Whether a value is a list, separated by commas.
    is_list: bool,
    is_valid: fn(&str) -> bool,
    /// What an invalid value is not.
    kind: &'static str,
    advice: &'static str,
}

const FORMS: &[Form] = &[
    Form {
        flags: &[
            "controller-start-interval",
            "leader-elect-lease-duration",
            "leader-elect-renew-deadline",
            "leader-elect-retry-period",
            "min-resync-period",
            "node-monitor-period",
            "node-status-update-frequency",
            "node-sync-period",
            "route-reconciliation-period",
        ],
        is_list: false,
        is_valid: |value| seconds(value).is_some(),
        kind: "a duration",
        advice: "write a number with a unit, such as 10s or 5m",
    },
    Form {
        flags: &["concurrent-node-status-updates", "concurrent-service-syncs", "kube-api-burst"],
        is_list: false,
        is_valid: |value| value.parse::<i32>().is_ok(),
        kind: "a whole number",
        advice: "write a whole number",
    },
    Form {
        flags: &["concurrent-node-syncs"],
        is_list: false,
        is_valid: |value| value.parse::<i32>().is_ok_and(|number| number > 0),
        kind: "a number of 1 or more",
        advice: "write 1 or more",
    },
    Form {
        flags: &["secure-port", "webhook-secure-port"],
        is_list: false,
        is_valid: |value| value.parse::<u16>().is_ok(),
        kind: "a port",
        advice: "write a port between 0 and 65535",
    },
    Form {
        flags: &["bind-address"],
        is_list: false,
        is_valid: |value| value.is_empty() || value.trim().parse::<IpAddr>().is_ok(),
        kind: "an IP address",
        advice: "write an IP address, such as 0.0.0.0",
    },
    // The names in Go (`component-base/cli/flag`).
    Form {
        flags: &["tls-min-version"],
        is_list: false,
        is_valid: |value| {
            matches!(value, "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" | "VersionTLS13")
        },
        kind: "a version of TLS that it knows",
        advice: "write VersionTLS12 or VersionTLS13",
    },
    Form {
        flags: &["tls-cipher-suites"],
        is_list: true,
        is_valid: |suite| suite.is_empty() || suite.starts_with("TLS_"),
        kind: "a cipher suite of Go",
        advice: "write the names of Go, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    },
    Form {
        flags: &["feature-gates"],
        is_list: true,
        is_valid: |gate| {
            gate.is_empty() || gate.split_once('=').is_some_and(|(_, value)| TRUTHS.contains(&value.trim()))
        },
        kind: "a feature gate with a truth value",
        advice: "write NAME=true or NAME=false",
    },
];

/// The port of webhooks, if no flag sets another one. It is reserved even if there are none.
const OF_WEBHOOKS: i64 = 10260;

/// The longest pause between the starts of controllers with which a boot still goes on, in seconds.
const LONGEST_WAIT: f64 = 120.0;

/// The first flag whose value ends the program.
pub(super) fn refused(workload: &Workload) -> Option<Hindrance> {
    // Its sidecars have flags of their own.
    let (_, program) = workload.program()?;
    if workload.role != Role::Ccm {
        return None;
    }
    let known = |name: &str| program.flag(name).filter(|(value, _)| is_plain(value));
    let exits = |words: String, place, advice: &str| {
        Some(Hindrance::new(Stage::Work, format!("the process exits, as {words}"), place, advice.to_owned()))
    };
    for form in FORMS {
        for (name, (value, place)) in form.flags.iter().filter_map(|name| Some((name, known(name)?))) {
            let parts: Vec<&str> =
                if form.is_list { value.split(',').map(str::trim).collect() } else { vec![&value] };
            if let Some(part) = parts.into_iter().find(|part| !(form.is_valid)(part)) {
                return exits(format!("'{part}' in --{name} is not {}", form.kind), place, form.advice);
            }
        }
    }
    let number =
        |name: &str| known(name).and_then(|(value, place)| Some((value.parse::<i64>().ok()?, place)));
    let of_webhooks = if program.flag("webhook-secure-port").is_some() {
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
