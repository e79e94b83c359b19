//! Decides which Nodes can take a Pod, with the reasons why others cannot, in the order of the scheduler's
//! own filters. Pure functions.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;

use super::affinity;
use super::site::{Site, Sites};
use super::spread;
use super::words::Reason;
use embedded_runtime::node::node_taints;
use embedded_runtime::quantities::milli;
use embedded_runtime::selectors::node_affinity_holds;
use embedded_runtime::settings::Resources;
use embedded_runtime::taints::{NO_SCHEDULE, UNSCHEDULABLE, first_untolerated, taint, tolerates};

/// The reasons why this site does not take the Pod; empty if it does.
pub(crate) fn refuses(pod: &Pod, site: &Site, sites: &Sites) -> Vec<Reason> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let node = site.node.as_ref();
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    if let Some(named) = named_nodes(pod)
        && !named.contains(&node.name_any())
    {
        return vec![Reason::OtherNode];
    }
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    let cordon = taint(UNSCHEDULABLE, NO_SCHEDULE);
    if cordoned && !tolerations.iter().any(|toleration| tolerates(toleration, &cordon)) {
        return vec![Reason::Unschedulable];
    }
    if spec.node_name.as_ref().is_some_and(|name| !name.is_empty() && *name != node.name_any()) {
        return vec![Reason::NodeName];
    }
    if let Some(taint) = first_untolerated(node_taints(node), tolerations) {
        return vec![Reason::Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
        }];
    }
    if !node_affinity_holds(spec, node) {
        return vec![Reason::NodeAffinity];
    }
    if ports_collide(spec, site) {
        return vec![Reason::HostPorts];
    }
    if sites.resources == Resources::Counted {
        let lacking = lacking(pod, site);
        if !lacking.is_empty() {
            return lacking;
        }
    }
    if let Some(claim) = claim(spec) {
        return vec![Reason::Claim(claim)];
    }
    spread::refuses(pod, site, sites).or_else(|| affinity::refuses(pod, site, sites)).into_iter().collect()
}

/// The first persistent volume claim of a Pod. This cluster has no volumes.
fn claim(spec: &PodSpec) -> Option<String> {
    spec.volumes
        .iter()
        .flatten()
        .find_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone()))
}

/// The only Nodes a Pod may be on when every term of its affinity names them by `metadata.name`, as those of
/// DaemonSets do.
pub(crate) fn named_nodes(pod: &Pod) -> Option<BTreeSet<String>> {
    let required = pod
        .spec
        .as_ref()?
        .affinity
        .as_ref()?
        .node_affinity
        .as_ref()?
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let mut names = BTreeSet::new();
    for term in &required.node_selector_terms {
        let field = term
            .match_fields
            .iter()
            .flatten()
            .find(|field| field.key == "metadata.name" && field.operator == "In")?;
        names.extend(field.values.iter().flatten().cloned());
    }
    Some(names).filter(|_| !required.node_selector_terms.is_empty())
}

/// The host ports of a Pod: protocol, address, port.
fn host_ports(spec: &PodSpec) -> Vec<(String, String, i32)> {
    spec.containers
        .iter()
        .chain(
            spec.init_containers
                .iter()
                .flatten()
                .filter(|init| init.restart_policy.as_deref() == Some("Always")),
        )
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let address =
                port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned());
            Some((protocol, address, number))
        })
        .collect()
}

fn ports_collide(spec: &PodSpec, site: &Site) -> bool {
    let wanted = host_ports(spec);
    if wanted.is_empty() {
        return false;
    }
    let any = "0.0.0.0";
    let taken: Vec<_> = site.pods.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(host_ports).collect();
    wanted.iter().any(|(protocol, address, port)| {
        taken.iter().any(|(other_protocol, other_address, other_port)| {
            protocol == other_protocol
                && port == other_port
                && (address == other_address || address == any || other_address == any)
        })
    })
}

