//! Measuring on embedded clusters: one for each cell and order, gone at its end.

use super::observe::{CANARY, End, Goal, Patience, settle};
use super::table::Measured;
use super::variant::{Surroundings, Variant};
use super::{Question, Row};
use crate::ccm::Applier;
use crate::check::chain;
use crate::cloud::{LocalCloud, fresh_token};
use crate::cluster::{EmbeddedCluster, EmbeddedMachine, EmbeddedSpec, EmbeddedVersion, Role};
use crate::config::{Image, NodeIp, Profile, workspace};
use crate::images::{IMAGE_REGISTRY, Program, static_binary};
use crate::k8s::World;
use crate::probe::{Pulse, ReadError, poll};
use bootstrap::{CloudEndpoint, Cluster, Cni, KubeProxy, Outcome, Topology, YesNo};
use embedded_controllers::{CloudProvider, Dns, NodeTaint, Pace, PodNetwork, ServiceVip};
use fake_cloud::admin::{Address, Credential, Instance, InstanceState};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest pause on the way of a boot that goes on: the lease of a replica that ended lasts 15 s, and is asked for
/// every 2 s. Restarts come within 5 s (see [`pace`]), and the scheduler looks again whenever a Node changes. What has
/// not moved for longer than all of these never will.
const QUIET: Duration = Duration::from_secs(20);
/// No boot that moves takes so long.
const LONGEST: Duration = Duration::from_secs(180);
/// How long something that has to happen before the boot may take.
const SOON: Duration = Duration::from_secs(30);
/// How often it is looked for.
const INTERVAL: Duration = Duration::from_millis(50);
/// The name of a cloud that has one; `.test` is nobody's.
const CLOUD_NAME: &str = "cloud.conformance.test";

/// Measures on embedded clusters with the reference CCM.
#[derive(Clone, Debug)]
pub struct EmbeddedBench {
    folder: PathBuf,
    profile: Profile,
    program: PathBuf,
}

/// Which workloads are applied first where several are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    CcmFirst,
    CcmLast,
}

/// One cluster under measurement, with its cloud.
struct Bench<'a> {
    question: &'a Question,
    cluster: EmbeddedCluster,
    /// Where the CCM runs when that is elsewhere.
    hosting: Option<EmbeddedCluster>,
    cloud: LocalCloud,
    variant: Variant,
    machines: Vec<EmbeddedMachine>,
    /// The kubeconfig of a CCM that runs elsewhere goes with this folder.
    _folder: tempfile::TempDir,
}

impl EmbeddedBench {
    /// A bench for the variants of this folder. Compiles the reference CCM where that has not been done.
    ///
    /// # Errors
    /// It cannot be compiled, or its profile cannot be read.
    pub async fn new(folder: &Path) -> Result<EmbeddedBench, String> {
        let profile = Profile::load("reference").map_err(|problems| problems.to_string())?;
        let Some(Image::Build(build)) = &profile.image else {
            return Err("the profile 'reference' does not say how its CCM is compiled".to_owned());
        };
        let program = Program { package: build.package.clone(), bin: build.binary.clone(), features: None };
        let program = static_binary(&workspace(), &program).await.map_err(|error| chain(&error))?;
        Ok(EmbeddedBench { folder: folder.to_owned(), profile, program })
    }

    /// Measures every cell, several side by side; `told` hears of each as it ends. The order stays.
    pub async fn measure_all(&self, questions: Vec<Question>, jobs: usize, told: impl Fn(&Row)) -> Vec<Row> {
        let told = &told;
        let measured = questions.into_iter().map(|question| async move {
            let measured = self.measure(&question).await;
            let row = Row { question, measured };
            told(&row);
            row
        });
        futures::stream::iter(measured).buffered(jobs.max(1)).collect().await
    }

    /// Measures one cell.
    pub async fn measure(&self, question: &Question) -> Measured {
        if let Some(why) = hidden(question) {
            return Measured::NotObservable { why };
        }
        self.orders(question).await.unwrap_or_else(|why| Measured::Failed { why })
    }

    async fn orders(&self, question: &Question) -> Result<Measured, String> {
        let first = Box::pin(self.boot(question, Order::CcmFirst)).await?;
        let Some((first, others)) = first else {
            let why = "programs have no mount namespaces on this machine, so none has names of its own".to_owned();
            return Ok(Measured::NotObservable { why });
        };
        let mut ends = vec![first];
        if others {
            let last = Box::pin(self.boot(question, Order::CcmLast)).await?;
            ends.extend(last.map(|(end, _)| end));
        }
        let stuck = ends.iter().find_map(|end| match end {
            End::Booted => None,
            End::Stuck(missing) => Some(missing.clone()),
        });
        let outcome = match (&stuck, ends.contains(&End::Booted)) {
            (None, _) => Outcome::Boots,
            (Some(_), true) => Outcome::SomeOrders,
            (Some(_), false) => Outcome::Deadlock,
        };
        Ok(Measured::Seen { outcome, evicted: None, missing: stuck })
    }

