//! Where the requirements come from.

pub(super) const LIBRARY: &str = "k8s.io/csi-translation-lib plugins/";
pub(super) const CONTROLLER: &str = "kubernetes pkg/controller/volume/persistentvolume";
pub(super) const KUBELET: &str = "kubernetes pkg/volume/csi";
pub(super) const MIGRATION: &str = "kubernetes pkg/volume/csimigration";
