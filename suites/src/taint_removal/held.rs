//! Nodes that have to stay tainted for a while: the cloud fails, or does not know the Node's address.

use crate::failures::{FAILURES, for_each_failure, is_met};
use crate::joining::ccm_initialises_others;
use harness::check::{Capability, Stop, Verdict};
use harness::cloud::Op;
use harness::cx::matchers::{initialised, untouched};
use harness::cx::{Check, CheckCx, Subject, address, machine};
use harness::k8s::A_NODEIP;
use serde_json::json;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::must(
    "NODE-INIT-13",
    "a provided node IP that the cloud does not report keeps the Node tainted until it is corrected",
    "k8s.io/cloud-provider node_controller.go getNodeModifiersFromCloudProvider; node/helpers/address.go",
    |cx| Box::pin(insists_on_the_provided_ip(cx)),
)
.needs(&[Capability::Instances])
.takes(31)];

pub(super) const FAILED_LOOKUPS: [Check; FAILURES.len()] = for_each_failure(
    "NODE-INIT-10",
    "a cloud error leaves the Node untouched, and it is initialised once the cloud answers again",
    "k8s.io/cloud-provider node_controller.go syncNode, processNextWorkItem",
    35,
    |cx, failure| Box::pin(waits_out_a_cloud_error(cx, failure)),
);

async fn waits_out_a_cloud_error(cx: &CheckCx, failure: usize) -> Verdict {
    let failure = &FAILURES[failure];
    let machine = cx.machine(machine("a")).await?;
    let began = Instant::now();
    // A look-up may go by name or by id; a listing is not about one object and stays whole.
    let fault = machine.cloud().meets(failure.name, failure.effects).to(&[Op::InstanceGet]).await?;
    let node = cx.node(machine.node()).await?;
    is_met(cx, &fault, cx.limits().watch()).await?;
    let outage = cx.limits().quiet_nodes();
    node.keeps(untouched()).within(outage).when("while its machine cannot be looked up").await?;
    fault.clear().await?;
    // The back-off has grown with the outage, as long as that really was, and with every change of the Node in it: recovery
    // may take as long again (contract section 21).
    let recovery = node.becomes(initialised()).within(cx.limits().nodes_after(began.elapsed()));
    recovery.when("without a restart, once the cloud answers again").await?;
    Ok(())
}

async fn insists_on_the_provided_ip(cx: &CheckCx) -> Verdict {
    let [reported, provided] = ["192.0.2.10", "192.0.2.99"].map(|ip| cx.own_address(ip));
    let machine = cx.machine(machine("held").addresses(vec![address("InternalIP", &reported)])).await?;
    let held = cx.node(machine.node().annotation(A_NODEIP, &provided)).await?;
    ccm_initialises_others(cx).await?;
    let quiet = held.keeps(untouched()).within(cx.limits().quiet_nodes());
    quiet.when("while the cloud does not report its provided IP").await?;
    machine.change(|instance| instance.addresses = vec![address("InternalIP", &provided)]).await?;
    let changed = Instant::now();
    // A touch skips the back-off (contract NODE-INIT-13). What the CCM knows of the machine may be old at the first.
    for touch in 1.. {
        held.patch(&json!({"metadata": {"annotations": {"example.com/touched": touch.to_string()}}})).await?;
        let fresh = changed.elapsed() >= cx.limits().instance_cache();
        match held.becomes(initialised()).when("once the cloud reports the IP").await {
            Err(Stop::Unmet(_)) if !fresh => {}
            outcome => return outcome.map(drop),
        }
    }
    Ok(())
}
