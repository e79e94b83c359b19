//! Which plugins were migrated to which drivers (`k8s.io/csi-translation-lib` plugins/).

use harness_config::CsiDriver;
use serde_json::{Value, json};

/// The annotation of a CSINode with the in-tree plugins whose volumes its kubelet passes to drivers.
pub const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// The annotation of a claim or a volume with the driver that serves it.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// The annotation of a volume with its provisioner.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The annotation of a claim with its class's provisioner.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The label of zones.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// An in-tree plugin, reduced to what checks need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The driver.
    pub driver: CsiDriver,
    /// The plugin's name.
    pub in_tree: &'static str,
    /// The key of a volume's source.
    pub source: &'static str,
    /// The driver's key for zones, if volumes have them.
    pub zone: Option<&'static str>,
    /// Whether storage classes set the file system by `fstype`.
    pub fs_type: bool,
    /// Whether storage classes set zones by `zone` and `zones`.
    pub zones: bool,
}

/// What was migrated to that driver.
pub fn moved(driver: CsiDriver) -> Moved {
    let of = |in_tree, source| Moved { driver, in_tree, source, zone: None, fs_type: false, zones: false };
    match driver {
        CsiDriver::Ebs => Moved {
            zone: Some("topology.ebs.csi.aws.com/zone"),
            fs_type: true,
            zones: true,
            ..of("kubernetes.io/aws-ebs", "awsElasticBlockStore")
        },
        CsiDriver::GcePd => Moved {
            zone: Some("topology.gke.io/zone"),
            fs_type: true,
            zones: true,
            ..of("kubernetes.io/gce-pd", "gcePersistentDisk")
        },
        CsiDriver::AzureDisk => Moved { zones: true, ..of("kubernetes.io/azure-disk", "azureDisk") },
        CsiDriver::AzureFile => of("kubernetes.io/azure-file", "azureFile"),
        CsiDriver::Cinder => Moved {
            zone: Some("topology.cinder.csi.openstack.org/zone"),
            fs_type: true,
            ..of("kubernetes.io/cinder", "cinder")
        },
        CsiDriver::Vsphere => of("kubernetes.io/vsphere-volume", "vsphereVolume"),
        CsiDriver::Portworx => of("kubernetes.io/portworx-volume", "portworxVolume"),
    }
}

impl Moved {
    /// The source of a volume with that name: of a stored volume, or of an inline one in a Pod.
    pub fn source_of(&self, id: &str) -> Value {
        // API servers accept no other form of it.
        let disk = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/";
        let id = match self.driver {
            CsiDriver::AzureDisk if !id.starts_with('/') => &format!("{disk}{id}"),
            _ => id,
        };
        match self.driver {
            CsiDriver::Ebs | CsiDriver::Cinder => json!({"volumeID": id, "fsType": "ext4"}),
            CsiDriver::GcePd => json!({"pdName": id, "fsType": "ext4"}),
            CsiDriver::AzureDisk => json!({
                "diskName": id.rsplit('/').next(), "diskURI": id, "kind": "Managed", "cachingMode": "ReadWrite",
                "fsType": "ext4", "readOnly": false,
            }),
            CsiDriver::AzureFile => json!({"secretName": AZURE_SECRET, "shareName": id}),
            CsiDriver::Vsphere => json!({"volumePath": id, "fsType": "ext4"}),
            CsiDriver::Portworx => json!({"volumeID": id, "fsType": "ext4"}),
        }
    }
}

/// The Secret of all Azure file volumes: it contains the name of the account.
pub const AZURE_SECRET: &str = "azure-storage-account-account-secret";
