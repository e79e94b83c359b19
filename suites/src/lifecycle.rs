//! Node lifecycle: Nodes of machines that are gone are deleted, all others are not (contract NODE-LIFE).

use crate::judges::{MaybeNode, present};
use crate::taint_removal::INSTANCE_READS;
use crate::troubles;
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cloud::{Instance, InstanceState};
use harness::cx::{Check, CheckCx, NodePlan, Ready, Suite, taint};
use harness::k8s::{T_SHUT, taints};
use harness::probe::{absent, holds};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "node-lifecycle",
    proves: "a Node goes when its machine is gone for certain and never otherwise; a shut-down machine is marked",
    tables: &[CHECKS],
};

const INSTANCES: &[Capability] = &[Capability::Instances];
const MONITOR: &str = "k8s.io/cloud-provider node_lifecycle_controller.go MonitorNodes";

const CHECKS: &[Check] = &[
    Check::must("NODE-LIFE-01", "a Ready Node is never deleted, even when its machine is gone", MONITOR, |cx| {
        Box::pin(keeps_ready_nodes(cx))
    })
    .needs(INSTANCES)
    .takes(25),
    Check::must("NODE-LIFE-02", "a NotReady Node whose machine is gone is deleted", MONITOR, |cx| {
        Box::pin(deletes_gone_nodes(cx))
    })
    .needs(INSTANCES)
    .takes(5),
    Check::must(
        "NODE-LIFE-03",
        "a failed look-up is never taken for a machine that is gone",
        "k8s.io/cloud-provider node_lifecycle_controller.go ensureNodeExistsByProviderID; provider error mapping",
        |cx| Box::pin(keeps_nodes_on_errors(cx)),
    )
    .needs(INSTANCES)
    .with(&[Facility::Faults])
    .takes(30),
    Check::must(
        "NODE-LIFE-04",
        "a stopped machine still exists: its Node is not deleted",
        "k8s.io/cloud-provider cloud.go InstanceExists",
        |cx| Box::pin(keeps_stopped_nodes(cx)),
    )
    .needs(INSTANCES)
    .takes(25),
    Check::must(
        "NODE-LIFE-05",
        "a NotReady Node of a stopped machine gets the shutdown taint once, other taints are kept",
        "k8s.io/cloud-provider node_lifecycle_controller.go; node/helpers/taints.go",
        |cx| Box::pin(marks_stopped_nodes(cx)),
    )
    .needs(INSTANCES)
    .takes(15),
    Check::must("NODE-LIFE-06", "the shutdown taint goes when the Node is Ready again", MONITOR, |cx| {
        Box::pin(unmarks_ready_nodes(cx))
    })
    .needs(INSTANCES)
    .takes(10),
];

/// A NotReady Node with its machine in the cloud. It has no uninitialized taint, so nothing but the lifecycle loop
/// has reason to look at it.
async fn not_ready_node(cx: &CheckCx, suffix: &str) -> Result<Instance, Stop> {
    let instance = cx.instance(suffix);
    cx.put_instance(&instance).await?;
    create(cx, &instance, Ready::False).await?;
    Ok(instance)
}

async fn create(cx: &CheckCx, instance: &Instance, ready: Ready) -> Verdict {
    let id = instance.provider_id.clone().unwrap_or_default();
    let plan = NodePlan::new(&instance.name).provider_id(&id).ready(ready);
    cx.create_node(plan.taints(vec![taint("example.com/kept", "1", "NoSchedule")])).await?;
    Ok(())
}

/// Takes a machine away and sees its NotReady Node deleted: proof that the lifecycle loop is at work.
async fn sees_deletion(cx: &CheckCx, instance: &Instance) -> Verdict {
    cx.delete_instance(instance).await?;
    cx.eventually(
        "a NotReady Node whose machine is gone is deleted",
        cx.limits().life(),
        async || Ok(cx.find_node(&instance.name)),
        absent("Node"),
    )
    .await
}

async fn keeps_ready_nodes(cx: &CheckCx) -> Verdict {
    let ready = cx.instance("ready");
    cx.put_instance(&ready).await?;
    create(cx, &ready, Ready::True).await?;
    let witness = not_ready_node(cx, "witness").await?;
    cx.delete_instance(&ready).await?;
    sees_deletion(cx, &witness).await?;
    cx.consistently(
        "a Ready Node stays though its machine is gone",
        cx.limits().quiet_life(),
        async || Ok(cx.find_node(&ready.name)),
        present(),
    )
    .await
}

