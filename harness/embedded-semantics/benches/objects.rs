//! Measures how long the crate takes for one Node: prints microseconds. Run with `cargo bench -p
//! embedded-semantics`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use embedded_objects::kinds::{self, Kind};
use embedded_objects::{patch, typed, wire};
use embedded_semantics::alloc::Allocator;
use embedded_semantics::lifecycle::{self, Context};
use serde_json::{Value, json};

/// How long each figure is measured.
const TIME: Duration = Duration::from_millis(500);

fn context(allocator: &mut Allocator) -> Context<'_> {
    Context {
        now: "2026-01-01T00:00:00Z",
        now_micro: "2026-01-01T00:00:00.000000Z",
        uid: "00000000-0000-0000-0000-000000000001",
        suffix: "abcde",
        allocator,
        minor: 36,
        dry_run: false,
    }
}

fn measure(what: &str, mut work: impl FnMut()) {
    let begin = Instant::now();
    let mut count = 0u32;
    while begin.elapsed() < TIME {
        work();
        count += 1;
    }
    println!("{what:<24} {:>9.1} µs", begin.elapsed().as_secs_f64() * 1e6 / f64::from(count.max(1)));
}

fn node() -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Reason", "message": "message"})
    };
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {
            "kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"], "taints": [
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [condition("MemoryPressure"), condition("DiskPressure"), condition("Ready")],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "node-1"}]}})
}

fn main() {
    let kind: &Kind = kinds::find("", "v1", "nodes").expect("nodes are served");
    println!("{:<24} {:>12}", "of one Node", "time each");
    let mut allocator = Allocator::new(&["10.96.0.0/16"]).expect("a right network");
    let body = node();
    let mut stored =
        lifecycle::create(kind, body.clone(), &mut context(&mut allocator)).expect("a right node");
    stored["metadata"]["resourceVersion"] = "1".into();
    let text =
        r#"{"metadata":{"labels":{"topology.kubernetes.io/zone":"z"}},"spec":{"providerID":"fake://1"}}"#;
    let bytes = wire::encode_protobuf(&stored).expect("nodes have a type");
    measure("decode", || drop(black_box(typed::decode_object(black_box(&body)))));
    measure("create", || {
        drop(black_box(lifecycle::create(kind, body.clone(), &mut context(&mut allocator))));
    });
    measure("update", || {
        let cx = &mut context(&mut allocator);
        drop(black_box(lifecycle::update(kind, None, &stored, stored.clone(), cx)));
    });
    measure("strategic merge", || drop(black_box(patch::strategic(kind, &stored, text))));
    measure("managedFields, creation", || {
        let mut new = stored.clone();
        patch::note_update(kind, "bench", &Value::Null, &mut new, "2026-01-01T00:00:00Z", None);
        black_box(new);
    });
    let mut owned = stored.clone();
    patch::note_update(kind, "bench", &Value::Null, &mut owned, "2026-01-01T00:00:00Z", None);
    measure("managedFields, change", || {
        let mut new = owned.clone();
        new["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z".into();
        patch::note_update(kind, "other", &owned, &mut new, "2026-01-01T00:00:01Z", None);
        black_box(new);
    });
    measure("JSON out", || drop(black_box(wire::json(&stored))));
    measure("protobuf out", || drop(black_box(wire::encode_protobuf(&stored))));
    measure("protobuf in", || drop(black_box(wire::decode_protobuf(&bytes))));
}
