//! Assigns each Node the first free range of pod addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::json;

use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::settings::{PodCidrs, PodRange};
use embedded_runtime::writing;

/// The pause between two looks whether ranges are still withheld.
const WITHHELD: Duration = Duration::from_millis(500);

/// Which ranges are taken. A pure data structure.
#[derive(Debug, Default)]
struct Ranges {
    by_node: BTreeMap<String, u32>,
    taken: BTreeSet<u32>,
    /// All ranges before this one are taken.
    first_free: u32,
}

impl Ranges {
    fn take(&mut self, node: &str, index: u32) {
        self.by_node.insert(node.to_owned(), index);
        self.taken.insert(index);
    }

    fn release(&mut self, node: &str) {
        if let Some(index) = self.by_node.remove(node) {
            self.taken.remove(&index);
            self.first_free = self.first_free.min(index);
        }
    }

    /// The range of this node, or the first free one; `None` if all are taken.
    fn allocate(&mut self, node: &str, count: u32) -> Option<u32> {
        if let Some(known) = self.by_node.get(node) {
            return Some(*known);
        }
        while self.taken.contains(&self.first_free) {
            self.first_free = self.first_free.saturating_add(1);
        }
        let index = self.first_free;
        (index < count).then(|| {
            self.take(node, index);
            index
        })
    }
}

/// The cluster's ranges; a node has the part with the same index in each.
#[derive(Debug, Clone)]
struct Shape(Vec<PodRange>);

impl Shape {
    fn count(&self) -> u32 {
        self.0.iter().map(|range| range.count()).min().unwrap_or(0)
    }

    fn parts(&self, index: u32) -> Vec<String> {
        self.0.iter().filter_map(|range| range.part(index)).map(|part| part.to_string()).collect()
    }

    /// The index of a node's part; `None` if its ranges are not part of these.
    fn index(&self, parts: &[String]) -> Option<u32> {
        let parts = parts.iter().filter_map(|part| part.parse::<IpNet>().ok());
        parts.into_iter().find_map(|part| self.0.iter().find_map(|range| range.index(part)))
    }
}

/// The ranges of a Node.
fn has(node: &Node) -> Vec<String> {
    let spec = node.spec.as_ref();
    let all = spec.and_then(|spec| spec.pod_cidrs.clone()).unwrap_or_default();
    if all.is_empty() { spec.and_then(|spec| spec.pod_cidr.clone()).into_iter().collect() } else { all }
}

/// Registers for changes and starts the worker, if Nodes get ranges.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let PodCidrs::Allocated(ranges) = &world.settings.pod_cidrs else { return };
    let shape = Arc::new(Shape(ranges.clone()));
    let ranges = Arc::new(Mutex::new(Ranges::default()));
    let queue: Arc<Queue<String>> = Queue::new();
    let (own, known, divided) = (queue.clone(), ranges.clone(), shape.clone());
    world.nodes.on_change(move |before, after| {
        let mut ranges = known.lock().unwrap_or_else(PoisonError::into_inner);
        match (before, after) {
            (_, Some(node)) => {
                let has = has(node);
                match divided.index(&has) {
                    Some(index) => ranges.take(&node.name_any(), index),
                    None if has.is_empty() => own.add(node.name_any()),
                    None => {}
                }
            }
            (Some(node), None) => ranges.release(&node.name_any()),
            (None, None) => {}
        }
    });
    let known = world.clone();
    queue.spawn(&world.tasks, "node-ipam", 8, move |name| {
        let (world, ranges, shape) = (known.clone(), ranges.clone(), shape.clone());
        async move { look(&world, &ranges, &shape, &name).await }
    });
}

async fn look(world: &ControllerContext, ranges: &Mutex<Ranges>, shape: &Shape, name: &str) -> Outcome {
    let Some(node) = world.node(name) else { return Ok(Next::Done) };
    if !has(&node).is_empty() {
        return Ok(Next::Done);
    }
    if world.withholds_pod_cidrs() {
        return Ok(Next::After(WITHHELD));
    }
    let index = ranges.lock().unwrap_or_else(PoisonError::into_inner).allocate(name, shape.count());
    let Some(index) = index else {
        tracing::warn!(node = name, "all ranges of pod addresses are taken: this Node gets none");
        return Ok(Next::Done);
    };
    let parts = shape.parts(index);
    let api = writing::api::<Node>(&world.client());
    let change = json!({"spec": {"podCIDR": parts.first(), "podCIDRs": parts}});
    match writing::merge_if_unchanged(&api, &world.nodes, node.as_ref(), change).await {
        Err(error) if writing::is_not_found(&error) => Ok(Next::Done),
        other => other.map(|()| Next::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    #[test]
    fn ranges_are_unique_and_come_back() {
        let range = PodRange { cluster: net("10.244.0.0/22"), node_prefix: 24 };
        let mut ranges = Ranges::default();
        let mut given = |name: &str| ranges.allocate(name, range.count()).and_then(|index| range.part(index));
        assert_eq!(given("a"), Some(net("10.244.0.0/24")));
        assert_eq!(given("b"), Some(net("10.244.1.0/24")));
        assert_eq!(given("a"), Some(net("10.244.0.0/24")), "asked twice");
        assert_eq!(given("c"), Some(net("10.244.2.0/24")));
        assert_eq!(given("d"), Some(net("10.244.3.0/24")));
        assert_eq!(given("e"), None);
        ranges.release("b");
        assert_eq!(ranges.allocate("e", range.count()), Some(1));
        assert_eq!(range.index(net("10.244.3.0/24")), Some(3));
        for foreign in ["10.245.0.0/24", "10.244.0.0/16", "10.244.4.0/24", "fd00::/64"] {
            assert_eq!(range.index(net(foreign)), None, "{foreign}");
        }
    }

    #[test]
    fn two_families_are_divided_side_by_side() {
        let shape =
            Shape(vec![PodRange::DEFAULT, PodRange { cluster: net("fd00:10:244::/56"), node_prefix: 64 }]);
        assert_eq!(shape.count(), 256);
        let parts = shape.parts(3);
        assert_eq!(parts, ["10.244.3.0/24", "fd00:10:244:3::/64"]);
        assert_eq!(shape.index(&parts), Some(3));
        assert_eq!(shape.index(&parts[1..]), Some(3));
        assert_eq!(shape.index(&[]), None);
    }
}
