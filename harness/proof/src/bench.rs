//! One embedded cluster for a measurement: created as a cell describes it, given its manifests in some order, and
//! watched.

use super::cells::{is_open, machines, network, pace, version};
use super::means::Means;
use super::observe::{
    End, Goal, INTERVAL, Patience, SOON, create_canary, placed, settle, with_admission, with_refusals,
};
use super::play;
use super::question::Question;
use super::variant::{PlaceholderValues, Variant};
use bootstrap::{CloudEndpoint, Cni, KubeProxy, Topology, YesNo};
use embedded_cluster::{
    CloudProvider, Cluster, ClusterSpec, Dns, MachineSpec, PodNetwork, Program, Role, ServiceVip, Share, User,
};
use harness_clouds::{
    Address, CloudSpec, Credential, Instance, InstanceState, Place, RunningCloud, fresh_token, start,
};
use harness_clusters::CLOUD_NAME;
use harness_clusters::images::{IMAGE_REGISTRY, RunId};
use harness_core::check::chain;
use harness_core::files;
use harness_core::probe::{Pulse, poll};
use harness_session::ccm::{Applier, CcmError};
use harness_session::k8s::ClusterCaches;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The longest pause of a boot that continues: the lease of a replica that exited lasts 15 s, and is requested every 2 s.
/// Restarts come within 5 s (see [`pace`]), and the scheduler retries whenever a Node changes. If nothing has changed for
/// longer than that, nothing will.
const QUIET: Duration = Duration::from_secs(20);
/// No boot that continues takes longer.
const LONGEST: Duration = Duration::from_secs(180);
/// Which workloads are applied first if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    CcmFirst,
    CcmLast,
}

/// One measured cluster, with its cloud.
pub(super) struct Bench<'a> {
    question: &'a Question,
    pub(super) cluster: Cluster,
    /// The cluster of the CCM if that is another one.
    hosting: Option<Cluster>,
    cloud: RunningCloud,
    pub(super) variant: Variant,
    machines: Vec<MachineSpec>,
    /// Their machines in the cloud.
    instances: Vec<Instance>,
    /// The folder with the kubeconfig of a CCM that runs elsewhere; removed with this.
    _folder: tempfile::TempDir,
}

/// The cluster of a CCM that runs elsewhere, based on `base`; its kubeconfig for the measured cluster is written to the
/// folder.
async fn management(
    means: &Means,
    question: &Question,
    (cluster, variant): (&Cluster, &Variant),
    folder: &Path,
    (base, more): (ClusterSpec, Vec<String>),
) -> Result<Cluster, String> {
    let kubeconfig = folder.join("kubeconfig");
    let text = account_kubeconfig(cluster, variant)?;
    std::fs::write(&kubeconfig, text)
        .map_err(|error| format!("{}: {}", kubeconfig.display(), files::why(&error)))?;
    let elsewhere = vec![format!("--kubeconfig={}", kubeconfig.display())];
    let arguments = [elsewhere, more].concat();
    let machine = MachineSpec {
        labels: variant.labels_asked_for(),
        cloud: CloudProvider::None,
        ..MachineSpec::awaiting_cloud("management", Role::Worker)
    };
    let spec = ClusterSpec {
        machines: vec![machine],
        programs: programs(variant, means, question, arguments, Some(&kubeconfig)),
        dns: Dns::Simulated,
        ..base
    };
    Cluster::start(spec).await.map_err(|error| chain(&error))
}

/// The initial machines in the cloud. If the CCM should be evicted, the control plane has an address that no CCM can use
/// yet, so that it is initialised but not Ready.
fn known_at_first(question: &Question, machines: &[MachineSpec], instances: &[Instance]) -> Vec<Instance> {
    let mut known = instances.to_vec();
    if question.case.evicted {
        let late = known.iter_mut().zip(machines).filter(|(_, machine)| machine.role == Role::ControlPlane);
        late.for_each(|(instance, machine)| {
            let kind = "InternalDNS".to_owned();
            instance.addresses = vec![Address { kind, address: format!("{}.internal", machine.name) }];
        });
    }
    known
}

