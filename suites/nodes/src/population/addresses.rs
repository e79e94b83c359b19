//! Address population: the test vectors of contract section 7, applied to synthetic Nodes.

use harness_testkit::prelude::*;
use std::time::{Duration, Instant};
use suites_common::joining::{ccm_initialises_others, recovers};

/// How much longer than a refresh period a Node is watched, so that it includes one whole refresh.
const ONE_MORE: Duration = Duration::from_secs(2);
/// How often the check looks at a Node that may be initialised or not.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// One test vector: the kubelet's `--node-ip`, the addresses that the cloud reports, and those that the Node
/// must show. Addresses are those of the contract; each check replaces them by its own.
struct Vector {
    id: &'static str,
    /// `alpha.kubernetes.io/provided-node-ip`, where set.
    provided: Option<&'static str>,
    /// The cloud's list: type and address.
    cloud: &'static [(&'static str, &'static str)],
    /// The Node's list; `None` if the Node has to stay tainted.
    expected: Option<&'static [(&'static str, &'static str)]>,
}

const I: &str = "InternalIP";
const E: &str = "ExternalIP";
const H: &str = "Hostname";
/// Stands for the kubelet's own host name, which is the Node's name.
const KUBELET: &str = "n1";

/// Not a vector of the contract. Its vectors with a public IPv6 address also have a private one, which many
/// clouds lack.
const PUBLIC_V6: &str = "NODE-ADDR-01.public-v6";

