//! Changes of the manifests: the effect of each on the boot, and the smallest set that makes a cluster boot.

use crate::model::{Change, Model, Set, State, judge};
use bootstrap_manifests::cluster::Cluster;
use bootstrap_manifests::known::ApiServer;
use bootstrap_manifests::manifest::Place;
use bootstrap_manifests::workload::{DnsPolicy, Term, Toleration};
use std::collections::BTreeSet;

/// Maximum number of changes for which all combinations are searched for the smallest set. With more changes, a set is
/// accepted if no change can be removed from it.
const MOST_SEARCHED: usize = 7;

impl Set {
    /// Returns the set with the changes applied.
    pub(crate) fn with(&self, changes: &[Change]) -> Set {
        let mut set = self.clone();
        for change in changes {
            set.change(change);
        }
        set
    }

    fn change(&mut self, change: &Change) {
        let place = Place { file: std::sync::Arc::from(""), line: 0, column: 1 };
        match change {
            Change::Tolerate(w, taint) => self.workloads[*w as usize].tolerations.push(Toleration::of(
                &taint.key,
                Some(taint.effect),
                None,
            )),
            Change::HostNetwork(w) => self.workloads[*w as usize].host_network = true,
            Change::NodeDns(w) => self.workloads[*w as usize].dns = DnsPolicy::Default,
            Change::DropHostIp(w) => self.workloads[*w as usize].host_ip.clear(),
            Change::DropNodeRequirement(w, key) => {
                let workload = &mut self.workloads[*w as usize];
                workload.node_selector.retain(|(own, _, _)| own != key);
                for term in workload.node_affinity.iter_mut().flatten() {
                    term.expressions.retain(|expression| expression.key != *key);
                }
                // A term without requirements means that nothing is required.
                let free = |term: &Term| term.expressions.is_empty();
                workload.spread.retain(|own| own.topology_key != *key);
                if workload
                    .node_affinity
                    .as_ref()
                    .is_some_and(|terms| terms.is_empty() || terms.iter().any(free))
                {
                    workload.node_affinity = None;
                }
            }
            Change::Image(w, container) => {
                self.workloads[*w as usize].containers[*container as usize].image = String::from("fixed:v1");
            }
            Change::Provide(_, kind, namespace, name) => {
                for missing in &mut self.missing {
                    missing.retain(|r| r.kind != kind || r.namespace != *namespace || r.name != *name);
                }
            }
            Change::Grant(w) => self.gaps[*w as usize].clear(),
            Change::ApiServer(w) => self.api_servers[*w as usize] = ApiServer::Named,
            Change::CloudProvider(w) => {
                for container in &mut self.workloads[*w as usize].containers {
                    container.arguments.push((String::from("--cloud-provider=named"), place.clone()));
                }
            }
            Change::Replicas(w) => self.workloads[*w as usize].replicas = 1,
            Change::Repair(w, what) => {
                self.workloads[*w as usize].refused.retain(|(_, own, _)| own != what);
            }
            Change::Amend(w, advice) => {
                self.workloads[*w as usize].hindrances.retain(|own| own.advice != *advice);
            }
            Change::Port(w) => {
                self.workloads[*w as usize].host_ports.clear();
                for container in &mut self.workloads[*w as usize].containers {
                    container.arguments.push((String::from("--secure-port=0"), place.clone()));
                }
            }
            Change::DropStorage(w) => {
                self.workloads[*w as usize].storage.clear();
                self.missing[*w as usize].retain(|r| r.kind != "PersistentVolumeClaim");
            }
            Change::DropPodAffinity(w) => {
                self.workloads[*w as usize].near.clear();
                self.workloads[*w as usize].apart.clear();
            }
            Change::FailOpen(hook) => {
                self.webhooks[*hook as usize].guards = Default::default();
                for asked in &mut self.asked {
                    asked.forget(*hook as usize);
                }
                self.ordinary.webhooks.retain(|own| *own != *hook as usize);
            }
        }
    }
}

/// All changes to the manifests that would remove something a stuck state waits for.
pub(crate) fn candidates(model: &Model, state: &State) -> BTreeSet<Change> {
    let ours = |change: &Change| {
        workload_of(change).is_none_or(|w| {
            let workload = &model.set.workloads[w as usize];
            workload.object.is_some() && workload.role != bootstrap_manifests::workload::Role::Other
                || model.set.backends().contains(&(w as usize))
        })
    };
    let open = model.rules.iter().filter(|rule| !state.holds(rule.head)).flat_map(|rule| &rule.body);
    open.filter(|premise| !state.holds(premise.fact))
        .filter_map(|premise| premise.change.clone())
        .filter(ours)
        .collect()
}

fn workload_of(change: &Change) -> Option<u32> {
    match change {
        Change::Tolerate(w, _)
        | Change::HostNetwork(w)
        | Change::NodeDns(w)
        | Change::DropHostIp(w)
        | Change::DropNodeRequirement(w, _)
        | Change::Image(w, _)
        | Change::Provide(w, ..)
        | Change::Grant(w)
        | Change::ApiServer(w)
        | Change::CloudProvider(w)
        | Change::Replicas(w)
        | Change::Repair(w, _)
        | Change::Amend(w, _)
        | Change::Port(w)
        | Change::DropStorage(w)
        | Change::DropPodAffinity(w) => Some(*w),
        Change::FailOpen(_) => None,
    }
}

