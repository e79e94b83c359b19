//! Sends arbitrary bodies and patches for a fixed time: there is always an answer, and never a panic.

use std::time::{Duration, Instant};

use embedded_objects::kinds::{self, ALL};
use embedded_objects::select::{Fields, Labels};
use embedded_objects::{fields, patch, typed, wire};
use embedded_semantics::alloc::Allocator;
use embedded_semantics::lifecycle;
use serde_json::{Map, Value, json};

use crate::server::context;

/// How long the test runs; `EMBEDDED_FUZZ_SECONDS` sets another time.
fn time() -> Duration {
    let asked = std::env::var("EMBEDDED_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or(2))
}

/// The seed of the inputs; `EMBEDDED_FUZZ_SEED` sets another one.
fn seed() -> u64 {
    let asked = std::env::var("EMBEDDED_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    asked.filter(|seed| *seed != 0).unwrap_or(0x9e37_79b9_7f4a_7c15)
}

/// How many bodies must have been valid enough to be stored, patched and updated.
const ENOUGH: u32 = 50;
/// After how many bodies the test stops trying to reach that number.
const MOST_ROUNDS: u32 = 100_000;

/// A small generator of numbers (xorshift64*), seeded so that a failure can be reproduced.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or_default() % below.max(1)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.next(of.len())]
    }
}

const WORDS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "ports",
    "port",
    "nodePort",
    "type",
    "clusterIP",
    "clusterIPs",
    "taints",
    "key",
    "effect",
    "labels",
    "finalizers",
    "$patch",
    "$retainKeys",
    "$setElementOrder/ports",
    "addresses",
    "$deleteFromPrimitiveList/finalizers",
    "template",
    "containers",
    "image",
    "resources",
    "limits",
    "cpu",
    "data",
    "selector",
    "matchLabels",
    "ipFamilies",
    "ipFamilyPolicy",
    "loadBalancer",
    "ingress",
    "ip",
    "capacity",
    "managedFields",
    "fieldsV1",
    "f:spec",
    "k:{\"port\":80}",
    "ownerReferences",
    "volumes",
    "tolerations",
    "",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "None",
    "LoadBalancer",
    "ClusterIP",
    "NodePort",
    "ExternalName",
    "Local",
    "replace",
    "delete",
    "merge",
    "10.96.0.7",
    "::1",
    "1.2.3.4.5",
    "2Gi",
    "1e999999999",
    "-0.1n",
    "2026-01-01T00:00:00Z",
    "é\u{0}\u{fffd}",
    "25%",
    "é%",
    "v1",
    "RequireDualStack",
    "IPv6",
    "a/b/c",
    "metadata.name=x",
    "/a~1b/-1",
];

fn value(numbers: &mut Numbers, depth: usize) -> Value {
    match numbers.next(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => (numbers.next(2) == 0).into(),
        2 => json!(*numbers.pick(&[0i64, 1, 80, -1, 65536, i64::MAX, i64::MIN, 30000])),
        3 => json!(1.5e300),
        4 => (*numbers.pick(TEXTS)).into(),
        5 => {
            let count = numbers.next(4);
            (0..count).map(|_| value(numbers, depth - 1)).collect()
        }
        _ => object(numbers, depth - 1),
    }
}

fn object(numbers: &mut Numbers, depth: usize) -> Value {
    let mut members = Map::new();
    for _ in 0..numbers.next(6) {
        let name = (*numbers.pick(WORDS)).to_owned();
        members.insert(name, value(numbers, depth));
    }
    Value::Object(members)
}

/// Replaces one value somewhere inside.
fn disturb(of: &mut Value, numbers: &mut Numbers) {
    let stop = numbers.next(4) == 0;
    match of {
        Value::Object(members) if !stop && !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = numbers.pick(&names).clone();
            if let Some(member) = members.get_mut(&name) {
                disturb(member, numbers);
            }
        }
        Value::Array(items) if !stop && !items.is_empty() => {
            let at = numbers.next(items.len());
            disturb(&mut items[at], numbers);
        }
        other => *other = value(numbers, 3),
    }
}

fn right(kind: &kinds::Kind) -> Value {
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = match kind.kind {
        "Service" => json!({"type": "LoadBalancer", "ports": [{"port": 80, "targetPort": "x"}]}),
        "Pod" => template["spec"].clone(),
        "Deployment" | "DaemonSet" | "ReplicaSet" => {
            json!({"selector": {"matchLabels": {"a": "b"}}, "template": template})
        }
        "Node" => json!({"taints": [{"key": "a", "effect": "NoSchedule"}]}),
        _ => json!({}),
    };
    let namespace = if kind.namespaced { json!("default") } else { Value::Null };
    json!({"apiVersion": kind.api_version(), "kind": kind.kind, "spec": spec,
        "metadata": {"name": "x", "namespace": namespace, "labels": {"a": "b"}, "finalizers": ["a.b/c"]}})
}

