//! Which cluster a run uses, according to its keys.

use super::cluster::{ExistingCluster, Kubernetes, OwnCluster, ServingCertificates, Topology, WantedCluster};
use super::enums::BackendKind;
use super::plan::Planning;
use super::run_file::{ClusterKeys, DEFAULT_BACKEND, DEFAULT_NODE_IP, DEFAULT_PROVIDER_ID, DEFAULT_TOPOLOGY};
use std::path::{Path, PathBuf};

impl Planning {
    /// The cluster that the keys describe.
    pub(super) fn cluster(&mut self, keys: ClusterKeys, soaks: bool) -> WantedCluster {
        let backend = keys.backend.unwrap_or(DEFAULT_BACKEND).named();
        if backend == Some(BackendKind::Existing) {
            return self.existing_cluster(keys, soaks);
        }
        for (key, given) in [
            ("cluster.kubeconfig", keys.kubeconfig.is_some()),
            ("cluster.allowForeign", keys.allow_foreign.is_some()),
        ] {
            if given {
                self.problem(key, format!("has a meaning only with {}", self.backend_words("existing")));
            }
        }
        let topology = match Topology::resolve(keys.topology.as_deref().unwrap_or(DEFAULT_TOPOLOGY)) {
            Ok(topology) => topology,
            Err(what) => {
                self.problem("cluster.topology", what);
                Topology::ThreeNode
            }
        };
        // An invalid Kubernetes version was reported by the schema, which has the same format.
        let kubernetes = keys.kubernetes.and_then(|text| text.parse().ok()).unwrap_or(Kubernetes::Newest);
        if let (Some(BackendKind::Embedded), Kubernetes::Image(image)) = (backend, &kubernetes) {
            let what = format!("'{image}' is a node image, which only {} takes", self.backend_words("kind"));
            self.problem("cluster.kubernetes", what);
        }
        let own = OwnCluster {
            topology,
            kubernetes,
            provider_id: keys.provider_id.unwrap_or(DEFAULT_PROVIDER_ID),
            node_ip: keys.node_ip.unwrap_or(DEFAULT_NODE_IP),
            serving: ServingCertificates::SelfSigned,
            seed: keys.seed,
        };
        WantedCluster::own(backend, own)
    }

    fn existing_cluster(&mut self, keys: ClusterKeys, soaks: bool) -> WantedCluster {
        for (key, given) in [
            ("cluster.topology", keys.topology.is_some()),
            ("cluster.kubernetes", keys.kubernetes.is_some()),
            ("cluster.providerId", keys.provider_id.is_some()),
            ("cluster.nodeIp", keys.node_ip.is_some()),
            ("cluster.seed", keys.seed.is_some() && !soaks),
        ] {
            if given {
                self.problem(key, format!("has no meaning with {}", self.backend_words("existing")));
            }
        }
        let kubeconfig = keys.kubeconfig.map(PathBuf::from);
        if let Some(file) = kubeconfig.as_deref().filter(|file| !Path::is_file(file)) {
            self.problem("cluster.kubeconfig", format!("there is no file {}", file.display()));
        }
        let allow_foreign = keys.allow_foreign.unwrap_or(false);
        WantedCluster::existing(ExistingCluster { kubeconfig, allow_foreign })
    }
}
