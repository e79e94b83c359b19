//! What was typed.

use crate::check::Checked;
use crate::cluster::{CloudEndpoint, Cluster, Cni, KubeProxy, Topology, Version, YesNo};
use crate::known::Assumed;
use crate::lint::Claims;
use crate::manifest::Source;
use crate::workload::Taint;
use clap::{Args, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// Will a cluster boot with these manifests?
#[derive(Clone, Debug, Subcommand)]
pub enum BootstrapCommand {
    /// Lint manifests and say whether a cluster boots with them; needs no cluster and no Docker.
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Print the manifests mended, and the difference; changes no file.
    #[command(after_help = FIX_EXIT_CODES)]
    Fix(FixArgs),
}

const FIX_EXIT_CODES: &str = "\
Exit codes:
  0  what is printed boots
  1  something has to be mended by hand
  2  unreadable input or bad usage";

/// `bootstrap fix`.
#[derive(Clone, Debug, Args)]
pub struct FixArgs {
    #[command(flatten)]
    pub(super) set: SetArgs,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Also what the contract's SHOULD rows ask.
    #[arg(long)]
    pub(super) recommended: bool,
    /// Only the difference, as `patch` reads it.
    #[arg(long)]
    pub(super) diff_only: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  boots, in every cell and every order
  1  deadlock, or a failure in some order (with --strict: or a lint finding)
  2  unreadable input or bad usage";

/// `bootstrap check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub(super) set: SetArgs,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Say why: the cycle, what else is in the way, the smallest change.
    #[arg(long)]
    pub(super) explain: bool,
    /// Write the graph of the first cell that does not boot; .svg, .dot or .mmd (Mermaid).
    #[arg(long, value_name = "FILE")]
    pub(super) graph: Option<PathBuf>,
    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) output: Format,
    /// A lint finding without effect on the boot is exit code 1, too.
    #[arg(long)]
    pub(super) strict: bool,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For code review: findings appear in place.
    Sarif,
}

/// Which manifests, and what may be taken for granted.
#[derive(Clone, Debug, Args)]
pub(super) struct SetArgs {
    /// Rendered manifests: files, folders, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// An object that exists although no manifest makes it: KIND/NAME or KIND/NAMESPACE/NAME; may be repeated. A
    /// service account is taken to have the rights it needs.
    #[arg(long, value_name = "KIND/NAME")]
    assume: Vec<String>,
    /// The CCM, when its name does not show it: KIND/NAME.
    #[arg(long, value_name = "KIND/NAME")]
    ccm: Option<String>,
}

impl SetArgs {
    /// The CCM that was named.
    pub(super) fn ccm(&self) -> Option<&str> {
        self.ccm.as_deref()
    }

    /// Reads everything.
    pub(super) fn read(&self, stdin: &mut dyn Read) -> Result<Checked, String> {
        let assumed = Assumed::parse(&self.assume)?;
        let (sources, problems) = Source::read(&self.paths, stdin);
        let checked = Checked::read(sources, problems, assumed, self.ccm.as_deref());
        if let Some(named) = &self.ccm
            && !checked.set.workloads.iter().any(|w| w.role == crate::workload::Role::Ccm)
        {
            return Err(format!("--ccm {named}: no workload of the manifests has that name"));
        }
        Ok(checked)
    }
}

/// Which clusters.
#[derive(Clone, Debug, Args)]
pub(super) struct ClusterArgs {
    /// Which machines; may be repeated. Without it all but worker-only are tried.
    #[arg(long, value_enum, value_delimiter = ',')]
    topology: Vec<Topology>,
    /// How the pod network comes up; may be repeated. Without it none, independent, waits-for-addresses and
    /// startup-taint are tried.
    #[arg(long, value_enum, value_delimiter = ',')]
    cni: Vec<Cni>,
    /// Who answers on Service addresses.
    #[arg(long, value_enum, default_value_t = KubeProxy::Yes)]
    kube_proxy: KubeProxy,
    /// Whether kubelets are given --node-ip, as kind does.
    #[arg(long, value_enum, default_value_t = YesNo::No)]
    node_ip: YesNo,
    /// Kubernetes version.
    #[arg(long, value_name = "VERSION", default_value = "1.36")]
    kubernetes: Version,
    /// A taint of control planes in place of kubeadm's, KEY[=VALUE]:EFFECT; may be repeated.
    #[arg(long, value_name = "TAINT")]
    control_plane_taint: Vec<Taint>,
    /// The CNI's startup taint, KEY[=VALUE]:EFFECT.
    #[arg(long, value_name = "TAINT", default_value = "node.cilium.io/agent-not-ready:NoExecute")]
    startup_taint: Taint,
    /// Whether Nodes begin with NetworkUnavailable: a CCM with routes that is restarted.
    #[arg(long, value_enum, default_value_t = YesNo::No)]
    routes: YesNo,
    /// How the CCM names its cloud.
    #[arg(long, value_enum, default_value_t = CloudEndpoint::Auto)]
    cloud_endpoint: CloudEndpoint,
    /// A label that every Node has, KEY=VALUE; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    node_label: Vec<String>,
}

impl ClusterArgs {
    /// The topologies that are tried.
    pub(super) fn topologies(&self) -> Vec<Topology> {
        if self.topology.is_empty() { Topology::DEFAULT.to_vec() } else { self.topology.clone() }
    }

    /// What the lint's rows depend on.
    pub(super) fn claims(&self, checked: &Checked) -> Claims {
        let set = &checked.set;
        let routed = |workload: &crate::workload::Workload| {
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

    /// Every cell.
    pub(super) fn clusters(&self, checked: &Checked) -> Result<Vec<Cluster>, String> {
        let mut labels = BTreeMap::new();
        for label in &self.node_label {
            let (key, value) =
                label.split_once('=').ok_or_else(|| format!("'{label}' is not a label; write KEY=VALUE"))?;
            labels.insert(key.to_owned(), value.to_owned());
        }
        let mut cnis = if self.cni.is_empty() { Cni::DEFAULT.to_vec() } else { self.cni.clone() };
        if self.cni.is_empty() && checked.set.brings_cni() {
            // With a network plugin among the manifests, none but that one is the same as independent.
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
