//! Decides on which Nodes a DaemonSet's Pods run. Pure functions.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};
use kube::ResourceExt;

use super::template;
use embedded_runtime::node::node_taints;
use embedded_runtime::selectors::node_affinity_holds;
use embedded_runtime::taints::{NO_EXECUTE, NO_SCHEDULE, tolerates};

/// The tolerations of every Pod of a DaemonSet; the last one only on the host network.
const AUTOMATIC: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
];
const HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE);

/// Whether a Node has to have a Pod, and may keep an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) should_run: bool,
    pub(super) may_stay: bool,
}

/// The DaemonSet's Pod for this Node.
pub(super) fn pod(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let mut pod = template::pod(set, Some(&set.spec.template));
    pod.labels_mut().insert("controller-revision-hash".to_owned(), hash.to_owned());
    let generation = set.metadata.generation.unwrap_or(0).to_string();
    pod.labels_mut().insert("pod-template-generation".to_owned(), generation);
    if let Some(spec) = pod.spec.as_mut() {
        add_tolerations(spec);
        pin(spec, node);
    }
    pod
}

fn add_tolerations(spec: &mut PodSpec) {
    let host_network = spec.host_network.unwrap_or(false);
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in AUTOMATIC.into_iter().chain(host_network.then_some(HOST_NETWORK)) {
        let wanted = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&wanted) {
            tolerations.push(wanted);
        }
    }
}

/// Adds the Node's name to every term of the required affinity.
fn pin(spec: &mut PodSpec, node: &str) {
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity =
        spec.affinity.get_or_insert_default().node_affinity.get_or_insert_with(NodeAffinity::default);
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(NodeSelector::default);
    // Names of Nodes in the template are replaced, as by the real controller.
    required.node_selector_terms =
        vec![NodeSelectorTerm { match_expressions: None, match_fields: Some(vec![requirement]) }];
}

/// Whether this Node has to have one of the DaemonSet's Pods.
pub(super) fn place(set: &DaemonSet, node: &Node) -> Place {
    let nowhere = Place { should_run: false, may_stay: false };
    let Some(mut spec) = set.spec.template.spec.clone() else { return nowhere };
    if spec.node_name.as_ref().is_some_and(|name| !name.is_empty() && *name != node.name_any()) {
        return nowhere;
    }
    if !node_affinity_holds(&spec, node) {
        return nowhere;
    }
    add_tolerations(&mut spec);
    let tolerations = spec.tolerations.unwrap_or_default();
    let untolerated = |effects: &[&str]| {
        node_taints(node)
            .iter()
            .filter(|taint| effects.contains(&taint.effect.as_str()))
            .any(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
    };
    Place { should_run: !untolerated(&[NO_SCHEDULE, NO_EXECUTE]), may_stay: !untolerated(&[NO_EXECUTE]) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(template: serde_json::Value) -> DaemonSet {
        serde_json::from_value(json!({
            "metadata": {"name": "d", "namespace": "n", "uid": "u"},
            "spec": {"selector": {}, "template": {"spec": template}},
        }))
        .expect("a DaemonSet")
    }

    fn node(taint: &str, effect: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"role": "x"}},
            "spec": {"taints": [{"key": taint, "effect": effect}]},
        }))
        .expect("a Node")
    }

    #[track_caller]
    fn check(template: serde_json::Value, taint: &str, effect: &str, expected: (bool, bool)) {
        let place = place(&set(template), &node(taint, effect));
        assert_eq!((place.should_run, place.may_stay), expected, "{taint}:{effect}");
    }

    #[test]
    fn automatic_tolerations_are_for_troubles_and_not_for_the_cloud() {
        let plain = || json!({"containers": []});
        check(plain(), "node.kubernetes.io/unreachable", "NoExecute", (true, true));
        check(plain(), "node.kubernetes.io/not-ready", "NoExecute", (true, true));
        check(plain(), "node.kubernetes.io/not-ready", "NoSchedule", (false, true));
        check(plain(), "node.kubernetes.io/unschedulable", "NoSchedule", (true, true));
        check(plain(), "node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", (false, true));
        check(plain(), "node.kubernetes.io/network-unavailable", "NoSchedule", (false, true));
        check(
            json!({"containers": [], "hostNetwork": true}),
            "node.kubernetes.io/network-unavailable",
            "NoSchedule",
            (true, true),
        );
        check(plain(), "mine", "NoExecute", (false, false));
        check(
            json!({"containers": [], "nodeSelector": {"role": "y"}}),
            "x",
            "PreferNoSchedule",
            (false, false),
        );
        check(
            json!({"containers": [], "nodeSelector": {"role": "x"}}),
            "x",
            "PreferNoSchedule",
            (true, true),
        );
    }

    #[test]
    fn each_pod_names_its_node() {
        let pod = pod(&set(json!({"containers": []})), "a", "hash");
        assert_eq!(
            crate::scheduler::filter::named_nodes(&pod),
            Some(std::iter::once("a".to_owned()).collect())
        );
        assert_eq!(pod.spec.and_then(|spec| spec.tolerations).map(|all| all.len()), Some(6));
    }
}