    /// One boot, and whether the order decides anything; `None` when this machine cannot show it.
    async fn boot(&self, question: &Question, order: Order) -> Result<Option<(End, bool)>, String> {
        let bench = Bench::start(self, question).await?;
        let by_name = question.cell.cluster.cloud_endpoint == CloudEndpoint::Name;
        let end = if by_name && !bench.cluster.has_namespaces() {
            Ok(None)
        } else {
            let others = !bench.variant.others.is_empty();
            bench.run(order).await.map(|end| Some((end, others)))
        };
        bench.stop().await;
        end
    }
}

/// Why an embedded cluster cannot show this cell, if so.
fn hidden(question: &Question) -> Option<String> {
    if let Some(why) = question.case.not_observable_on.get("embedded") {
        return Some(why.clone());
    }
    (question.cell.cluster.cni == Cni::Kindnet)
        .then(|| "kindnet is a program of kind's, and the embedded cluster has no other network than its own".to_owned())
}

impl<'a> Bench<'a> {
    async fn start(bench: &EmbeddedBench, question: &'a Question) -> Result<Bench<'a>, String> {
        let cell = &question.cell.cluster;
        let version = version(cell)?;
        let cloud = LocalCloud::start(&bench.profile.dialect).await.map_err(|error| chain(&error))?;
        let token = fresh_token().map_err(|error| chain(&error))?;
        let hosted = cell.topology == Topology::Hosted;
        let endpoint = cloud.record().endpoint;
        let port = endpoint.rsplit(':').next().unwrap_or_default().to_owned();
        let by_name = cell.cloud_endpoint == CloudEndpoint::Name;
        let named = if by_name { format!("http://{CLOUD_NAME}:{port}") } else { endpoint };
        let image = format!("{IMAGE_REGISTRY}/reference-ccm:proof");
        let machines = machines(cell);
        // The API server's address is known once it is there; nothing before asks for it.
        let mut around = Surroundings {
            image,
            endpoint: named,
            token: token.clone(),
            api_server: (String::new(), 0),
        };
        let dns = if cell.cni == Cni::None { Dns::Absent } else { Dns::Simulated };
        let names = BTreeMap::from([(CLOUD_NAME.to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST))]);
        let base = |machines: Vec<EmbeddedMachine>| EmbeddedSpec {
            names: if by_name { names.clone() } else { BTreeMap::new() },
            pace: pace(),
            ..EmbeddedSpec::new(machines, version)
        };
        let folder = tempfile::tempdir().map_err(|error| format!("a folder for a kubeconfig: {error}"))?;
        let manifests = bench.folder.join(&question.case.name);
        let preview = Variant::read(&manifests, &around)?;
        let spec = EmbeddedSpec {
            programs: if hosted { Vec::new() } else { programs(&preview, &bench.program, Vec::new()) },
            network: network(cell),
            services: if cell.kube_proxy == KubeProxy::Yes { ServiceVip::Shortcut } else { ServiceVip::Absent },
            dns,
            ..base(machines.clone())
        };
        let cluster = EmbeddedCluster::start(spec).await.map_err(|error| chain(&error))?;
        cluster.registered(machines.len()).await.map_err(|error| chain(&error))?;
        let address = cluster.address();
        around.api_server = (address.ip().to_string(), address.port());
        let variant = Variant::read(&manifests, &around)?;
        let hosting = if hosted {
            let kubeconfig = folder.path().join("kubeconfig");
            let text = account_kubeconfig(&cluster, &variant)?;
            std::fs::write(&kubeconfig, text).map_err(|error| format!("{}: {error}", kubeconfig.display()))?;
            let elsewhere = vec![format!("--kubeconfig={}", kubeconfig.display())];
            let machine = EmbeddedMachine {
                labels: variant.labels_asked_for(),
                cloud: CloudProvider::None,
                ..EmbeddedMachine::new("management", Role::Worker)
            };
            let spec = EmbeddedSpec {
                programs: programs(&variant, &bench.program, elsewhere),
                dns: Dns::Simulated,
                ..base(vec![machine])
            };
            Some(EmbeddedCluster::start(spec).await.map_err(|error| chain(&error))?)
        } else {
            None
        };
        let admin = cloud.record().client().map_err(|error| chain(&error))?;
        let credential = Credential { name: "proof".to_owned(), token };
        admin.put_credential(&credential).await.map_err(|error| chain(&error))?;
        let instances: Vec<Instance> = machines.iter().zip(1_u8..).map(|m| bench.instance(m)).collect();
        admin.put_instances(&instances).await.map_err(|error| chain(&error))?;
        Ok(Bench { question, cluster, hosting, cloud, variant, machines, _folder: folder })
    }

