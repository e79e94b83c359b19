//! The steps of a kubelet before the containers of a Pod can start: addresses, tokens and volumes, updated
//! each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Node, ServiceAccount};
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::facts::{Facts, Refusal};
use super::mount::Mount;
use super::points;
use super::setup::{InNamespace, NotYet, Source};
use super::simulated;
use super::volumes::{self, Content};
use super::worker::Worker;
use embedded_runtime::node;
use embedded_runtime::writing;

impl Worker {
    /// Calls `ask` with everything that a kubelet currently knows about this Pod.
    pub(crate) fn with_facts<T>(&self, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let node = self.shared.world.node(&self.node);
        let spec = self.shared.fleet.spec(&self.node);
        let none = BTreeMap::new();
        let known = |node: &Node| {
            let addresses =
                node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
            addresses
                .iter()
                .map(|one| format!("{{{} {}}}", one.type_, one.address))
                .collect::<Vec<_>>()
                .join(" ")
        };
        ask(&Facts {
            pod: &self.pod,
            host_ips: &self.setup.host_ips,
            known_addresses: node.as_deref().map(known).unwrap_or_default(),
            // The program gets the address that it can bind here; the status shows one of the pod network.
            pod_ips: if self.setup.host_network {
                &self.setup.host_ips
            } else {
                std::slice::from_ref(&self.setup.asked_at)
            },
            allocatable: spec.as_ref().map_or(&none, |spec| &spec.capacity),
            objects: &InNamespace { world: &self.shared.world, namespace: &self.key.namespace },
        })
    }

