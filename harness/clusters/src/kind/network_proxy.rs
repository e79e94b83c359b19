//! The files of a network proxy on machines of kind, and the direct connection that it replaces.

use super::access::KindMachines;
use super::exec::{Stdin, exec_ok};
use super::names::machine_names;
use crate::error::ClusterError;
use crate::operation::LinkOp;
use crate::record::{Machine, Role};
use harness_components::network_proxy::FOLDER;
use harness_components::network_proxy::tunnel::{AGENT_FILES, write_certificates};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long changing rules of the packet filter may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The file with the API server's configuration.
const EGRESS: &str = "egress-selector-configuration.yaml";

/// Folders of this machine that are mounted on machines of a cluster at [`FOLDER`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProxyFolders {
    control_plane: PathBuf,
    others: PathBuf,
}

impl ProxyFolders {
    /// The folders of a cluster, not written yet.
    pub(super) fn of(folder: &Path) -> ProxyFolders {
        ProxyFolders {
            control_plane: folder.join("network-proxy"),
            others: folder.join("network-proxy-agent"),
        }
    }

    /// Writes configuration and certificates. Servers are identified by the names of their machines.
    pub(super) fn write(&self, egress: &str, cluster: &str, roles: &[Role]) -> std::io::Result<()> {
        let names = machine_names(cluster, roles).into_iter().zip(roles);
        let mut known: Vec<String> =
            names.filter(|(_, role)| **role == Role::ControlPlane).map(|(name, _)| name).collect();
        known.extend(["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()]);
        write_certificates(&self.control_plane, &known)?;
        std::fs::write(self.control_plane.join(EGRESS), egress)?;
        std::fs::create_dir_all(&self.others)?;
        for file in AGENT_FILES {
            std::fs::copy(self.control_plane.join(file), self.others.join(file))?;
        }
        Ok(())
    }

    /// The mount of a machine.
    pub(super) fn mount(&self, role: Role) -> Value {
        let host = if role == Role::ControlPlane { &self.control_plane } else { &self.others };
        json!({"hostPath": host.display().to_string(), "containerPath": FOLDER})
    }

    /// The settings of API servers, and the files of their machine that they use. A Service is reached by its endpoints,
    /// so that machines with agents do not need kube-proxy.
    pub(super) fn arguments() -> Vec<(&'static str, Option<String>)> {
        vec![
            ("egress-selector-config-file", Some(format!("{FOLDER}/{EGRESS}"))),
            ("enable-aggregator-routing", Some("true".to_owned())),
        ]
    }

    /// The volume with the folder for API servers, in kubeadm's format.
    pub(super) fn volume() -> Value {
        json!({"name": "network-proxy", "hostPath": FOLDER, "mountPath": FOLDER, "pathType": "Directory"})
    }
}

impl KindMachines {
    /// Blocks or allows connections from the machines of the control plane to these addresses: new connections are
    /// refused, but connections from these addresses still work.
    pub(super) async fn set_direct_way(&self, to: &[String], op: LinkOp) -> Result<(), ClusterError> {
        let rule = match op {
            LinkOp::Cut => r#"$iptables -C OUTPUT "$@" 2> /dev/null || $iptables -I OUTPUT "$@""#,
            LinkOp::Restore => r#"while $iptables -D OUTPUT "$@" 2> /dev/null; do :; done"#,
        };
        let script = format!("iptables='iptables -w 10'\nset -e\n{rule}");
        for machine in self.machines.iter().filter(|machine| machine.role == Role::ControlPlane) {
            for address in to {
                self.refuse(machine, &script, address).await?;
            }
        }
        Ok(())
    }

    async fn refuse(&self, machine: &Machine, script: &str, address: &str) -> Result<(), ClusterError> {
        let command = [
            "sh",
            "-c",
            script,
            "sh",
            "-d",
            address,
            "-p",
            "tcp",
            "--syn",
            "-j",
            "REJECT",
            "--reject-with",
            "tcp-reset",
        ];
        exec_ok(&self.engine, machine, &command, Stdin::Empty, LIMIT).await.map(drop)
    }
}
