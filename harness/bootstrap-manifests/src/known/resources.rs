//! What containers and Pods request of a resource, or are limited to.

use crate::manifest::{Node, Object};
use embedded_objects::billionths;

/// A quantity, in billionths.
pub(super) fn amount(node: Option<&Node>) -> Option<i128> {
    billionths(&node?.scalar()?)
}

/// The items of a limit range of one type.
pub(super) fn items<'r>(range: &'r Object, kind: &'static str) -> impl Iterator<Item = &'r Node> {
    let all = range.node.at(&["spec", "limits"]).map(Node::items).unwrap_or_default();
    all.iter().filter(move |item| item.text_at("type") == Some(kind))
}

/// What a container requests, or is limited to (`side`), of a resource, after API defaulting and the defaults of limit
/// ranges.
pub(super) fn of_container(ranges: &[&Object], container: &Node, side: &str, resource: &str) -> Option<i128> {
    let own = |side: &str| amount(container.at(&["resources", side, resource]));
    let default = |field: &str| {
        let all = ranges.iter().flat_map(|range| items(range, "Container"));
        all.filter_map(|item| amount(item.at(&[field, resource]))).next()
    };
    let limit = || own("limits").or_else(|| default("default")).or_else(|| default("max"));
    if side == "limits" {
        return limit();
    }
    own("requests")
        .or_else(|| own("limits"))
        .or_else(|| default("defaultRequest"))
        .or_else(limit)
        .or_else(|| default("min"))
}

/// What a Pod requests of a resource, or is limited to (`side`), without its overhead: what the Pod as a whole states, or
/// the sum of its containers and sidecars, or what one init container needs next to the sidecars before it, if that is
/// more. `None` if a container states nothing.
pub(super) fn of_pod(spec: &Node, ranges: &[&Object], side: &str, resource: &str) -> Option<i128> {
    of_pod_or(spec, ranges, (side, resource), None)
}

/// The same, with an amount for containers that state nothing.
fn of_pod_or(
    spec: &Node,
    ranges: &[&Object],
    (side, resource): (&str, &str),
    unstated: Option<i128>,
) -> Option<i128> {
    let stated = |side: &str| spec.at(&["resources", side, resource]);
    let whole = match side {
        "requests" => stated("requests").or_else(|| stated("limits")),
        _ => stated(side),
    };
    if let Some(whole) = whole.and_then(Node::scalar).and_then(|text| billionths(&text)) {
        return Some(whole);
    }
    let of = |container: &Node| of_container(ranges, container, side, resource).or(unstated);
    let (mut sidecars, mut peak) = (0_i128, 0_i128);
    for container in spec.get("initContainers").map(Node::items).unwrap_or_default() {
        let needed = sidecars.saturating_add(of(container)?);
        peak = peak.max(needed);
        if container.text_at("restartPolicy") == Some("Always") {
            sidecars = needed;
        }
    }
    let containers = spec.get("containers").map(Node::items).unwrap_or_default();
    let all: Option<Vec<i128>> = containers.iter().map(of).collect();
    Some(all?.into_iter().fold(sidecars, i128::saturating_add).max(peak))
}

/// What the Pod's containers that request the resource request together.
pub(super) fn requested(spec: &Node, ranges: &[&Object], resource: &str) -> i128 {
    of_pod_or(spec, ranges, ("requests", resource), Some(0)).unwrap_or(0)
}

/// What limit ranges add to a container: side, resource and amount.
pub(super) fn added(ranges: &[&Object], container: &Node) -> Vec<(&'static str, String, String)> {
    let mut all = Vec::new();
    let items = || ranges.iter().flat_map(|range| items(range, "Container"));
    // Without a default, the maximum is the limit and the minimum the request (`SetDefaults_LimitRangeItem`).
    let sides: [(&'static str, &[&str]); 2] =
        [("limits", &["default", "max"]), ("requests", &["defaultRequest", "default", "max", "min"])];
    for (side, fields) in sides {
        let maps = fields.iter().flat_map(|field| items().filter_map(|item| item.get(field)));
        for entry in maps.flat_map(Node::entries) {
            let has = |side: &str| container.at(&["resources", side, &entry.key]).is_some();
            // A limit is also the request that is not stated.
            let is_stated = has(side)
                || (side == "requests" && has("limits"))
                || all.iter().any(|(known, name, _)| *known == side && *name == entry.key);
            if let Some(amount) = entry.value.scalar().filter(|_| !is_stated) {
                all.push((side, entry.key.clone(), amount));
            }
        }
    }
    all
}