/// The smallest set of changes with which all of the clusters boot; `None` when no change of the manifests helps.
pub(crate) fn smallest(set: &Set, clusters: &[&Cluster]) -> Option<Vec<Change>> {
    let boots = |changes: &[Change]| {
        let changed = set.with(changes);
        clusters.iter().all(|cluster| judge(&changed, cluster).outcome.is_boot())
    };
    let mut all = BTreeSet::new();
    // An obstacle behind the first one shows only once the first is removed, so there is one round per layer.
    for _ in 0..4 {
        let changed = set.with(&all.iter().cloned().collect::<Vec<_>>());
        let before = all.len();
        for cluster in clusters {
            if let Some((state, webhooks_first)) = judge(&changed, cluster).stuck {
                all.extend(candidates(&Model::new(&changed, cluster, webhooks_first), &state));
            }
        }
        if all.len() == before {
            break;
        }
    }
    let all: Vec<Change> = all.into_iter().collect();
    if !boots(&all) {
        return None;
    }
    // Changes never conflict: a change that cannot be removed is part of every set that works.
    let without = |left: &[Change], out: &Change| -> Vec<Change> {
        left.iter().filter(|own| *own != out).cloned().collect()
    };
    let (needed, rest): (Vec<Change>, Vec<Change>) =
        all.iter().cloned().partition(|change| !boots(&without(&all, change)));
    if boots(&needed) {
        return Some(needed);
    }
    if rest.len() <= MOST_SEARCHED {
        for size in 1..rest.len() {
            let with = |chosen: &[Change]| boots(&[needed.as_slice(), chosen].concat());
            if let Some(found) = combination(&rest, size, &with) {
                return Some([needed, found].concat());
            }
        }
    }
    // The most expensive changes are tried for removal first.
    let mut kept = all.clone();
    for change in all.iter().rev() {
        let less = without(&kept, change);
        if boots(&less) {
            kept = less;
        }
    }
    Some(kept)
}

fn combination(all: &[Change], size: usize, good: &impl Fn(&[Change]) -> bool) -> Option<Vec<Change>> {
    let mut at: Vec<usize> = (0..size).collect();
    loop {
        let chosen: Vec<Change> = at.iter().map(|index| all[*index].clone()).collect();
        if good(&chosen) {
            return Some(chosen);
        }
        let movable = (0..size).rev().find(|index| at[*index] < all.len() - size + index)?;
        at[movable] += 1;
        for later in movable + 1..size {
            at[later] = at[later - 1] + 1;
        }
    }
}

/// What a sentence of [`words`] asks for, without the alternative to assume that it is done.
pub(crate) fn without_assumption(words: &str) -> &str {
    words.split(", or pass '--assume").next().unwrap_or(words)
}

/// A sentence that tells the user what to do.
pub(crate) fn words(set: &Set, change: &Change) -> String {
    let title = |w: &u32| set.workloads[*w as usize].title();
    match change {
        Change::Tolerate(w, taint) => {
            format!("{}: tolerate {}:{} with 'operator: Exists'", title(w), taint.key, taint.effect)
        }
        Change::HostNetwork(w) => format!("{}: set 'hostNetwork: true'", title(w)),
        Change::NodeDns(w) => format!("{}: set 'dnsPolicy: Default'", title(w)),
        Change::DropHostIp(w) => format!("{}: do not read status.hostIP into the environment", title(w)),
        Change::DropNodeRequirement(w, key) if key.is_empty() => {
            format!("{}: add a node affinity term that matches a Node", title(w))
        }
        Change::DropNodeRequirement(w, key) => {
            format!("{}: do not require the Node label {key}", title(w))
        }
        Change::Image(w, container) => {
            let container = &set.workloads[*w as usize].containers[*container as usize];
            format!("{}: replace the image '{}' by a valid image reference", title(w), container.image)
        }
        Change::Provide(w, kind, namespace, name) => {
            let object = if namespace.is_empty() {
                format!("{kind}/{name}")
            } else {
                format!("{kind}/{namespace}/{name}")
            };
            format!("{}: create {object}, or pass '--assume {object}' if it exists", title(w))
        }
        Change::Grant(w) => {
            let workload = &set.workloads[*w as usize];
            format!(
                "{}: grant ServiceAccount/{} the permissions of a CCM, or pass '--assume ServiceAccount/{}/{}' if it \
                 has them",
                workload.title(),
                workload.service_account,
                workload.namespace,
                workload.service_account
            )
        }
        Change::ApiServer(w) => {
            format!("{}: set the API server's address (KUBERNETES_SERVICE_HOST and _PORT)", title(w))
        }
        Change::CloudProvider(w) => format!("{}: set --cloud-provider to the name of the provider", title(w)),
        Change::Replicas(w) => format!("{}: run at least one replica", title(w)),
        Change::Repair(w, what) => format!("{}: fix what the API server refuses: {what}", title(w)),
        Change::Amend(w, advice) => format!("{}: {advice}", title(w)),
        Change::Port(w) => format!("{}: listen on a free port of the host (--secure-port)", title(w)),
        Change::DropStorage(w) => format!("{}: do not use PersistentVolumeClaims or CSI volumes", title(w)),
        Change::DropPodAffinity(w) => format!("{}: do not require affinity to other Pods", title(w)),
        Change::FailOpen(hook) => {
            format!("{}: set 'failurePolicy: Ignore'", set.webhooks[*hook as usize].title)
        }
    }
}
