//! The command-line arguments of `bootstrap`.

use crate::check::Checked;
use crate::lint::Claims;
use bootstrap_manifests::cluster::{CloudEndpoint, Cluster, Cni, KubeProxy, Topology, Version, YesNo};
use bootstrap_manifests::known::Assumed;
use bootstrap_manifests::manifest::Source;
use bootstrap_manifests::workload::Taint;
use clap::{Args, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// Check whether a cluster boots with your manifests, and fix them
#[derive(Clone, Debug, Subcommand)]
pub enum BootstrapCommand {
    /// Lint manifests and check whether a cluster boots with them; needs no cluster and no Docker
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Print the fixed manifests, with the difference as comments; changes no file without --write
    #[command(after_help = FIX_EXIT_CODES)]
    Fix(FixArgs),
}

impl BootstrapCommand {
    /// Whether the output is text for people, which may be wrapped, rather than data for programs.
    pub fn is_for_people(&self) -> bool {
        matches!(self, BootstrapCommand::Check(args) if args.output == Format::Text)
    }
}

const FIX_EXIT_CODES: &str = "Exit codes:
  0  the printed manifests boot
  1  something must be fixed by hand
  2  unreadable input or bad usage

Example:
  ccm-conformance bootstrap fix ccm.yaml cni.yaml > fixed.yaml";

/// Arguments of `bootstrap fix`.
#[derive(Clone, Debug, Args)]
pub struct FixArgs {
    #[command(flatten)]
    pub(super) set: SetArgs,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Also apply the changes of the contract's SHOULD rows
    #[arg(long)]
    pub(super) recommended: bool,
    /// Print only the difference, as input for `patch`
    #[arg(long)]
    pub(super) diff_only: bool,
    /// Change the files, and print only the difference
    #[arg(long)]
    pub(super) write: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  boots, in every cell and every order
  1  does not boot, or only in some orders, or the API server refuses an object
     (with --strict: or a lint finding)
  2  unreadable input or bad usage

Examples:
  ccm-conformance bootstrap check ccm.yaml cni.yaml
  helm template ./chart | ccm-conformance bootstrap check - --explain";

/// Arguments of `bootstrap check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub(super) set: SetArgs,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Explain why a cluster does not boot: the cycle, other obstacles, the smallest change
    #[arg(long)]
    pub(super) explain: bool,
    /// Write the graph of the first cell that does not boot: .svg, .dot or .mmd (Mermaid)
    #[arg(long, value_name = "FILE")]
    pub(super) graph: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) output: Format,
    /// End with exit code 1 also for lint findings that do not affect the boot
    #[arg(long)]
    pub(super) strict: bool,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
    /// For code review: findings appear at their lines
    Sarif,
}

/// The manifests, and what may be assumed to exist.
#[derive(Clone, Debug, Args)]
pub(super) struct SetArgs {
    /// Rendered manifests: files, folders, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Object that exists although the manifests do not contain it; repeatable
    ///
    /// KIND/NAME or KIND/NAMESPACE/NAME. A service account is assumed to have the permissions that it needs.
    #[arg(long, value_name = "KIND/NAME")]
    assume: Vec<String>,
    /// The workload that is the CCM, if its name does not show it
    #[arg(long, value_name = "KIND/NAME")]
    ccm: Option<String>,
}

impl SetArgs {
    /// The CCM that the user named.
    pub(super) fn ccm(&self) -> Option<&str> {
        self.ccm.as_deref()
    }

    /// Reads all manifests.
    pub(super) fn read(&self, stdin: &mut dyn Read) -> Result<Checked, String> {
        let assumed = Assumed::parse(&self.assume).map_err(|why| format!("--assume: {why}"))?;
        let (sources, problems) = Source::read(&self.paths, stdin);
        let checked = Checked::read(sources, problems, assumed, self.ccm.as_deref());
        if let Some(named) = &self.ccm
            && !checked.set.workloads.iter().any(|w| w.role == bootstrap_manifests::workload::Role::Ccm)
        {
            let own = checked.set.workloads.iter().filter(|workload| workload.object.is_some());
            let all: Vec<String> = own.map(|one| format!("{}/{}", one.kind, one.name)).collect();
            let have = if all.is_empty() { "none at all".to_owned() } else { all.join(", ") };
            return Err(format!(
                "--ccm {named}: the manifests have no workload of that name; they have {have}"
            ));
        }
        Ok(checked)
    }
}

