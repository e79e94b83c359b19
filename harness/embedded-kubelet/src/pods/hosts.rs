//! The `/etc/hosts` of a program, with the names of
//! [`Settings::names`](embedded_runtime::settings::Settings::names).

use std::io;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;

use super::mount::Mount;
use super::volumes::write_file;
use super::worker::Worker;
use embedded_runtime::node;
use embedded_runtime::settings::{Dns, ServiceVip};

/// Whether a Pod uses cluster DNS instead of its machine's resolver.
pub(crate) fn asks_cluster_dns(spec: &PodSpec) -> bool {
    match spec.dns_policy.as_deref().unwrap_or("ClusterFirst") {
        "ClusterFirstWithHostNet" => true,
        "ClusterFirst" => !spec.host_network.unwrap_or(false),
        _ => false,
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

impl Worker {
    /// Updates the Pod's hosts file; `None` if the cluster has no names of its own.
    pub(crate) fn own_hosts(&self) -> io::Result<Option<Mount>> {
        let names = &self.shared.world.settings.names;
        if names.is_empty() || !self.shared.isolation.confines() {
            return Ok(None);
        }
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
        if self.resolver_answers() {
            for (name, address) in names {
                text.push_str(&format!("{address} {name}\n"));
            }
        }
        let file = self.hosts_file();
        // Rewritten in place: a running program has this very file mounted.
        match std::fs::read_to_string(&file) {
            Ok(known) if known == text => {}
            Ok(_) => std::fs::write(&file, text)?,
            Err(_) => write_file(&file, text.as_bytes())?,
        }
        Ok(Some(Mount::read_only(file, "/etc/hosts")))
    }

    fn hosts_file(&self) -> PathBuf {
        self.folder.join("hosts")
    }

    fn resolver_answers(&self) -> bool {
        let world = &self.shared.world;
        if !self.pod.spec.as_ref().is_some_and(asks_cluster_dns) {
            return true;
        }
        let serves = |pod: &Pod| {
            pod.namespace().as_deref() == Some("kube-system")
                && pod.labels().get("k8s-app").is_some_and(|app| app == "kube-dns")
                && is_ready(pod)
        };
        world.settings.dns == Dns::Simulated
            && world.settings.service_vip == ServiceVip::Shortcut
            && world.node(&self.node).is_some_and(|node| node::is_ready(&node))
            && world.pods.list().iter().any(|pod| serves(pod))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_and_the_network_choose_the_resolver() {
        let asks = |policy: Option<&str>, host_network: bool| {
            asks_cluster_dns(&PodSpec {
                dns_policy: policy.map(str::to_owned),
                host_network: Some(host_network),
                ..PodSpec::default()
            })
        };
        assert!(asks(None, false) && asks(Some("ClusterFirst"), false));
        assert!(asks(Some("ClusterFirstWithHostNet"), true));
        assert!(!asks(None, true) && !asks(Some("ClusterFirst"), true), "falls back to the machine's");
        assert!(!asks(Some("Default"), false) && !asks(Some("Default"), true));
    }
}
