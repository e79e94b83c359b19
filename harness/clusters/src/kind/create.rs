//! Creates a cluster: runs kind, and examines the result.

use super::access::KindMachines;
use super::api_reach::{FIRST_GROUP, rules};
use super::audit;
use super::command::{self, Creation};
use super::control_plane::withholds_pod_cidrs;
use super::exec::{Stdin, exec_ok};
use super::logs::{collect, kubelet_tail};
use super::machines::machines;
use super::management;
use super::network_proxy::ProxyFolders;
use super::node_image::{self, NodeImage};
use super::ports;
use super::preflight::{Preflight, preflight};
use super::record::{KindRecord, KubeProxy};
use super::render::{Facts, render};
use crate::error::ClusterError;
use crate::images::{Engine, settled};
use crate::leftovers::remove_cluster;
use crate::network::{self, ensure_network};
use crate::operation::ApiReach;
use crate::record::{API_SERVER_PORT, About, CloudSite, ClusterRecord, Machine, Ownership, Role};
use crate::spec::{ClusterSpec, Purpose};
use crate::topology::{self, Layout};
use futures::future::try_join_all;
use harness_config::{BackendKind, NodeIp};
use harness_core::check::Facility;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::RwLock;

/// How long kind may take for the first machine, including pulling its image.
const CREATE_LIMIT: Duration = Duration::from_secs(420);
/// Additional time for each further machine.
const CREATE_LIMIT_EACH: Duration = Duration::from_secs(90);
/// Time limit for a query to the engine or a short command in a machine.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the creation is tried if it fails in a way that a retry usually solves.
const ATTEMPTS: u32 = 3;
/// Held by each cluster that is being created.
static CREATIONS: RwLock<()> = RwLock::const_new(());

/// Creates a cluster and its network, and waits until its machines have joined. It does not wait further: Nodes register
/// a moment later, and there is no pod network until it is set up.
///
/// When this fails, everything is removed. When the future is dropped, kind and its children are killed, and
/// [`crate::leftovers::cleanup`] removes the rest.
pub(super) async fn create(engine: &Engine, spec: &ClusterSpec) -> Result<ClusterRecord, ClusterError> {
    let own = spec.own();
    let layout = topology::load(&own.topology)?;
    let found = preflight(engine).await?;
    let image = node_image::choose(engine, &own.kubernetes).await?;
    let name = spec.name();
    let proxy = spec.network_proxy.as_ref().map(|egress| (ProxyFolders::of(&spec.folder), egress));
    if let Some((folders, egress)) = &proxy {
        let written = folders.write(egress, &name, &layout.roles());
        written.map_err(ClusterError::file("write", &spec.folder))?;
    }
    let network = ensure_network(engine, &spec.run, layout.families).await?;
    let making = Making {
        engine,
        spec,
        layout: &layout,
        found: &found,
        image: &image,
        proxy: proxy.as_ref().map(|(folders, _)| folders),
        name: &name,
        network: &network,
    };
    let made = async {
        making.run_kind().await?;
        let record = making.look(found.kind.to_string()).await?;
        if spec.purpose == Purpose::Management {
            management::ready(&KindMachines::attach(&record)?).await?;
        }
        Ok::<_, ClusterError>(record)
    };
    match made.await {
        Ok(record) => Ok(record),
        Err(error) => {
            making.clear_up().await;
            Err(error)
        }
    }
}

/// A cluster while it is being created.
struct Making<'a> {
    engine: &'a Engine,
    spec: &'a ClusterSpec,
    layout: &'a Layout,
    found: &'a Preflight,
    image: &'a NodeImage,
    proxy: Option<&'a ProxyFolders>,
    name: &'a str,
    network: &'a str,
}

