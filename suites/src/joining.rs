//! How most checks of Nodes begin: a machine exists in the cloud, its Node registers, the CCM initialises it.

use harness::check::Stop;
use harness::cx::matchers::initialised;
use harness::cx::{CheckCx, Machine, MachinePlan, Node, Subject, machine};

/// A machine in the cloud and its Node, registered.
pub(crate) async fn registered<'a>(
    cx: &'a CheckCx,
    plan: MachinePlan,
) -> Result<(Machine<'a>, Node<'a>), Stop> {
    let machine = cx.machine(plan).await?;
    let node = cx.node(machine.node()).await?;
    Ok((machine, node))
}

/// A machine in the cloud and its Node, registered and initialised.
pub(crate) async fn joined<'a>(cx: &'a CheckCx, plan: MachinePlan) -> Result<(Machine<'a>, Node<'a>), Stop> {
    let (machine, node) = registered(cx, plan).await?;
    node.becomes(initialised()).await?;
    Ok((machine, node))
}

/// Sees a Node of another machine initialised: the CCM is at work, and what it does not do it leaves undone.
pub(crate) async fn ccm_initialises_others(cx: &CheckCx) -> Result<(), Stop> {
    let (_, witness) = registered(cx, machine("witness")).await?;
    witness.becomes(initialised()).when("with nothing in its way").await?;
    Ok(())
}
