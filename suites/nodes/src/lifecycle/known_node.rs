//! The first steps of most checks of the lifecycle (a machine and its Node, initialised before), and what
//! these checks look for: a deleted Node, and the taint of a machine that is shut down.

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as api;
use std::sync::Arc;

pub(super) const INSTANCES: &[Capability] = &[Capability::Instances];
pub(super) const SHUTDOWN: &[Capability] = &[Capability::Instances, Capability::Shutdown];

/// A taint that the check itself sets. It has to stay.
pub(super) const KEPT: &str = "example.com/kept=1:NoSchedule";

/// Creates a machine in the cloud and its Node. The Node has no uninitialized taint, so only the lifecycle
/// loop has a reason to look at it.
pub(super) async fn known<'a>(
    cx: &'a CheckCx,
    suffix: &str,
    ready: Ready,
) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    let machine = cx.machine(machine(suffix)).await?;
    let node = register(cx, &machine, ready).await?;
    Ok((machine, node))
}

pub(super) async fn register<'a>(
    cx: &'a CheckCx,
    machine: &Machine<'a>,
    ready: Ready,
) -> Result<Node<'a>, CheckError> {
    let plan = machine.node().provider_id(&machine.provider_id()).ready(ready);
    cx.node(plan.taints(vec![taint("example.com/kept", "1", "NoSchedule")])).await
}

/// Deletes a machine and waits until its NotReady Node is deleted. This proves that the lifecycle loop is working.
pub(super) async fn sees_deletion(cx: &CheckCx, machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
    machine.delete().await?;
    let limit = cx.limits().life_of_machine();
    node.becomes(gone()).within(limit).when("after its machine, as it is NotReady").await
}

/// Matches exactly one shutdown taint in the form that the contract gives, and the check's own taint.
pub(super) fn marked() -> Matcher<Option<Arc<api::Node>>> {
    let wanted = format!("{T_SHUT}=:NoSchedule");
    let expected = format!("taint {wanted} once, and {KEPT}");
    holds("has the shutdown taint once", move |node: &Option<Arc<api::Node>>| {
        let list = node.as_ref().map(|n| taints(n)).unwrap_or_default();
        list.iter().filter(|t| **t == wanted).count() == 1 && list.iter().any(|t| t == KEPT)
    })
    .expecting(expected)
}

/// Matches the check's own taint without a shutdown taint.
pub(super) fn unmarked() -> Matcher<Option<Arc<api::Node>>> {
    holds("has no shutdown taint", |node: &Option<Arc<api::Node>>| {
        let list = node.as_ref().map(|n| taints(n)).unwrap_or_default();
        !list.iter().any(|t| t.starts_with(T_SHUT)) && list.iter().any(|t| t == KEPT)
    })
    .expecting(format!("no shutdown taint, and {KEPT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

    fn node(taints: &[(&str, &str)]) -> Option<Arc<api::Node>> {
        let taints: Vec<_> = taints
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value, "effect": "NoSchedule"}))
            .collect();
        serde_json::from_value(json!({"spec": {"taints": taints}})).ok().map(Arc::new)
    }

    #[test]
    fn a_stopped_machine_is_marked_once_and_keeps_other_taints() {
        let kept = ("example.com/kept", "1");
        let yes = |matcher: &Matcher<Option<Arc<api::Node>>>, seen: &Option<Arc<api::Node>>| {
            matcher.matches(seen) == Observation::Matched(())
        };
        let (one, two) = (node(&[kept, (T_SHUT, "")]), node(&[kept, (T_SHUT, ""), (T_SHUT, "")]));
        assert!(yes(&marked(), &one) && !yes(&unmarked(), &one));
        for other in [&two, &node(&[kept, (T_SHUT, "x")]), &node(&[(T_SHUT, "")]), &None] {
            assert!(!yes(&marked(), other) && !yes(&unmarked(), other));
        }
        assert!(yes(&unmarked(), &node(&[kept])) && !yes(&marked(), &node(&[kept])));
        assert!(!yes(&unmarked(), &node(&[])));
    }
}
