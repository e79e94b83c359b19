//! The node set behind load balancers (contract SVC-NODES).

use super::{balancer_becomes, provisioned};
use harness::check::{Capability, Stop, Verdict};
use harness::cloud::Instance;
use harness::cx::{Check, CheckCx, NodePlan, ServiceRef, load_balancer};
use harness::k8s::L_EXCL;
use serde_json::{Value, json};

const HANDLERS: &str = "k8s.io/cloud-provider service/controller.go node handlers";
const BOTH: &[Capability] = &[Capability::LoadBalancer, Capability::Instances];

pub(super) const CHECKS: [Check; 3] = [
    Check::must("SVC-NODES-01", "a new Node becomes a backend of every load balancer", HANDLERS, |cx| {
        Box::pin(adds_new_nodes(cx))
    })
    .needs(BOTH),
    Check::must("SVC-NODES-02", "a deleted Node leaves every load balancer", HANDLERS, |cx| {
        Box::pin(removes_deleted_nodes(cx))
    })
    .needs(BOTH),
    Check::must(
        "SVC-NODES-03",
        "the exclusion label takes a Node out, and its removal brings it back",
        "k8s.io/cloud-provider service/controller.go nodeIncludedPredicate",
        |cx| Box::pin(honours_the_exclusion_label(cx)),
    )
    .needs(BOTH),
];

/// A Node with its instance, as a joining machine brings it.
async fn join(cx: &CheckCx, suffix: &str) -> Result<Instance, Stop> {
    let instance = cx.instance(suffix);
    cx.put_instance(&instance).await?;
    cx.create_node(NodePlan::new(&instance.name).backend()).await?;
    Ok(instance)
}

async fn is_backend(cx: &CheckCx, service: &ServiceRef, instance: &Instance, when: &str) -> Verdict {
    let id = instance.id.clone();
    let promise = format!("the Node is a backend {when}");
    balancer_becomes(cx, service, &promise, format!("{id} among the backends"), move |lb| {
        lb.backends.contains(&id)
    })
    .await
}

async fn is_no_backend(cx: &CheckCx, service: &ServiceRef, instance: &Instance, when: &str) -> Verdict {
    let id = instance.id.clone();
    let promise = format!("the Node is no backend {when}");
    balancer_becomes(cx, service, &promise, format!("{id} not among the backends"), move |lb| {
        !lb.backends.contains(&id)
    })
    .await
}

async fn adds_new_nodes(cx: &CheckCx) -> Verdict {
    let (first, _) = provisioned(cx, load_balancer("first").port(80)).await?;
    let (second, _) = provisioned(cx, load_balancer("second").port(80)).await?;
    let instance = join(cx, "new").await?;
    is_backend(cx, &first, &instance, "of the first Service after it joined").await?;
    is_backend(cx, &second, &instance, "of the second Service after it joined").await
}

async fn removes_deleted_nodes(cx: &CheckCx) -> Verdict {
    let instance = join(cx, "leaving").await?;
    let (service, _) = provisioned(cx, load_balancer("web").port(80)).await?;
    is_backend(cx, &service, &instance, "while it is there").await?;
    cx.delete_node(&instance.name).await?;
    is_no_backend(cx, &service, &instance, "after its deletion").await
}

async fn honours_the_exclusion_label(cx: &CheckCx) -> Verdict {
    let instance = join(cx, "labelled").await?;
    let (service, _) = provisioned(cx, load_balancer("web").port(80)).await?;
    is_backend(cx, &service, &instance, "without the label").await?;
    for value in ["", "true", "1", "yes"] {
        cx.patch_node(&instance.name, &json!({"metadata": {"labels": {L_EXCL: value}}})).await?;
        is_no_backend(cx, &service, &instance, &format!("with the label's value {value:?}")).await?;
        cx.patch_node(&instance.name, &json!({"metadata": {"labels": {L_EXCL: Value::Null}}})).await?;
        is_backend(cx, &service, &instance, &format!("once the label (value {value:?}) is removed")).await?;
    }
    Ok(())
}
