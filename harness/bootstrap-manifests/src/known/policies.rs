//! What a cluster allows Pods to do, as far as the manifests show: Pod security, quotas, admission policies, schedulers.

use super::Assumed;
use crate::manifest::{Node, Objects, Value};
use crate::workload::{Condition, Hindrance, Role, Selector, Stage, Workload, spec_path};

/// Records for each workload what prevents its Pods, and what they depend on.
pub fn apply(objects: &Objects, assumed: &Assumed, workloads: &mut [Workload]) {
    let schedulers: Vec<Option<bool>> =
        workloads.iter().map(|own| scheduler(workloads, assumed, own)).collect();
    let shared: Vec<Option<Condition>> =
        (0..workloads.len()).map(|own| super::leases::shared(workloads, own)).collect();
    for (workload, condition) in workloads.iter_mut().zip(shared) {
        workload.conditions.extend(condition);
    }
    super::requests::apply(objects, workloads);
    let counts: Vec<(String, i128)> =
        workloads.iter().map(|w| (w.namespace.clone(), i128::from(w.replicas.max(1)))).collect();
    for (workload, served) in workloads.iter_mut().zip(schedulers) {
        let Some(object) = workload.object.map(|index| &objects.all[index]) else { continue };
        let scheduled = workload.scheduler.clone().filter(|_| workload.node_name.is_none());
        if let (Some((name, place)), Some(served)) = (scheduled, served) {
            if served {
                let words = format!("the scheduler '{name}' assigns it to a Node");
                workload.conditions.push(Condition { words, place });
            } else {
                workload.hindrances.push(Hindrance {
                    stage: Stage::Scheduling,
                    words: format!("no workload of the manifests is the scheduler '{name}'"),
                    place,
                    advice: String::from(
                        "remove schedulerName, or pass '--assume Scheduler/NAME' if the scheduler exists",
                    ),
                    since: 0,
                    edit: Some((path(workload), "schedulerName", "default-scheduler")),
                });
            }
        }
        super::pod_security::apply(objects, object, workload);
        workload.hindrances.extend(super::classes::refused(objects, object, workload));
        workload.hindrances.extend(super::replaced_roles::too_small(objects, workload));
        workload.conditions.extend(super::made_by_others(objects, assumed, workload));
        workload.hindrances.extend(super::accounts::unlisted_secret(objects, object, workload));
        if matches!(workload.role, Role::Ccm | Role::NodeManager) {
            workload.hindrances.extend(super::api_server::without_connection(objects, workload));
            workload.conditions.extend(super::api_server::local_proxy(objects, workload));
            workload.conditions.extend(super::address::usual_port(objects, workload));
            workload.conditions.extend(super::address::looked_up_elsewhere(objects, workload));
            workload.conditions.extend(super::kubeconfig::on_the_node(objects, workload));
            workload.conditions.extend(super::kubeconfig::impersonates(objects, workload));
            workload.hindrances.extend(super::readable::cloud_config(objects, workload));
            workload.hindrances.extend(super::authority::unreadable(objects, workload));
            workload.hindrances.extend(super::serving::unwritable(objects, workload));
            workload.conditions.extend(super::address::certificate(objects, workload));
            workload.conditions.extend(super::rights::lists_by_watching(objects, assumed, workload));
            workload.conditions.extend(super::proxy::of_api_server(objects, workload));
        }
        if let Some((host, place)) = crate::dns::unknown_to_the_node(objects, workload) {
            let words =
                format!("only cluster DNS knows the name '{host}' of its cloud, and it asks the Node's DNS");
            let advice = String::from("set 'dnsPolicy: ClusterFirstWithHostNet', or use the address");
            workload.hindrances.push(Hindrance::new(Stage::Work, words, place, advice));
        }
        if workload.role == Role::Ccm {
            workload.hindrances.extend(super::leases::held(objects, assumed, workload));
            workload.hindrances.extend(super::host::unset_variable(objects, workload));
            workload.hindrances.extend(super::flow_control::never_served(objects, workload));
        }
        let pods =
            counts.iter().filter(|(namespace, _)| *namespace == workload.namespace).map(|(_, n)| n).sum();
        super::quotas::apply(objects, object, workload, pods);
        super::expressions::apply(objects, assumed, workload);
        limits(objects, workload);
    }
}

fn path(workload: &Workload) -> Vec<String> {
    spec_path(workload.kind).iter().map(|key| (*key).to_owned()).collect()
}

/// Whether the workload's scheduler may exist: another workload of the manifests mentions its name, or it is assumed.
/// `None` if it is Kubernetes' own.
fn scheduler(workloads: &[Workload], assumed: &Assumed, own: &Workload) -> Option<bool> {
    let (name, _) = own.scheduler.as_ref()?;
    let says = |other: &Workload| {
        let lines = other.containers.iter().flat_map(|container| &container.arguments);
        other.name != own.name
            && (other.name == *name || lines.into_iter().any(|(word, _)| word.contains(name.as_str())))
    };
    Some(assumed.holds("Scheduler", "", name) || workloads.iter().any(says))
}

/// Objects that may refuse or delay Pods by rules that this model does not evaluate.
fn limits(objects: &Objects, workload: &mut Workload) {
    for object in objects.of_kind("NetworkPolicy") {
        // Network policies do not apply on the host's network.
        let selector = Selector::read(object.node.at(&["spec", "podSelector"]));
        let chosen = object.namespace == workload.namespace
            && selector.is_none_or(|selector| selector.chooses(&workload.labels));
        if chosen && !workload.host_network && keeps_in(&object.node) {
            let words =
                format!("NetworkPolicy/{} allows it to reach the API server and its cloud", object.name);
            workload.conditions.push(Condition { words, place: object.at() });
        }
    }
}

/// Whether a network policy restricts the outgoing traffic of its Pods.
fn keeps_in(policy: &Node) -> bool {
    let types = policy.at(&["spec", "policyTypes"]).map(Node::texts).unwrap_or_default();
    let rules = policy.at(&["spec", "egress"]).is_some_and(|rules| rules.value != Value::Null);
    types.iter().any(|kind| kind == "Egress") || rules
}
