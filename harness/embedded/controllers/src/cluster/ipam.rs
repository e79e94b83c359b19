//! Each Node gets the first free range of pod addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::json;

use crate::queue::{Next, Outcome, Queue};
use crate::settings::PodCidrs;
use crate::world::World;
use crate::writing;

/// Which ranges are taken. Pure.
#[derive(Debug, Default)]
struct Ranges {
    by_node: BTreeMap<String, u32>,
    taken: BTreeSet<u32>,
    /// No range before this one is free.
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

    /// The range of this node, or the first free one; `None`: all are taken.
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

/// The shape of the cluster's range.
#[derive(Debug, Clone, Copy)]
struct Shape {
    first: Ipv4Addr,
    prefix: u8,
    node_prefix: u8,
}

impl Shape {
    fn count(self) -> u32 {
        1_u32.checked_shl(u32::from(self.node_prefix.saturating_sub(self.prefix))).unwrap_or(u32::MAX)
    }

    fn range(self, index: u32) -> String {
        let step = 1_u32.checked_shl(32_u32.saturating_sub(u32::from(self.node_prefix))).unwrap_or(0);
        let address = u32::from(self.first).wrapping_add(index.wrapping_mul(step));
        format!("{}/{}", Ipv4Addr::from(address), self.node_prefix)
    }

    fn index(self, range: &str) -> Option<u32> {
        let (address, prefix) = range.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let shift = 32_u32.checked_sub(u32::from(self.node_prefix))?;
        let offset = u32::from(address).checked_sub(u32::from(self.first))?.checked_shr(shift)?;
        (prefix.parse::<u8>().ok()? == self.node_prefix && offset < self.count()).then_some(offset)
    }
}

/// Registers for changes and starts the worker, where Nodes get ranges.
pub(super) fn start(world: &Arc<World>) {
    let PodCidrs::Allocated { first, prefix, node_prefix } = world.settings.pod_cidrs else { return };
    let shape = Shape { first, prefix, node_prefix };
    let ranges = Arc::new(Mutex::new(Ranges::default()));
    let queue: Arc<Queue<String>> = Queue::new();
    let (own, known) = (queue.clone(), ranges.clone());
    world.nodes.on_change(move |before, after| {
        let mut ranges = known.lock().unwrap_or_else(PoisonError::into_inner);
        match (before, after) {
            (_, Some(node)) => {
                let range = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref());
                match range.and_then(|range| shape.index(range)) {
                    Some(index) => ranges.take(&node.name_any(), index),
                    None if range.is_none() => own.add(node.name_any()),
                    None => {}
                }
            }
            (Some(node), None) => ranges.release(&node.name_any()),
            (None, None) => {}
        }
    });
    let known = world.clone();
    queue.spawn(&world.tasks, "node-ipam", 8, move |name| {
        let (world, ranges) = (known.clone(), ranges.clone());
        async move { look(&world, &ranges, shape, &name).await }
    });
}

async fn look(world: &World, ranges: &Mutex<Ranges>, shape: Shape, name: &str) -> Outcome {
    let Some(node) = world.node(name) else { return Ok(Next::Done) };
    if node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some()) {
        return Ok(Next::Done);
    }
    let index = ranges.lock().unwrap_or_else(PoisonError::into_inner).allocate(name, shape.count());
    let Some(index) = index else {
        tracing::warn!(node = name, "all ranges of pod addresses are taken: this Node gets none");
        return Ok(Next::Done);
    };
    let range = shape.range(index);
    let api = writing::api::<Node>(&world.client());
    let change = json!({"spec": {"podCIDR": range, "podCIDRs": [range]}});
    match writing::merge_if_unchanged(&api, &world.nodes, node.as_ref(), change).await {
        Err(error) if writing::is_not_found(&error) => Ok(Next::Done),
        other => other.map(|()| Next::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_unique_and_come_back() {
        let shape = Shape { first: Ipv4Addr::new(10, 244, 0, 0), prefix: 22, node_prefix: 24 };
        let mut ranges = Ranges::default();
        let mut given = |name: &str| ranges.allocate(name, shape.count()).map(|index| shape.range(index));
        assert_eq!(given("a").as_deref(), Some("10.244.0.0/24"));
        assert_eq!(given("b").as_deref(), Some("10.244.1.0/24"));
        assert_eq!(given("a").as_deref(), Some("10.244.0.0/24"), "asked twice");
        assert_eq!(given("c").as_deref(), Some("10.244.2.0/24"));
        assert_eq!(given("d").as_deref(), Some("10.244.3.0/24"));
        assert_eq!(given("e"), None);
        ranges.release("b");
        assert_eq!(
            ranges.allocate("e", shape.count()).map(|index| shape.range(index)).as_deref(),
            Some("10.244.1.0/24")
        );
        assert_eq!(shape.index("10.244.3.0/24"), Some(3));
        for foreign in ["10.245.0.0/24", "10.244.0.0/16", "x", "fd00::/64"] {
            assert_eq!(shape.index(foreign), None, "{foreign}");
        }
    }
}
