//! Taint removal: a Node starts with the uninitialized taint, and the CCM removes it when, and only when, it
//! knows the machine (contract NODE-INIT).

mod checked_node;
mod events;
mod failed_lookups;
mod ids;
mod missed_events;
mod odd_machines;
mod pace;
mod untouched_parts;
mod versions;

pub(crate) use checked_node::{looked_at, no_controller_looked};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use suites_common::failures::unless_it_lists;
use suites_common::joining::{joined, node_with, registered};
use tokio::time::Instant;
use versions::{first_version, has_had_everything};

/// The suite of taint removal.
pub const SUITE: Suite = Suite {
    name: "taint-removal",
    proves: "uninitialised Nodes are initialised: the taint is removed if, and only if, the cloud knows the machine",
    judges: Party::Ccm,
    tables: &[
        CHECKS,
        ids::CHECKS,
        odd_machines::CHECKS,
        missed_events::CHECKS,
        failed_lookups::CHECKS,
        pace::CHECKS,
        untouched_parts::CHECKS,
        events::CHECKS,
        &failed_lookups::FAILED_LOOKUPS,
    ],
};

const INSTANCES: &[Capability] = &[Capability::Instances];

const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-01", |cx| Box::pin(removes_only_its_taint(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-02", |cx| Box::pin(initialises_earlier_nodes(cx)))
        .needs(INSTANCES)
        .with(&[Facility::CcmControl])
        .on_a_fresh_cluster(),
    Check::of("NODE-INIT-04", |cx| Box::pin(initialises_atomically(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-05", |cx| Box::pin(addresses_follow_the_taint(cx))).needs(INSTANCES).takes(8),
    Check::of("NODE-INIT-08", |cx| Box::pin(prefers_provider_id(cx))).needs(INSTANCES).takes(13),
    Check::of("NODE-INIT-15", |cx| Box::pin(reinitialises_idempotently(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-17", |cx| Box::pin(overwrites_no_other_writer(cx)))
        .needs(INSTANCES)
        .with(&[Facility::Barriers]),
    Check::of("NODE-INIT-19", |cx| Box::pin(takes_the_taint_in_any_form(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-22", |cx| Box::pin(makes_label_values_valid(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-18", |cx| Box::pin(does_not_wait_for_ready(cx))).needs(INSTANCES),
];

/// Matches a Node whose taints under `example.com/` are exactly these, in this order. The controller manager
/// adds taints of its own to Nodes; only those of the check are compared.
fn keeps_taints(kept: &'static [&'static str]) -> Matcher<Option<Arc<Node>>> {
    let claim = "keeps content and order of all other taints";
    holds(claim, move |node: &Option<Arc<Node>>| {
        let taints = node.as_ref().map(|node| taints(node)).unwrap_or_default();
        taints.iter().filter(|t| t.starts_with("example.com/")).eq(kept)
    })
    .expecting(kept.join(", "))
}

/// The Node before and after the write that removed the uninitialized taint.
fn untainting(history: &[Version<Node>]) -> Option<(&Node, &Node)> {
    let applied: Vec<&Node> =
        history.iter().filter(|v| v.change == Change::Applied).map(|v| v.object.as_ref()).collect();
    let took_it = |pair: &&[&Node]| has_taint(pair[0], T_UNINIT) && !has_taint(pair[1], T_UNINIT);
    applied.windows(2).find(took_it).map(|pair| (pair[0], pair[1]))
}

/// All taints except the uninitialized one.
fn others(node: &Node) -> Vec<String> {
    taints(node).into_iter().filter(|taint| !taint.starts_with(T_UNINIT)).collect()
}

async fn removes_only_its_taint(cx: &CheckCx) -> Verdict {
    const KEPT: &[&str] = &[
        "example.com/first=1:NoSchedule",
        "example.com/second=:NoExecute",
        "example.com/third=x:PreferNoSchedule",
    ];
    let machine = cx.machine(machine("a")).await?;
    let taints = vec![
        taint("example.com/first", "1", "NoSchedule"),
        taint(T_NOT_READY, "", "NoSchedule"),
        uninitialized(),
        taint("example.com/second", "", "NoExecute"),
        taint("example.com/third", "x", "PreferNoSchedule"),
    ];
    let node = cx.node(machine.node().taints(taints).ready(Ready::False)).await?;
    let seen = node.becomes(initialised()).await?;
    node.has_shown(&Some(seen), keeps_taints(KEPT))?;
    // Other controllers change taints too, but not in the write that removes this one.
    let history = node.history()?;
    let Some((before, after)) = untainting(&history) else {
        return Err(CheckError::Error("the watch's history lost the write that took the taint".to_owned()));
    };
    if others(before) == others(after) {
        return Ok(());
    }
    let promise = "the write that takes the uninitialized taint leaves all others as they are";
    Err(node.breaks(promise, &others(before).join(", "), &others(after).join(", ")))
}

async fn takes_the_taint_in_any_form(cx: &CheckCx) -> Verdict {
    let forms =
        [("NoExecute", "true"), ("PreferNoSchedule", "true"), ("NoSchedule", ""), ("NoSchedule", "other")];
    let mut nodes = Vec::new();
    for (at, (effect, value)) in forms.into_iter().enumerate() {
        let machine = cx.machine(machine(&format!("form-{at}"))).await?;
        let node = cx.node(machine.node().taints(vec![taint(T_UNINIT, value, effect)])).await?;
        nodes.push((node, format!("though its taint has effect {effect} and value '{value}'")));
    }
    for (node, form) in nodes {
        node.becomes(initialised()).when(form).await?;
    }
    Ok(())
}

async fn makes_label_values_valid(cx: &CheckCx) -> Verdict {
    cx.types_differ()?;
    // The second is longer than a label's value may be, and ends with a character that is not allowed there.
    for (suffix, kind) in [("odd", "weird type/1".to_owned()), ("long", format!("{}._", "x".repeat(70)))] {
        let machine = cx.machine(machine(suffix).with(|instance| instance.instance_type = kind)).await?;
        let node = cx.node(machine.node()).await?;
        let kind = machine.instance().instance_type;
        let seen = node.becomes(initialised()).when(format!("though its instance type is '{kind}'")).await?;
        let typeless = Instance { instance_type: String::new(), ..machine.as_reported() };
        node.has_shown(
            &Some(seen),
            initialised_as("has everything else that the cloud supplies", &typeless),
        )?;
    }
    Ok(())
}

/// Matches a Node with a label, an annotation and a taint that another client has set.
fn keeps_what_others_wrote() -> Matcher<Option<Arc<Node>>> {
    holds("keeps what others wrote meanwhile", |node: &Option<Arc<Node>>| {
        node.as_ref().is_some_and(|node| {
            label(node, "example.com/x").as_deref() == Some("1")
                && node.annotations().get("example.com/y").is_some_and(|value| value == "1")
                && taints(node).iter().any(|taint| taint == "example.com/z=1:NoSchedule")
        })
    })
    .expecting("label example.com/x=1, annotation example.com/y=1 and taint example.com/z=1:NoSchedule")
}

async fn overwrites_no_other_writer(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let look_up = machine.cloud().holds(&[Op::InstanceGet]).await?;
    let node = cx.node(machine.node()).await?;
    look_up.is_reached().await.map_err(|stop| unless_it_lists(cx, stop))?;
    // The node lifecycle controller of Kubernetes 1.20 also removes every taint that was added since it last
    // looked.
    node.becomes(looked_at()).await.map_err(no_controller_looked)?;
    let labels = json!({"labels": {"example.com/x": "1"}, "annotations": {"example.com/y": "1"}});
    node.patch(&json!({"metadata": labels})).await?;
    node.adds_taint(taint("example.com/z", "1", "NoSchedule")).await?;
    look_up.release().await?;
    let seen = node.becomes(initialised()).when("though others wrote it meanwhile").await?;
    node.has_shown(&Some(seen), keeps_what_others_wrote())
}

async fn initialises_earlier_nodes(cx: &CheckCx) -> Verdict {
    cx.withdraw_ccm().await?;
    let (_, first) = registered(cx, machine("a")).await?;
    let (_, second) = registered(cx, machine("b")).await?;
    cx.deploy_ccm().await?;
    for node in [first, second] {
        node.becomes(initialised()).when("though older than the CCM").await?;
    }
    Ok(())
}

async fn initialises_atomically(cx: &CheckCx) -> Verdict {
    let (machine, node) = joined(cx, machine("a")).await?;
    has_had_everything(&machine, &node)
}

/// The time between two Nodes that join. With three Nodes, one joins early in every period of ten seconds,
/// wherever it begins. Addresses that come only with a periodic refresh are late for one of them.
const APART: Duration = Duration::from_secs(4);

async fn addresses_follow_the_taint(cx: &CheckCx) -> Verdict {
    let mut slowest = Duration::ZERO;
    for suffix in ["a", "b", "c"] {
        let began = Instant::now();
        let (machine, node) = joined(cx, machine(suffix)).await?;
        let instance = machine.instance();
        let mut wanted = node_with(&instance.addresses, &instance.name);
        cx.in_reported_order(&mut wanted, &[]);
        let addressed = has_addresses(wanted);
        node.becomes(addressed)
            .within(cx.limits().addresses_after_taint())
            .when("after the taint went")
            .await?;
        let history = node.history()?;
        let untainted = first_version(&history, |n| !has_taint(n, T_UNINIT));
        let addressed = first_version(&history, |n| addresses(n).len() > 1);
        if let (Some(untainted), Some(addressed)) = (untainted, addressed) {
            slowest = slowest.max(addressed.at.saturating_duration_since(untainted.at));
        }
        pause(APART.saturating_sub(began.elapsed())).await;
    }
    cx.record("addresses_after_taint_ms", slowest.as_millis());
    Ok(())
}

async fn prefers_provider_id(cx: &CheckCx) -> Verdict {
    let name = cx.name("n");
    let right = machine("other-name").with(|instance| instance.instance_type = "type-right".to_owned());
    let right = cx.machine(right).await?;
    let decoy =
        machine("decoy").named(&name).with(|instance| instance.instance_type = "type-decoy".to_owned());
    cx.machine(decoy).await?;
    let node = cx.node(right.node().named(&name).provider_id(&right.provider_id())).await?;
    let instance = right.as_reported();
    if cx.reports_the_machines_type() {
        let seen = node.becomes(initialised()).await?;
        let claim = "is initialised from the machine its providerID names";
        node.has_shown(&Some(seen), initialised_as(claim, &instance))?;
    }
    // The host name that the cloud reports replaces the kubelet's.
    let host = if cx.reports_host_names() { &instance.name } else { &name };
    let mut wanted = node_with(&instance.addresses, host);
    cx.in_reported_order(&mut wanted, &[]);
    let limit = cx.limits().watch() + cx.limits().addresses_after_taint();
    node.becomes(settled(wanted.clone())).within(limit).await?;
    // A later refresh may choose differently.
    let kept = node.keeps(has_addresses(wanted)).within(Limits::STATUS_PERIOD + Duration::from_secs(2));
    kept.when("when they have been refreshed, too").await
}

/// Matches a Node without taints and with all of these addresses; returns the Node.
fn settled(whole: Vec<(String, String)>) -> Matcher<Option<Arc<Node>>, Arc<Node>> {
    matcher("is initialised with all of the cloud's addresses", move |node: &Option<Arc<Node>>| match node {
        Some(node) if !has_taint(node, T_UNINIT) && addresses(node) == whole => {
            Observation::Matched(node.clone())
        }
        _ => Observation::Pending(String::new()),
    })
}

async fn reinitialises_idempotently(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let own = machine.node().label("example.com/own", "kept").annotation("example.com/own", "kept");
    let node = cx.node(own).await?;
    let instance = machine.as_reported();
    let mut whole = node_with(&instance.addresses, &instance.name);
    cx.in_reported_order(&mut whole, &[]);
    let limit = cx.limits().watch() + cx.limits().addresses_after_taint();
    let before = node.becomes(settled(whole.clone())).within(limit).await?;
    node.has_shown(&Some(before.clone()), has_labels(vec![("example.com/own", "kept".to_owned())]))?;
    node.retaint().await?;
    let after = node.becomes(settled(whole)).within(limit).when("again").await?;
    if facts(&before) == facts(&after) {
        return Ok(());
    }
    Err(node.breaks("nothing but the taint differs", &facts(&before), &facts(&after)))
}

/// Everything that a repeated initialisation must not change, as text. Only the check's own annotations are
/// included, because controllers write some at any time.
fn facts(node: &Node) -> String {
    let own = node.annotations().get("example.com/own").map_or("none", String::as_str);
    format!(
        "labels {}, annotation example.com/own {own}, addresses {}, providerID {}",
        json!(node.labels()),
        show_addresses(&addresses(node)),
        provider_id(node).unwrap_or_default(),
    )
}

async fn does_not_wait_for_ready(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let taints = vec![uninitialized(), taint(T_NOT_READY, "", "NoSchedule")];
    let plan = machine.node().ready(Ready::False).unschedulable().taints(taints);
    cx.node(plan).await?.becomes(initialised()).when("though NotReady and cordoned").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(value: serde_json::Value) -> Option<Arc<Node>> {
        serde_json::from_value(value).ok().map(Arc::new)
    }

    #[test]
    fn other_taints_are_compared_in_order_and_without_the_controller_managers() {
        let of = |keys: &[&str]| {
            let taints: Vec<_> = keys.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
            node(json!({"spec": {"taints": taints}}))
        };
        let kept = || keeps_taints(&["example.com/a=:NoSchedule", "example.com/b=:NoSchedule"]);
        let yes = of(&["example.com/a", T_NOT_READY, "example.com/b"]);
        assert_eq!(kept().matches(&yes), Observation::Matched(()));
        let version = |keys: &[&str]| Version {
            at: Instant::now(),
            change: Change::Applied,
            object: of(keys).expect("a Node"),
        };
        let history = [&["a", T_UNINIT][..], &["a", T_UNINIT, "b"], &["b"], &["b", "c"]].map(version);
        let (before, after) = untainting(&history).expect("it was taken");
        assert_eq!(
            (others(before).join(","), others(after).join(",")),
            ("a=:NoSchedule,b=:NoSchedule".into(), "b=:NoSchedule".into())
        );
        assert!(untainting(&history[..2]).is_none() && untainting(&history[2..]).is_none());
        for other in [of(&["example.com/b", "example.com/a"]), of(&["example.com/a"]), None] {
            assert_eq!(kept().matches(&other), Observation::when(false));
        }
    }
}
