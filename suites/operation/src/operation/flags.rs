//! The command line of a CCM (contract FLAG, CAP-07): flags that it knows, values that it rejects, and
//! controllers that flags switch off.

use harness_testkit::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use suites_common::joining::registered;
use suites_common::services::left_alone;

/// The CCM can be run separately.
pub(super) const TRIAL: &[Facility] = &[Facility::CcmControl];

pub(super) const CHECKS: &[Check] = &[
    Check::of("FLAG-01", |cx| Box::pin(lists_its_flags(cx)))
        .needs(&[Capability::FrameworkFlags])
        .of_the_cloud(&[])
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("FLAG-02", |cx| Box::pin(refuses_unknown_flags(cx)))
        .of_the_cloud(&[])
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("CAP-07.unknown", |cx| Box::pin(refuses_unknown_controllers(cx)))
        .needs(&[Capability::FrameworkFlags])
        .of_the_cloud(&[])
        .with(TRIAL)
        .on_a_fresh_cluster(),
    Check::of("CAP-07.disabled", |cx| Box::pin(leaves_out_controllers(cx)))
        .by_calls()
        .needs(&[Capability::FrameworkFlags, Capability::Instances, Capability::LoadBalancer])
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(46),
    Check::of("CAP-07.alias", |cx| Box::pin(knows_old_names(cx)))
        .needs(&[Capability::FrameworkFlags, Capability::Instances, Capability::LoadBalancer])
        .with(TRIAL)
        .on_a_fresh_cluster()
        .takes(12),
];

/// A flag that no CCM has.
const NO_FLAG: &str = "--ccm-conformance-no-such-flag=1";

/// Flags of every CCM of the framework, with the default in the contract (section 17) and the minor version
/// that introduced them; 0 if that is earlier than every version that is tested.
const FLAGS: &[(&str, &str, u32)] = &[
    ("allocate-node-cidrs", "", 0),
    ("authentication-kubeconfig", "", 0),
    ("authentication-skip-lookup", "", 0),
    ("authentication-tolerate-lookup-failure", "", 0),
    ("authorization-always-allow-paths", "/healthz,/readyz,/livez", 0),
    ("authorization-kubeconfig", "", 0),
    ("bind-address", "0.0.0.0", 0),
    ("cert-dir", "", 0),
    ("cidr-allocator-type", "RangeAllocator", 0),
    ("cloud-config", "", 0),
    ("cloud-provider", "", 0),
    ("cluster-cidr", "", 0),
    ("cluster-name", "kubernetes", 0),
    ("concurrent-node-status-updates", "", 36),
    ("concurrent-node-syncs", "1", 27),
    ("concurrent-service-syncs", "1", 0),
    ("configure-cloud-routes", "true", 0),
    ("controller-start-interval", "", 0),
    ("controllers", "*", 0),
    ("feature-gates", "", 0),
    ("http2-max-streams-per-connection", "", 0),
    ("kube-api-burst", "30", 0),
    ("kube-api-content-type", "application/vnd.kubernetes.protobuf", 0),
    ("kube-api-qps", "20", 0),
    ("kubeconfig", "", 0),
    ("leader-elect", "true", 0),
    ("leader-elect-lease-duration", "15s", 0),
    ("leader-elect-renew-deadline", "10s", 0),
    ("leader-elect-resource-lock", "leases", 0),
    ("leader-elect-resource-name", "cloud-controller-manager", 0),
    ("leader-elect-resource-namespace", "kube-system", 0),
    ("leader-elect-retry-period", "2s", 0),
    ("master", "", 0),
    ("min-resync-period", "12h", 0),
    ("node-monitor-period", "5s", 0),
    ("node-status-update-frequency", "5m", 0),
    ("profiling", "true", 0),
    ("route-reconciliation-period", "10s", 0),
    ("secure-port", "10258", 0),
    ("use-service-account-credentials", "", 0),
];

