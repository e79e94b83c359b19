//! Changes of where the CCM's Pods may run, and of how many there are.

use super::set::{Change, Set, list, pick};
use fastrand::Rng;
use serde_json::json;

pub(super) const CHANGES: &[Change] = &[
    tolerates_less,
    tolerates_less,
    tolerates_with_another_effect,
    tolerates_for_a_time,
    tolerates_everything,
    on_other_nodes,
    requires_a_label,
    apart_from_its_replicas,
    next_to_a_pod,
    spread,
    another_number,
    on_its_own_network,
    another_resolver,
    another_scheduler,
    replaced_differently,
    on_another_port,
];

fn tolerates_less(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let tolerations = set.spec()?["tolerations"].as_array_mut().filter(|list| !list.is_empty())?;
    let gone = tolerations.remove(rng.usize(..tolerations.len()));
    Some(format!("without the toleration {}", gone["key"].as_str().unwrap_or("of everything")))
}

fn tolerates_with_another_effect(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let tolerations = set.spec()?["tolerations"].as_array_mut().filter(|list| !list.is_empty())?;
    let at = rng.usize(..tolerations.len());
    let effect = pick(rng, &["NoExecute", "PreferNoSchedule"]);
    if tolerations[at]["effect"] == effect {
        return None;
    }
    tolerations[at]["effect"] = json!(effect);
    Some(format!("toleration {at} has the effect {effect}"))
}

fn tolerates_for_a_time(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let tolerations = set.spec()?["tolerations"].as_array_mut()?;
    let mut of_effect = tolerations.iter_mut().filter(|one| one["effect"] == "NoExecute");
    let toleration = of_effect.next()?;
    let seconds = rng.u32(1..900);
    toleration["tolerationSeconds"] = json!(seconds);
    Some(format!("a NoExecute taint is tolerated for {seconds} s"))
}

fn tolerates_everything(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let toleration = match rng.bool() {
        true => json!({"operator": "Exists"}),
        false => json!({"operator": "Exists", "effect": "NoSchedule"}),
    };
    let tolerations = list(set.spec()?, "tolerations")?;
    if tolerations.contains(&toleration) {
        return None;
    }
    tolerations.push(toleration.clone());
    Some(format!("the toleration {toleration}"))
}

/// Labels that Nodes have, that only control planes have, that the CCM sets, and one that is never set.
const LABELS: [&str; 5] = [
    "kubernetes.io/os=linux",
    "node-role.kubernetes.io/control-plane=",
    "topology.kubernetes.io/region=ccm-1",
    "node.kubernetes.io/instance-type=m1.large",
    "example.org/never-set=true",
];

fn on_other_nodes(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let label = pick(rng, &LABELS);
    let (key, value) = label.split_once('=')?;
    let selector = json!({key: value});
    let spec = set.spec()?;
    if spec["nodeSelector"] == selector {
        return None;
    }
    spec["nodeSelector"] = selector;
    Some(format!("the node selector {label}"))
}

fn requires_a_label(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (key, _) = pick(rng, &LABELS).split_once('=')?;
    let operator = pick(rng, &["Exists", "DoesNotExist"]);
    let term = json!({"matchExpressions": [{"key": key, "operator": operator}]});
    let required = json!({"nodeSelectorTerms": [term]});
    let affinity = &mut set.spec()?["affinity"]["nodeAffinity"];
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required;
    Some(format!("Nodes on which {key} {operator}"))
}

fn apart_from_its_replicas(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let labels = set.labels();
    let key = pick(rng, &["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": labels}});
    let affinity = &mut set.spec()?["affinity"]["podAntiAffinity"];
    let required = json!([term]);
    if affinity["requiredDuringSchedulingIgnoredDuringExecution"] == required {
        return None;
    }
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required;
    Some(format!("apart from its replicas by {key}"))
}

fn next_to_a_pod(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let labels = if rng.bool() { set.labels() } else { json!({"app": "absent"}) };
    let key = pick(rng, &["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": labels}});
    let affinity = &mut set.spec()?["affinity"]["podAffinity"];
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = json!([term]);
    Some(format!("next to a Pod with the labels {labels}, by {key}"))
}

fn spread(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let labels = set.labels();
    let key = pick(rng, &["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let otherwise = pick(rng, &["DoNotSchedule", "ScheduleAnyway"]);
    set.spec()?["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": labels},
    }]);
    Some(format!("spread by {key}, otherwise {otherwise}"))
}

fn another_number(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let count = rng.u32(..4);
    let workload = set.ccm().filter(|one| one["kind"] == "Deployment")?;
    if workload["spec"]["replicas"] == count {
        return None;
    }
    workload["spec"]["replicas"] = json!(count);
    Some(format!("{count} replicas"))
}

fn on_its_own_network(set: &mut Set, _: &mut Rng) -> Option<String> {
    let spec = set.spec()?;
    let own = spec["hostNetwork"] != true;
    spec["hostNetwork"] = json!(own);
    Some(format!("hostNetwork: {own}"))
}

fn another_resolver(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let policy = pick(rng, &["ClusterFirst", "ClusterFirstWithHostNet", "Default"]);
    let spec = set.spec()?;
    if spec["dnsPolicy"] == policy {
        return None;
    }
    spec["dnsPolicy"] = json!(policy);
    Some(format!("dnsPolicy: {policy}"))
}

fn another_scheduler(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let name = pick(rng, &["default-scheduler", "absent"]);
    set.spec()?["schedulerName"] = json!(name);
    Some(format!("schedulerName: {name}"))
}

fn replaced_differently(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let workload = set.ccm().filter(|one| one["kind"] == "Deployment")?;
    let strategy = match rng.bool() {
        true => json!({"type": "Recreate"}),
        false => json!({"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}),
    };
    workload["spec"]["strategy"] = strategy.clone();
    Some(format!("strategy {strategy}"))
}

fn on_another_port(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let port = rng.u16(20_000..30_000);
    let container = &mut set.spec()?["containers"][0];
    let ports = list(container, "ports")?;
    ports.push(json!({"name": "more", "containerPort": port, "hostPort": port}));
    Some(format!("the host port {port}"))
}
