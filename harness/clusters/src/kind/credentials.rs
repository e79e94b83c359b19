//! An image credential provider on a machine of kind: files, the registry next to the container runtime, and the flags of
//! its kubelet.

use super::access::KindMachines;
use super::exec::{Stdin, exec_ok};
use crate::error::ClusterError;
use crate::record::Machine;
use harness_components::image_credentials::{NODE_FOLDER, NodeSetup, REGISTRY, REGISTRY_PORT};
use std::time::Duration;

/// How long copying programs to a machine may take.
const COPY_LIMIT: Duration = Duration::from_secs(120);
/// How long the rest may take, including a kubelet's stop.
const LIMIT: Duration = Duration::from_secs(60);
/// Exit status if the machine's container runtime has no configuration of registries.
const NO_REGISTRIES: i64 = 41;
/// Exit status if the machine's kubelet does not have kubeadm's flags.
const NO_FLAGS: i64 = 42;
/// The systemd unit of the registry.
const UNIT: &str = "ccm-conformance-registry";
/// The file in which kubeadm writes flags of the kubelet.
const FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";

impl KindMachines {
    pub(super) async fn install(&self, machine: &Machine, setup: &NodeSetup) -> Result<(), ClusterError> {
        let unpack = ["tar", "-x", "-C", "/", "--no-same-owner"];
        exec_ok(&self.engine, machine, &unpack, Stdin::File(&setup.archive), COPY_LIMIT).await?;
        let (program, flags) = (&setup.program, setup.kubelet_flags.join(" "));
        let script = format!(
            "systemctl stop {UNIT} 2> /dev/null\n\
             set -e\n\
             grep -qs /etc/containerd/certs.d /etc/containerd/config.toml || exit {NO_REGISTRIES}\n\
             [ -e {FLAGS} ] || exit {NO_FLAGS}\n\
             systemd-run --quiet --collect --unit {UNIT} {program} {REGISTRY} --listen 0.0.0.0:{REGISTRY_PORT}\n\
             [ -e {FLAGS}.before ] || cp -p {FLAGS} {FLAGS}.before\n\
             sed 's|\"$| {flags}\"|' {FLAGS}.before > {FLAGS}\n\
             systemctl restart kubelet.service"
        );
        match self.script(machine, &script).await {
            Err(ClusterError::Command { status: NO_REGISTRIES, .. }) => Err(ClusterError::NotObservable {
                what: format!("pulling images of the harness's registry on machine {}", machine.name),
                why: "its containerd is not configured to use /etc/containerd/certs.d".to_owned(),
            }),
            Err(ClusterError::Command { status: NO_FLAGS, .. }) => Err(ClusterError::NotObservable {
                what: format!("additional flags for the kubelet of machine {}", machine.name),
                why: format!("kubeadm did not write {FLAGS} there"),
            }),
            other => other,
        }
    }

    pub(super) async fn uninstall(&self, machine: &Machine, setup: &NodeSetup) -> Result<(), ClusterError> {
        let folders: Vec<String> =
            setup.registries.iter().map(|registry| format!("'/etc/containerd/certs.d/{registry}'")).collect();
        // A plugin may outlive the kubelet that killed its recorder. Processes may end while they are examined, and a
        // registry that did not start cannot be stopped: only the results for the kubelet before that and the files after
        // it count.
        let script = format!(
            "set -e\n\
             if [ -e {FLAGS}.before ]; then mv {FLAGS}.before {FLAGS}; systemctl restart kubelet.service; fi\n\
             set +e\n\
             systemctl stop {UNIT} 2> /dev/null\n\
             for process in /proc/[0-9]*; do\n\
             case $(readlink $process/exe) in /{NODE_FOLDER}/*) kill -9 ${{process#/proc/}};; esac\n\
             done\n\
             rm -rf /{NODE_FOLDER} {}",
            folders.join(" ")
        );
        self.script(machine, &script).await
    }

    async fn script(&self, machine: &Machine, script: &str) -> Result<(), ClusterError> {
        exec_ok(&self.engine, machine, &["sh", "-c", script], Stdin::Empty, LIMIT).await.map(drop)
    }
}