async fn lists_its_flags(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_alone(&["--help"]).await?;
    let ended = alone.becomes(has_ended()).within(cx.limits().start()).await;
    alone.explained(ended).await?;
    let listed = flags_in(&alone.log().await?);
    let of_its_version = || FLAGS.iter().filter(|(.., since)| cx.framework_has(*since));
    let missing: Vec<&str> =
        of_its_version().map(|(name, ..)| *name).filter(|name| !listed.contains_key(*name)).collect();
    // Providers may choose other defaults; these are recorded.
    let others = of_its_version().filter(|(name, default, _)| {
        listed.get(*name).is_some_and(|text| !default.is_empty() && !says_default(text, default))
    });
    let others: Vec<String> = others.map(|(name, ..)| format!("--{name}")).collect();
    if !others.is_empty() {
        cx.record("other-defaults", others.join(" "));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let seen = format!("{} flags, without --{}", listed.len(), missing.join(", --"));
    Err(alone.breaks("--help lists every flag of the framework", "each of them", &seen))
}

/// The flags in a help text, and the text of each: from the line that begins with the flag to the next such line.
fn flags_in(help: &str) -> BTreeMap<String, String> {
    let mut flags: BTreeMap<String, String> = BTreeMap::new();
    let mut current = None;
    for line in help.lines() {
        // With or without a short form before it: `-v, --v Level`.
        let begin = line.trim_start();
        let long = begin.split_once(", --").filter(|(short, _)| short.len() == 2 && short.starts_with('-'));
        let long = long.map(|(_, long)| long).or_else(|| begin.strip_prefix("--"));
        if let Some(long) = long {
            let end = long.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            current = Some(long[..end.unwrap_or(long.len())].to_owned());
        }
        if let Some(name) = &current {
            let text = flags.entry(name.clone()).or_default();
            text.push_str(begin);
            text.push('\n');
        }
    }
    flags
}

/// Whether the text of a flag names this default, as Go's flag packages or clap write it. A duration may be
/// written out (`5m0s`), a text and a list quoted or in brackets.
fn says_default(text: &str, default: &str) -> bool {
    let said = text.rsplit_once("default").map_or("", |(_, said)| said.lines().next().unwrap_or_default());
    let said: String = said.chars().filter(|c| !"\"[]():= \n".contains(*c)).collect();
    let written_out = match default.chars().last() {
        Some('h') => format!("{default}0m0s"),
        Some('m') => format!("{default}0s"),
        _ => default.to_owned(),
    };
    said == default || said == written_out
}

async fn refuses_unknown_flags(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_alone(&[NO_FLAG]).await?;
    let refused = alone.becomes(refuses()).within(cx.limits().start()).await;
    alone.explained(refused).await
}

async fn refuses_unknown_controllers(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_alone(&["--controllers=*,no-such-controller"]).await?;
    let refused = alone.becomes(refuses()).within(cx.limits().start()).await;
    alone.explained(refused).await
}

async fn leaves_out_controllers(cx: &CheckCx) -> Verdict {
    let name = if cx.framework_has(28) { "service-lb-controller" } else { "service" };
    without_services(cx, name, cx.limits().quiet_services()).await
}

async fn knows_old_names(cx: &CheckCx) -> Verdict {
    // A CCM that does not know the name either rejects it or handles Services.
    without_services(cx, "service", cx.limits().watch()).await
}

/// Runs the CCM without the controller of this name. It has to work and leave Services alone.
async fn without_services(cx: &CheckCx, name: &str, window: Duration) -> Verdict {
    let alone = cx.ccm_alone(&[&format!("--controllers=*,-{name}")]).await?;
    let unserved = cx.service(load_balancer("unserved").port(80)).await?;
    let calls = unserved.calls();
    let (_, witness) = registered(cx, machine("witness")).await?;
    let works = witness.becomes(initialised()).within(cx.limits().start());
    alone.while_it_runs(works.when("by the controllers that are left")).await?;
    (&unserved, &calls).keeps(left_alone()).within(window).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_in_the_help_of_go_and_of_clap() {
        let go = "Generic flags:\n\n      --secure-port int    The port. (default 10258)\n  -v, --v Level   number\n      \
                  --min-resync-period duration   The period (default 12h0m0s)\n";
        let clap = "Serving:\n      --secure-port <PORT>\n          HTTPS port [default: 10258]\n\nOther:\n  -v, --v <LEVEL>\n";
        for help in [go, clap] {
            let flags = flags_in(help);
            assert!(flags.contains_key("v") && says_default(&flags["secure-port"], "10258"), "{flags:?}");
            assert!(!says_default(&flags["secure-port"], "1"));
        }
        assert!(says_default(&flags_in(go)["min-resync-period"], "12h"));
    }

    #[test]
    fn every_flag_is_one_of_the_framework_and_named_once() {
        let names: std::collections::BTreeSet<&str> = FLAGS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), FLAGS.len());
    }
}
