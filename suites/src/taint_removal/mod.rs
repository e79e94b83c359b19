//! Taint removal: a Node starts with the uninitialized taint, and the CCM takes it off when, and only when, it knows
//! the machine (contract NODE-INIT).

mod held;

use crate::judges::{expected_labels, missing_metadata};
use crate::nodes::{becomes_initialised, joins};
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cloud::Op;
use harness::cx::{Check, CheckCx, NodePlan, Ready, Suite, taint, uninitialized};
use harness::k8s::{Change, T_UNINIT, addresses, has_taint, label, provider_id, taints};
use harness::probe::{Observed, Seen, holds, judge};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "taint-removal",
    proves: "uninitialised Nodes are initialised: the taint goes when, and only when, the cloud knows the machine",
    tables: &[CHECKS],
};

const INSTANCES: &[Capability] = &[Capability::Instances];

/// Reads that fail for a Node while its machine cannot be looked up.
pub(crate) const INSTANCE_READS: &[Op] = &[Op::InstanceGet, Op::InstanceList];

const CHECKS: &[Check] = &[
    Check::must(
        "NODE-INIT-01",
        "the uninitialized taint goes, every other taint keeps content and order",
        "k8s.io/cloud-provider node_controller.go syncNode, excludeCloudTaint",
        |cx| Box::pin(removes_only_its_taint(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-02",
        "Nodes that existed before the CCM started are initialised",
        "k8s.io/cloud-provider node_controller.go: the initial list reaches the handlers",
        |cx| Box::pin(initialises_earlier_nodes(cx)),
    )
    .needs(INSTANCES)
    .with(&[Facility::CcmControl])
    .cold(),
    Check::must(
        "NODE-INIT-04",
        "no observer sees the Node without the taint while providerID or labels are missing",
        "k8s.io/cloud-provider node_controller.go syncNode: one update",
        |cx| Box::pin(initialises_atomically(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-05",
        "the cloud's addresses are on the Node within 5 s after the taint went",
        "k8s.io/cloud-provider node_controller.go syncNode, updateNodeAddress",
        |cx| Box::pin(addresses_follow_the_taint(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-06",
        "an empty providerID is set from the cloud and stays the same over re-initialisation",
        "k8s.io/cloud-provider node_controller.go getNodeModifiersFromCloudProvider; cloud.go InstanceMetadata",
        |cx| Box::pin(sets_provider_id(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-07",
        "a providerID already on the Node is kept, and initialisation succeeds",
        "k8s.io/cloud-provider node_controller.go; kubernetes validation.go ValidateNodeUpdate",
        |cx| Box::pin(keeps_provider_id(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-08",
        "the machine is looked up by providerID before name",
        "k8s.io/cloud-provider cloud.go InstancesV2",
        |cx| Box::pin(prefers_provider_id(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-10",
        "a cloud error leaves the Node untouched, and it is initialised once the cloud answers again",
        "k8s.io/cloud-provider node_controller.go syncNode, processNextWorkItem",
        |cx| Box::pin(held::waits_out_cloud_errors(cx)),
    )
    .needs(INSTANCES)
    .with(&[Facility::Faults])
    .takes(35),
    Check::must(
        "NODE-INIT-13",
        "a provided node IP that the cloud does not report keeps the Node tainted until it is corrected",
        "k8s.io/cloud-provider node_controller.go getNodeModifiersFromCloudProvider; node/helpers/address.go",
        |cx| Box::pin(held::insists_on_the_provided_ip(cx)),
    )
    .needs(INSTANCES)
    .takes(31),
    Check::must(
        "NODE-INIT-15",
        "re-initialising an unchanged Node changes no label, address or providerID",
        "k8s.io/cloud-provider node_controller.go",
        |cx| Box::pin(reinitialises_idempotently(cx)),
    )
    .needs(INSTANCES),
    Check::must(
        "NODE-INIT-18",
        "a NotReady, cordoned Node with other taints is initialised all the same",
        "k8s.io/cloud-provider node_controller.go",
        |cx| Box::pin(does_not_wait_for_ready(cx)),
    )
    .needs(INSTANCES),
];

async fn removes_only_its_taint(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    cx.put_instance(&instance).await?;
    let others = [
        taint("example.com/first", "1", "NoSchedule"),
        taint("example.com/second", "", "NoExecute"),
        taint("example.com/third", "x", "PreferNoSchedule"),
    ];
    let [first, second, third] = others;
    let kept = [
        "example.com/first=1:NoSchedule",
        "example.com/second=:NoExecute",
        "example.com/third=x:PreferNoSchedule",
    ];
    cx.create_node(NodePlan::new(&instance.name).taints(vec![first, uninitialized(), second, third])).await?;
    let node = becomes_initialised(cx, "the taint goes", &instance.name).await?;
    // The controller manager adds taints of its own to Nodes; only the ones of this check are compared.
    let mine: Vec<String> = taints(&node).into_iter().filter(|t| t.starts_with("example.com/")).collect();
    if mine != kept {
        return Err(Stop::unmet("all other taints keep content and order", kept.join(", "), mine.join(", ")));
    }
    Ok(())
}

async fn initialises_earlier_nodes(cx: &CheckCx) -> Verdict {
    cx.withdraw_ccm().await?;
    let instances = [cx.instance("a"), cx.instance("b")];
    for instance in &instances {
        cx.put_instance(instance).await?;
        cx.create_node(NodePlan::new(&instance.name)).await?;
    }
    cx.deploy_ccm().await?;
    for instance in &instances {
        becomes_initialised(cx, "a Node older than the CCM is initialised", &instance.name).await?;
    }
    Ok(())
}

async fn initialises_atomically(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    joins(cx, &instance, NodePlan::new(&instance.name)).await?;
    // Every version the watch showed, in its order: the first without the taint has all the rest.
    let history = cx.session().world().nodes.history("", &instance.name);
    let untainted = history.iter().find(|v| v.change == Change::Applied && !has_taint(&v.object, T_UNINIT));
    let Some(version) = untainted else {
        return Err(Stop::Error("the watch's history lost the version without the taint".to_owned()));
    };
    let missing = missing_metadata(&version.object, &instance);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::unmet(
        "the first version without the taint has everything the cloud supplies",
        missing.join(", "),
        version.object.observed(),
    ))
}

async fn addresses_follow_the_taint(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    joins(cx, &instance, NodePlan::new(&instance.name)).await?;
    let wanted = ("ExternalIP".to_owned(), "198.51.100.10".to_owned());
    cx.eventually(
        "the cloud's addresses are on the Node",
        cx.limits().addresses_after_taint(),
        async || Ok(cx.find_node(&instance.name)),
        holds("ExternalIP 198.51.100.10 among the addresses", move |node: &crate::judges::MaybeNode| {
            node.as_ref().is_some_and(|n| addresses(n).contains(&wanted))
        }),
    )
    .await?;
    let history = cx.session().world().nodes.history("", &instance.name);
    let at = |fits: &dyn Fn(&k8s_openapi::api::core::v1::Node) -> bool| {
        history.iter().find(|v| fits(&v.object)).map(|v| v.at)
    };
    let untainted = at(&|n| !has_taint(n, T_UNINIT));
    let addressed = at(&|n| addresses(n).len() > 1);
    if let (Some(untainted), Some(addressed)) = (untainted, addressed) {
        cx.record("addresses_after_taint_ms", addressed.saturating_duration_since(untainted).as_millis());
    }
    Ok(())
}

async fn sets_provider_id(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    cx.put_instance(&instance).await?;
    cx.create_node(NodePlan::new(&instance.name)).await?;
    let mut ids = Vec::new();
    for round in 0..3 {
        if round > 0 {
            cx.retaint(&instance.name).await?;
        }
        let node = becomes_initialised(cx, "the taint goes", &instance.name).await?;
        ids.push(provider_id(&node).unwrap_or_default());
    }
    let wanted = instance.provider_id.clone().unwrap_or_default();
    if ids.iter().any(|id| *id != wanted) {
        return Err(Stop::unmet(
            "providerID is set and stays the same over three initialisations",
            format!("{wanted} each time"),
            ids.join(", "),
        ));
    }
    Ok(())
}

async fn keeps_provider_id(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    let id = instance.provider_id.clone().unwrap_or_default();
    let node = joins(cx, &instance, NodePlan::new(&instance.name).provider_id(&id)).await?;
    let seen = provider_id(&node).unwrap_or_default();
    if seen != id {
        return Err(Stop::unmet("the providerID is kept", id, seen));
    }
    Ok(())
}

async fn prefers_provider_id(cx: &CheckCx) -> Verdict {
    let node_name = cx.name("n");
    let mut right = cx.instance("other-name");
    right.instance_type = "type-right".to_owned();
    let mut decoy = cx.instance("decoy");
    decoy.name.clone_from(&node_name);
    decoy.instance_type = "type-decoy".to_owned();
    cx.put_instance(&right).await?;
    cx.put_instance(&decoy).await?;
    let id = right.provider_id.clone().unwrap_or_default();
    cx.create_node(NodePlan::new(&node_name).provider_id(&id)).await?;
    let node = becomes_initialised(cx, "the taint goes", &node_name).await?;
    let missing = missing_metadata(&node, &right);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::unmet(
        "the Node is initialised from the instance its providerID names",
        missing.join(", "),
        node.observed(),
    ))
}

async fn reinitialises_idempotently(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    cx.put_instance(&instance).await?;
    cx.create_node(NodePlan::new(&instance.name)).await?;
    let mut whole = crate::addresses::node_with(&instance.addresses, &instance.name);
    cx.in_reported_order(&mut whole, &[]);
    let settled = || {
        let whole = whole.clone();
        judge(
            "no taint and all of the cloud's addresses",
            move |node: &crate::judges::MaybeNode| match node {
                Some(node) if !has_taint(node, T_UNINIT) && addresses(node) == whole => {
                    Seen::Yes(node.clone())
                }
                _ => Seen::NotYet(String::new()),
            },
        )
    };
    let limit = cx.limits().watch() + cx.limits().addresses_after_taint();
    let read = async || Ok(cx.find_node(&instance.name));
    let before = cx.eventually("the Node is initialised", limit, read, settled()).await?;
    cx.retaint(&instance.name).await?;
    let after = cx.eventually("the Node is initialised again", limit, read, settled()).await?;
    let facts = |node: &k8s_openapi::api::core::v1::Node| {
        let labels: Vec<_> = expected_labels(&instance).iter().map(|(key, _)| label(node, key)).collect();
        (labels, addresses(node), provider_id(node))
    };
    if facts(&before) != facts(&after) {
        return Err(Stop::unmet("nothing but the taint differs", before.observed(), after.observed()));
    }
    Ok(())
}

async fn does_not_wait_for_ready(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    cx.put_instance(&instance).await?;
    let plan = NodePlan::new(&instance.name).ready(Ready::False).unschedulable();
    let taints = vec![uninitialized(), taint("node.kubernetes.io/not-ready", "", "NoSchedule")];
    cx.create_node(plan.taints(taints)).await?;
    becomes_initialised(cx, "a NotReady, cordoned Node is initialised", &instance.name).await?;
    Ok(())
}