    async fn run(&self, order: Order) -> Result<End, String> {
        let cell = &self.question.cell.cluster;
        let client = self.cluster.client();
        let world = World::open(&client, Pulse::default()).await.map_err(|error| chain(&error))?;
        if cell.routes == YesNo::Yes {
            self.without_routes(&client).await?;
        }
        self.create_canary(&client).await?;
        let here = Applier::new(client);
        let there = self.hosting.as_ref().map(|hosting| Applier::new(hosting.client()));
        let text = |error: crate::ccm::CcmError| chain(&error);
        here.apply(&Variant::assumed(&self.question.case.assume)?).await.map_err(text)?;
        here.apply(&self.variant.surroundings).await.map_err(text)?;
        if let Some(there) = &there {
            there.apply(&self.variant.surroundings).await.map_err(text)?;
        }
        let first = async || there.as_ref().unwrap_or(&here).apply(&self.variant.ccm).await.map_err(text);
        let second = async || here.apply(&self.variant.others).await.map_err(text);
        match order {
            Order::CcmFirst => {
                first().await?;
                if !self.variant.others.is_empty() {
                    placed(&world, &self.variant.ccm).await;
                }
                second().await?;
            }
            Order::CcmLast => {
                second().await?;
                placed(&world, &self.variant.others).await;
                first().await?;
            }
        }
        let goal = Goal {
            nodes: self.machines.iter().map(|machine| machine.name.clone()).collect(),
            ready: cell.cni != Cni::None,
            canary: cell.cni != Cni::None && self.machines.iter().any(|machine| is_open(machine, cell)),
        };
        settle(&world, &goal, Patience { quiet: QUIET, longest: LONGEST }).await
    }

    async fn stop(self) {
        if let Some(hosting) = self.hosting {
            hosting.stop().await;
        }
        self.cluster.stop().await;
        self.cloud.stop().await;
    }

    /// Every Node says that it has no routes, as after a restart of a CCM that makes them.
    async fn without_routes(&self, client: &kube::Client) -> Result<(), String> {
        let nodes: Api<Node> = Api::all(client.clone());
        let condition = json!({"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated",
            "message": "no route was created", "lastTransitionTime": jiff::Timestamp::now().to_string()});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        for machine in &self.machines {
            let patched = nodes.patch_status(&machine.name, &PatchParams::default(), &patch).await;
            patched.map_err(|error| format!("the condition of Node {}: {}", machine.name, chain(&error)))?;
        }
        Ok(())
    }

    /// A Pod that wants nothing special: no toleration, no host network.
    async fn create_canary(&self, client: &kube::Client) -> Result<(), String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), CANARY.0);
        let made = async |_: &mut String| {
            accounts.get_opt("default").await.map_err(|error| ReadError::passing(chain(&error)))
        };
        poll("the service account 'default'", SOON, INTERVAL, made).await.map_err(|error| error.text)?;
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": CANARY.1},
            "spec": {"containers": [{"name": "idle", "image": format!("{IMAGE_REGISTRY}/idle")}]},
        }))
        .map_err(|error| format!("the canary's manifest: {error}"))?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), CANARY.0);
        pods.create(&PostParams::default(), &pod).await.map_err(|error| chain(&error))?;
        Ok(())
    }
}

