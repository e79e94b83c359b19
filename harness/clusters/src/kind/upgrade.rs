//! Moves a cluster to another version of Kubernetes, as administrators of kubeadm's clusters do it: with `kubeadm upgrade`
//! (<https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/>). The programs come from a local node image
//! of that version, so that nothing is downloaded.

use super::access::KindMachines;
use super::exec::{Stdin, exec, exec_ok};
use super::node_image;
use super::parts::Parts;
use crate::error::ClusterError;
use crate::images::{Engine, ImageContent, ImageFile, ImageRun, docker_archive};
use crate::operation::Part;
use crate::record::{Machine, Role};
use crate::version::Version;
use harness_core::check::chain;
use std::collections::BTreeMap;
use std::time::Duration;

/// The first minor version of a kubeadm that can leave out phases of an upgrade.
const PHASES_SINCE: u32 = 32;
/// The programs of the control plane, which run in images of the same names.
const CONTROL_PLANE: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
/// The file in which kubeadm writes flags of the kubelet.
const FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";
/// How long loading an image into a machine may take.
const LOAD_LIMIT: Duration = Duration::from_secs(120);
/// How long the other commands may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long kubeadm may take: it waits up to five minutes for each part.
const UPGRADE_LIMIT: Duration = Duration::from_secs(600);

/// Whether clusters can begin with this minor version and be upgraded to it.
pub(super) async fn has_version(minor: u32) -> Result<bool, ClusterError> {
    let engine = Engine::connect().await?;
    Ok(minor >= PHASES_SINCE && node_image::unpacked(&engine, minor).await?.is_some())
}

/// The image of a program in the list that kubeadm prints.
fn image_of<'a>(program: &str, names: &'a str) -> Option<&'a str> {
    let is_its =
        |name: &&str| name.rsplit('/').next().is_some_and(|last| last.split(':').next() == Some(program));
    names.lines().map(str::trim).find(is_its)
}

impl KindMachines {
    pub(super) async fn upgrade(&self, part: Part<'_>, minor: u32) -> Result<(), ClusterError> {
        let image = node_image::unpacked(&self.engine, minor).await?;
        let Some((image, version)) = image.filter(|_| minor >= PHASES_SINCE) else {
            return Err(ClusterError::NotObservable {
                what: format!("moving cluster {} to Kubernetes 1.{minor}", self.cluster),
                why: format!(
                    "it needs a local node image that ci/node-image/build has made, of 1.{PHASES_SINCE} or newer"
                ),
            });
        };
        let parts = Parts::of(&self.engine, &image, &self.cluster).await?;
        let done = match part {
            Part::ControlPlane { .. } => self.upgrade_control_plane(&parts, &version).await,
            Part::Kubelet(machine) => self.upgrade_kubelet(&parts, machine).await,
        };
        if let Err(error) = parts.remove().await {
            tracing::warn!(error = chain(&error), "a container of a node image was not removed");
        }
        done
    }

    async fn upgrade_control_plane(&self, parts: &Parts, version: &Version) -> Result<(), ClusterError> {
        let planes: Vec<&Machine> =
            self.machines.iter().filter(|machine| machine.role == Role::ControlPlane).collect();
        let [plane] = planes.as_slice() else {
            return Err(ClusterError::NotObservable {
                what: format!("moving cluster {} to Kubernetes {version}", self.cluster),
                why: format!("its control plane has {} machines, and the harness upgrades one", planes.len()),
            });
        };
        self.put_program(parts, plane, "kubeadm").await?;
        let text = version.to_string();
        let list = ["kubeadm", "config", "images", "list", "--kubernetes-version", &text];
        let names = exec_ok(&self.engine, plane, &list, Stdin::Empty, LIMIT).await?.stdout;
        for program in CONTROL_PLANE {
            let name = image_of(program, &names).ok_or_else(|| ClusterError::Command {
                machine: plane.name.clone(),
                command: list.join(" "),
                status: 0,
                stderr: format!("no image of {program} among: {}", names.trim().replace('\n', ", ")),
            })?;
            self.load_program(parts, plane, program, name).await?;
        }
        let apply = [
            "kubeadm",
            "upgrade",
            "apply",
            &text,
            "--yes",
            "--ignore-preflight-errors=all",
            // The images of etcd and the add-ons cannot be pulled.
            "--etcd-upgrade=false",
            "--skip-phases=preflight,addon",
        ];
        exec_ok(&self.engine, plane, &apply, Stdin::Empty, UPGRADE_LIMIT).await.map(drop)
    }

