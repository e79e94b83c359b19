//! Nodes.
//!
//! Source: `pkg/registry/core/node/strategy.go`, `ValidateNode` and `ValidateNodeUpdate` in
//! `pkg/apis/core/validation/validation.go`, and the admission plugin `TaintNodesByCondition`.

use serde_json::{Value, json};

use super::strategy::Strategy;
use super::{Context, meta};
use embedded_objects::cause::Cause;
use embedded_objects::kinds::Kind;
use embedded_objects::rules::quantity::Quantity;
use embedded_objects::rules::{names, net};
use embedded_objects::value::{Edit as _, PathAccess as _};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) struct Node;

impl Strategy for Node {
    fn default(&self, object: &mut Value) {
        if !object.has("status.allocatable") && object.has("status.capacity") {
            let capacity = object.at("status.capacity").clone();
            object.put("status.allocatable", capacity);
        }
    }

    fn prepare_create(&self, object: &mut Value, _cx: &mut Context<'_>) {
        object.clear("spec.configSource");
        object.clear("status.config");
        let mut taints = object.list("spec.taints").to_vec();
        let tainted =
            taints.iter().any(|taint| taint.text("key") == NOT_READY && taint.text("effect") == "NoSchedule");
        if !tainted {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            object.put("spec.taints", taints);
        }
    }

    fn validate_create(&self, object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        whole(object)
    }

    fn prepare_update(&self, sub: Option<&str>, old: &Value, new: &mut Value, _cx: &mut Context<'_>) {
        if sub.is_some() {
            new.put("spec", old.at("spec").clone());
            if !old.has("status.config") {
                new.clear("status.config");
            }
        } else {
            new.put("status", old.at("status").clone());
            if !old.has("spec.configSource") {
                new.clear("spec.configSource");
            }
        }
    }

    fn validate_update(
        &self,
        kind: &Kind,
        sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        let mut causes = Vec::new();
        if sub.is_none() {
            causes.extend(meta::created(kind, new));
            causes.extend(whole(new));
        }
        causes.extend(meta::changed(old, new));
        causes.extend(resources(new));
        causes.extend(addresses(new));
        causes.extend(settled(old, new));
        causes.extend(taints(new));
        if old.text("spec.externalID") != new.text("spec.externalID") {
            causes.push(Cause::forbidden("spec.externalID", "may not be updated"));
        }
        causes
    }
}

fn whole(node: &Value) -> Vec<Cause> {
    let mut causes = taints(node);
    causes.extend(resources(node));
    causes.extend(pod_cidrs(node));
    causes
}

/// The causes for taints. The server reports these paths below metadata, although taints are in the spec.
fn taints(node: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let taints = node.list("spec.taints");
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    for (at, taint) in taints.iter().enumerate() {
        let path = format!("metadata.taints[{at}]");
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        let field = format!("{path}.key");
        causes.extend(names::qualified(key).iter().map(|fault| Cause::invalid(field.clone(), key, fault)));
        let faults = names::label_value(value);
        if !faults.is_empty() {
            causes.push(Cause::invalid(format!("{path}.value"), value, faults.join(";")));
        }
        let field = format!("{path}.effect");
        if effect.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if !effects.contains(&effect) {
            causes.push(Cause::not_supported(field, effect, &effects));
        }
        let same = |other: &&Value| other.text("key") == key && other.text("effect") == effect;
        if taints[..at].iter().any(|other| same(&other)) {
            let mut cause = Cause::duplicate(path, Value::Null);
            cause.message = format!(
                "Duplicate value: {}: taints must be unique by key and effect pair",
                internal_taint(taint)
            );
            causes.push(cause);
        }
    }
    causes
}

/// A taint as JSON, in the form of the server's internal type.
fn internal_taint(taint: &Value) -> String {
    let added = match taint.at("timeAdded") {
        Value::Null => "null".to_owned(),
        time => time.to_string(),
    };
    format!(
        "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{added}}}",
        json!(taint.text("key")),
        json!(taint.text("value")),
        json!(taint.text("effect"))
    )
}

fn resources(node: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for list in ["status.capacity", "status.allocatable"] {
        for (name, amount) in node.map(list) {
            let path = format!("{list}.{name}");
            let text = amount.as_str().unwrap_or_default();
            let Ok(amount) = Quantity::parse(text) else { continue };
            if amount.is_negative() {
                let why = "must be greater than or equal to 0";
                causes.push(Cause::invalid(path.clone(), text, why));
            }
            if is_whole_resource(name) && !amount.is_whole() {
                causes.push(Cause::invalid(path, text, "must be an integer"));
            }
        }
    }
    causes
}

/// Whether amounts of a resource must be whole numbers: all except cpu, memory and storage.
pub(super) fn is_whole_resource(name: &str) -> bool {
    let counted = ["pods", "services", "secrets", "configmaps", "resourcequotas", "replicationcontrollers"];
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    counted.contains(&name) || (!native && !name.starts_with("requests."))
}

fn pod_cidrs(node: &Value) -> Vec<Cause> {
    let path = "spec.podCIDRs";
    let cidrs: Vec<&str> = node.list(path).iter().filter_map(Value::as_str).collect();
    let mut causes: Vec<Cause> = cidrs
        .iter()
        .enumerate()
        .flat_map(|(at, cidr)| net::cidr_causes(&format!("{path}[{at}]"), cidr))
        .collect();
    if cidrs.len() > 1 {
        let six = cidrs.iter().filter(|cidr| cidr.contains(':')).count();
        if six == 0 || six == cidrs.len() || cidrs.len() > 2 {
            let why = "may specify no more than one CIDR for each IP family";
            causes.push(Cause::invalid(path, json!(cidrs), why));
        }
    }
    causes
}

fn addresses(node: &Value) -> Vec<Cause> {
    let addresses = node.list("status.addresses");
    let mut causes = Vec::new();
    for (at, address) in
        addresses.iter().enumerate().filter(|(at, address)| addresses[..*at].contains(address))
    {
        // The server shows its internal type, whose fields have their Go names.
        let mut cause = Cause::duplicate(format!("status.addresses[{at}]"), Value::Null);
        cause.message = format!(
            "Duplicate value: {{\"Type\":{},\"Address\":{}}}",
            json!(address.text("type")),
            json!(address.text("address"))
        );
        causes.push(cause);
    }
    causes
}

/// The causes for changes of fields that are immutable once they are set.
fn settled(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let why = |what: &str| format!("node updates may not change {what} except from \"\" to valid");
    let (before, after) = (old.list("spec.podCIDRs"), new.list("spec.podCIDRs"));
    if !before.is_empty() {
        let differing = if before.len() == after.len() {
            before.iter().zip(after).filter(|(before, after)| before != after).count()
        } else {
            1
        };
        causes.extend((0..differing).map(|_| Cause::forbidden("spec.podCIDRs", why("podCIDR"))));
    }
    let before = old.text("spec.providerID");
    if !before.is_empty() && before != new.text("spec.providerID") {
        causes.push(Cause::forbidden("spec.providerID", why("providerID")));
    }
    causes
}
