//! A cluster made with kind: creation, attaching, removal.

use super::error::ClusterError;
use super::evidence::{collect, kubelet_tail};
use super::exec::{Stdin, exec_ok};
use super::kind_cli::{self, Creation};
use super::leftovers::remove_cluster;
use super::network::{self, ensure_network};
use super::node_image::{self, NodeImage};
use super::preflight::preflight;
use super::record::{ClusterRecord, KindRecord, Machine, Origin, Role};
use super::render::{Facts, render};
use super::spec::{KindSpec, Progress};
use super::topology::{self, Layout};
use crate::check::Facility;
use crate::config::NodeIp;
use crate::images::{Engine, settled};
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::ListContainersOptionsBuilder;
use futures::future::try_join_all;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

/// kind's label with the cluster's name on its containers.
pub(super) const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
/// kind's label with a container's role.
const ROLE_LABEL: &str = "io.x-k8s.kind.role";
/// How long kind may take for a first machine, pulling its image included.
const CREATE_LIMIT: Duration = Duration::from_secs(420);
/// How much longer for each further machine.
const CREATE_LIMIT_EACH: Duration = Duration::from_secs(90);
/// How long a question to the engine or a short command in a machine may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How often creation is begun before the one failure that a repetition mends is believed.
const ATTEMPTS: u32 = 2;

/// A cluster made with kind.
#[derive(Clone, Debug)]
pub struct KindCluster {
    pub(super) engine: Engine,
    pub(super) record: ClusterRecord,
    pub(super) kind: Box<KindRecord>,
}

impl KindCluster {
    pub(super) async fn create(
        engine: &Engine,
        spec: &KindSpec,
        progress: Progress<'_>,
    ) -> Result<KindCluster, ClusterError> {
        let layout = topology::load(&spec.topology)?;
        let found = preflight(engine).await?;
        let image = node_image::choose(engine, &spec.kubernetes).await?;
        let name = spec.run.name();
        let facts = Facts {
            cluster: &name,
            kubernetes: image.version.as_ref(),
            kind: &found.kind,
            cgroups: found.cgroups,
            kube_proxy: image.kube_proxy,
            provider_id: &spec.provider_id,
            node_ip: spec.node_ip,
        };
        let config = spec.folder.join("kind.yaml");
        tokio::fs::write(&config, render(&layout, &facts))
            .await
            .map_err(ClusterError::file("write", &config))?;
        ensure_network(engine, &spec.run, layout.families).await?;
        let making = Making { engine, spec, layout: &layout, image: &image, config, name: &name };
        let made = async {
            making.run_kind(progress).await?;
            making.look(found.kind.to_string()).await
        };
        match made.await {
            Ok(cluster) => Ok(cluster),
            Err(error) => {
                making.clear_up().await;
                Err(error)
            }
        }
    }

    pub(super) fn attach(record: ClusterRecord, kind: Box<KindRecord>) -> Result<KindCluster, ClusterError> {
        let engine = Engine::attach(&kind.engine)?;
        Ok(KindCluster { engine, record, kind })
    }

    /// Removes machines, their volumes and the network. Parts that are gone already are fine.
    pub(super) async fn delete(&self) -> Result<(), ClusterError> {
        remove_cluster(&self.engine, &self.record.name).await?;
        network::remove(&self.engine, &self.kind.network).await?;
        match tokio::fs::remove_file(&self.record.kubeconfig).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ClusterError::file("remove", &self.record.kubeconfig)(error))
            }
            _ => Ok(()),
        }
    }
}

/// A cluster while it is being made.
struct Making<'a> {
    engine: &'a Engine,
    spec: &'a KindSpec,
    layout: &'a Layout,
    image: &'a NodeImage,
    config: PathBuf,
    name: &'a str,
}