impl Making<'_> {
    fn kubeconfig(&self) -> PathBuf {
        self.spec.folder.join("kubeconfig")
    }

    /// Writes the configuration for kind, with its own port for the API server.
    async fn configure(&self) -> Result<PathBuf, ClusterError> {
        let config = self.spec.folder.join("kind.yaml");
        let port = ports::choose(self.layout.is_ipv6_only())
            .map_err(ClusterError::file("find a free port for", &config))?;
        let own = self.spec.own();
        let facts = Facts {
            cluster: self.name,
            purpose: self.spec.purpose,
            kubernetes: self.image.version.as_ref(),
            api_server_port: port,
            kind: &self.found.kind,
            cgroups: self.found.cgroups,
            kube_proxy: self.image.kube_proxy,
            provider_id: &self.spec.provider_ids,
            node_ip: own.node_ip,
            serving: own.serving,
            network_proxy: self.proxy,
        };
        let written = tokio::fs::write(&config, render(self.layout, &facts)).await;
        written.map_err(ClusterError::file("write", &config))?;
        Ok(config)
    }

    async fn run_kind(&self) -> Result<(), ClusterError> {
        let further = u32::try_from(self.layout.machines.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let kubeconfig = self.kubeconfig();
        for attempt in 1.. {
            let config = self.configure().await?;
            let creation = Creation {
                name: self.name,
                network: self.network,
                config: &config,
                kubeconfig: &kubeconfig,
                image: self.image.reference.as_deref(),
                limit: CREATE_LIMIT + CREATE_LIMIT_EACH * further,
            };
            // Another attempt has the machine to itself: what failed for being slow would fail again next to others.
            let (_shared, _alone) = match attempt {
                1 => (Some(CREATIONS.read().await), None),
                _ => (None, Some(CREATIONS.write().await)),
            };
            // Before its first container starts.
            let starts = audit::starts(self.engine, self.name);
            let ended = tokio::select! {
                ended = command::create(self.engine, creation) => ended?,
                what = audit::provide(self.engine, self.name, starts) => return Err(self.failed(what).await),
            };
            let Err(failure) = ended else { break };
            if let Some(why) = failure.passing()
                && attempt < ATTEMPTS
            {
                tracing::info!("creating the cluster again: {why}");
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

    /// An error with the machines' logs, and the end of the first kubelet's log, which usually names the cause.
    async fn failed(&self, what: String) -> ClusterError {
        let machines = machines(self.engine, self.name, self.network).await.unwrap_or_default();
        let evidence = (!machines.is_empty()).then(|| self.spec.evidence.clone());
        if let Some(folder) = &evidence {
            collect(self.engine, &machines, folder).await;
        }
        let journal = match machines.first() {
            Some(machine) => kubelet_tail(self.engine, machine).await,
            None => None,
        };
        ClusterError::Kind { name: self.name.to_owned(), what, journal, evidence }
    }

    /// Examines what kind has created.
    async fn look(&self, kind_version: String) -> Result<ClusterRecord, ClusterError> {
        let machines = machines(self.engine, self.name, self.network).await?;
        let looks = try_join_all(machines.iter().map(|machine| self.look_into(machine))).await?;
        let Some(first) = looks.first() else {
            return Err(ClusterError::Gone { what: format!("every machine of cluster {}", self.name) });
        };
        let node_image = self.node_image(&machines[0]).await?;
        let digest = crate::images::find_digest(self.engine, &node_image).await?.unwrap_or_default();
        let common = |of: fn(&MachineFacts) -> &BTreeSet<String>| {
            looks.iter().map(of).cloned().reduce(|one, two| &one & &two).unwrap_or_default()
        };
        let (programs, cni_plugins) = (common(|look| &look.programs), common(|look| &look.cni_plugins));
        let kube_proxy_serves = self.image.kube_proxy == KubeProxy::Present;
        let control_plane = machines.iter().find(|machine| machine.role == Role::ControlPlane);
        let address = control_plane.and_then(Machine::ip);
        let without_proxy = address.filter(|_| !kube_proxy_serves);
        let own = KindRecord {
            engine: self.engine.record(),
            network: self.network.to_owned(),
            cni_plugins: cni_plugins.clone(),
            mtu: first.mtu,
        };
        Ok(ClusterRecord {
            backend: BackendKind::Kind,
            name: self.name.to_owned(),
            kubeconfig: self.kubeconfig(),
            ownership: Ownership::Ours,
            facilities: facilities(&programs, &cni_plugins, &first.kubernetes, self.spec),
            pod_network: Some(self.layout.pod_network),
            replica_group: programs.contains(OWNER_GROUPS).then_some(FIRST_GROUP),
            api_server_for_pods: without_proxy.map(|ip| (ip.to_string(), API_SERVER_PORT)),
            // Its address is in the API server's certificate, and Pods of another cluster cannot resolve its name.
            api_server_for_other_clusters: address
                .map(|ip| format!("https://{}", SocketAddr::new(ip, API_SERVER_PORT))),
            cloud_site: CloudSite::Network(self.network.to_owned()),
            about: About {
                topology: self.layout.name.clone(),
                kubernetes: Some(first.kubernetes.clone()),
                kind_version,
                node_image,
                node_image_digest: digest,
                seed: None,
            },
            own: own.to_value(),
            machines,
        })
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

    async fn look_into(&self, machine: &Machine) -> Result<MachineFacts, ClusterError> {
        let command = ["sh", "-c", LOOK, "sh", OWNER_GROUPS];
        let tried = rules(ApiReach::None, IpAddr::is_ipv4);
        let output = exec_ok(self.engine, machine, &command, Stdin::Text(&tried), LIMIT).await?;
        let look = MachineFacts::parse(&output.stdout);
        look.check(machine, self.spec)?;
        Ok(look)
    }

    /// Removes what a failed creation left. The original failure is what the caller needs, so errors here are only
    /// logged; [`crate::remove_leftovers`] finds what remains.
    async fn clear_up(&self) {
        let removal = async {
            remove_cluster(self.engine, self.name).await?;
            settled(LIMIT).await;
            remove_cluster(self.engine, self.name).await
        };
        if let Err(error) = removal.await {
            tracing::warn!(%error, cluster = self.name, "a failed cluster was not removed");
        }
        // A cloud or another cluster that was started in the meantime may still be on the network; then its owner removes
        // both.
        if let Err(error) = network::remove(self.engine, self.network).await {
            tracing::debug!(%error, network = self.network, "the network was not removed");
        }
    }
}

/// The name of a machine's iptables that can match packets by their sender's groups.
const OWNER_GROUPS: &str = "iptables-owner-groups";

/// Prints properties of a machine. Each line is a word and a value. `$1` is the word for an iptables that accepts the
/// rules on standard input.
const LOOK: &str = r#"
echo "kubernetes $(cat /kind/version)"
echo "flags $(cat /var/lib/kubelet/kubeadm-flags.env)"
echo "mtu $(cat /sys/class/net/eth0/mtu)"
for program in systemctl ctr iptables pkill; do command -v $program > /dev/null && echo "program $program"; done
iptables-restore --noflush --test > /dev/null 2>&1 && echo "program $1"
for plugin in ptp host-local loopback portmap; do test -x /opt/cni/bin/$plugin && echo "plugin $plugin"; done
true
"#;

/// The observed properties of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MachineFacts {
    kubernetes: String,
    flags: String,
    mtu: u32,
    programs: BTreeSet<String>,
    cni_plugins: BTreeSet<String>,
}

impl MachineFacts {
    fn parse(text: &str) -> MachineFacts {
        let mut look = MachineFacts::default();
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

    /// Contract ENV-01, ENV-03 and ENV-04: our arguments are set and kind's own are kept. A management cluster does not
    /// wait for a cloud, and its provider ids do not matter.
    fn check(&self, machine: &Machine, spec: &ClusterSpec) -> Result<(), ClusterError> {
        let provider_id =
            format!("--provider-id={} ", spec.provider_ids.of(&machine.name).unwrap_or_default());
        // The file has quotes, and no space after the last argument.
        let flags = format!("{} ", self.flags.replace(['"', '\''], " "));
        let dropped = spec.own().node_ip == NodeIp::Dropped;
        let served = spec.purpose == Purpose::Served;
        let mut expected = vec![("--cloud-provider=external ", served), ("--node-ip=", !dropped)];
        expected.extend(served.then_some((provider_id.as_str(), true)));
        for (argument, wanted) in expected {
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

/// The facilities of machines with a fully capable node image.
pub(super) const FACILITIES: &[Facility] = &[
    Facility::NodeControl,
    Facility::HostPorts,
    Facility::KubeletAddresses,
    Facility::LinkControl,
    Facility::KubeletControl,
    Facility::ProcessControl,
    Facility::PodNetworkControl,
    Facility::PodCidrControl,
    Facility::WatchControl,
    Facility::ApiControl,
    Facility::AuditLog,
    Facility::CloudName,
    Facility::ImageCredentials,
    Facility::NetworkProxy,
    Facility::CsiDrivers,
    Facility::VersionControl,
];

/// The facilities of machines with these programs and plugins, and that Kubernetes.
fn facilities(
    programs: &BTreeSet<String>,
    cni_plugins: &BTreeSet<String>,
    kubernetes: &str,
    spec: &ClusterSpec,
) -> BTreeSet<Facility> {
    let plugins = ["ptp", "host-local", "loopback"].iter().all(|plugin| cni_plugins.contains(*plugin));
    let possible = |facility: &Facility| match facility {
        Facility::LinkControl => programs.contains("iptables"),
        Facility::NetworkProxy => spec.network_proxy.is_some() && programs.contains("iptables"),
        Facility::ApiControl => programs.contains(OWNER_GROUPS),
        Facility::WatchControl => programs.contains(OWNER_GROUPS) && programs.contains("pkill"),
        Facility::VersionControl => programs.contains("systemctl"),
        Facility::PodCidrControl => withholds_pod_cidrs(kubernetes),
        Facility::KubeletControl => programs.contains("systemctl"),
        Facility::ProcessControl => programs.contains("ctr"),
        Facility::PodNetworkControl => plugins,
        _ => true,
    };
    FACILITIES.iter().copied().filter(possible).collect()
}

async fn owner_only(path: &PathBuf) -> Result<(), ClusterError> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o600);
    tokio::fs::set_permissions(path, permissions).await.map_err(ClusterError::file("protect", path))
}
