//! How long lint and model take, and how that grows. Prints figures, asserts nothing about time.
//!
//! `cargo bench -p bootstrap`

use bootstrap::{Cluster, Cni, PlannedMachine, Source, Topology, expect};
use std::io::Write;
use std::time::Instant;

/// A CCM, a CNI and bystanders: `documents` documents in all.
fn manifests(documents: usize) -> String {
    let mut text = include_str!("../../../fixtures/bootstrap/good-deployment/ccm.yaml").to_owned();
    let own = text.matches("\n---").count() + 1;
    for number in own..documents {
        text.push_str(&format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: app-{number}, namespace: default}}\n\
             spec:\n  replicas: 3\n  selector: {{matchLabels: {{app: a{number}}}}}\n  template:\n    metadata: \
             {{labels: {{app: a{number}}}}}\n    spec:\n      containers:\n        - name: main\n          image: \
             registry.example/app:v{number}\n          ports: [{{containerPort: 80, hostPort: {}}}]\n",
            20_000 + number % 7
        ));
    }
    text
}

fn clusters() -> Vec<Cluster> {
    let cells = Topology::DEFAULT.iter().flat_map(|t| Cni::DEFAULT.iter().map(move |c| (*t, *c)));
    cells.map(|(topology, cni)| Cluster::new(topology, cni)).collect()
}

/// Milliseconds of the fastest of some rounds, and the most states in a cell.
fn measure(text: &str, clusters: &[Cluster]) -> (f64, usize, bool) {
    let mut best = f64::INFINITY;
    let (mut states, mut boots) = (0, false);
    for _ in 0..5 {
        let begun = Instant::now();
        let result = expect(vec![Source::new("set.yaml", text)], clusters, &[], None);
        best = best.min(begun.elapsed().as_secs_f64() * 1000.0);
        if let Ok(expectation) = result {
            states = expectation.cells.iter().map(|cell| cell.states).max().unwrap_or(0);
            boots = expectation.boots();
        }
    }
    (best, states, boots)
}

fn main() {
    let mut out = std::io::stdout().lock();
    let mut line = |name: &str, (ms, states, boots): (f64, usize, bool)| {
        let _ = writeln!(out, "{name:<62} {ms:>9.2} ms  {states:>6} states at most, boots: {boots}");
    };
    let all = clusters();
    line("50 documents, every topology and CNI", measure(&manifests(50), &all));
    let stuck = manifests(50)
        .replace("key: node.cloudprovider.kubernetes.io/uninitialized", "key: example.org/other");
    line("the same with a deadlock in every cell, explained", measure(&stuck, &all));
    for documents in [10, 100, 400] {
        line(&format!("{documents} documents, every topology and CNI"), measure(&manifests(documents), &all));
    }
    for workers in [1, 10, 50, 200] {
        let control_plane =
            PlannedMachine { control_plane: true, kubeadms_taints: true, ..Default::default() };
        let mut planned = vec![control_plane; 3];
        planned.extend(vec![PlannedMachine::default(); workers]);
        let machines = Some(planned);
        let cluster =
            Cluster { machines, ..Cluster::new(Topology::ControlPlaneAndWorker, Cni::WaitsForAddresses) };
        line(
            &format!("50 documents, 3 control planes and {workers} workers"),
            measure(&manifests(50), &[cluster]),
        );
    }
    for rivals in [2, 4, 6] {
        let mut text = manifests(10);
        for number in 0..rivals {
            text.push_str(&format!(
                "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: rival-{number}, namespace: default}}\n\
                 spec:\n  replicas: 2\n  selector: {{matchLabels: {{app: r{number}}}}}\n  template:\n    metadata: \
                 {{labels: {{app: r{number}}}}}\n    spec:\n      hostNetwork: true\n      tolerations: [{{operator: \
                 Exists}}]\n      containers: [{{name: main, image: 'r:v1', ports: [{{containerPort: 10258}}]}}]\n"
            ));
        }
        let cluster = Cluster::new(Topology::ThreeControlPlanes, Cni::Independent);
        line(
            &format!("{rivals} rivals for the CCM's port, three control planes"),
            measure(&text, &[cluster]),
        );
    }
    let ten = manifests(33_000);
    let size = ten.len() as f64 / 1e6;
    let begun = Instant::now();
    let read = expect(
        vec![Source::new("large.yaml", &ten)],
        &[Cluster::new(Topology::SingleNode, Cni::None)],
        &[],
        None,
    );
    let ms = begun.elapsed().as_secs_f64() * 1000.0;
    line(&format!("one file of {size:.1} MB, one cell"), (ms, 0, read.is_ok_and(|e| e.boots())));
}