impl<'a> Bench<'a> {
    pub(super) async fn start(means: &Means, question: &'a Question) -> Result<Bench<'a>, String> {
        let cell = &question.cell.cluster;
        let version = version(cell)?;
        let folder = tempfile::tempdir()
            .map_err(|error| format!("a folder for a kubeconfig: {}", files::why(&error)))?;
        let on_message: harness_clouds::OnMessage =
            std::sync::Arc::new(|what| tracing::warn!(what, "the cloud"));
        let cloud = &means.profile.cloud;
        let (run, place) = (&RunId::fresh(), Place::LOOPBACK);
        let spec =
            CloudSpec { run, cloud, place, replicas: &[], folder: folder.path(), on_message: &on_message };
        let cloud = start(spec).await.map_err(|error| chain(&error))?;
        let token = fresh_token().map_err(|error| chain(&error))?;
        let hosted = cell.topology == Topology::Hosted;
        let endpoint = cloud.record().endpoint.clone();
        let port = endpoint.rsplit(':').next().unwrap_or_default().to_owned();
        let by_name = cell.cloud_endpoint == CloudEndpoint::Name;
        let named = if by_name { format!("http://{CLOUD_NAME}:{port}") } else { endpoint };
        let image = format!("{IMAGE_REGISTRY}/reference-ccm:proof");
        let machines = machines(cell);
        // The API server's address is known once it runs; it is not needed before.
        let mut around = PlaceholderValues {
            image,
            endpoint: named,
            token: token.clone(),
            api_server: (String::new(), 0),
        };
        let dns = if cell.cni == Cni::None { Dns::Absent } else { Dns::Simulated };
        let names = BTreeMap::from([(CLOUD_NAME.to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST))]);
        let base = |machines: Vec<MachineSpec>| ClusterSpec {
            names: if by_name { names.clone() } else { BTreeMap::new() },
            pace: pace(),
            kubernetes: version,
            ..ClusterSpec::new(machines)
        };
        // Late addresses are noticed soon, not after the default of five minutes.
        let more: Vec<String> = question
            .case
            .evicted
            .then(|| "--node-status-update-frequency=5s".to_owned())
            .into_iter()
            .collect();
        let preview = Variant::parse(&question.case.name, &question.manifests, &question.ccms, &around)?;
        let spec = ClusterSpec {
            programs: if hosted {
                Vec::new()
            } else {
                programs(&preview, means, question, more.clone(), None)
            },
            network: if play::plugin(&preview).is_some() { PodNetwork::None } else { network(cell) },
            services: if cell.kube_proxy == KubeProxy::Yes {
                ServiceVip::Shortcut
            } else {
                ServiceVip::Absent
            },
            dns,
            ..base(machines.clone())
        };
        let cluster = Cluster::start(spec).await.map_err(|error| chain(&error))?;
        let address = cluster.address();
        around.api_server = (address.ip().to_string(), address.port());
        let variant = Variant::parse(&question.case.name, &question.manifests, &question.ccms, &around)?;
        let hosting = match hosted {
            true => Some(
                management(means, question, (&cluster, &variant), folder.path(), (base(Vec::new()), more))
                    .await?,
            ),
            false => None,
        };
        let admin = cloud.attach().map_err(|error| chain(&error))?;
        let credential = Credential { name: "proof".to_owned(), token };
        admin.admit(&credential).await.map_err(|error| chain(&error))?;
        let instances: Vec<Instance> = machines.iter().zip(1_u8..).map(|m| means.instance(m)).collect();
        let known = known_at_first(question, &machines, &instances);
        admin.put_instances(&known).await.map_err(|error| chain(&error))?;
        Ok(Bench { question, cluster, hosting, cloud, variant, machines, instances, _folder: folder })
    }

