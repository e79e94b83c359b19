//! The objects of a scenario in one trial, and what they must be like after the steps so far.

use crate::divergence::{Divergence, compare};
use crate::scenario::{ServiceType, Step};
use crate::wanted::Wanted;
use harness_clouds::{Instance, Inventory, LoadBalancer};
use harness_core::check::{Capability, CheckError};
use harness_testkit::Targets;
use harness_testkit::prelude::{
    CheckCx, L_EXCL, Machine, Matcher, Node, Ready, Service, addressed, gone, initialised, initialised_as,
    keeps_finalizer, lacks_finalizer, load_balancer, machine, nothing_left, publishes, publishes_nothing,
};
use serde_json::json;
use std::collections::BTreeMap;

/// The first node port that a scenario chooses itself; the API server chooses from the upper part of the range.
const OWN_NODE_PORT: u16 = 30_001;
/// The number of node ports that the API server does not choose by itself.
const OWN_NODE_PORTS: u32 = 80;

/// The objects of a scenario.
pub(crate) struct World<'a> {
    cx: &'a CheckCx,
    /// Numbers the trials, so that two of them do not choose the same node port.
    number: u32,
    services: BTreeMap<String, KnownService<'a>>,
    machines: BTreeMap<String, KnownMachine<'a>>,
    /// Services that were deleted.
    deleted: Vec<(String, Service<'a>)>,
    /// Nodes whose machines were deleted.
    doomed: Vec<(String, Node<'a>)>,
}

struct KnownService<'a> {
    service: Service<'a>,
    balanced: ServiceType,
}

