//! What a Pod needs before its containers can start: addresses, tokens, volumes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use tokio::time::Instant;

use super::facts::Objects;
use super::shared::Shared;
use super::volumes::WantedToken;
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;

/// What has been set up so far.
pub(crate) struct Setup {
    pub(crate) host_network: bool,
    pub(crate) host_ips: Vec<IpAddr>,
    pub(crate) pod_ips: Vec<IpAddr>,
    /// The address on this computer at which the Pod's programs can be probed.
    pub(crate) asked_at: IpAddr,
    pub(super) tokens: BTreeMap<WantedToken, String>,
    pub(crate) refresh_at: Option<Instant>,
    /// The paths of the volumes; `None` if the program sees the content anyway.
    pub(super) sources: BTreeMap<String, Option<Source>>,
}

/// The path of a volume on this computer.
pub(crate) struct Source {
    pub(super) path: PathBuf,
    /// Whether the volume is read-only for every program.
    pub(super) read_only: bool,
}

/// The reason why a Pod cannot start yet: the Event's reason and its message.
pub(crate) struct NotYet {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Setup {
    pub(crate) fn new(shared: &Shared, pod: &Pod) -> Setup {
        let spec = pod.spec.as_ref();
        let host_network = spec.and_then(|spec| spec.host_network).unwrap_or(false);
        let node = spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let machine = shared.fleet.state(&node).map(|state| IpAddr::V4(state.loopback));
        let own = if host_network { None } else { Some(IpAddr::V4(Shared::next_loopback())) };
        Setup {
            host_network,
            host_ips: Vec::new(),
            pod_ips: Vec::new(),
            asked_at: own.or(machine).unwrap_or(IpAddr::from([127, 0, 0, 1])),
            tokens: BTreeMap::new(),
            refresh_at: None,
            sources: BTreeMap::new(),
        }
    }
}

/// The objects of one namespace, from the shared watches.
pub(crate) struct InNamespace<'w> {
    pub(crate) world: &'w ControllerContext,
    pub(crate) namespace: &'w str,
}

impl Objects for InNamespace<'_> {
    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>> {
        self.world.config_maps.get(&Key::new(self.namespace, name))
    }
    fn secret(&self, name: &str) -> Option<Arc<Secret>> {
        self.world.secrets.get(&Key::new(self.namespace, name))
    }
}