impl Making<'_> {
    fn kubeconfig(&self) -> PathBuf {
        self.spec.folder.join("kubeconfig")
    }

    async fn run_kind(&self, progress: Progress<'_>) -> Result<(), ClusterError> {
        let further = u32::try_from(self.layout.roles.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let kubeconfig = self.kubeconfig();
        let creation = Creation {
            name: self.name,
            network: self.name,
            config: &self.config,
            kubeconfig: &kubeconfig,
            image: self.image.reference.as_deref(),
            limit: CREATE_LIMIT + CREATE_LIMIT_EACH * further,
        };
        for attempt in 1.. {
            let Err(failure) = kind_cli::create(self.engine, creation, progress).await? else { break };
            if failure.is_openapi_race() && attempt < ATTEMPTS {
                progress("Starting over: the API server described its objects too late");
                remove_cluster(self.engine, self.name).await?;
                continue;
            }
            if let (None, Some(why)) = (&self.image.reference, failure.pull()) {
                return Err(ClusterError::NoNodeImage { why });
            }
            return Err(self.failed(failure.what).await);
        }
        owner_only(&kubeconfig).await
    }

    /// A failure with the machines' logs, and the end of the first kubelet's, whose words usually name the fault.
    async fn failed(&self, what: String) -> ClusterError {
        let machines = machines(self.engine, self.name).await.unwrap_or_default();
        let evidence = self.spec.evidence.clone().filter(|_| !machines.is_empty());
        if let Some(folder) = &evidence {
            collect(self.engine, &machines, folder).await;
        }
        let journal = match machines.first() {
            Some(machine) => kubelet_tail(self.engine, machine).await,
            None => None,
        };
        ClusterError::Kind { name: self.name.to_owned(), what, journal, evidence }
    }

    /// Looks at what kind has made.
    async fn look(&self, kind_version: String) -> Result<KindCluster, ClusterError> {
        let machines = machines(self.engine, self.name).await?;
        let looks = try_join_all(machines.iter().map(|machine| self.look_into(machine))).await?;
        let Some(first) = looks.first() else {
            return Err(ClusterError::Gone { what: format!("every machine of cluster {}", self.name) });
        };
        let node_image = self.node_image(&machines[0]).await?;
        let digest = crate::images::find_digest(self.engine, &node_image).await?.unwrap_or_default();
        let common = |of: fn(&Look) -> &BTreeSet<String>| {
            looks.iter().map(of).cloned().reduce(|one, two| &one & &two).unwrap_or_default()
        };
        let (programs, cni_plugins) = (common(|look| &look.programs), common(|look| &look.cni_plugins));
        let kind = Box::new(KindRecord {
            engine: self.engine.record(),
            network: self.name.to_owned(),
            node_image,
            node_image_digest: digest,
            kube_proxy: self.image.kube_proxy,
            kubernetes: first.kubernetes.clone(),
            kind_version,
            topology: self.layout.name.clone(),
            pod_network: self.layout.pod_network,
            facilities: facilities(&programs, &cni_plugins),
            cni_plugins,
            mtu: first.mtu,
            machines,
        });
        let record = ClusterRecord {
            name: self.name.to_owned(),
            kubeconfig: self.kubeconfig(),
            origin: Origin::Kind(kind.clone()),
        };
        Ok(KindCluster { engine: self.engine.clone(), record, kind })
    }

    async fn node_image(&self, machine: &Machine) -> Result<String, ClusterError> {
        match &self.image.reference {
            Some(reference) => Ok(reference.clone()),
            None => {
                let asked = self.engine.docker().inspect_container(&machine.container_id, None);
                let found = self.engine.call("inspect container", &machine.name, LIMIT, asked).await?;
                Ok(found.config.and_then(|config| config.image).unwrap_or_default())
            }
        }
    }

    async fn look_into(&self, machine: &Machine) -> Result<Look, ClusterError> {
        let output = exec_ok(self.engine, machine, &["sh", "-c", LOOK], Stdin::Empty, LIMIT).await?;
        let look = Look::parse(&output.stdout);
        look.check(machine, self.spec)?;
        Ok(look)
    }

    /// Removes what a failed creation left. The failure is what the caller wants to hear of, so trouble here is only
    /// logged; [`super::remove_leftovers`] finds what stays.
    async fn clear_up(&self) {
        let removal = async {
            remove_cluster(self.engine, self.name).await?;
            settled(LIMIT).await;
            remove_cluster(self.engine, self.name).await
        };
        if let Err(error) = removal.await {
            tracing::warn!(%error, cluster = self.name, "a failed cluster was not removed");
        }
        // A cloud that was started meanwhile may still be on the network; then its owner removes both.
        if let Err(error) = network::remove(self.engine, self.name).await {
            tracing::debug!(%error, network = self.name, "the network stays");
        }
    }
}

/// What a machine says of itself. Each line is a word and a value.
const LOOK: &str = r#"
echo "kubernetes $(cat /kind/version)"
echo "flags $(cat /var/lib/kubelet/kubeadm-flags.env)"
echo "mtu $(cat /sys/class/net/eth0/mtu)"
for program in systemctl ctr iptables; do command -v $program > /dev/null && echo "program $program"; done
for plugin in ptp host-local loopback portmap; do test -x /opt/cni/bin/$plugin && echo "plugin $plugin"; done
true
"#;

