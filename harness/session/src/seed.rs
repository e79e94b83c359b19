//! Prepares cloud and Nodes before the first check.

use super::{Session, SessionError};
use crate::ccm::Form;
use crate::k8s::{addresses, provider_id};
use harness_clouds::{Address, CloudError, Credential, Instance, InstanceState, Problem};
use harness_clusters::{Machine, PodNetworkPlan};
use harness_core::check::Facility;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use std::collections::BTreeMap;

/// How often a new cloud is asked at most.
const TRIES: u32 = 3;

impl Session {
    /// Creates the real Nodes' machines (contract ENV-05) and the replicas' credentials in the cloud, then checks that
    /// the Nodes are as a kubelet with an external cloud provider registers them, and sets up their pod network.
    ///
    /// # Errors
    /// A Node is not as expected, or the cloud refuses.
    pub async fn seed(&self) -> Result<(), SessionError> {
        for replica in self.state.callers() {
            let credential = Credential { name: replica.name.clone(), token: replica.token.clone() };
            self.admit(&credential).await?;
        }
        if !self.has_cluster() {
            return Ok(());
        }
        let instances: Vec<Instance> = if self.state.cluster.is_ours() {
            self.machines().iter().enumerate().map(|(i, machine)| self.instance_of(machine, i)).collect()
        } else {
            // The CCM deletes NotReady Nodes that the cloud does not know, so it must know all of them (contract ENV-05).
            self.world
                .nodes
                .all()
                .iter()
                .enumerate()
                .map(|(i, node)| self.instance_of_node(node, i))
                .collect()
        };
        // A cloud whose machines cannot be changed knows its own.
        if self.cloud.facilities().contains(&Facility::Machines) {
            self.cloud.put_instances(&instances).await?;
        }
        self.assert_no_ccm()?;
        self.assert_uninitialised()?;
        match self.state.cluster.pod_network {
            Some(PodNetworkPlan::Switchable) => self.set_network(super::Network::Present).await,
            Some(PodNetworkPlan::Never) | None => Ok(()),
        }
    }

    /// Makes the credential known to the cloud. On a busy machine the first answers of a new cloud can take long; a credential
    /// can be sent again.
    async fn admit(&self, credential: &Credential) -> Result<(), CloudError> {
        for _ in 1..TRIES {
            match self.cloud.admit(credential).await {
                Err(error) if error.problem == Problem::NoAnswer => {
                    tracing::warn!(%error, "the cloud has not answered, and is asked again");
                }
                other => return other,
            }
        }
        self.cloud.admit(credential).await
    }

    /// A second CCM with the same name would confuse the result: a cluster that already has one is not changed.
    fn assert_no_ccm(&self) -> Result<(), SessionError> {
        let pods = [Form::Replicas, Form::AsShipped].into_iter().flat_map(|form| self.ccm.pods(form));
        match pods.map(|pod| pod.name_any()).collect::<Vec<String>>() {
            names if names.is_empty() => Ok(()),
            names => Err(SessionError::Precondition(format!(
                "the cluster already runs the CCM under test (Pods {}); remove it first",
                names.join(", ")
            ))),
        }
    }

    /// A real node's machine in the cloud: its own addresses, and one that only the cloud knows.
    fn instance_of(&self, machine: &Machine, index: usize) -> Instance {
        let own = [machine.ipv4.map(|ip| ip.to_string()), machine.ipv6.map(|ip| ip.to_string())];
        let provider_id = self.profile_provider_id(&self.id_of(machine));
        self.real_instance(&machine.name, provider_id, own.into_iter().flatten(), index)
    }

    /// The id of a real node's machine: what its kubelet reads from the firmware, if the cloud uses that.
    fn id_of(&self, machine: &Machine) -> String {
        let node = self.world.nodes.find("", &machine.name);
        let read = node.as_ref().and_then(|node| node.status.as_ref()?.node_info.as_ref());
        let id = read.and_then(|info| self.cloud.ids().of_system_uuid(&info.system_uuid));
        id.unwrap_or_else(|| self.profile_instance_id(&machine.name))
    }

    /// The machine of a Node that existed before the run.
    fn instance_of_node(&self, node: &Node, index: usize) -> Instance {
        let name = node.name_any();
        let provider_id = provider_id(node).unwrap_or_else(|| self.provider_id_of(&name));
        let own = addresses(node).into_iter().filter(|(kind, _)| kind == "InternalIP").map(|(_, ip)| ip);
        self.real_instance(&name, provider_id, own, index)
    }

    fn provider_id_of(&self, machine: &str) -> String {
        self.profile_provider_id(&self.profile_instance_id(machine))
    }

    fn real_instance(
        &self,
        name: &str,
        provider_id: String,
        own: impl Iterator<Item = String>,
        index: usize,
    ) -> Instance {
        let internal = own.map(|address| Address { kind: "InternalIP".to_owned(), address });
        let external = format!("198.51.100.{}", 200 + index % 50);
        let external = Address { kind: "ExternalIP".to_owned(), address: external };
        // Where machines have no private addresses, that of the Node is its public one.
        let shown = self.cloud.shown();
        let own: Vec<Address> = internal.collect();
        let addresses = match shown.part_of(own.clone()) {
            known if known.is_empty() => {
                let public = own.into_iter().map(|own| Address { kind: "ExternalIP".to_owned(), ..own });
                shown.part_of(public.chain(std::iter::once(external)))
            }
            _ => shown.part_of(own.into_iter().chain(std::iter::once(external))),
        };
        let (format, ids) = (&self.plan.profile.provider_id, self.cloud.ids());
        // An existing Node may have an id in another format; its machine is then found by name.
        let id = format.instance(&provider_id).filter(|id| ids.allow(id)).map(str::to_owned);
        Instance {
            id: id.unwrap_or_else(|| ids.make(name)),
            provider_id: Some(provider_id),
            name: name.to_owned(),
            instance_type: "m1.large".to_owned(),
            zone: self.profile_location().zone.clone(),
            region: self.profile_location().region.clone(),
            addresses,
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }
}
