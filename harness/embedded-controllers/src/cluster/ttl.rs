//! An annotation of Nodes tells kubelets how long they may cache Secrets and ConfigMaps: longer in large clusters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// The steps: a cluster moves down one step when it has fewer Nodes than the first number, and up one when it
/// has more than the second; the third number is the seconds of the step. Source:
/// `pkg/controller/ttl/ttl_controller.go`.
const STEPS: [(usize, usize, u32); 5] =
    [(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

/// The step of a cluster with this many Nodes; `before` is its previous step.
fn step(before: usize, nodes: usize) -> usize {
    let mut at = before.min(STEPS.len() - 1);
    while nodes > STEPS[at].1 {
        at += 1;
    }
    while nodes < STEPS[at].0 {
        at -= 1;
    }
    at
}

/// Registers for changes of Nodes and starts the worker.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<String>> = Queue::new();
    let (own, known, at) = (queue.clone(), world.clone(), Arc::new(AtomicUsize::new(0)));
    let current = at.clone();
    world.nodes.on_change(move |before, after| {
        let Some(node) = after else { return };
        if before.is_none() {
            let was = current.load(Ordering::Relaxed);
            current.store(step(was, known.nodes.list().len()), Ordering::Relaxed);
        }
        own.add(node.name_any());
    });
    let world = world.clone();
    queue.clone().spawn(&world.tasks.clone(), "ttl", 4, move |name| {
        let (world, at) = (world.clone(), at.clone());
        async move { look(&world, &name, STEPS[at.load(Ordering::Relaxed)].2).await }
    });
}

async fn look(world: &ControllerContext, name: &str, seconds: u32) -> Outcome {
    let Some(node) = world.node(name) else { return Ok(Next::Done) };
    let wanted = seconds.to_string();
    if node.annotations().get(ANNOTATION) == Some(&wanted) {
        return Ok(Next::Done);
    }
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: wanted}}}));
    match writing::api::<Node>(&world.client()).patch(name, &PatchParams::default(), &patch).await {
        Ok(changed) => world.nodes.observe(changed),
        Err(error) if writing::is_not_found(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_follows_the_size_and_not_every_change_of_it() {
        assert_eq!(step(0, 100), 0);
        assert_eq!(step(0, 101), 1);
        assert_eq!(step(1, 95), 1, "a little fewer change nothing");
        assert_eq!(step(1, 89), 0);
        assert_eq!(STEPS[step(0, 5000)].2, 300);
    }
}
