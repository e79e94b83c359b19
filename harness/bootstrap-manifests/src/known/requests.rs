//! What Pods request of a Node, and whether a small Node has room for it (scheduler plugin NodeResourcesFit,
//! `resourcehelper.PodRequests`).

use super::resources::requested;
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{
    Condition, Effect, Role, SPARE, Taint, UNINITIALIZED, Workload, WorkloadKind, borne, spec_path,
};
use embedded_objects::billionths;
use std::collections::{BTreeMap, BTreeSet};

/// What one Pod requests of a resource.
struct Request {
    /// In billionths.
    amount: i128,
    /// The field that says so first.
    place: Place,
    /// What it is for, after the amount.
    origin: String,
}

type Requests = BTreeMap<String, Request>;

/// Adds the conditions that a Node has room for each workload: for its own requests, and for those together with the
/// requests of the Pods that may be there before it.
pub fn apply(objects: &Objects, workloads: &mut [Workload]) {
    let all: Vec<Requests> = workloads.iter().map(|workload| of_workload(objects, workload)).collect();
    let early: Vec<bool> = workloads.iter().map(comes_early).collect();
    for own in 0..workloads.len() {
        let mut conditions = Vec::new();
        for (resource, request) in &all[own] {
            let Request { amount, place, origin } = request;
            let spare = spare(resource);
            let shown = in_words(resource, *amount);
            if *amount > spare {
                let words = format!("a Node has room for its requests ({resource}: {shown}{origin})");
                conditions.push(Condition { words, place: place.clone() });
                continue;
            }
            let others: Vec<usize> = (0..workloads.len())
                .filter(|other| *other != own && early[*other] && stays(&workloads[*other], &workloads[own]))
                .filter(|other| all[*other].contains_key(resource))
                .collect();
            let of_others = others
                .iter()
                .map(|other| all[*other][resource].amount.saturating_mul(pods(&workloads[*other])));
            let together = of_others.fold(*amount, i128::saturating_add);
            if together > spare && workloads[own].role != Role::Other {
                let names: Vec<String> = others.iter().map(|other| workloads[*other].title()).collect();
                let words = format!(
                    "a Node has room for its Pod and those of {} ({resource}: {} together)",
                    names.join(", "),
                    in_words(resource, together)
                );
                conditions.push(Condition { words, place: place.clone() });
            }
        }
        workloads[own].conditions.extend(conditions);
    }
}

/// What is assumed to be free of a resource on every Node, in billionths.
fn spare(resource: &str) -> i128 {
    SPARE.iter().find(|(known, _)| *known == resource).map_or(0, |(_, spare)| *spare)
}

/// Whether its Pods can be on a Node before the CCM has initialised it.
fn comes_early(workload: &Workload) -> bool {
    borne(&workload.tolerations, &Taint::new(UNINITIALIZED, "true", Effect::NoSchedule))
}

/// Whether Pods of `other` keep their place when a Pod of `own` needs it.
fn stays(other: &Workload, own: &Workload) -> bool {
    other.priority >= own.priority || !own.preempts
}

/// How many Pods of a workload one Node may get.
fn pods(workload: &Workload) -> i128 {
    if workload.kind == WorkloadKind::DaemonSet { 1 } else { i128::from(workload.replicas) }
}

/// What a Pod of the workload requests.
fn of_workload(objects: &Objects, workload: &Workload) -> Requests {
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return Requests::new() };
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return Requests::new() };
    let ranges: Vec<&Object> =
        objects.of_kind("LimitRange").filter(|range| range.namespace == workload.namespace).collect();
    let class = spec.text_at("runtimeClassName");
    let class = objects.of_kind("RuntimeClass").find(|object| Some(object.name.as_str()) == class);
    let overhead = class.and_then(|class| class.node.at(&["overhead", "podFixed"]));
    let items = |list: &str| spec.get(list).map(Node::items).unwrap_or_default();
    let lists = items("containers").iter().chain(items("initContainers"));
    let resources = lists.filter_map(|container| container.get("resources")).chain(spec.get("resources"));
    let maps: Vec<&Node> =
        resources.flat_map(|own| [own.get("requests"), own.get("limits")]).flatten().collect();
    let names = maps.iter().copied().chain(overhead).flat_map(Node::entries).map(|entry| entry.key.clone());
    let names: BTreeSet<String> =
        names.chain(SPARE.iter().map(|(resource, _)| (*resource).to_owned())).collect();
    let mut all = Requests::new();
    for resource in names {
        let extra = overhead.and_then(|fixed| fixed.get(&resource));
        let fixed = extra.and_then(Node::scalar).and_then(|text| billionths(&text)).unwrap_or(0);
        let amount = requested(spec, &ranges, &resource).saturating_add(fixed);
        if amount == 0 {
            continue;
        }
        let (place, origin) = match (maps.iter().find_map(|map| map.get(&resource)), extra, class) {
            (own, Some(field), Some(class)) => {
                let place = own.map_or_else(|| class.place(field), |own| object.place(own));
                (place, format!(", with the overhead of RuntimeClass/{}", class.name))
            }
            (Some(own), ..) => (object.place(own), String::new()),
            (None, ..) => match ranges.first() {
                Some(range) => (range.at(), format!(", from LimitRange/{}", range.name)),
                None => (object.at(), String::new()),
            },
        };
        all.insert(resource, Request { amount, place, origin });
    }
    all
}

/// An amount as people write it: `1500m` of a processor, `3Gi` of memory.
fn in_words(resource: &str, amount: i128) -> String {
    const ONE: i128 = 1_000_000_000;
    const MILLI: i128 = 1_000_000;
    if amount % ONE != 0 {
        return format!("{}m", amount / MILLI);
    }
    let whole = amount / ONE;
    let in_bytes = matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    let units = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    match units.iter().find(|(_, bits)| in_bytes && whole != 0 && whole % (1 << bits) == 0) {
        Some((unit, bits)) => format!("{}{unit}", whole >> bits),
        None => whole.to_string(),
    }
}
