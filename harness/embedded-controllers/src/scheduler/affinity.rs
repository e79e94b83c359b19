//! Pod affinity and anti-affinity. Pure functions.

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm};
use kube::ResourceExt;

use super::site::{Site, Sites};
use super::words::Reason;
use embedded_runtime::selectors::selects;

/// The reason why Pods that are already placed keep this Pod off a site.
pub(super) fn refuses(pod: &Pod, site: &Site, sites: &Sites) -> Option<Reason> {
    for term in required_affinity(pod) {
        let anywhere = matching_sites(term, pod, sites).next().is_some();
        // The first Pod of a group with mutual affinity may start on any Node that has the topology label.
        let first_of_its_kind = !anywhere && term_selects(term, pod, pod, sites);
        let topology = site.node.labels().get(&term.topology_key);
        let together = matching_sites(term, pod, sites)
            .any(|other| topology.is_some() && other.node.labels().get(&term.topology_key) == topology);
        if !(together || (first_of_its_kind && topology.is_some())) {
            return Some(Reason::PodAffinity);
        }
    }
    for term in required_anti_affinity(pod) {
        let topology = site.node.labels().get(&term.topology_key);
        let together = matching_sites(term, pod, sites)
            .any(|other| topology.is_some() && other.node.labels().get(&term.topology_key) == topology);
        if together {
            return Some(Reason::PodAntiAffinity);
        }
    }
    for other in &sites.all {
        for placed in &other.pods {
            for term in required_anti_affinity(placed) {
                let topology = site.node.labels().get(&term.topology_key);
                if topology.is_some()
                    && other.node.labels().get(&term.topology_key) == topology
                    && term_selects(term, placed, pod, sites)
                {
                    return Some(Reason::ExistingAntiAffinity);
                }
            }
        }
    }
    None
}

/// Whether the Pod has rules about other Pods.
pub(super) fn cares(pod: &Pod) -> bool {
    !required_affinity(pod).is_empty() || !required_anti_affinity(pod).is_empty()
}

fn required_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.affinity.as_ref()?.pod_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_deref())
        .unwrap_or_default()
}

fn required_anti_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.affinity.as_ref()?.pod_anti_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_deref())
        .unwrap_or_default()
}

/// The sites with a Pod that the term of this Pod selects.
fn matching_sites<'s>(
    term: &'s PodAffinityTerm,
    owner: &'s Pod,
    sites: &'s Sites,
) -> impl Iterator<Item = &'s Site> {
    sites
        .all
        .iter()
        .filter(move |site| site.pods.iter().any(|placed| term_selects(term, owner, placed, sites)))
}

/// Whether the term of one Pod selects another Pod.
fn term_selects(term: &PodAffinityTerm, owner: &Pod, other: &Pod, sites: &Sites) -> bool {
    let namespace = other.namespace().unwrap_or_default();
    let named = term.namespaces.as_deref().unwrap_or_default();
    let in_namespace = match &term.namespace_selector {
        None if named.is_empty() => owner.namespace().unwrap_or_default() == namespace,
        None => named.contains(&namespace),
        Some(selector) => {
            named.contains(&namespace)
                || sites.namespaces.get(&namespace).is_some_and(|labels| selects(selector, labels))
        }
    };
    // No selector selects no Pod; an empty one selects all.
    in_namespace && term.label_selector.as_ref().is_some_and(|selector| selects(selector, other.labels()))
}
