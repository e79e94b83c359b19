//! Rules for Nodes: their taints, their pod network, Service addresses and cluster DNS.

use super::build::{Model, number};
use super::fact::Fact;
use bootstrap_manifests::cluster::{Cni, KubeProxy, YesNo};
use bootstrap_manifests::workload::{
    Effect, NETWORK_UNAVAILABLE, NOT_READY, Role, Taint, UNINITIALIZED, Workload,
};

impl Model<'_> {
    /// A taint with which the Node starts. `remover` removes it; without one the taint stays.
    fn taint(&mut self, node: usize, taint: Taint, remover: Option<Fact>) {
        let at = match self.taints.iter().position(|known| *known == taint) {
            Some(at) => at,
            None => {
                self.taints.push(taint.clone());
                self.taints.len() - 1
            }
        };
        self.tainted[node].push(at);
        let premise = match remover {
            Some(fact) => self.needs(fact),
            None => self.never(format!("nothing removes the taint {taint}"), None, None),
        };
        self.rule(Fact::Untainted(number(node), number(at)), vec![premise]);
    }

    /// The rules of one Node.
    pub(super) fn node(&mut self, node: usize) {
        let n = number(node);
        // kubelet `initialNode`, and admission `TaintNodesByCondition` for the second one.
        self.taint(node, Taint::new(UNINITIALIZED, "true", Effect::NoSchedule), Some(Fact::Initialised(n)));
        self.taint(node, Taint::new(NOT_READY, "", Effect::NoSchedule), Some(Fact::Ready(n)));
        for taint in self.machines[node].taints.clone() {
            self.taint(node, taint, None);
        }
        if self.cluster.cni.taints() && self.startup_taint_applies() {
            self.taint(node, self.cluster.startup_taint.clone(), Some(Fact::Networked(n)));
        }
        if self.cluster.routes == YesNo::Yes {
            let taint = Taint::new(NETWORK_UNAVAILABLE, "", Effect::NoSchedule);
            self.taint(node, taint, Some(Fact::Initialised(n)));
        }
        let network = self.needs(Fact::Networked(n));
        self.rule(Fact::Ready(n), vec![network]);
        self.network(n);
        match self.cluster.kube_proxy {
            KubeProxy::Yes => self.give(Fact::ServicesAnswer(n)),
            KubeProxy::No => {
                let missing = self.never(String::from("no kube-proxy serves Service addresses"), None, None);
                self.rule(Fact::ServicesAnswer(n), vec![missing]);
            }
            KubeProxy::Cni => {
                let network = self.needs(Fact::Networked(n));
                self.rule(Fact::ServicesAnswer(n), vec![network]);
            }
        }
        let dns = vec![
            self.needs(Fact::DnsRuns),
            self.needs(Fact::ServicesAnswer(n)),
            self.needs(Fact::Networked(n)),
        ];
        self.rule(Fact::DnsAnswers(n), dns);
        if self.set.node_manager {
            self.give(Fact::Initialised(n));
        }
        if self.cluster.addressed() || self.set.node_manager {
            self.give(Fact::Addressed(n));
        }
        self.goal(Fact::Initialised(n));
        self.goal(Fact::Addressed(n));
        if self.cluster.cni != Cni::None || self.set.brings_cni() {
            self.goal(Fact::Ready(n));
        }
    }

    /// Whether the startup taint belongs to the pod network of the manifests: the taint of one network plugin is not set
    /// where another one is installed.
    fn startup_taint_applies(&self) -> bool {
        let key = &self.cluster.startup_taint.key;
        let known = ["cilium", "calico", "flannel", "antrea", "weave"];
        let Some(owner) = known.iter().find(|name| key.contains(**name)) else { return true };
        let mut plugins = self.set.workloads.iter().filter(|workload| workload.role == Role::Cni).peekable();
        let of_owner = |workload: &Workload| {
            workload.name.contains(owner) || workload.containers.iter().any(|c| c.image.contains(owner))
        };
        let other = |workload: &Workload| {
            known.iter().any(|name| {
                name != owner
                    && (workload.name.contains(name)
                        || workload.containers.iter().any(|c| c.image.contains(name)))
            })
        };
        plugins.peek().is_none() || plugins.any(|workload| of_owner(workload) || !other(workload))
    }

    fn network(&mut self, n: u32) {
        let waits = self.cluster.cni.waits();
        if self.set.brings_cni() {
            for workload in 0..self.set.workloads.len() {
                if self.set.workloads[workload].role == Role::Cni {
                    let mut body = vec![self.needs(Fact::Works(number(workload), n))];
                    if waits {
                        body.push(self.needs(Fact::Addressed(n)));
                    }
                    self.rule(Fact::Networked(n), body);
                }
            }
            return;
        }
        match self.cluster.cni {
            Cni::None => {
                let missing = self.never(String::from("no network plugin is installed"), None, None);
                self.rule(Fact::Networked(n), vec![missing]);
            }
            Cni::Independent | Cni::StartupTaint => self.give(Fact::Networked(n)),
            Cni::WaitsForAddresses | Cni::StartupTaintAndWaits | Cni::Kindnet => {
                let addressed = self.needs(Fact::Addressed(n));
                self.rule(Fact::Networked(n), vec![addressed]);
            }
        }
    }
}
