//! Address population: the vectors of contract section 7 on synthetic Nodes.

use crate::judges::{has_addresses, initialised, untouched};
use crate::nodes::becomes_initialised;
use harness::check::{Capability, Verdict};
use harness::cloud::Address;
use harness::cx::{Check, CheckCx, NodePlan, address};
use harness::k8s::A_NODEIP;

const NODE_ADDRESS: &str = "k8s.io/cloud-provider node_controller.go updateNodeAddress";
const HELPERS: &str = "k8s.io/cloud-provider node/helpers/address.go GetNodeAddressesFromNodeIP";

/// One vector: what the kubelet was told, what the cloud reports, what the Node must show.
struct Vector {
    /// `alpha.kubernetes.io/provided-node-ip`, where set.
    provided: Option<&'static str>,
    /// The cloud's list.
    cloud: &'static [(&'static str, &'static str)],
    /// The Node's list; `H` stands for the kubelet's own host name; `None`: the Node stays tainted.
    expected: Option<&'static [(&'static str, &'static str)]>,
}

const I: &str = "InternalIP";
const E: &str = "ExternalIP";
const H: &str = "Hostname";
/// The kubelet's host name in a vector: the Node's name.
const KUBELET: &str = "n1";

macro_rules! vector {
    ($name:ident, $id:literal, $title:literal, $source:expr, $vector:expr, takes $takes:literal) => {
        const $name: Check = {
            static VECTOR: Vector = $vector;
            Check::must($id, $title, $source, |cx| Box::pin(holds_vector(cx, &VECTOR)))
                .needs(&[Capability::Instances])
                .takes($takes)
        };
    };
}

vector!(V01, "NODE-ADDR-V01", "without a provided IP the Node has the cloud's list and the kubelet's host name (NODE-ADDR-01, -02)",
    NODE_ADDRESS, Vector {
        provided: None,
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.10")],
        expected: Some(&[(I, "192.0.2.10"), (E, "198.51.100.10"), (H, KUBELET)]),
    }, takes 0);
vector!(V02, "NODE-ADDR-V02", "a host name from the cloud replaces the kubelet's (NODE-ADDR-02)",
    NODE_ADDRESS, Vector {
        provided: None,
        cloud: &[(H, "cloud-n1"), (I, "192.0.2.10")],
        expected: Some(&[(H, "cloud-n1"), (I, "192.0.2.10")]),
    }, takes 0);
vector!(V03, "NODE-ADDR-V03", "the provided IP comes first and alone of its type (NODE-ADDR-03)",
    HELPERS, Vector {
        provided: Some("192.0.2.10"),
        cloud: &[(I, "192.0.2.11"), (I, "192.0.2.10"), (E, "198.51.100.10")],
        expected: Some(&[(I, "192.0.2.10"), (E, "198.51.100.10"), (H, KUBELET)]),
    }, takes 0);
vector!(V04, "NODE-ADDR-V04", "a provided external IP comes first, other types follow in the cloud's order (NODE-ADDR-03)",
    HELPERS, Vector {
        provided: Some("198.51.100.10"),
        cloud: &[(I, "192.0.2.10"), (E, "198.51.100.11"), (E, "198.51.100.10")],
        expected: Some(&[(E, "198.51.100.10"), (I, "192.0.2.10"), (H, KUBELET)]),
    }, takes 0);
vector!(V05, "NODE-ADDR-V05", "a provided IP the cloud does not report keeps the Node tainted (NODE-INIT-13)",
    HELPERS, Vector { provided: Some("192.0.2.99"), cloud: &[(I, "192.0.2.10")], expected: None }, takes 31);
vector!(V06, "NODE-ADDR-V06", "an IP of two types is kept as both, and both types hold nothing else (NODE-ADDR-03)",
    HELPERS, Vector {
        provided: Some("198.51.100.10"),
        cloud: &[(I, "192.0.2.10"), (E, "192.0.2.10"), (I, "198.51.100.10"), (E, "198.51.100.10")],
        expected: Some(&[(I, "198.51.100.10"), (E, "198.51.100.10"), (H, KUBELET)]),
    }, takes 0);
vector!(V07, "NODE-ADDR-V07", "IPs are compared by value and shown in the cloud's spelling (NODE-ADDR-05)",
    HELPERS, Vector {
        provided: Some("2001:db8::a"),
        cloud: &[(I, "192.0.2.10"), (I, "2001:db8:0:0:0:0:0:a")],
        expected: Some(&[(I, "2001:db8:0:0:0:0:0:a"), (H, KUBELET)]),
    }, takes 0);
vector!(V08, "NODE-ADDR-V08", "a dual-stack provided IP orders both families (NODE-ADDR-04)",
    HELPERS, Vector {
        provided: Some("192.0.2.10,2001:db8::a"),
        cloud: &[(I, "2001:db8::a"), (I, "192.0.2.10")],
        expected: Some(&[(I, "192.0.2.10"), (I, "2001:db8::a"), (H, KUBELET)]),
    }, takes 0);

/// The checks, for the suite that populates addresses and labels.
pub(crate) const CHECKS: [Check; 8] = [V01, V02, V03, V04, V05, V06, V07, V08];

/// The addresses a Node without a provided IP has: the cloud's, then the kubelet's host name.
pub(crate) fn node_with(cloud: &[Address], kubelet: &str) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = cloud.iter().map(|a| (a.kind.clone(), a.address.clone())).collect();
    list.push((H.to_owned(), kubelet.to_owned()));
    list
}

async fn holds_vector(cx: &CheckCx, vector: &Vector) -> Verdict {
    let mut instance = cx.instance("a");
    instance.addresses = vector.cloud.iter().map(|(kind, ip)| address(kind, ip)).collect();
    cx.put_instance(&instance).await?;
    let mut plan = NodePlan::new(&instance.name);
    if let Some(provided) = vector.provided {
        plan = plan.annotation(A_NODEIP, provided);
    }
    cx.create_node(plan).await?;
    let read = async || Ok(cx.find_node(&instance.name));
    let Some(expected) = vector.expected else {
        // A witness the cloud agrees with proves that the CCM is at work all the while.
        let witness = cx.instance("witness");
        cx.put_instance(&witness).await?;
        cx.create_node(NodePlan::new(&witness.name)).await?;
        becomes_initialised(cx, "a Node the cloud agrees with is initialised", &witness.name).await?;
        return cx
            .consistently(
                "the Node stays tainted and nothing is written",
                cx.limits().quiet_nodes(),
                read,
                untouched(),
            )
            .await;
    };
    cx.eventually("the taint goes", cx.limits().watch(), read, initialised()).await?;
    let mut wanted: Vec<(String, String)> = expected
        .iter()
        .map(|(kind, ip)| {
            let ip = if *ip == KUBELET { instance.name.as_str() } else { ip };
            ((*kind).to_owned(), ip.to_owned())
        })
        .collect();
    let provided: Vec<&str> = vector.provided.unwrap_or_default().split(',').collect();
    cx.in_reported_order(&mut wanted, &provided);
    let read = async || Ok(cx.find_node(&instance.name));
    cx.eventually(
        "the Node's addresses are these, in this order",
        cx.limits().addresses_after_taint(),
        read,
        has_addresses(wanted),
    )
    .await
}