struct KnownMachine<'a> {
    machine: Machine<'a>,
    node: Option<Node<'a>>,
    /// Whether load balancers must use its Node.
    is_backend: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(cx: &'a CheckCx, number: u32) -> World<'a> {
        let (services, machines) = (BTreeMap::new(), BTreeMap::new());
        World { cx, number, services, machines, deleted: Vec::new(), doomed: Vec::new() }
    }

    /// Carries out one step, except waiting.
    pub(crate) async fn carry_out(&mut self, step: &Step) -> Result<(), CheckError> {
        let cx = self.cx;
        match step {
            Step::CreateService { service, ports } => {
                let plan = ports.iter().fold(load_balancer(service), |plan, port| plan.port(*port));
                let known =
                    KnownService { service: cx.service(plan).await?, balanced: ServiceType::LoadBalancer };
                self.services.insert(service.clone(), known);
            }
            Step::SetPorts { service, ports } => {
                let ports: Vec<_> = ports
                    .iter()
                    .map(|port| json!({"name": port_name(*port), "port": port, "protocol": "TCP"}))
                    .collect();
                self.service(service)?.service.patch(&json!({"spec": {"ports": ports}})).await?;
            }
            Step::SetNodePort { service } => {
                let offset = u16::try_from(self.number % OWN_NODE_PORTS).unwrap_or_default();
                let service = &self.service(service)?.service;
                let mut ports = service.spec().await?.ports.unwrap_or_default();
                if let Some(first) = ports.first_mut() {
                    first.node_port = Some(i32::from(OWN_NODE_PORT + offset));
                }
                service.patch(&json!({"spec": {"ports": ports}})).await?;
            }
            Step::SetAffinity { service, affinity } => {
                let word = if *affinity { "ClientIP" } else { "None" };
                self.service(service)?.service.patch(&json!({"spec": {"sessionAffinity": word}})).await?;
            }
            Step::SetRanges { service, ranges } => {
                let patch = json!({"spec": {"loadBalancerSourceRanges": ranges}});
                self.service(service)?.service.patch(&patch).await?;
            }
            Step::SetType { service, to } => {
                let known = self.service(service)?;
                let name = match to {
                    ServiceType::ClusterIp => "ClusterIP",
                    ServiceType::LoadBalancer => "LoadBalancer",
                };
                // What the API server itself would otherwise keep of the old type.
                let none = serde_json::Value::Null;
                let patch = match to {
                    ServiceType::ClusterIp => json!({"spec": {"type": name, "externalTrafficPolicy": none,
                        "allocateLoadBalancerNodePorts": none}}),
                    ServiceType::LoadBalancer => json!({"spec": {"type": name}}),
                };
                known.service.patch(&patch).await?;
                known.balanced = *to;
            }
            Step::DeleteService { service } => {
                let known = self.services.remove(service).ok_or_else(|| unknown(service))?;
                known.service.delete().await?;
                self.deleted.push((service.clone(), known.service));
            }
            Step::CreateMachine { machine: name } => {
                let known =
                    KnownMachine { machine: cx.machine(machine(name)).await?, node: None, is_backend: false };
                self.machines.insert(name.clone(), known);
            }
            Step::RegisterNode { machine } => {
                let known = self.machine(machine)?;
                known.node = Some(cx.node(known.machine.node()).await?);
            }
            Step::RegisterBackend { machine } => {
                let known = self.machine(machine)?;
                known.node = Some(cx.node(known.machine.node().backend()).await?);
                known.is_backend = true;
            }
            Step::ExcludeNode { machine } => {
                let known = self.machine(machine)?;
                let node = known.node.as_ref().ok_or_else(|| unknown(machine))?;
                node.label(L_EXCL, Some("")).await?;
                known.is_backend = false;
            }
            Step::DeleteNode { machine } => {
                let known = self.machine(machine)?;
                known.is_backend = false;
                let node = known.node.take().ok_or_else(|| unknown(machine))?;
                node.delete().await?;
            }
            Step::DeleteMachine { machine } => {
                let known = self.machines.remove(machine).ok_or_else(|| unknown(machine))?;
                if let Some(node) = known.node {
                    node.set_ready(Ready::Unknown).await?;
                    self.doomed.push((machine.clone(), node));
                }
                known.machine.delete().await?;
            }
            Step::Settle => {}
        }
        Ok(())
    }

    /// The Nodes whose machines exist, with what the cloud supplies for each.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &Node<'a>, Instance)> {
        let machines = self.machines.iter();
        machines.filter_map(|(name, known)| {
            Some((name.as_str(), known.node.as_ref()?, known.machine.as_reported()))
        })
    }

    fn service(&mut self, name: &str) -> Result<&mut KnownService<'a>, CheckError> {
        self.services.get_mut(name).ok_or_else(|| unknown(name))
    }

    fn machine(&mut self, name: &str) -> Result<&mut KnownMachine<'a>, CheckError> {
        self.machines.get_mut(name).ok_or_else(|| unknown(name))
    }

    /// What is not yet as the steps so far require.
    pub(crate) async fn divergences(&self) -> Result<Vec<Divergence>, CheckError> {
        let mut all = Vec::new();
        for (name, known) in &self.services {
            self.compare_service(&mut all, name, known).await?;
        }
        for (name, service) in &self.deleted {
            let subject = format!("Service {name}, which was deleted");
            compare(&mut all, &subject, service, gone()).await?;
            // A CCM may give load balancers the names of Services, which a later Service may have again.
            if !self.services.contains_key(name) {
                compare(
                    &mut all,
                    &format!("load balancer of {subject}"),
                    &service.balancer(),
                    nothing_left(),
                )
                .await?;
            }
        }
        for (name, known) in &self.machines {
            if let Some(node) = &known.node {
                let wanted = initialised_as("is initialised", &known.machine.as_reported());
                let subject = format!("Node of machine {name}");
                compare(&mut all, &subject, node, wanted).await?;
                compare(&mut all, &subject, node, initialised()).await?;
                compare(&mut all, &subject, node, addressed()).await?;
            }
        }
        for (name, node) in &self.doomed {
            compare(&mut all, &format!("Node of machine {name}, which was deleted"), node, gone()).await?;
        }
        Ok(all)
    }

    async fn compare_service(
        &self,
        all: &mut Vec<Divergence>,
        name: &str,
        known: &KnownService<'a>,
    ) -> Result<(), CheckError> {
        let subject = format!("Service {name}");
        let balancer = format!("load balancer of Service {name}");
        if known.balanced == ServiceType::ClusterIp {
            compare(all, &balancer, &known.service.balancer(), nothing_left()).await?;
            compare(all, &subject, &known.service, lacks_finalizer()).await?;
            compare(all, &subject, &known.service, publishes_nothing()).await?;
            return Ok(());
        }
        let wanted = self.as_wanted(&known.service).await?;
        if let Some(lb) = compare(all, &balancer, &known.service.balancer(), wanted).await? {
            compare(all, &subject, &known.service, publishes(&lb)).await?;
        }
        compare(all, &subject, &known.service, keeps_finalizer()).await?;
        Ok(())
    }

    /// What the load balancer of a Service must be like.
    async fn as_wanted(&self, service: &Service<'a>) -> Result<Matcher<Inventory, LoadBalancer>, CheckError> {
        let targets = self.cx.balancers_target();
        let judges_backends = matches!(targets, Targets::NodePorts | Targets::ServicePorts);
        let of = |wanted: bool| -> Vec<(String, Instance)> {
            let all = self.machines.iter().filter(|(_, known)| known.is_backend == wanted && judges_backends);
            all.map(|(name, known)| (name.clone(), known.machine.instance())).collect()
        };
        let wanted = Wanted {
            by_node_port: matches!(targets, Targets::NodePorts | Targets::Pool),
            backends: of(true),
            others: of(false),
            judges_affinity: self.cx.declares(Capability::Affinity),
        };
        Ok(wanted.of(&service.spec().await?))
    }
}

fn port_name(port: u16) -> String {
    format!("p{port}")
}

fn unknown(name: &str) -> CheckError {
    CheckError::Error(format!("the scenario has no '{name}' at this step"))
}
