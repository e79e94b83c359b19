//! Measures how long the row of one Node takes: prints microseconds. Run with `cargo bench -p embedded-tables`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use embedded_objects::kinds;
use embedded_tables::{Include, table};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

const TIMES: u32 = 20_000;

fn main() {
    let kind = kinds::find("", "v1", "nodes").expect("nodes are served");
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "reason": "Reason", "message": "message"});
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node-1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/hostname": "node-1"}},
        "spec": {"podCIDR": "10.244.1.0/24"},
        "status": {"conditions": [condition("MemoryPressure"), condition("Ready")],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
    let begin = Instant::now();
    for _ in 0..TIMES {
        let objects = std::slice::from_ref(&node);
        black_box(table(kind, objects, &Value::Null, Include::Metadata, "2026-01-01T00:10:00Z"));
    }
    println!("row of one Node  {:.1} µs", begin.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES));
}
