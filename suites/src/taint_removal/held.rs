//! Nodes that have to stay tainted for a while: the cloud fails, or does not know the Node's address.

use crate::judges::{MaybeNode, initialised, untouched};
use crate::nodes::becomes_initialised;
use crate::troubles;
use harness::check::{Stop, Verdict};
use harness::cloud::Op;
use harness::cx::{CheckCx, NodePlan, address};
use harness::k8s::A_NODEIP;
use harness::probe::{Seen, holds};
use serde_json::json;

pub(super) async fn waits_out_cloud_errors(cx: &CheckCx) -> Verdict {
    // One Node per kind of trouble, side by side; each fault is bound to its own instance.
    let mut cases = Vec::new();
    for trouble in troubles::all() {
        let instance = cx.instance(trouble.name);
        cx.put_instance(&instance).await?;
        // A look-up may go by name or by id; a listing is not about one object and stays whole.
        let met = trouble.inject(cx, &[Op::InstanceGet], &[&instance.name, &instance.id]).await?;
        cx.create_node(NodePlan::new(&instance.name)).await?;
        cases.push((instance, met));
    }
    for (_, trouble) in &cases {
        let promise = format!("the CCM asks for the machine and gets {}", trouble.name);
        let failing = holds("at least one look-up that fails", |hits: &u64| *hits > 0);
        let met =
            cx.eventually(&promise, cx.limits().watch(), async || trouble.hits(cx).await, failing).await;
        if met.is_err() && !cx.journal(|entry| entry.op == Op::InstanceList)?.is_empty() {
            return Err(Stop::NotObservable(
                "the CCM lists instances instead of looking one up, and a fault in listing would disturb all checks".to_owned(),
            ));
        }
        met?;
    }
    let names: Vec<String> = cases.iter().map(|(instance, _)| instance.name.clone()).collect();
    cx.consistently(
        "no Node is touched while its machine cannot be looked up",
        cx.limits().quiet_nodes(),
        async || Ok(names.iter().map(|name| cx.find_node(name)).collect::<Vec<_>>()),
        holds("every Node tainted, without providerID and labels", |nodes: &Vec<MaybeNode>| {
            nodes.iter().all(|node| matches!(untouched().judge(node), Seen::Yes(())))
        }),
    )
    .await?;
    for (_, trouble) in &cases {
        trouble.clear(cx).await?;
    }
    // The back-off has grown with the outage: recovery may take as long again (contract section 21).
    let limit = cx.limits().nodes_after(cx.limits().quiet_nodes());
    for (instance, trouble) in &cases {
        cx.eventually(
            &format!("the Node that met {} is initialised without a restart", trouble.name),
            limit,
            async || Ok(cx.find_node(&instance.name)),
            initialised(),
        )
        .await?;
    }
    Ok(())
}

pub(super) async fn insists_on_the_provided_ip(cx: &CheckCx) -> Verdict {
    // A witness without the mismatch proves that the CCM is at work all the while.
    let mut held = cx.instance("held");
    held.addresses = vec![address("InternalIP", "192.0.2.10")];
    let witness = cx.instance("witness");
    cx.put_instance(&held).await?;
    cx.put_instance(&witness).await?;
    cx.create_node(NodePlan::new(&held.name).annotation(A_NODEIP, "192.0.2.99")).await?;
    cx.create_node(NodePlan::new(&witness.name)).await?;
    becomes_initialised(cx, "a Node without the annotation is initialised", &witness.name).await?;
    cx.consistently(
        "a Node whose provided IP the cloud does not report is not touched",
        cx.limits().quiet_nodes(),
        async || Ok(cx.find_node(&held.name)),
        untouched(),
    )
    .await?;
    held.addresses = vec![address("InternalIP", "192.0.2.99")];
    cx.put_instance(&held).await?;
    cx.patch_node(&held.name, &json!({"metadata": {"annotations": {"example.com/touched": "1"}}})).await?;
    becomes_initialised(cx, "the Node is initialised once the cloud reports the IP", &held.name).await?;
    Ok(())
}
