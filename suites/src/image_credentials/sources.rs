//! Where the requirements come from.

pub(super) const PLUGIN: &str = "kubernetes pkg/credentialprovider/plugin/plugin.go";
pub(super) const CONFIG: &str = "kubernetes pkg/credentialprovider/plugin/config.go";
pub(super) const KEYRING: &str = "kubernetes pkg/credentialprovider/keyring.go";
pub(super) const API: &str = "k8s.io/kubelet pkg/apis/credentialprovider/v1";
pub(super) const METRICS: &str = "kubernetes pkg/credentialprovider/plugin/metrics.go";