/// The requests of a Pod, in thousandths.
fn requests(spec: &PodSpec) -> BTreeMap<String, i128> {
    let of = |container: &k8s_openapi::api::core::v1::Container| -> BTreeMap<String, i128> {
        let resources = container.resources.as_ref();
        let mut amounts = BTreeMap::new();
        for source in
            [resources.and_then(|all| all.limits.as_ref()), resources.and_then(|all| all.requests.as_ref())]
        {
            for (name, amount) in source.into_iter().flatten() {
                amounts.insert(name.clone(), milli(&amount.0).unwrap_or(0));
            }
        }
        amounts
    };
    let mut total: BTreeMap<String, i128> = BTreeMap::new();
    for container in &spec.containers {
        for (name, amount) in of(container) {
            *total.entry(name).or_default() += amount;
        }
    }
    // Init containers need their share at another time.
    for init in spec.init_containers.iter().flatten() {
        for (name, amount) in of(init) {
            let known = total.entry(name).or_default();
            *known = (*known).max(amount);
        }
    }
    total
}

fn lacking(pod: &Pod, site: &Site) -> Vec<Reason> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    // A resource that a Node does not list does not exist there: noderesources/fit.go.
    let allocatable =
        site.node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let mut reasons = Vec::new();
    let room = allocatable.get("pods").and_then(|amount| milli(&amount.0)).unwrap_or(0);
    let count = i128::try_from(site.pods.len()).unwrap_or(i128::MAX);
    if count.saturating_add(1).saturating_mul(1000) > room {
        reasons.push(Reason::TooManyPods);
    }
    let wanted = requests(spec);
    if wanted.values().all(|amount| *amount == 0) {
        return reasons;
    }
    let mut used: BTreeMap<String, i128> = BTreeMap::new();
    for placed in site.pods.iter().filter_map(|pod| pod.spec.as_ref()) {
        for (name, amount) in requests(placed) {
            *used.entry(name).or_default() += amount;
        }
    }
    for (name, amount) in wanted.into_iter().filter(|(_, amount)| *amount > 0) {
        let has = allocatable.get(&name).and_then(|amount| milli(&amount.0)).unwrap_or(0);
        if used.get(&name).copied().unwrap_or(0).saturating_add(amount) > has {
            reasons.push(Reason::Insufficient(name));
        }
    }
    reasons
}

/// The best site for the Pod, or the reasons why none takes it.
pub(crate) fn choose(pod: &Pod, sites: &Sites) -> Result<String, Vec<Vec<Reason>>> {
    let mut refusals = Vec::with_capacity(sites.all.len());
    let mut best: Option<((usize, usize, usize), &Site)> = None;
    for site in &sites.all {
        let reasons = refuses(pod, site, sites);
        if reasons.is_empty() {
            let score = score(pod, site);
            if best.as_ref().is_none_or(|(known, _)| score < *known) {
                best = Some((score, site));
            }
        } else {
            refusals.push(reasons);
        }
    }
    best.map(|(_, site)| site.node.name_any()).ok_or(refusals)
}

/// The score of a site, where lower is better: soft taints, then Pods of the same owner, then the number of Pods.
fn score(pod: &Pod, site: &Site) -> (usize, usize, usize) {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let soft = node_taints(&site.node)
        .iter()
        .filter(|taint| taint.effect == "PreferNoSchedule")
        .filter(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
        .count();
    let owner = |pod: &Pod| {
        pod.owner_references().iter().find(|owner| owner.controller == Some(true)).map(|o| o.uid.clone())
    };
    let ours = owner(pod);
    let siblings = site.pods.iter().filter(|other| ours.is_some() && owner(other) == ours).count();
    (soft, siblings, site.pods.len())
}

/// Whether the Pod has rules about other Pods.
pub(crate) fn cares_for_others(pod: &Pod) -> bool {
    affinity::cares(pod) || spread::cares(pod)
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