const PATTERNS: &[&str] = &[
    "^[a-z]+$",
    "\\d",
    "[\\w-]",
    "\\Q[\\E",
    "[[:alpha:]",
    "(a|b)*",
    "{1,1000}",
    "\\b",
    "\\p{L}",
    "[^]]",
    "(?i)",
    "&&",
    "--",
    "\\",
    "[",
    "]",
    "(",
    ")",
    "*",
    "\u{e9}",
    "\\x{110000}",
    "\\1",
];

/// A definition whose schema has every kind of rule, and a pattern that may be invalid.
fn definition(numbers: &mut Numbers) -> Value {
    let pattern: String = (0..numbers.next(5)).map(|_| *numbers.pick(PATTERNS)).collect();
    let text = json!({"type": "string", "pattern": pattern, "maxLength": 5, "default": "x"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["name"], "properties": {
            "name": text,
            "ports": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                "items": {"type": "object", "required": ["port"], "properties": {
                    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                    "key": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a", "None"]}},
            "data": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "type": {"type": "string", "not": {"enum": ["delete"]}, "nullable": true}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "odds.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "odds", "singular": "odd", "kind": "Odd",
            "listKind": "OddList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

#[test]
fn nothing_panics_whatever_comes() {
    let mut numbers = Numbers(seed());
    let mut allocator = Allocator::new(&["10.96.0.0/24", "fd00::/112"]).expect("right networks");
    let end = Instant::now() + time();
    let (mut accepted, mut rounds) = (0u32, 0u32);
    // Only a few definitions: a kind is never released.
    let mut budget = kinds::Budget::default();
    let defined: Vec<&kinds::Kind> = (0..8)
        .filter_map(|_| Some(kinds::defined(&definition(&mut numbers), &mut budget).ok()?.stored))
        .collect();
    let definitions = ALL.iter().find(|kind| kind.kind == "CustomResourceDefinition");
    // A slow machine needs more than the set time for enough valid bodies.
    while Instant::now() < end || (accepted < ENOUGH && rounds < MOST_ROUNDS) {
        rounds += 1;
        let (kind, mut body) = match (numbers.next(8), definitions) {
            (0, Some(kind)) => (kind, definition(&mut numbers)),
            (1, _) if !defined.is_empty() => {
                let kind = *numbers.pick(&defined);
                let mut body = right(kind);
                body["spec"] = object(&mut numbers, 3);
                (kind, body)
            }
            _ => {
                let kind = numbers.pick(&ALL);
                (kind, right(kind))
            }
        };
        let _warned = lifecycle::warnings(kind, None, None, &body);
        for _ in 0..numbers.next(3) {
            disturb(&mut body, &mut numbers);
        }
        let text = body.to_string();
        let cut = text.floor_char_boundary(numbers.next(text.len() + 1));
        let _refused = fields::read(kind, &text[..cut], fields::Mode::Strict).is_err();
        let Ok(created) = lifecycle::create(kind, body, &mut context(&mut allocator)) else { continue };
        accepted += 1;
        let mut old = created;
        old["metadata"]["resourceVersion"] = "1".into();
        let change = object(&mut numbers, 4);
        let operations = json!([{"op": numbers.pick(&["add", "remove", "replace", "test", "copy", "move"]),
            "path": format!("/{}/{}", numbers.pick(WORDS), numbers.next(3)), "from": "/metadata",
            "value": value(&mut numbers, 2)}]);
        let patched = [
            patch::strategic(kind, &old, &change.to_string()),
            patch::merge(&old, &change.to_string()),
            patch::json(&old, &operations.to_string()),
        ];
        for new in patched.into_iter().flatten() {
            let sub = *numbers.pick(&[None, Some("status")]);
            let _updated = lifecycle::update(kind, sub, &old, new, &mut context(&mut allocator)).is_ok();
        }
        if let Ok(mut bytes) = wire::encode_protobuf(&old) {
            let at = numbers.next(bytes.len());
            bytes[at] = bytes[at].wrapping_add(1 + u8::try_from(numbers.next(200)).unwrap_or_default());
            let _decoded = wire::decode_protobuf(&bytes).is_ok();
        }
        let _decoded = typed::decode_object(&change).is_ok();
        let selector = format!(
            "{}{}{}",
            numbers.pick(TEXTS),
            numbers.pick(&["=", "!=", " in ", ",", "!"]),
            numbers.pick(TEXTS)
        );
        let _labels = Labels::parse(&selector).is_ok();
        let _fields = Fields::parse(kind, &selector).is_ok();
        lifecycle::released(kind, &old, &mut allocator);
    }
    assert!(accepted >= ENOUGH, "only {accepted} bodies were right enough to go on with");
}