    /// Sets up addresses, tokens and volumes, or updates them.
    pub(crate) async fn set_up(&mut self) -> Result<Result<(), NotYet>, kube::Error> {
        let node = self.shared.world.node(&self.node);
        self.setup.host_ips = node.as_deref().map(node::host_ips).unwrap_or_default();
        if self.setup.host_network {
            self.setup.pod_ips = self.setup.host_ips.clone();
        } else if !node.as_deref().is_some_and(node::is_ready) && self.slots.iter().all(|slot| slot.run == 0)
        {
            let message = "network is not ready: container runtime network not ready: NetworkReady=false \
                           reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
            return Ok(Err(NotYet { reason: "NetworkNotReady", message: message.to_owned() }));
        } else if let Some(node) = node.as_deref().filter(|_| self.setup.pod_ips.is_empty()) {
            self.setup.pod_ips = simulated::addresses(node, &self.shared);
        }
        // A running program sees changes of its resolver.
        if let Err(error) = self.own_hosts() {
            tracing::debug!(pod = ?self.key, %error, "its /etc/hosts is not up to date");
        }
        self.fetch_tokens().await?;
        let volumes = self.pod.spec.as_ref().and_then(|spec| spec.volumes.clone()).unwrap_or_default();
        for volume in volumes {
            let content = self.with_facts(|facts| volumes::content(&volume, facts, &self.setup.tokens));
            let placed = content.and_then(|content| {
                self.place(&volume.name, content).map_err(|error| match error {
                    NotPlaced::Refused(refusal) => refusal,
                    NotPlaced::Io(error) => Refusal(error.to_string()),
                })
            });
            match placed {
                Ok(source) => {
                    self.setup.sources.insert(volume.name.clone(), source);
                }
                Err(Refusal(why)) => {
                    let message = format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name);
                    return Ok(Err(NotYet { reason: "FailedMount", message }));
                }
            }
        }
        Ok(Ok(()))
    }

    async fn fetch_tokens(&mut self) -> Result<(), kube::Error> {
        let wanted = volumes::wanted_tokens(&self.pod);
        let due = self.setup.refresh_at.is_some_and(|at| at <= Instant::now());
        if wanted.is_empty() || !(due || wanted.iter().any(|token| !self.setup.tokens.contains_key(token))) {
            return Ok(());
        }
        // While the node is cut off, the existing tokens have to do.
        let Some(client) =
            self.shared.fleet.client(&self.node).filter(|_| self.shared.fleet.speaks(&self.node))
        else {
            return Ok(());
        };
        let account = self.pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let account = account.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned());
        let api = writing::api_in::<ServiceAccount>(&client, &self.key.namespace);
        let mut shortest = i64::MAX;
        for token in wanted {
            let request = json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": token.audience.iter().collect::<Vec<_>>(),
                    "expirationSeconds": token.life,
                    "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": self.key.name, "uid": self.uid},
                },
            });
            let answer: Value =
                api.create_subresource("token", &account, &PostParams::default(), &request).await?;
            if let Some(text) = answer["status"]["token"].as_str() {
                self.setup.tokens.insert(token.clone(), text.to_owned());
            }
            shortest = shortest.min(token.life);
        }
        // A kubelet fetches a new token when four fifths of the old one's lifetime have passed.
        let life = Duration::from_secs(u64::try_from(shortest).unwrap_or(0));
        self.setup.refresh_at = Some(Instant::now() + (life * 4 / 5).max(Duration::from_secs(1)));
        Ok(())
    }

    /// Writes a volume's content to where it can be mounted from; `None` if the program can see the original.
    fn place(&self, name: &str, content: Content) -> Result<Option<Source>, NotPlaced> {
        let folder = self.folder.join("volumes").join(volumes::inside(name).map_err(NotPlaced::Refused)?);
        // As with a kubelet. Otherwise a program could create a link where the harness writes the next
        // version of a file.
        let read_only = matches!(content, Content::Files(_));
        let path = match content {
            Content::Files(files) => {
                volumes::write_files(&folder, &files)?;
                folder
            }
            Content::Empty => {
                volumes::make_folder(&folder)?;
                folder
            }
            Content::Visible => return Ok(None),
            Content::Machine { path, kind } => self.place_machine(&path, &kind)?,
        };
        Ok(Some(Source { path, read_only }))
    }

    fn place_machine(&self, path: &Path, kind: &str) -> Result<PathBuf, NotPlaced> {
        let machine = self.shared.machine_folder(&self.node);
        volumes::make_folder(&machine)?;
        let shown = Path::new("/").join(path);
        let shown = shown.display();
        let refused =
            |what: &str| NotPlaced::Refused(Refusal(format!("hostPath type check failed: {shown} {what}")));
        let there = points::follow(&machine, path)?;
        match (kind, &there) {
            ("DirectoryOrCreate" | "", None) => points::make(&machine, path, false)?,
            ("FileOrCreate", None) => points::make(&machine, path, true)?,
            ("Directory", there) if !there.as_ref().is_some_and(|real| real.is_dir()) => {
                return Err(refused("is not a directory"));
            }
            ("File", there) if !there.as_ref().is_some_and(|real| real.is_file()) => {
                return Err(refused("is not a file"));
            }
            ("DirectoryOrCreate" | "" | "FileOrCreate" | "Directory" | "File", _) => {}
            _ => return Err(refused("is of a kind the embedded cluster does not model")),
        }
        Ok(there.unwrap_or_else(|| machine.join(path)))
    }

    /// The mounts of a container.
    pub(crate) fn mounts(&self, container: &Container) -> Result<Vec<Mount>, Refusal> {
        let failed = |error: std::io::Error| Refusal(error.to_string());
        let mut mounts = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let Some(Some(Source { path, read_only })) = self.setup.sources.get(&mount.name) else {
                continue;
            };
            let below = PathBuf::from(volumes::inside(mount.sub_path.as_deref().unwrap_or_default())?);
            let source = match points::follow(path, &below).map_err(failed)? {
                Some(there) => there,
                None => {
                    points::make(path, &below, false).map_err(failed)?;
                    path.join(below)
                }
            };
            let target = Path::new("/").join(volumes::inside(&mount.mount_path)?);
            let read_only = *read_only || mount.read_only.unwrap_or(false);
            mounts.push(Mount { source, target, read_only });
        }
        Ok(mounts)
    }
}

/// The reason why a file of a volume cannot be written.
enum NotPlaced {
    Refused(Refusal),
    Io(std::io::Error),
}

impl From<std::io::Error> for NotPlaced {
    fn from(error: std::io::Error) -> NotPlaced {
        NotPlaced::Io(error)
    }
}
