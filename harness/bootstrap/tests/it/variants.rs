//! Variants of a manifest that boots on the measured clusters, area by area: those that boot and those that do not. Most
//! were not applied to real clusters; the verdicts follow from the source of Kubernetes 1.36.

mod addresses;
mod admission;
mod api_server;
mod cloud_services;
mod components;
mod containers;
mod expressions;
mod flag_values;
mod forms;
mod host_files;
mod inits;
mod leases;
mod limits;
mod mixed;
mod mutations;
mod needless;
mod objects;
mod order;
mod placement;
mod roles;
mod sources;
mod static_pods;
mod tokens;
mod webhooks;

use bootstrap::{Cluster, Cni, Outcome, Topology, YesNo, expect};

/// The manifest that boots: that of a measured one without its only difference.
fn base() -> String {
    let path = super::variants().join("../bootstrap-measured/app-armor-runtime-default.yaml");
    let text = std::fs::read_to_string(path).expect("the manifest is there");
    changed(&text, "      securityContext:\n        appArmorProfile:\n          type: RuntimeDefault\n", "")
}

/// A text with a part replaced, which must be there.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "'{from}' is not in the manifest");
    text.replacen(from, to, 1)
}

/// The base with lines of the Pod's specification, each indented by six spaces.
fn pod(lines: &str) -> String {
    below(&base(), "      serviceAccountName: ccm\n", 6, lines)
}

/// The base with lines of its container, each indented by eight spaces.
fn container(lines: &str) -> String {
    below(&base(), "        imagePullPolicy: IfNotPresent\n", 8, lines)
}

/// A text with indented lines below one of its lines.
fn below(text: &str, line: &str, indent: usize, lines: &str) -> String {
    let more: String = lines.lines().map(|own| format!("{}{own}\n", " ".repeat(indent))).collect();
    changed(text, line, &format!("{line}{more}"))
}

/// The base with another argument.
fn argument(text: &str) -> String {
    below(&base(), "        - -v=1\n", 8, &format!("- {text}"))
}

/// The base with another value of an environment variable.
fn variable(from: &str, to: &str) -> String {
    changed(&base(), &format!("          value: {from}\n"), to)
}

/// The base and a document before it.
fn behind(document: &str) -> String {
    format!("{}\n---\n{}", document.trim_end(), base())
}

/// The base in a namespace of its own, with a document before the Deployment.
fn in_namespace(document: &str) -> String {
    let moved = base().replace("namespace: kube-system", "namespace: ccm-system");
    let before = "apiVersion: apps/v1\nkind: Deployment\n";
    let moved = changed(&moved, before, &format!("{}\n---\n{before}", document.trim_end()));
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: ccm-system}}\n---\n{moved}")
}

fn judge(text: &str, topology: Topology) -> (Outcome, String) {
    let cluster = Cluster { node_ip: YesNo::Yes, ..Cluster::new(topology, Cni::Kindnet) };
    let source = bootstrap::Source::new("ccm.yaml", text);
    let found = expect(vec![source], &[cluster], &[], None).unwrap_or_else(|why| panic!("{why}\n{text}"));
    (found.cells[0].outcome, found.summary())
}

/// All variants have this verdict, with one control plane and with a worker.
#[track_caller]
fn all(outcome: Outcome, variants: &[(&str, String)]) {
    let mut wrong = Vec::new();
    for (name, text) in variants {
        for topology in [Topology::SingleControlPlane, Topology::ControlPlaneAndWorker] {
            let (found, why) = judge(text, topology);
            if found != outcome {
                wrong.push(format!("{name} with {topology}: {found} instead of {outcome}\n  {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn boot(variants: &[(&str, String)]) {
    all(Outcome::Boots, variants);
}

#[track_caller]
fn deadlock(variants: &[(&str, String)]) {
    all(Outcome::Deadlock, variants);
}

#[test]
fn the_base_boots() {
    boot(&[("base", base())]);
}
