//! No cluster: for components that are judged without one, such as an image credential provider.

use super::backend::{Backend, BackendEntry, Facts, Fidelity, Lifetime, Runs};
use super::error::ClusterError;
use super::record::{About, CloudSite, ClusterRecord, Ownership};
use super::requirement::Requirement;
use super::spec::ClusterSpec;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use harness_config::BackendKind;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

/// Only programs of this machine use the cloud.
const SITE: CloudSite = CloudSite::ThisMachine { address: Ipv4Addr::LOCALHOST, name: None };

pub(super) const BACKEND: BackendEntry = BackendEntry {
    facts: Facts {
        fidelity: Fidelity::Absent,
        runs: Runs::Programs,
        lifetime: Lifetime::Process,
        manages: false,
        side_by_side: 1,
        memory_gib: 0,
        facilities: &[],
        lacks_because: "the run has no cluster",
    },
    requirements: || ready(vec![nothing()]).boxed_local(),
    check: |_| Ok(()),
    has: |_| ready(Ok(false)).boxed_local(),
    begin: |spec| Arc::new(Absent { spec }),
    attach: |_| Ok(None),
};

fn nothing() -> Requirement {
    Requirement::fine(
        "nothing",
        "a profile of 'kind: image-credentials' or 'network-proxy' is judged without a cluster",
        "no cluster is created".to_owned(),
    )
}

/// The cluster of a run without a cluster.
#[derive(Debug)]
struct Absent {
    spec: ClusterSpec,
}

impl Backend for Absent {
    fn cloud_site(&self) -> LocalBoxFuture<'_, Result<Option<CloudSite>, ClusterError>> {
        ready(Ok(Some(SITE))).boxed_local()
    }

    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>> {
        let record = ClusterRecord {
            backend: BackendKind::Absent,
            name: self.spec.run.name(),
            kubeconfig: PathBuf::new(),
            ownership: Ownership::Ours,
            machines: Vec::new(),
            facilities: BTreeSet::new(),
            pod_network: None,
            api_server_for_pods: None,
            api_server_for_other_clusters: None,
            replica_group: None,
            cloud_site: SITE,
            about: About { kubernetes: Some(String::new()), ..About::default() },
            own: serde_json::Value::Null,
        };
        ready(Ok(record)).boxed_local()
    }

    fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>> {
        ready(Ok(())).boxed_local()
    }
}