impl EmbeddedBench {
    /// A Node's machine as the cloud sees it.
    fn instance(&self, (machine, index): (&EmbeddedMachine, u8)) -> Instance {
        let address = |kind: &str, address: String| Address { kind: kind.to_owned(), address };
        Instance {
            id: self.profile.instance_ids().make(&machine.name),
            provider_id: Some(self.profile.provider_id_of(&machine.name)),
            name: machine.name.clone(),
            instance_type: "m1.large".to_owned(),
            zone: self.profile.location.zone.clone(),
            region: self.profile.location.region.clone(),
            addresses: vec![
                address("InternalIP", EmbeddedCluster::node_ip(u32::from(index) - 1).to_string()),
                address("ExternalIP", format!("198.51.100.{index}")),
            ],
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }
}

/// Whether the machine keeps no taint once everything has booted.
fn is_open(machine: &EmbeddedMachine, cell: &Cluster) -> bool {
    !machine.kubeadm_taint && machine.taints.iter().all(|taint| taint.key == cell.startup_taint.key)
}

/// Waits until these workloads have their Pods on Nodes, where they come that far.
async fn placed(world: &World, workloads: &[serde_json::Value]) {
    let names: Vec<&str> = workloads.iter().filter_map(|w| w["metadata"]["name"].as_str()).collect();
    let all = async |_: &mut String| {
        let pods = world.pods.all();
        let bound = |name: &&&str| {
            pods.iter().any(|pod| {
                let own = pod.metadata.name.as_ref().is_some_and(|own| own.starts_with(**name));
                own && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
            })
        };
        Ok((names.iter().filter(bound).count() == names.len()).then_some(()))
    };
    // Those that find no Node come second all the same: that is the order.
    let _ = poll("Pods on Nodes", Duration::from_secs(5), INTERVAL, all).await;
}

/// A quick cluster: restarts do not wait for longer than a look takes.
fn pace() -> Pace {
    Pace {
        restart_first: Duration::from_secs(1),
        restart_longest: Duration::from_secs(5),
        ..Pace::default()
    }
}

fn version(cell: &Cluster) -> Result<EmbeddedVersion, String> {
    let newest = EmbeddedVersion::default();
    if newest.to_string().starts_with(&format!("v{}.", cell.version)) {
        return Ok(newest);
    }
    cell.version.to_string().parse()
}

fn network(cell: &Cluster) -> PodNetwork {
    let startup = |waits_for_addresses| PodNetwork::StartupTaint {
        key: cell.startup_taint.key.clone(),
        waits_for_addresses,
    };
    match cell.cni {
        Cni::None => PodNetwork::None,
        Cni::Independent => PodNetwork::Independent,
        Cni::WaitsForAddresses | Cni::Kindnet => PodNetwork::WaitsForAddresses,
        Cni::StartupTaint => startup(false),
        Cni::StartupTaintAndWaits => startup(true),
    }
}

/// The machines of a topology, as kubeadm and kubelets make them.
fn machines(cell: &Cluster) -> Vec<EmbeddedMachine> {
    let (control_planes, workers) = match cell.topology {
        Topology::SingleNode => (1, 0),
        Topology::ControlPlaneAndWorker => (1, 1),
        Topology::ThreeControlPlanes => (3, 0),
        Topology::Hosted | Topology::WorkerOnly => (0, 2),
    };
    let taint = |taint: &bootstrap::Taint| NodeTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.to_string(),
    };
    let startup = matches!(cell.cni, Cni::StartupTaint | Cni::StartupTaintAndWaits);
    let startup = startup.then(|| taint(&cell.startup_taint));
    let machine = |role: Role, number: u32| {
        let own = cell.control_plane_taints.as_ref().filter(|_| role == Role::ControlPlane);
        let mut taints: Vec<NodeTaint> = own.into_iter().flatten().map(taint).collect();
        taints.extend(startup.clone());
        EmbeddedMachine {
            node_ip: if cell.node_ip == YesNo::Yes { NodeIp::Kept } else { NodeIp::Dropped },
            taints,
            kubeadm_taint: role == Role::ControlPlane && own.is_none() && control_planes + workers > 1,
            ..EmbeddedMachine::new(format!("{role}-{number}"), role)
        }
    };
    let first = (1..=control_planes).map(|number| machine(Role::ControlPlane, number));
    first.chain((1..=workers).map(|number| machine(Role::Worker, number))).collect()
}

/// The reference CCM, as the program of every image that stands for it.
fn programs(variant: &Variant, program: &Path, more: Vec<String>) -> Vec<embedded_controllers::Program> {
    let own = |image: &String| embedded_controllers::Program {
        image: image.clone(),
        entry_point: vec![program.to_string_lossy().into_owned()],
        arguments: Vec::new(),
        keeps_entry_point: true,
        // Replicas on simulated machines share this computer's loopback.
        more_arguments: std::iter::once("--bind-address=${NODE_LOOPBACK}".to_owned())
            .chain(variant.arguments.clone())
            .chain(more.clone())
            .collect(),
        environment: variant.environment.clone(),
    };
    variant.images.iter().map(own).collect()
}

/// What a CCM that runs elsewhere reaches the cluster with.
fn account_kubeconfig(cluster: &EmbeddedCluster, variant: &Variant) -> Result<String, String> {
    let accounts = variant.accounts();
    let [(namespace, name)] = accounts.iter().collect::<Vec<_>>()[..] else {
        return Err("a CCM that runs elsewhere has one account".to_owned());
    };
    cluster.kubeconfig_of_account(namespace, name).map_err(|error| chain(&error))
}
