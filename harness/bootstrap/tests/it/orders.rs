//! Growth: the number of states stays bounded, and interchangeable Nodes count once.

use super::variants;
use bootstrap::{
    Cluster, Cni, Observed, ObservedNode, ObservedPod, PlannedMachine, Topology, expect, read_paths,
};

fn states(variant: &str, cluster: Cluster) -> usize {
    let sources = read_paths(&[variants().join(variant)]).expect("the variant");
    let expectation = expect(sources, &[cluster], &[], None).expect("it can be read");
    expectation.cells[0].states
}

#[test]
fn workers_that_are_alike_add_no_states() {
    let of = |workers| {
        let control_plane =
            PlannedMachine { control_plane: true, kubeadms_taints: true, ..Default::default() };
        let mut machines = vec![control_plane; 3];
        machines.extend(vec![PlannedMachine::default(); workers]);
        let cluster = Cluster::new(Topology::SingleNode, Cni::Independent);
        states("good-deployment", Cluster { machines: Some(machines), ..cluster })
    };
    assert_eq!(of(3), of(60));
    assert!(of(60) < 200, "{}", of(60));
}

#[test]
fn a_failing_order_is_reported() {
    let sources = read_paths(&[variants().join("port-taken")]).expect("the variant");
    let cluster = Cluster::new(Topology::SingleNode, Cni::Independent);
    let expectation = expect(sources, &[cluster], &[], None).expect("it can be read");
    let explanation = expectation.cells[0].explanation.as_ref().expect("one order fails");
    assert!(
        explanation.order.iter().any(|step| step.contains("Deployment/exporter is bound")),
        "{explanation:?}"
    );
}

#[test]
fn observed_and_expected_results_are_shown_together() {
    let sources = read_paths(&[variants().join("mbt-01-no-uninitialized-toleration")]).expect("the variant");
    let cluster = Cluster::new(Topology::SingleNode, Cni::Independent);
    let expectation = expect(sources, &[cluster], &[], None).expect("it can be read");
    let observed = Observed {
        pods: vec![ObservedPod {
            name: String::from("kube-system/reference-ccm-1"),
            phase: String::from("Pending"),
            says: String::from("0/1 nodes are available: 1 node(s) had untolerated taint(s)"),
        }],
        nodes: vec![ObservedNode {
            name: String::from("kind-control-plane"),
            taints: vec![String::from("node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule")],
            conditions: vec![String::from("Ready=True")],
            addresses: Vec::new(),
        }],
    };
    let text = expectation.explain_with(&observed);
    for words in ["a cycle", "1 node(s) had untolerated taint(s)", "addresses: none", "smallest change"] {
        assert!(text.contains(words), "'{words}' is missing:\n{text}");
    }
}