static VECTORS: [Vector; 21] = [
    Vector {
        id: "NODE-ADDR-V01",
        provided: None,
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.10")],
        expected: Some(&[(I, "192.0.2.10"), (E, "198.51.100.10"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V02",
        provided: None,
        cloud: &[(H, "cloud-n1"), (I, "192.0.2.10")],
        expected: Some(&[(H, "cloud-n1"), (I, "192.0.2.10")]),
    },
    Vector {
        id: "NODE-ADDR-V03",
        provided: Some("192.0.2.10"),
        cloud: &[(I, "192.0.2.11"), (I, "192.0.2.10"), (E, "198.51.100.10")],
        expected: Some(&[(I, "192.0.2.10"), (E, "198.51.100.10"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V04",
        provided: Some("198.51.100.10"),
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.11"), (E, "198.51.100.10")],
        expected: Some(&[(E, "198.51.100.10"), (I, "192.0.2.10"), (H, KUBELET)]),
    },
    Vector { id: "NODE-ADDR-V05", provided: Some("192.0.2.99"), cloud: &[(I, "192.0.2.10")], expected: None },
    Vector {
        id: "NODE-ADDR-V06",
        provided: Some("198.51.100.10"),
        cloud: &[(I, "192.0.2.10"), (E, "192.0.2.10"), (I, "198.51.100.10"), (E, "198.51.100.10")],
        expected: Some(&[(I, "198.51.100.10"), (E, "198.51.100.10"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V07",
        provided: Some("2001:db8::a"),
        cloud: &[(I, "192.0.2.10"), (I, "2001:db8:0:0:0:0:0:a")],
        expected: Some(&[(I, "2001:db8:0:0:0:0:0:a"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V08",
        provided: Some("192.0.2.10,2001:db8::a"),
        cloud: &[(I, "2001:db8::a"), (I, "192.0.2.10")],
        expected: Some(&[(I, "192.0.2.10"), (I, "2001:db8::a"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V09",
        provided: Some("2001:db8::a,192.0.2.10"),
        cloud: &[(I, "192.0.2.10"), (I, "2001:db8::a")],
        expected: Some(&[(I, "2001:db8::a"), (I, "192.0.2.10"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V10",
        provided: Some("192.0.2.10,2001:db8::a"),
        cloud: &[(I, "192.0.2.10")],
        expected: None,
    },
    Vector {
        id: "NODE-ADDR-V11",
        provided: Some("192.0.2.10,2001:db8::a"),
        cloud: &[
            (I, "192.0.2.10"),
            (I, "192.0.2.11"),
            (I, "2001:db8::a"),
            (I, "2001:db8::b"),
            (E, "198.51.100.10"),
            (E, "2001:db8:1::1"),
        ],
        expected: Some(&[
            (I, "192.0.2.10"),
            (I, "2001:db8::a"),
            (E, "198.51.100.10"),
            (E, "2001:db8:1::1"),
            (H, KUBELET),
        ]),
    },
    Vector {
        id: "NODE-ADDR-V12",
        provided: Some("198.51.100.10,2001:db8::a"),
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.10"), (I, "2001:db8::a"), (E, "2001:db8:1::1")],
        expected: Some(&[(E, "198.51.100.10"), (I, "2001:db8::a"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V13",
        provided: Some("192.0.2.10"),
        cloud: &[(I, "192.0.2.10"), (I, "2001:db8::a")],
        expected: Some(&[(I, "192.0.2.10"), (H, KUBELET)]),
    },
    Vector {
        id: "NODE-ADDR-V14",
        provided: Some("192.0.2.10,192.0.2.11"),
        cloud: &[(I, "192.0.2.10"), (I, "192.0.2.11")],
        expected: None,
    },
    Vector {
        id: "NODE-ADDR-V15",
        provided: Some("not-an-ip"),
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.10")],
        expected: None,
    },
    Vector { id: "NODE-ADDR-V16", provided: Some("192.0.2.10"), cloud: &[], expected: None },
    Vector { id: "NODE-ADDR-V17", provided: None, cloud: &[], expected: Some(&[(H, KUBELET)]) },
    Vector {
        id: "NODE-ADDR-V18",
        provided: None,
        cloud: &[("InternalDNS", "a.internal.example"), ("ExternalDNS", "a.example"), (I, "192.0.2.10")],
        expected: Some(&[
            ("InternalDNS", "a.internal.example"),
            ("ExternalDNS", "a.example"),
            (I, "192.0.2.10"),
            (H, KUBELET),
        ]),
    },
    Vector {
        id: "NODE-ADDR-V19",
        provided: Some(""),
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.10")],
        expected: None,
    },
    Vector {
        id: "NODE-ADDR-V20",
        provided: Some("192.0.2.10, 2001:db8::a"),
        cloud: &[(I, "192.0.2.10"), (I, "2001:db8::a")],
        expected: None,
    },
    Vector {
        id: PUBLIC_V6,
        provided: None,
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.10"), (E, "2001:db8:1::1")],
        expected: Some(&[(I, "192.0.2.10"), (E, "198.51.100.10"), (E, "2001:db8:1::1"), (H, KUBELET)]),
    },
];

/// One check for each vector.
pub(super) const CHECKS: [Check; VECTORS.len()] = {
    let (mut checks, mut at) = ([of_vector(0); VECTORS.len()], 1);
    while at < VECTORS.len() {
        checks[at] = of_vector(at);
        at += 1;
    }
    checks
};

const fn of_vector(at: usize) -> Check {
    let Vector { id, expected, .. } = &VECTORS[at];
    let check = Check::row(CheckId::new(id), |cx, at| Box::pin(holds_vector(cx, &VECTORS[at])), at);
    // A Node that has to stay tainted is watched for the quiet time, and a Node with provided IPs until it
    // was refreshed.
    let takes = match (expected.is_none(), VECTORS[at].provided.is_some()) {
        (true, _) => 31,
        (false, true) => 13,
        (false, false) => 0,
    };
    check.needs(&[Capability::Instances]).takes(takes)
}

/// The check's own addresses in an annotation as the kubelet would write it, including spaces.
fn own(cx: &CheckCx, written: &str) -> Vec<String> {
    let one = |ip: &str| {
        let bare = ip.trim_start();
        format!("{}{}", &ip[..ip.len() - bare.len()], cx.own_address(bare))
    };
    written.split(',').map(one).collect()
}

/// Whether the Node is initialised as fast as any other. If it is not, that breaks no requirement.
async fn is_initialised_in_time(cx: &CheckCx, node: &Node<'_>) -> bool {
    let until = Instant::now() + cx.limits().watch();
    while node.is(initialised()).await.is_err() {
        if Instant::now() >= until {
            return false;
        }
        pause(LOOK_EVERY).await;
    }
    true
}

/// A provider may treat a machine without addresses as not ready yet, and refuse to describe it.
async fn waits_for_addresses(cx: &CheckCx, machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
    let outage = cx.limits().quiet_nodes();
    node.keeps(untouched()).within(outage).when("while its machine has no addresses").await?;
    let addresses = vec![address(I, &cx.own_address("192.0.2.10"))];
    machine.change(|instance| instance.addresses = addresses).await?;
    cx.record("initialised", "when its machine has addresses");
    recovers(cx, machine, node, outage + cx.limits().instance_cache()).await
}

async fn holds_vector(cx: &CheckCx, vector: &Vector) -> Verdict {
    let addresses = vector.cloud.iter().map(|(kind, ip)| address(kind, &cx.own_address(ip))).collect();
    let machine = cx.machine(machine("a").addresses(addresses)).await?;
    let plan = machine.node();
    let provided = own(cx, vector.provided.unwrap_or_default());
    let node = cx.node(match vector.provided {
        Some(_) => plan.annotation(A_NODEIP, &provided.join(",")),
        None => plan,
    });
    let node = node.await?;
    let Some(expected) = vector.expected else {
        ccm_initialises_others(cx).await?;
        return node.keeps(untouched()).within(cx.limits().quiet_nodes()).await;
    };
    if vector.cloud.is_empty() {
        ccm_initialises_others(cx).await?;
        if !is_initialised_in_time(cx, &node).await {
            return waits_for_addresses(cx, &machine, &node).await;
        }
    }
    node.becomes(initialised()).await?;
    let named = |ip: &str| if ip == KUBELET { machine.name() } else { cx.own_address(ip) };
    let mut wanted: Vec<(String, String)> =
        expected.iter().map(|(kind, ip)| ((*kind).to_owned(), named(ip))).collect();
    let provided: Vec<&str> = provided.iter().map(String::as_str).collect();
    cx.in_reported_order(&mut wanted, &provided);
    let limit = cx.limits().addresses_after_taint();
    let has_them = node.becomes(has_addresses(wanted.clone())).within(limit).when("in this order").await;
    if has_them.is_err() && vector.id == PUBLIC_V6 && !cx.declares(Capability::DualStack) {
        // A provider may choose which addresses it reports.
        let v4 = wanted.iter().filter(|(_, address)| !address.contains(':')).cloned().collect();
        node.is(has_addresses(v4)).await?;
        return Err(CheckError::NotObservable(
            "it reports IPv4 addresses alone, and declares no dualStack".to_owned(),
        ));
    }
    has_them?;
    // The addresses that the kubelet wrote may be right from the start, and then have to stay. A later
    // refresh may choose differently.
    let refreshed = vector.provided.is_some() && cx.addresses_are_refreshed_often().is_ok();
    let kept = node.keeps(has_addresses(wanted)).when("in this order");
    match refreshed {
        true => kept.within(Limits::STATUS_PERIOD + ONE_MORE).await,
        false => kept.await,
    }
}