/// The clusters to check.
#[derive(Clone, Debug, Args)]
pub(super) struct ClusterArgs {
    /// Machines of the cluster; repeatable [default: all except worker-only]
    #[arg(long, value_enum, value_delimiter = ',')]
    topology: Vec<Topology>,
    /// How the pod network is set up; repeatable [default: none, independent, waits-for-addresses, startup-taint]
    #[arg(long, value_enum, value_delimiter = ',')]
    cni: Vec<Cni>,
    /// What serves Service addresses
    #[arg(long, value_enum, default_value_t = KubeProxy::Yes)]
    kube_proxy: KubeProxy,
    /// Whether kubelets run with --node-ip, as those of kind do
    #[arg(long, value_enum, default_value_t = YesNo::No)]
    node_ip: YesNo,
    /// Kubernetes version
    #[arg(long, value_name = "VERSION", default_value = "1.36")]
    kubernetes: Version,
    /// Taint of control planes instead of kubeadm's, KEY[=VALUE]:EFFECT; repeatable
    #[arg(long, value_name = "TAINT")]
    control_plane_taint: Vec<Taint>,
    /// Startup taint of the CNI, KEY[=VALUE]:EFFECT
    #[arg(long, value_name = "TAINT", default_value = "node.cilium.io/agent-not-ready:NoExecute")]
    startup_taint: Taint,
    /// Whether Nodes start with the condition NetworkUnavailable, as when a CCM with routes is restarted
    #[arg(long, value_enum, default_value_t = YesNo::No)]
    routes: YesNo,
    /// How the CCM reaches its cloud
    #[arg(long, value_enum, default_value_t = CloudEndpoint::Auto)]
    cloud_endpoint: CloudEndpoint,
    /// Label of every Node, KEY=VALUE; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    node_label: Vec<String>,
}

impl ClusterArgs {
    /// The topologies that are checked.
    pub(super) fn topologies(&self) -> Vec<Topology> {
        if self.topology.is_empty() { Topology::DEFAULT.to_vec() } else { self.topology.clone() }
    }

    /// The settings on which the lint's rows depend.
    pub(super) fn claims(&self, checked: &Checked) -> Claims {
        let set = &checked.set;
        let routed = |workload: &bootstrap_manifests::workload::Workload| {
            workload.flag("configure-cloud-routes").is_some_and(|(value, _)| value == "true")
        };
        Claims {
            hosted: self.topologies() == [Topology::Hosted],
            without_network: self.cni.iter().any(|cni| *cni == Cni::None || cni.waits()),
            without_proxy: self.kube_proxy != KubeProxy::Yes,
            cloud_by_name: match self.cloud_endpoint {
                CloudEndpoint::Name => true,
                CloudEndpoint::Address => false,
                CloudEndpoint::Auto => set.cloud_by_name == Some(true),
            },
            routes: self.routes == YesNo::Yes || set.workloads.iter().any(routed),
        }
    }

    /// What to say about a version of Kubernetes that the model does not know.
    pub(super) fn newer_than_the_model(&self) -> Option<String> {
        (self.kubernetes > Version::DEFAULT).then(|| {
            format!(
                "Kubernetes {} behaves like {}, the newest version that the model knows",
                self.kubernetes,
                Version::DEFAULT
            )
        })
    }

    /// All cells.
    pub(super) fn clusters(&self, checked: &Checked) -> Result<Vec<Cluster>, String> {
        let mut labels = BTreeMap::new();
        for label in &self.node_label {
            let (key, value) = label
                .split_once('=')
                .ok_or_else(|| format!("--node-label: invalid label '{label}': expected KEY=VALUE"))?;
            labels.insert(key.to_owned(), value.to_owned());
        }
        let mut cnis = if self.cni.is_empty() { Cni::DEFAULT.to_vec() } else { self.cni.clone() };
        if self.cni.is_empty() && checked.set.brings_cni() {
            // If the manifests contain a network plugin, `none` is the same as `independent`.
            cnis.retain(|cni| *cni != Cni::None);
        }
        let mut clusters = Vec::new();
        for topology in self.topologies() {
            for cni in &cnis {
                clusters.push(Cluster {
                    kube_proxy: self.kube_proxy,
                    node_ip: self.node_ip,
                    version: self.kubernetes,
                    control_plane_taints: (!self.control_plane_taint.is_empty())
                        .then(|| self.control_plane_taint.clone()),
                    startup_taint: self.startup_taint.clone(),
                    routes: self.routes,
                    cloud_endpoint: self.cloud_endpoint,
                    node_labels: labels.clone(),
                    ..Cluster::new(topology, *cni)
                });
            }
        }
        Ok(clusters)
    }
}
