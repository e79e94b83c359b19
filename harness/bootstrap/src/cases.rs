//! A table of manifest variants: which cells of topology and CNI boot with each. The tests hold the model to it, and the
//! harness both the model and real clusters.

use crate::cluster::{CloudEndpoint, Cluster, Cni, KubeProxy, Topology, Version, YesNo};
use crate::expect::{Expectation, expect};
use crate::manifest::Source;
use crate::model::Outcome;
use crate::workload::Taint;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;

/// One variant: a folder of manifests beside the table, what the cluster is like, and what is expected.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The folder.
    pub name: String,
    /// What sets it apart, for a reader.
    pub what: String,
    /// The contract's mutant that it is.
    pub mutant: Option<String>,
    /// Who answers on Service addresses.
    #[serde(default)]
    pub kube_proxy: KubeProxy,
    /// Whether kubelets are given `--node-ip`.
    #[serde(default)]
    pub node_ip: YesNo,
    /// Whether Nodes begin with `NetworkUnavailable`.
    #[serde(default)]
    pub routes: YesNo,
    /// How the CCM names its cloud; by an address when the table does not say.
    #[serde(default = "address")]
    pub cloud_endpoint: CloudEndpoint,
    /// The version of Kubernetes.
    #[serde(default = "newest", deserialize_with = "parsed")]
    pub kubernetes: Version,
    /// Taints of control planes in place of kubeadm's.
    #[serde(default, deserialize_with = "taints")]
    pub control_plane_taints: Option<Vec<Taint>>,
    /// Objects that exist although no manifest makes them.
    #[serde(default)]
    pub assume: Vec<String>,
    /// A finding of the lint that must be there.
    pub finding: Option<String>,
    /// Whether the CCM may be evicted on the way.
    #[serde(default)]
    pub evicted: bool,
    /// Why what `boots-if` hangs on is not so on the clusters that variants are measured on, if so.
    pub unmet: Option<String>,
    /// Where the variant cannot be shown, and why: by backend (`embedded`, `kind`).
    #[serde(default)]
    pub not_observable_on: BTreeMap<String, String>,
    /// What is expected.
    pub expect: Vec<CaseLine>,
}

/// Cells that have one outcome: every topology with every CNI.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseLine {
    /// Topologies.
    pub topologies: Vec<Topology>,
    /// CNIs.
    pub cnis: Vec<Cni>,
    /// The outcome.
    pub outcome: Outcome,
    /// A part of the explanation.
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

/// Reads a table from its text; `file` names it in what is wrong with it.
///
/// # Errors
/// It is not a table; with what is wrong in it.
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

    /// What the model says of its manifests on these clusters.
    ///
    /// # Errors
    /// Manifests that cannot be read.
    pub fn expectation(&self, manifests: Vec<Source>, clusters: &[Cluster]) -> Result<Expectation, String> {
        expect(manifests, clusters, &self.assume, None)
    }
}
