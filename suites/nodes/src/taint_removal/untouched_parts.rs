//! What a repeated initialisation updates, and what it must not change on the Node and in the cloud (contract
//! NODE-INIT-16, -20, -26).

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use suites_common::joining::joined;
use tokio::time::Instant;

const INSTANCES: &[Capability] = &[Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-16", |cx| Box::pin(picks_up_what_has_changed(cx))).needs(INSTANCES),
    Check::of("NODE-INIT-20", |cx| Box::pin(leaves_the_rest_alone(cx))).needs(INSTANCES).takes(30),
    Check::of("NODE-INIT-20.pod-cidrs", |cx| Box::pin(leaves_pod_networks_to_the_cluster(cx)))
        .needs(INSTANCES)
        .with(&[Facility::PodCidrControl])
        .alone()
        .takes(6),
    Check::of("NODE-INIT-26", |cx| Box::pin(only_reads_the_cloud(cx))).by_calls().needs(INSTANCES).takes(2),
];

/// The time after which a CCM that caches data about machines is made to look once more.
const AGAIN: Duration = Duration::from_secs(3);

/// How long a CCM that assigns pod networks to Nodes may take for that.
const ALLOCATES: Duration = Duration::from_secs(3);

/// Matches a Node without a pod network.
fn without_pod_networks() -> Matcher<Option<Arc<Node>>> {
    matcher("has no pod network", |node: &Option<Arc<Node>>| {
        match node.as_ref().map(|node| pod_cidrs(node)).unwrap_or_default() {
            none if none.is_empty() => Observation::Matched(()),
            given => Observation::Impossible(format!("spec.podCIDRs {}", given.join(", "))),
        }
    })
    .expecting("an empty spec.podCIDRs, as the cluster's own allocator is kept from writing it")
}

async fn leaves_pod_networks_to_the_cluster(cx: &CheckCx) -> Verdict {
    cx.pod_networks_are_withheld().await?;
    let (_, node) = joined(cx, machine("a")).await?;
    node.keeps(without_pod_networks()).within(ALLOCATES).when("after its initialisation").await
}

async fn picks_up_what_has_changed(cx: &CheckCx) -> Verdict {
    let (machine, node) = joined(cx, machine("a")).await?;
    let [zone, region, kind] = ["zone-2", "region-2", "type-2"].map(|what| cx.name(what));
    let elsewhere = cx.reports_the_machines_location();
    if !elsewhere || !cx.declares(Capability::Zones) {
        cx.types_differ()?;
    }
    machine
        .change(|instance| {
            instance.instance_type = kind;
            if elsewhere {
                (instance.zone, instance.region) = (zone, region);
            }
        })
        .await?;
    let changed = Instant::now();
    loop {
        let fresh = changed.elapsed() >= cx.limits().instance_cache();
        node.retaint().await?;
        let seen = node.becomes(initialised()).when("again").await?;
        let claim = "has what the cloud says by now, on both generations of labels";
        match node.has_shown(&Some(seen), initialised_as(claim, &machine.as_reported())) {
            Err(_) if !fresh => pause(AGAIN).await,
            outcome => return outcome,
        }
    }
}

/// The key of a label and an annotation that another client has set.
const OWN: &str = "example.com/own";

/// The labels that a CCM writes again.
const OF_THE_CLOUD: [&str; 6] = [L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE];

/// Everything that the CCM must not change, as text; `own` are the labels that the Node had from the start.
fn facts(node: &Node, own: &BTreeSet<&String>) -> String {
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
    let labels: Vec<String> =
        own.iter().filter_map(|key| Some(format!("{key}={}", label(node, key)?))).collect();
    format!(
        "unschedulable {cordoned}, labels {}, annotation {}",
        labels.join(" "),
        node.annotations().get(OWN).map_or("none", String::as_str)
    )
}

/// The taints that the cluster's own controllers set and remove.
fn taints_of_the_cluster(node: &Node) -> BTreeSet<(&str, &str)> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints = taints.filter(|taint| taint.key.starts_with("node.kubernetes.io/"));
    taints.map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect()
}

/// The parts of a Node, before and after, that changed although only the CCM was expected to write to it.
fn altered(history: &[Version<Node>]) -> Option<(String, String)> {
    let versions: Vec<&Node> = history
        .iter()
        .filter(|version| version.change == Change::Applied)
        .map(|version| version.object.as_ref())
        .collect();
    let first = versions.first().map(|node| node.labels());
    let own = first
        .into_iter()
        .flat_map(BTreeMap::keys)
        .filter(|key| !OF_THE_CLOUD.contains(&key.as_str()))
        .collect();
    versions.windows(2).find_map(|pair| {
        let (before, after) = (pair[0], pair[1]);
        // A write that also changes the cluster's own taints is not the CCM's: older node lifecycle
        // controllers write all taints as they last saw them.
        let tainted = !has_taint(before, T_UNINIT)
            && has_taint(after, T_UNINIT)
            && taints_of_the_cluster(before) == taints_of_the_cluster(after);
        let moved = !pod_cidrs(before).is_empty() && pod_cidrs(before) != pod_cidrs(after);
        if tainted {
            Some(("initialised".to_owned(), format!("the taint {T_UNINIT}")))
        } else if moved {
            Some((pod_cidrs(before).join(", "), pod_cidrs(after).join(", ")))
        } else {
            {
                let (before, after) = (facts(before, &own), facts(after, &own));
                (before != after).then_some((before, after))
            }
        }
    })
}

