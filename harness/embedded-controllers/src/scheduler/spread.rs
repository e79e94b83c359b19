//! Hard topology spread constraints. Pure functions.
//!
//! Source: `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};
use kube::ResourceExt;

use super::site::{Site, Sites};
use super::words::Reason;
use embedded_runtime::node::node_taints;
use embedded_runtime::selectors::{node_affinity_holds, selects};
use embedded_runtime::taints::first_untolerated;

/// The constraints that keep a Pod off a Node.
fn hard(pod: &Pod) -> impl Iterator<Item = &TopologySpreadConstraint> {
    let all = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_deref());
    all.unwrap_or_default().iter().filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
}

/// Whether the Pod has spread constraints.
pub(super) fn cares(pod: &Pod) -> bool {
    hard(pod).next().is_some()
}

/// The reason why the Pod's own constraints keep it off a site.
pub(super) fn refuses(pod: &Pod, site: &Site, sites: &Sites) -> Option<Reason> {
    hard(pod).find_map(|constraint| {
        let Some(domain) = site.node.labels().get(&constraint.topology_key) else {
            return Some(Reason::SpreadLabel);
        };
        let counts = counts(pod, constraint, sites);
        let few =
            constraint.min_domains.is_some_and(|least| counts.len() < usize::try_from(least).unwrap_or(0));
        let least = if few { 0 } else { counts.values().copied().min().unwrap_or(0) };
        let own = i64::from(is_meant(constraint, pod, pod));
        let here = counts.get(domain).copied().unwrap_or(0);
        (here + own - least > i64::from(constraint.max_skew)).then_some(Reason::Spread)
    })
}

/// How many of the constraint's Pods each domain has; Nodes count if the Pod could run there by their labels.
fn counts<'s>(
    pod: &Pod,
    constraint: &TopologySpreadConstraint,
    sites: &'s Sites,
) -> BTreeMap<&'s String, i64> {
    let Some(spec) = &pod.spec else { return BTreeMap::new() };
    let by_affinity = constraint.node_affinity_policy.as_deref() != Some("Ignore");
    let by_taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let mut counts = BTreeMap::new();
    for site in &sites.all {
        let labels = site.node.labels();
        let complete = hard(pod).all(|other| labels.contains_key(&other.topology_key));
        let Some(domain) = labels.get(&constraint.topology_key).filter(|_| complete) else { continue };
        let barred = by_affinity && !node_affinity_holds(spec, &site.node)
            || by_taints && first_untolerated(node_taints(&site.node), tolerations).is_some();
        if barred {
            continue;
        }
        let live = site.pods.iter().filter(|other| other.metadata.deletion_timestamp.is_none());
        let meant = live.filter(|other| is_meant(constraint, pod, other)).count();
        *counts.entry(domain).or_default() += i64::try_from(meant).unwrap_or(i64::MAX);
    }
    counts
}

/// Whether a Pod's constraint applies to another Pod: same namespace, selected, and equal in `matchLabelKeys`.
fn is_meant(constraint: &TopologySpreadConstraint, owner: &Pod, other: &Pod) -> bool {
    let alike = constraint
        .match_label_keys
        .iter()
        .flatten()
        .filter(|key| owner.labels().contains_key(*key))
        .all(|key| owner.labels().get(key) == other.labels().get(key));
    owner.namespace() == other.namespace()
        && alike
        && constraint.label_selector.as_ref().is_some_and(|selector| selects(selector, other.labels()))
}