/// What was seen in a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Look {
    kubernetes: String,
    flags: String,
    mtu: u32,
    programs: BTreeSet<String>,
    cni_plugins: BTreeSet<String>,
}

impl Look {
    fn parse(text: &str) -> Look {
        let mut look = Look::default();
        for (word, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            match word {
                "kubernetes" => look.kubernetes = value.trim().to_owned(),
                "flags" => look.flags = value.to_owned(),
                "mtu" => look.mtu = value.trim().parse().unwrap_or_default(),
                "program" => _ = look.programs.insert(value.to_owned()),
                "plugin" => _ = look.cni_plugins.insert(value.to_owned()),
                _ => {}
            }
        }
        look
    }

    /// Contract ENV-01, ENV-03 and ENV-04: our arguments arrived and kind's own survived.
    fn check(&self, machine: &Machine, spec: &KindSpec) -> Result<(), ClusterError> {
        let provider_id =
            format!("--provider-id={} ", spec.provider_id.of(&machine.name).unwrap_or_default());
        // Quotes are the file's, and a last argument has no blank after it.
        let flags = format!("{} ", self.flags.replace(['"', '\''], " "));
        let dropped = spec.node_ip == NodeIp::Dropped;
        for (argument, wanted) in
            [("--cloud-provider=external ", true), (provider_id.as_str(), true), ("--node-ip=", !dropped)]
        {
            if flags.contains(argument) != wanted {
                let sense = if wanted { "" } else { "no " };
                return Err(ClusterError::NotAsConfigured {
                    machine: machine.name.clone(),
                    expected: format!("{sense}kubelet argument {}", argument.trim()),
                    found: self.flags.clone(),
                });
            }
        }
        Ok(())
    }
}

/// What can be done to machines that have these programs and plugins.
fn facilities(programs: &BTreeSet<String>, cni_plugins: &BTreeSet<String>) -> BTreeSet<Facility> {
    let plugins = ["ptp", "host-local", "loopback"].iter().all(|plugin| cni_plugins.contains(*plugin));
    let found = [
        (Facility::NodeControl, true),
        (Facility::KubeletControl, programs.contains("systemctl")),
        (Facility::ProcessControl, programs.contains("ctr")),
        (Facility::PodNetworkControl, plugins),
    ];
    found.into_iter().filter(|(_, there)| *there).map(|(facility, _)| facility).collect()
}

/// The machines of a cluster: control planes first, otherwise by name.
pub(super) async fn machines(engine: &Engine, cluster: &str) -> Result<Vec<Machine>, ClusterError> {
    let filters = HashMap::from([("label", vec![format!("{CLUSTER_LABEL}={cluster}")])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let listed = engine
        .call("list machines of", cluster, LIMIT, engine.docker().list_containers(Some(options)))
        .await?;
    let looks = listed
        .iter()
        .filter_map(|container| container.id.as_deref())
        .map(|id| engine.call("inspect container", id, LIMIT, engine.docker().inspect_container(id, None)));
    let mut machines: Vec<Machine> =
        try_join_all(looks).await?.into_iter().filter_map(|container| machine(container, cluster)).collect();
    let order =
        |machine: &Machine| (machine.role != Role::ControlPlane, machine.name.len(), machine.name.clone());
    machines.sort_by_key(order);
    Ok(machines)
}

/// A container as a machine; `None` for kind's load balancer before several control planes.
pub(super) fn machine(container: ContainerInspectResponse, network: &str) -> Option<Machine> {
    let labels = container.config.and_then(|config| config.labels)?;
    let role = match labels.get(ROLE_LABEL)?.as_str() {
        "control-plane" => Role::ControlPlane,
        "worker" => Role::Worker,
        _ => return None,
    };
    let endpoint = container.network_settings?.networks?.remove(network)?;
    Some(Machine {
        name: container.name?.trim_start_matches('/').to_owned(),
        role,
        ipv4: endpoint.ip_address.and_then(|address| address.parse().ok()),
        ipv6: endpoint.global_ipv6_address.and_then(|address| address.parse().ok()),
        container_id: container.id?,
    })
}

async fn owner_only(path: &PathBuf) -> Result<(), ClusterError> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o600);
    tokio::fs::set_permissions(path, permissions).await.map_err(ClusterError::file("protect", path))
}