    /// Boots; returns how it ended, and whether the CCM was evicted during the boot if that is measured.
    pub(super) async fn run(
        &self,
        order: Order,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<(End, Option<bool>), String> {
        let cell = &self.question.cell.cluster;
        let client = self.cluster.client();
        let world = ClusterCaches::open(&client, Pulse::default()).await.map_err(|error| chain(&error))?;
        if cell.routes == YesNo::Yes {
            let nodes: Api<Node> = Api::all(client.clone());
            for machine in &self.machines {
                play::set_network_unavailable(&nodes, &machine.name, "True").await?;
            }
        }
        create_canary(&client, &format!("{IMAGE_REGISTRY}/idle")).await?;
        let here = Applier::new(client);
        let there = self.hosting.as_ref().map(|hosting| Applier::new(hosting.client()));
        here.apply(&Variant::assumed(&self.question.case.assume)?).await.map_err(|error| chain(&error))?;
        let refusals =
            self.apply(&world, (&here, there.as_ref()), order).await.map_err(|error| chain(&error))?;
        let goal = Goal {
            nodes: self.machines.iter().map(|machine| machine.name.clone()).collect(),
            ready: cell.cni != Cni::None,
            canary: cell.cni != Cni::None && self.machines.iter().any(|machine| is_open(machine, cell)),
        };
        let after = self.question.cell.eviction.as_ref().filter(|_| self.question.case.evicted);
        let evicted = match after {
            None => None,
            Some(eviction) => Some(self.evicted(&world, eviction.after_seconds).await?),
        };
        let patience = Patience { quiet: QUIET, longest: LONGEST };
        tokio::select! {
            end = settle(&world, &goal, patience, turn) => {
                let end = with_admission(&self.cluster.client(), &goal, end?).await?;
                Ok((with_refusals(end, &refusals), evicted))
            }
            never = self.play_plugin(&world, &goal.nodes) => match never {},
        }
    }

    /// Applies the manifests here, and the CCM's on its cluster. Returns what the API server refused.
    async fn apply(
        &self,
        world: &ClusterCaches,
        (here, there): (&Applier, Option<&Applier>),
        order: Order,
    ) -> Result<Vec<CcmError>, CcmError> {
        let mut refusals = here.apply_each(&self.variant.surroundings).await?;
        if let Some(there) = there {
            there.apply_each(&self.variant.surroundings).await?;
        }
        let first = async || there.unwrap_or(here).apply_each(&self.variant.ccm).await;
        let second = async || here.apply_each(&self.variant.others).await;
        match order {
            Order::CcmFirst => {
                refusals.extend(first().await?);
                if !self.variant.others.is_empty() {
                    placed(world, &self.variant.ccm).await;
                }
                refusals.extend(second().await?);
            }
            Order::CcmLast => {
                refusals.extend(second().await?);
                placed(world, &self.variant.others).await;
                refusals.extend(first().await?);
            }
        }
        Ok(refusals)
    }

    /// Sets up the network when the plugin of the manifests would; never returns.
    async fn play_plugin(&self, world: &ClusterCaches, nodes: &[String]) -> Infallible {
        let cell = &self.question.cell.cluster;
        if let Some(plugin) = play::plugin(&self.variant) {
            let due =
                async |_: &mut String| Ok(play::is_due(world, nodes, cell, Some(&plugin)).then_some(()));
            if poll("the network plugin", LONGEST, INTERVAL, due).await.is_ok() {
                self.cluster.machines().set_network(PodNetwork::Independent);
            }
        }
        std::future::pending().await
    }

    /// Provokes the order in which the CCM's own Node becomes Ready long after others, and observes whether its Pod is
    /// evicted. In the end the cloud has the right properties of every machine.
    async fn evicted(&self, world: &ClusterCaches, after_seconds: i64) -> Result<bool, String> {
        let admin = self.cloud.attach().map_err(|error| chain(&error))?;
        let own = || {
            let names = self.variant.ccm.iter().filter_map(|w| w["metadata"]["name"].as_str());
            let names: Vec<&str> = names.collect();
            let pods = world.pods.all().into_iter();
            let bound = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            let named = |pod: &Pod| names.iter().any(|name| pod.name_any().starts_with(name));
            let live = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
            pods.filter(|pod| bound(pod) && named(pod) && live(pod))
                .filter_map(|pod| pod.uid())
                .collect::<Vec<_>>()
        };
        let there = async |_: &mut String| Ok(own().into_iter().next());
        let first =
            poll("a Pod of the CCM on a Node", SOON, INTERVAL, there).await.map_err(|error| error.text)?;
        let limit = Duration::from_secs(u64::try_from(after_seconds).unwrap_or(0)) + SOON;
        let gone = async |_: &mut String| Ok((!own().contains(&first)).then_some(()));
        let evicted = poll("the end of the CCM's Pod", limit, INTERVAL, gone).await.is_ok();
        admin.put_instances(&self.instances).await.map_err(|error| chain(&error))?;
        Ok(evicted)
    }

    pub(super) async fn stop(self) {
        if let Some(hosting) = self.hosting {
            hosting.stop().await;
        }
        self.cluster.stop().await;
        if let Err(error) = self.cloud.stop().await {
            tracing::warn!(%error, "the cloud could not be stopped");
        }
    }
}

impl Means {
    /// A Node's machine in the cloud.
    fn instance(&self, (machine, index): (&MachineSpec, u8)) -> Instance {
        let ip = Cluster::node_ipv4(u32::from(index) - 1);
        let address = |kind: &str, address: String| Address { kind: kind.to_owned(), address };
        Instance {
            id: self.profile.instance_ids().make(&machine.name),
            provider_id: Some(self.profile.provider_id_of(&machine.name)),
            name: machine.name.clone(),
            instance_type: "m1.large".to_owned(),
            zone: self.profile.location.zone.clone(),
            region: self.profile.location.region.clone(),
            addresses: vec![
                address("InternalIP", ip.to_string()),
                address("ExternalIP", format!("198.51.100.{index}")),
            ],
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }
}

/// The reference CCM as the program of all images that it replaces; `shared` is a file of this machine that it reads.
fn programs(
    variant: &Variant,
    means: &Means,
    question: &Question,
    more: Vec<String>,
    shared: Option<&Path>,
) -> Vec<Program> {
    let own = |image: &String| Program {
        // Programs that manifests name are in their image, unless the variant is about that.
        keeps_entry_point: question.case.unmet.is_none(),
        // Like the image of the reference CCM on kind: it runs as root, and is in no registry.
        pulls: false,
        user: Some(0),
        // Replicas on simulated machines share this computer's loopback.
        more_arguments: std::iter::once("--bind-address=${NODE_LOOPBACK}".to_owned())
            .chain(variant.arguments.clone())
            .chain(more.clone())
            .collect(),
        environment: variant.environment.clone(),
        shares: shared.iter().map(|path| Share { path: (*path).to_owned(), writable: false }).collect(),
        ..Program::new(image, &means.program)
    };
    variant.images.iter().map(own).collect()
}

/// The kubeconfig of a CCM that runs elsewhere.
fn account_kubeconfig(cluster: &Cluster, variant: &Variant) -> Result<String, String> {
    let accounts = variant.accounts();
    let [(namespace, name)] = accounts.iter().collect::<Vec<_>>()[..] else {
        return Err("a CCM that runs elsewhere has one account".to_owned());
    };
    let user = User::service_account(namespace, name, "");
    cluster.kubeconfig_for(&user).map_err(|error| chain(&error))
}
