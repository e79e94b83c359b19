//! A table of manifest variants: which cells of topology and CNI boot with each. The tests compare the model with it, and
//! the harness compares both the model and real clusters.

use crate::expect::{Expectation, expect};
use crate::model::Outcome;
use bootstrap_manifests::cluster::{CloudEndpoint, Cluster, Cni, KubeProxy, Topology, Version, YesNo};
use bootstrap_manifests::manifest::Source;
use bootstrap_manifests::workload::Taint;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;

/// One variant: a folder of manifests next to the table, the cluster's properties, and the expected outcome.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The folder.
    pub name: String,
    /// How it differs from the others, for a reader.
    pub what: String,
    /// The mutant of the contract that it represents.
    pub mutant: Option<String>,
    /// What serves Service addresses.
    #[serde(default)]
    pub kube_proxy: KubeProxy,
    /// Whether kubelets run with `--node-ip`.
    #[serde(default)]
    pub node_ip: YesNo,
    /// Whether Nodes start with the condition `NetworkUnavailable`.
    #[serde(default)]
    pub routes: YesNo,
    /// How the CCM reaches its cloud; by an IP address by default.
    #[serde(default = "address")]
    pub cloud_endpoint: CloudEndpoint,
    /// The version of Kubernetes.
    #[serde(default = "newest", deserialize_with = "parsed")]
    pub kubernetes: Version,
    /// Taints of control planes that replace kubeadm's.
    #[serde(default, deserialize_with = "taints")]
    pub control_plane_taints: Option<Vec<Taint>>,
    /// Objects that exist although the manifests do not contain them.
    #[serde(default)]
    pub assume: Vec<String>,
    /// A lint finding that must be reported.
    pub finding: Option<String>,
    /// Whether the CCM may be evicted during the boot.
    #[serde(default)]
    pub evicted: bool,
    /// Why the `boots-if` condition does not hold on the clusters on which variants are measured, if it does not.
    pub unmet: Option<String>,
    /// Why the variant cannot be shown on a backend, by backend (`embedded`, `kind`).
    #[serde(default)]
    pub not_observable_on: BTreeMap<String, String>,
    /// The expected outcomes.
    pub expect: Vec<CaseLine>,
}

/// Cells with the same outcome: every listed topology with every listed CNI.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseLine {
    /// Topologies.
    pub topologies: Vec<Topology>,
    /// CNIs.
    pub cnis: Vec<Cni>,
    /// The expected outcome.
    pub outcome: Outcome,
    /// A part of the expected explanation.
    pub because: Option<String>,
}

fn address() -> CloudEndpoint {
    CloudEndpoint::Address
}

fn newest() -> Version {
    Version::DEFAULT
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn taints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Taint>>, D::Error> {
    let texts = Option::<Vec<String>>::deserialize(deserializer)?;
    let read = |text: String| text.parse::<Taint>().map_err(serde::de::Error::custom);
    texts.map(|texts| texts.into_iter().map(read).collect()).transpose()
}

/// Reads a table from its text; errors name `file`.
///
/// # Errors
/// The text is not a valid table; the error says what is wrong.
pub fn parse_cases(text: &str, file: &str) -> Result<Vec<Case>, String> {
    serde_saphyr::from_str(text).map_err(|error| format!("{file}: {error}"))
}

impl CaseLine {
    /// Its cells.
    pub fn cells(&self) -> impl Iterator<Item = (Topology, Cni)> {
        self.topologies.iter().flat_map(|topology| self.cnis.iter().map(move |cni| (*topology, *cni)))
    }
}

impl Case {
    /// The cluster of a cell.
    pub fn cluster(&self, topology: Topology, cni: Cni) -> Cluster {
        Cluster {
            kube_proxy: self.kube_proxy,
            node_ip: self.node_ip,
            routes: self.routes,
            cloud_endpoint: self.cloud_endpoint,
            version: self.kubernetes,
            control_plane_taints: self.control_plane_taints.clone(),
            ..Cluster::new(topology, cni)
        }
    }

    /// The model's result for its manifests on these clusters.
    ///
    /// # Errors
    /// The manifests cannot be read.
    pub fn expectation(&self, manifests: Vec<Source>, clusters: &[Cluster]) -> Result<Expectation, String> {
        expect(manifests, clusters, &self.assume, None)
    }
}
