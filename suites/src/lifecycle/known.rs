//! How most checks of the lifecycle begin: a machine, and its Node that has been initialised before.

use harness::check::{Capability, Stop};
use harness::cx::{CheckCx, Machine, Node, Ready, machine, taint};

pub(super) const INSTANCES: &[Capability] = &[Capability::Instances];
pub(super) const LOOKUP: &str =
    "k8s.io/cloud-provider node_lifecycle_controller.go ensureNodeExistsByProviderID; provider error mapping";

/// A taint of the check's own, which has to stay.
pub(super) const KEPT: &str = "example.com/kept=1:NoSchedule";

/// A machine in the cloud and its Node. It has no uninitialized taint, so nothing but the lifecycle loop has reason to
/// look at it.
pub(super) async fn known<'a>(
    cx: &'a CheckCx,
    suffix: &str,
    ready: Ready,
) -> Result<(Machine<'a>, Node<'a>), Stop> {
    let machine = cx.machine(machine(suffix)).await?;
    let node = register(cx, &machine, ready).await?;
    Ok((machine, node))
}

pub(super) async fn register<'a>(
    cx: &'a CheckCx,
    machine: &Machine<'a>,
    ready: Ready,
) -> Result<Node<'a>, Stop> {
    let plan = machine.node().provider_id(&machine.provider_id()).ready(ready);
    cx.node(plan.taints(vec![taint("example.com/kept", "1", "NoSchedule")])).await
}
