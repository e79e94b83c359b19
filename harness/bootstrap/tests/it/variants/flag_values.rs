//! Variants about values of flags that end the program, and about the times and the name of its Lease.

use super::{argument, base, below, boot, deadlock};

fn arguments(texts: &[&str]) -> String {
    let lines: Vec<String> = texts.iter().map(|text| format!("- {text}")).collect();
    below(&base(), "        - -v=1\n", 8, &lines.join("\n"))
}

#[test]
fn values_that_end_the_program() {
    boot(&[
        ("a duration with two units", argument("--min-resync-period=1h30m")),
        ("no duration at all", argument("--controller-start-interval=0")),
        ("another port", argument("--secure-port=10300")),
        ("no port", argument("--secure-port=0")),
        (
            "the port of webhooks, which are elsewhere",
            arguments(&["--secure-port=10260", "--webhook-secure-port=10270"]),
        ),
        ("a burst", arguments(&["--kube-api-qps=50", "--kube-api-burst=60"])),
        ("two workers", argument("--concurrent-node-syncs=2")),
        ("an address", argument("--bind-address=127.0.0.1")),
        ("an empty address", argument("--bind-address=")),
        ("a version of TLS", argument("--tls-min-version=VersionTLS13")),
        (
            "cipher suites",
            argument("--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA"),
        ),
        ("feature gates", argument("--feature-gates=AllAlpha=false,ContextualLogging=true")),
        ("more words in the log", argument("-v=4")),
        ("no limit, and so no burst", arguments(&["--kube-api-qps=-1", "--kube-api-burst=0"])),
    ]);
    deadlock(&[
        ("a number without a unit", argument("--node-monitor-period=5")),
        ("days", argument("--min-resync-period=1d")),
        ("no number", argument("--concurrent-service-syncs=many")),
        ("no port", argument("--secure-port=70000")),
        ("the port of webhooks", argument("--secure-port=10260")),
        ("no burst", argument("--kube-api-burst=0")),
        ("no workers", argument("--concurrent-node-syncs=0")),
        ("a name as an address", argument("--bind-address=localhost")),
        ("a version of TLS in other words", argument("--tls-min-version=TLS1.2")),
        ("cipher suites of OpenSSL", argument("--tls-cipher-suites=ECDHE-RSA-AES256-GCM-SHA384")),
        ("a feature gate without a value", argument("--feature-gates=ContextualLogging")),
        ("a level behind a blank", argument("'-v 4'")),
    ]);
}

#[test]
fn times_of_an_election() {
    let times = |lease: &str, renew: &str, retry: &str| {
        arguments(&[
            &format!("--leader-elect-lease-duration={lease}"),
            &format!("--leader-elect-renew-deadline={renew}"),
            &format!("--leader-elect-retry-period={retry}"),
        ])
    };
    boot(&[
        ("long", times("1m", "40s", "5s")),
        ("a retry that just fits", times("15s", "12.1s", "10s")),
        ("a longer Lease", argument("--leader-elect-lease-duration=30s")),
    ]);
    deadlock(&[
        ("the Lease ends with the deadline", times("10s", "10s", "2s")),
        ("the retry with its jitter is as long as the deadline", times("15s", "12s", "10s")),
        ("a longer retry alone", argument("--leader-elect-retry-period=9s")),
        ("a longer deadline alone", argument("--leader-elect-renew-deadline=20s")),
        ("less than a second", times("900ms", "600ms", "200ms")),
    ]);
}

#[test]
fn names_of_a_lease() {
    boot(&[("with dots", argument("--leader-elect-resource-name=acme.ccm-2"))]);
    deadlock(&[
        ("with underscores", argument("--leader-elect-resource-name=acme_ccm")),
        ("in capital letters", argument("--leader-elect-resource-name=CCM")),
    ]);
}
