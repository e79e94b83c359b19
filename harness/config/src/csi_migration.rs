//! `csiMigration` of a profile: the driver that a cluster's in-tree volumes moved to, as keys and as their meaning.

use super::enums::CsiDriver;
use super::formats::{Name, Variable};
use super::schema::{Keyed, ordered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// `csiMigration` of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["drivers", "manifests"]))]
pub(crate) struct CsiMigrationKeys {
    /// The drivers in the manifests.
    #[schemars(example = [CsiDriver::Ebs])]
    #[schemars(extend("x-missing" = "name the drivers that the manifests bring"))]
    pub(crate) drivers: Vec<CsiDriver>,
    /// Manifests of the drivers, of their provisioner and attacher, and of everything that belongs to them: files or
    /// folders. `${IMAGE}` is the image of the profile.
    #[schemars(example = ["manifests"])]
    #[schemars(extend("x-missing" = "list the manifests of the drivers"))]
    pub(crate) manifests: Vec<String>,
    /// The name of the DaemonSet next to the kubelets. The logs of its Pods, and those of the other workload, are
    /// searched for the calls that the drivers received: lines of JSON with the key `csiCall`.
    #[schemars(with = "Name", example = &"ebs-csi-node", extend("x-default" = "`csi-driver-node`"))]
    pub(crate) node_workload: Option<String>,
    /// The name of the Deployment or DaemonSet with provisioner and attacher.
    #[schemars(with = "Name", example = &"ebs-csi-controller", extend("x-default" = "`csi-driver-controller`"))]
    pub(crate) controller_workload: Option<String>,
    /// Whether the manifests contain a provisioner.
    pub(crate) provisioner: bool,
    /// Environment variables of all containers of both workloads.
    #[schemars(with = "Keyed<Variable, String>")]
    #[schemars(example = BTreeMap::from([("ACME_LOG", "debug")]))]
    pub(crate) environment: BTreeMap<String, String>,
}

impl Default for CsiMigrationKeys {
    fn default() -> CsiMigrationKeys {
        CsiMigrationKeys {
            drivers: Vec::new(),
            manifests: Vec::new(),
            node_workload: None,
            controller_workload: None,
            provisioner: true,
            environment: BTreeMap::new(),
        }
    }
}

/// Drivers that in-tree volumes moved to, to be deployed on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct CsiMigration {
    /// Their names.
    pub drivers: Vec<CsiDriver>,
    /// Files with their manifests.
    pub manifests: Vec<PathBuf>,
    /// The name of the workload next to the kubelets.
    pub node_workload: String,
    /// The name of the workload with provisioner and attacher.
    pub controller_workload: String,
    /// Whether there is a provisioner.
    pub provisioner: bool,
    /// Environment variables of both.
    pub environment: BTreeMap<String, String>,
}

impl fmt::Display for CsiMigration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.drivers.iter().map(|driver| driver.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

/// Converts the keys to their meaning; `None` if too much is invalid. `manifests` are the files with manifests.
pub(super) fn read(written: CsiMigrationKeys, manifests: Vec<PathBuf>) -> Option<CsiMigration> {
    // A missing key was already reported.
    if written.drivers.is_empty() || manifests.is_empty() {
        return None;
    }
    Some(CsiMigration {
        drivers: written.drivers,
        manifests,
        node_workload: written.node_workload.unwrap_or_else(|| "csi-driver-node".to_owned()),
        controller_workload: written
            .controller_workload
            .unwrap_or_else(|| "csi-driver-controller".to_owned()),
        provisioner: written.provisioner,
        environment: written.environment,
    })
}