/// Checks a cordoned Node and one that is not cordoned. One after the other, they get everything that makes a
/// CCM write to them.
async fn leaves_the_rest_alone(cx: &CheckCx) -> Verdict {
    let machines = [cx.machine(machine("cordoned")).await?, cx.machine(machine("open")).await?];
    let plan = |machine: &Machine<'_>| machine.node().label(OWN, "kept").annotation(OWN, "kept");
    let nodes = [cx.node(plan(&machines[0]).unschedulable()).await?, cx.node(plan(&machines[1])).await?];
    let both_stay = async |window: Duration, when: &'static str| {
        let both_of_them = (&nodes[0], &nodes[1]);
        both_of_them.keeps(both(present(), present())).within(window).when(when).await
    };
    for (machine, node) in machines.iter().zip(&nodes) {
        node.becomes(initialised()).await?;
        node.label(L_TYPE, Some("edited")).await?;
        machine.change(|instance| instance.addresses.truncate(1)).await?;
    }
    let life = cx.limits().life();
    both_stay(life, "with labels and addresses that are others").await?;
    for (machine, node) in machines.iter().zip(&nodes) {
        machine.stop().await?;
        node.set_ready(Ready::False).await?;
    }
    both_stay(cx.limits().life_of_machine(), "stopped and not Ready").await?;
    for (machine, node) in machines.iter().zip(&nodes) {
        machine.start().await?;
        node.set_ready(Ready::True).await?;
    }
    both_stay(life, "Ready again").await?;
    for node in &nodes {
        if let Some((before, after)) = altered(&node.history()?) {
            return Err(node.breaks("what is not the CCM's stays as it is", &before, &after));
        }
    }
    Ok(())
}

async fn only_reads_the_cloud(cx: &CheckCx) -> Verdict {
    let mark = cx.cloud().mark()?;
    let (_, a) = joined(cx, machine("a")).await?;
    let (_, b) = joined(cx, machine("b")).await?;
    // Whatever caused these calls: nothing else in the cluster gives a reason for one.
    let writes = cx.cloud().calls().of(&[Op::InstanceWrite]).since(mark);
    writes.keeps(no_calls()).when("that change machines").await?;
    let mut tags = 0;
    for node in [a, b] {
        let about = |ops: &'static [Op]| node.calls().of(ops).since(mark);
        about(MADE_OR_DELETED).is(no_calls()).await?;
        tags += about(&[Op::AuxUpdate]).list().await?.len();
    }
    cx.record("changes_that_may_be_tags", tags);
    if tags == 0 {
        return Ok(());
    }
    let why = format!(
        "{tags} calls changed something about the machines that may be tags, which a provider that documents them may set"
    );
    Err(CheckError::NotObservable(why))
}

/// Resources that belong to a machine, except its tags. Its routes and its place behind load balancers are
/// covered by other rows.
const MADE_OR_DELETED: &[Op] = &[Op::AuxCreate, Op::AuxDelete];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn version(spec: Value, own: &str) -> Version<Node> {
        let node = json!({"metadata": {"labels": {OWN: own}}, "spec": spec});
        let object = Arc::new(serde_json::from_value(node).expect("a Node"));
        Version { at: Instant::now(), change: Change::Applied, object }
    }

    #[test]
    fn only_fields_of_the_ccm_may_change() {
        let tainted =
            || json!({"taints": [{"key": T_UNINIT, "effect": "NoSchedule"}], "unschedulable": true});
        let plain = || json!({"unschedulable": true, "podCIDRs": ["10.0.0.0/24"], "providerID": "p://1"});
        assert_eq!(altered(&[version(tainted(), "a"), version(plain(), "a"), version(plain(), "a")]), None);
        let not_ready = json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
                               "unschedulable": true});
        assert_eq!(
            altered(&[version(not_ready.clone(), "a"), version(tainted(), "a")]),
            None,
            "the cluster's write"
        );
        let mut both = tainted();
        both["taints"].as_array_mut().expect("a list").push(not_ready["taints"][0].clone());
        assert!(altered(&[version(not_ready, "a"), version(both, "a")]).is_some());
        for wrong in [
            [version(plain(), "a"), version(tainted(), "a")],
            [version(plain(), "a"), version(plain(), "b")],
            [
                version(plain(), "a"),
                version(json!({"unschedulable": true, "podCIDRs": ["10.0.1.0/24"]}), "a"),
            ],
            [version(tainted(), "a"), version(json!({}), "a")],
        ] {
            assert!(altered(&wrong).is_some(), "{wrong:?}");
        }
    }
}
