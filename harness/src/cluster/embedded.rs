//! A cluster in this process: the embedded API server and controllers put together. Needs no Docker, nor any right.

use super::ClusterError;
use super::version::Version;
use crate::check::chain;
use crate::probe::{ReadError, poll};
use embedded_apiserver::{Config, Server, User};
use embedded_controllers::{Clients, Controllers, NodeSpec, NodeTaint, Settings};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The versions of Kubernetes 1 whose words and defaults are known.
const MINORS: std::ops::RangeInclusive<u32> = 20..=36;

/// Label and taint of control-plane Nodes.
const L_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Node addresses are counted from here up; nothing answers at them.
const FIRST_NODE_IP: u32 = u32::from_be_bytes([10, 89, 0, 1]);

/// A version of Kubernetes that an embedded cluster can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedVersion {
    minor: u32,
    patch: u32,
}

impl Default for EmbeddedVersion {
    /// The version whose answers were recorded.
    fn default() -> EmbeddedVersion {
        let embedded_apiserver::Version { minor, patch } = embedded_apiserver::Version::default();
        EmbeddedVersion { minor, patch }
    }
}

impl fmt::Display for EmbeddedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

impl FromStr for EmbeddedVersion {
    type Err = String;

    /// Reads `v1.36.2`, `1.36.2` or `1.36`.
    fn from_str(text: &str) -> Result<EmbeddedVersion, String> {
        let wrong = || {
            format!("not a version from 1.{} to 1.{}, such as v1.36.2 or 1.31", MINORS.start(), MINORS.end())
        };
        let full = if text.matches('.').count() == 1 { format!("{text}.0") } else { text.to_owned() };
        let Version { major, minor, patch, pre } = full.parse().map_err(|()| wrong())?;
        let known = major == 1 && MINORS.contains(&minor) && pre.is_empty();
        if known { Ok(EmbeddedVersion { minor, patch }) } else { Err(wrong()) }
    }
}

/// What an embedded cluster is like.
#[derive(Clone, Debug)]
pub struct EmbeddedSpec {
    /// How many Nodes it has, all waiting for a cloud controller manager: the first a control plane with its taint, unless
    /// it is the only one.
    pub nodes: u32,
    /// Version of Kubernetes.
    pub kubernetes: EmbeddedVersion,
}

/// A running embedded cluster. Ends with [`EmbeddedCluster::stop`].
pub struct EmbeddedCluster {
    server: Arc<embedded_apiserver::Running>,
    controllers: embedded_controllers::Running,
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCluster").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl EmbeddedCluster {
    /// Starts one on a free port of loopback. Returns when the API server answers and the controllers see it; workers
    /// register a moment later.
    ///
    /// # Errors
    /// When the port cannot be had, or Pods cannot be run on this machine.
    pub async fn start(spec: &EmbeddedSpec) -> Result<EmbeddedCluster, ClusterError> {
        let failed = |error: &dyn std::error::Error| ClusterError::Embedded { cause: chain(error) };
        let EmbeddedVersion { minor, patch } = spec.kubernetes;
        let version = embedded_apiserver::Version { minor, patch };
        let server = Server::start(Config { version, ..Config::default() }).await.map_err(|e| failed(&e))?;
        let server = Arc::new(server);
        let mut settings = Settings::new(server.address(), server.certificate_authority());
        settings.kubernetes = embedded_controllers::KubernetesVersion { minor, patch };
        settings.nodes = (0..spec.nodes).map(|index| machine(index, spec.nodes)).collect();
        let admin = server.client(User::admin());
        let kubelets = Arc::downgrade(&server);
        let clients = Clients {
            controller_manager: admin.clone(),
            scheduler: server.client(User::authenticated("system:kube-scheduler", &[])),
            // Only a server that is going has no client of its own left to give.
            kubelet: Arc::new(move |node| {
                kubelets.upgrade().map_or_else(|| admin.clone(), |server| server.client(User::node(node)))
            }),
        };
        let administrator = server.client(User::admin());
        let controllers = Controllers::start(clients, settings).await.map_err(|error| failed(&error))?;
        let cluster = EmbeddedCluster { server, controllers };
        if spec.nodes > 1
            && let Err(error) = mark_control_plane(administrator).await
        {
            cluster.stop().await;
            return Err(ClusterError::Embedded { cause: error.text });
        }
        Ok(cluster)
    }

    /// Where the API server listens.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// An administrator's kubeconfig, with a client key in it: a secret.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn kubeconfig(&self) -> Result<String, ClusterError> {
        self.server.kubeconfig().map_err(|error| ClusterError::Embedded { cause: chain(&error) })
    }

    /// Stops controllers, programs of Pods and the API server.
    pub async fn stop(self) {
        self.controllers.stop().await;
        if let Some(server) = Arc::into_inner(self.server) {
            server.shutdown().await;
        }
    }
}

fn machine(index: u32, of: u32) -> NodeSpec {
    let mut machine = NodeSpec::new(format!("node-{index}"));
    machine.node_ip = Some(IpAddr::V4(Ipv4Addr::from_bits(FIRST_NODE_IP + index)));
    if index == 0 && of > 1 {
        let (key, effect) = (L_CONTROL_PLANE.to_owned(), "NoSchedule".to_owned());
        machine.taints.push(NodeTaint { key, value: String::new(), effect });
    }
    machine
}

/// Gives the first Node its role, as kubeadm does once it has registered: a kubelet may not do so itself.
async fn mark_control_plane(client: kube::Client) -> Result<(), ReadError> {
    let nodes: Api<Node> = Api::all(client);
    let role = json!({"metadata": {"labels": {L_CONTROL_PLANE: ""}}});
    let marked = async |seen: &mut String| match nodes
        .patch("node-0", &PatchParams::default(), &Patch::Merge(&role))
        .await
    {
        Ok(_) => Ok(Some(())),
        Err(error) => {
            *seen = chain(&error);
            Ok(None)
        }
    };
    poll("the control plane's Node registers", Duration::from_secs(30), Duration::from_millis(10), marked)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_others_refused() {
        for (text, version) in [("v1.36.2", "v1.36.2"), ("1.31", "v1.31.0"), ("1.20.2", "v1.20.2")] {
            assert_eq!(text.parse::<EmbeddedVersion>().map(|v| v.to_string()), Ok(version.to_owned()));
        }
        for text in ["", "1", "2.1", "v1.19.0", "1.99", "v1.36.0-rc.1", "latest"] {
            assert!(text.parse::<EmbeddedVersion>().is_err(), "{text}");
        }
    }
}
