//! Properties of all backends, and the answers of a cluster without a facility.

use super::record::{About, CloudSite, Ownership};
use super::*;
use futures::FutureExt;
use futures::future::BoxFuture;
use harness_config::BackendChoice;
use std::sync::Mutex;

fn record(backend: BackendKind, facilities: &[Facility]) -> ClusterRecord {
    ClusterRecord {
        backend,
        name: "ccm-conformance-abcdefgh".to_owned(),
        kubeconfig: "/nowhere/kubeconfig".into(),
        ownership: Ownership::Others,
        machines: Vec::new(),
        facilities: facilities.iter().copied().collect(),
        pod_network: None,
        api_server_for_pods: None,
        api_server_for_other_clusters: None,
        replica_group: None,
        cloud_site: CloudSite::NextToNodes,
        about: About::default(),
        own: serde_json::Value::Null,
    }
}

/// Machines that record the operations on them.
#[derive(Debug, Default)]
struct Scripted(Mutex<Vec<String>>);

impl Machines for Scripted {
    fn operate<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Result<(), ClusterError>> {
        self.0.lock().expect("no holder of this lock panics").push(operation.to_string());
        futures::future::ready(Ok(())).boxed()
    }
}

fn machine() -> Machine {
    Machine {
        name: "w".into(),
        role: Role::Worker,
        ipv4: None,
        ipv6: None,
        container_id: String::new(),
        reached_at: None,
    }
}

#[test]
fn every_backend_that_can_be_named_is_in_the_table() {
    assert_eq!(BackendChoice::WORDS, ["auto", "kind", "embedded", "existing", "none"]);
    for kind in BackendKind::ALL {
        assert!(facts(*kind).side_by_side > 0, "{kind}");
    }
    let simulated = |kind| facts(kind).fidelity == Fidelity::Simulated;
    assert_eq!(BackendKind::ALL.iter().copied().filter(|kind| simulated(*kind)).count(), 1);
    assert!(simulated(BackendKind::Embedded));
}

#[tokio::test]
async fn operations_without_a_facility_are_not_observable_and_reach_no_machine() {
    let (scripted, machine) = (Arc::new(Scripted::default()), machine());
    let cluster = Cluster {
        record: record(BackendKind::Kind, &[Facility::KubeletControl]),
        machines: Some(scripted.clone()),
    };
    let stop = Operation::Kubelet { machine: &machine, op: KubeletOp::Stop };
    cluster.operate(stop).await.expect("the facility is there");
    let off = Operation::Power { machine: &machine, op: PowerOp::Off };
    let error = cluster.operate(off).await.expect_err("the facility is not there");
    assert!(error.is_not_observable());
    assert_eq!(
        error.to_string(),
        "switching w off is not possible here: this cluster of backend 'kind' has no node-control, because its node \
         image does not contain the programs for it, or its Kubernetes is too old"
    );
    assert_eq!(*scripted.0.lock().expect("sound"), ["stopping the kubelet of w"]);
}

#[tokio::test]
async fn nothing_can_be_done_to_an_existing_cluster() {
    let cluster = Cluster::attach(record(BackendKind::Existing, &[])).expect("attached");
    let network = Operation::PodNetwork(&PodNetwork::Absent);
    let error = cluster.operate(network).await.expect_err("no access").to_string();
    assert!(
        error.ends_with("because the harness did not create it and has no access to its machines"),
        "{error}"
    );
}

#[test]
fn a_record_of_something_else_is_refused_with_the_clusters_name() {
    for kind in [BackendKind::Kind, BackendKind::Embedded] {
        let error = Cluster::attach(record(kind, &[])).expect_err("no such record").to_string();
        assert!(
            error.starts_with("the record of cluster ccm-conformance-abcdefgh cannot be read"),
            "{error}"
        );
    }
}

#[test]
fn every_facility_of_a_cluster_is_one_of_some_backend() {
    for facility in Facility::ALL {
        let offered = BackendKind::ALL.iter().any(|kind| facts(*kind).facilities.contains(facility));
        assert_eq!(offered, facility.is_of_the_cluster(), "{facility}");
    }
}