async fn deletes_gone_nodes(cx: &CheckCx) -> Verdict {
    let instance = not_ready_node(cx, "a").await?;
    let other = not_ready_node(cx, "other").await?;
    sees_deletion(cx, &instance).await?;
    if cx.find_node(&other.name).is_none() {
        return Err(Stop::unmet(
            "only the Node of the missing machine goes",
            "the other Node is still there",
            "it is gone",
        ));
    }
    Ok(())
}

async fn keeps_nodes_on_errors(cx: &CheckCx) -> Verdict {
    let mut cases = Vec::new();
    for trouble in troubles::all() {
        let instance = cx.instance(trouble.name);
        cx.put_instance(&instance).await?;
        let met = trouble.inject(cx, INSTANCE_READS, &[&instance.id]).await?;
        create(cx, &instance, Ready::False).await?;
        cases.push((instance, met));
    }
    for (instance, trouble) in &cases {
        cx.eventually(
            &format!("the CCM asks for the NotReady Node's machine and meets {}", trouble.name),
            cx.limits().life() + cx.limits().watch(),
            async || trouble.hits(cx).await,
            holds(format!("a look-up of {} that fails", instance.id), |hits: &u64| *hits > 0),
        )
        .await?;
    }
    let names: Vec<(String, String)> =
        cases.iter().map(|(instance, met)| (met.name.to_owned(), instance.name.clone())).collect();
    cx.consistently(
        "no Node is deleted while its machine cannot be looked up",
        cx.limits().quiet_life(),
        async || {
            let gone = names.iter().filter(|(_, name)| cx.find_node(name).is_none());
            Ok(gone.map(|(what, name)| format!("{name} deleted on {what}")).collect::<Vec<String>>())
        },
        holds("every Node still there", |gone: &Vec<String>| gone.is_empty()),
    )
    .await
}

async fn keeps_stopped_nodes(cx: &CheckCx) -> Verdict {
    let mut stopped = not_ready_node(cx, "stopped").await?;
    let witness = not_ready_node(cx, "witness").await?;
    stopped.state = InstanceState::Stopped;
    cx.put_instance(&stopped).await?;
    sees_deletion(cx, &witness).await?;
    cx.consistently(
        "the Node of a stopped machine stays",
        cx.limits().quiet_life(),
        async || Ok(cx.find_node(&stopped.name)),
        present(),
    )
    .await
}

/// Exactly one shutdown taint in the form the contract gives, and the check's own taint beside it.
fn marked() -> harness::probe::Judge<MaybeNode, ()> {
    let wanted = format!("{T_SHUT}=:NoSchedule");
    holds(format!("taint {wanted} once, and example.com/kept=1:NoSchedule"), move |node: &MaybeNode| {
        let Some(node) = node else { return false };
        let list = taints(node);
        list.iter().filter(|t| **t == wanted).count() == 1
            && list.iter().any(|t| t == "example.com/kept=1:NoSchedule")
    })
}

async fn marks_stopped_nodes(cx: &CheckCx) -> Verdict {
    let mut stopped = not_ready_node(cx, "a").await?;
    stopped.state = InstanceState::Stopped;
    cx.put_instance(&stopped).await?;
    let read = async || Ok(cx.find_node(&stopped.name));
    cx.eventually("the shutdown taint appears", cx.limits().life(), read, marked()).await?;
    // Two more passes of the loop must not add it again.
    let read = async || Ok(cx.find_node(&stopped.name));
    cx.consistently("it is there once", cx.limits().life(), read, marked()).await
}

async fn unmarks_ready_nodes(cx: &CheckCx) -> Verdict {
    let mut instance = not_ready_node(cx, "a").await?;
    instance.state = InstanceState::Stopped;
    cx.put_instance(&instance).await?;
    let read = async || Ok(cx.find_node(&instance.name));
    cx.eventually("the shutdown taint appears", cx.limits().life(), read, marked()).await?;
    instance.state = InstanceState::Running;
    cx.put_instance(&instance).await?;
    cx.set_ready(&instance.name, "True").await?;
    let unmarked = holds("no shutdown taint, and example.com/kept=1:NoSchedule", |node: &MaybeNode| {
        let list = node.as_ref().map(|n| taints(n)).unwrap_or_default();
        !list.iter().any(|t| t.starts_with(T_SHUT))
            && list.iter().any(|t| t == "example.com/kept=1:NoSchedule")
    });
    let read = async || Ok(cx.find_node(&instance.name));
    cx.eventually("the shutdown taint goes once the Node is Ready", cx.limits().life(), read, unmarked).await
}