    async fn upgrade_kubelet(&self, parts: &Parts, machine: &Machine) -> Result<(), ClusterError> {
        if machine.role == Role::Worker {
            self.put_program(parts, machine, "kubeadm").await?;
            let node = ["kubeadm", "upgrade", "node", "--skip-phases=preflight,addon"];
            exec_ok(&self.engine, machine, &node, Stdin::Empty, UPGRADE_LIMIT).await?;
        }
        self.put_program(parts, machine, "kubelet").await?;
        // Kubelets do not know this flag from 1.35 on, and only kubeadm 1.34 removes it (kubernetes/kubeadm#3108).
        let restart = format!(
            "sed -i 's/ --pod-infra-container-image=[^ \"]*//' {FLAGS} && systemctl restart kubelet.service"
        );
        exec_ok(&self.engine, machine, &["sh", "-c", &restart], Stdin::Empty, LIMIT).await.map(drop)
    }

    /// Replaces a program of a machine.
    async fn put_program(&self, parts: &Parts, machine: &Machine, name: &str) -> Result<(), ClusterError> {
        let path = format!("/usr/bin/{name}");
        // The file of a running program cannot be written, but removed.
        exec(&self.engine, machine, &["rm", "-f", &path], Stdin::Empty, LIMIT).await?;
        parts.copy(&path, machine, "/usr/bin").await
    }

    /// Loads a program of the control plane into a machine, as the image with this name.
    async fn load_program(
        &self,
        parts: &Parts,
        machine: &Machine,
        program: &str,
        name: &str,
    ) -> Result<(), ClusterError> {
        let bytes = parts.program_in_an_image(program).await?;
        let path = format!("/usr/local/bin/{program}");
        let files = [ImageFile { path: &path, mode: 0o755, bytes: &bytes }];
        let content = ImageContent { files: &files, env: &["PATH=/usr/local/bin:/usr/bin:/bin"] };
        let run =
            ImageRun { reference: name.to_owned(), entrypoint: vec![path.clone()], labels: BTreeMap::new() };
        let archive = docker_archive(content, &[run]).bytes;
        drop(bytes);
        let file = tempfile::NamedTempFile::new_in(&self.folder);
        let file = file.map_err(ClusterError::file("write in", &self.folder))?;
        tokio::fs::write(file.path(), archive).await.map_err(ClusterError::file("write", file.path()))?;
        let load = ["ctr", "--namespace", "k8s.io", "images", "import", "-"];
        exec_ok(&self.engine, machine, &load, Stdin::File(file.path()), LOAD_LIMIT).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_its_image() {
        let names = "registry.k8s.io/kube-apiserver:v1.36.2\nregistry.k8s.io/kube-controller-manager:v1.36.2\n\
                     registry.k8s.io/kube-scheduler:v1.36.2\nregistry.k8s.io/kube-proxy:v1.36.2\n\
                     registry.k8s.io/coredns/coredns:v1.14.2\nregistry.k8s.io/etcd:3.6.8-0\n";
        for program in CONTROL_PLANE {
            assert_eq!(image_of(program, names), Some(format!("registry.k8s.io/{program}:v1.36.2").as_str()));
        }
        assert_eq!(image_of("kube-api", names), None);
        assert_eq!(image_of("coredns", names), Some("registry.k8s.io/coredns/coredns:v1.14.2"));
    }
}
