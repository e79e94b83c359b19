//! What a cluster allows Pods to do, as far as the manifests show: Pod security, quotas, admission policies, schedulers.

use super::Assumed;
use crate::manifest::{Node, Object, Objects, Value};
use crate::workload::{Condition, Hindrance, Role, Selector, Stage, Workload, spec_path};

/// Records for each workload what prevents its Pods, and what they depend on.
pub(crate) fn apply(objects: &Objects, assumed: &Assumed, workloads: &mut [Workload]) {
    let schedulers: Vec<Option<bool>> =
        workloads.iter().map(|own| scheduler(workloads, assumed, own)).collect();
    let shared: Vec<Option<Condition>> =
        (0..workloads.len()).map(|own| super::leases::shared(workloads, own)).collect();
    for (workload, condition) in workloads.iter_mut().zip(shared) {
        workload.conditions.extend(condition);
    }
    let counts: Vec<(String, i128)> =
        workloads.iter().map(|w| (w.namespace.clone(), i128::from(w.replicas.max(1)))).collect();
    for (workload, served) in workloads.iter_mut().zip(schedulers) {
        let Some(object) = workload.object.map(|index| &objects.all[index]) else { continue };
        if let (Some((name, place)), Some(served)) = (workload.scheduler.clone(), served) {
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
        pod_security(objects, object, workload);
        workload.conditions.extend(separate_accounts(workload));
        workload.conditions.extend(super::made_by_others(objects, assumed, workload));
        workload.hindrances.extend(super::accounts::unlisted_secret(objects, object, workload));
        if matches!(workload.role, Role::Ccm | Role::NodeManager) {
            workload.hindrances.extend(super::api_server::without_connection(objects, workload));
        }
        if let Some((host, place)) = crate::dns::unknown_to_the_node(objects, workload) {
            let words = format!("only cluster DNS knows the name '{host}' of its cloud, and it asks the Node's DNS");
            let advice = String::from("set 'dnsPolicy: ClusterFirstWithHostNet', or use the address");
            workload.hindrances.push(Hindrance::new(Stage::Work, words, place, advice));
        }
        if workload.role == Role::Ccm {
            workload.hindrances.extend(super::leases::held(objects, assumed, workload));
        }
        let pods = counts.iter().filter(|(namespace, _)| *namespace == workload.namespace).map(|(_, n)| n).sum();
        super::quotas::apply(objects, object, workload, pods);
        super::expressions::apply(objects, workload);
        limits(objects, workload);
    }
}

/// With `--use-service-account-credentials` each controller has an account of its own in kube-system.
fn separate_accounts(workload: &Workload) -> Option<Condition> {
    let (value, place) = workload.flag("use-service-account-credentials")?;
    let words = "the accounts of its controllers have their permissions (--use-service-account-credentials)";
    (value == "true" && workload.role == Role::Ccm).then(|| Condition { words: words.to_owned(), place })
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

/// The levels of the Pod Security Standards that a namespace of the set enforces.
fn pod_security(objects: &Objects, object: &Object, workload: &mut Workload) {
    let label = "pod-security.kubernetes.io/enforce";
    let namespace = objects.of_kind("Namespace").find(|own| own.name == workload.namespace);
    let Some(enforced) = namespace.and_then(|own| own.node.at(&["metadata", "labels", label])) else {
        return;
    };
    let level = enforced.text().unwrap_or_default();
    if !matches!(level, "baseline" | "restricted") {
        return;
    }
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return };
    let mut broken = beyond_baseline(spec);
    if level == "restricted" {
        broken = broken.or_else(|| beyond_restricted(spec));
    }
    if let Some((node, what)) = broken {
        workload.hindrances.push(Hindrance {
            stage: Stage::Creation,
            words: format!(
                "Namespace/{} enforces Pod security '{level}', which forbids {what}",
                workload.namespace
            ),
            place: object.place(node),
            advice: format!("label Namespace/{} '{label}: privileged'", workload.namespace),
            // The admission plugin is enabled by default since then.
            since: 23,
            edit: None,
        });
    }
}

/// Capabilities that the baseline level allows a container to add.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn containers(spec: &Node) -> impl Iterator<Item = &Node> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).map(Node::items).unwrap_or_default())
}

/// The first thing that the baseline level forbids.
fn beyond_baseline(spec: &Node) -> Option<(&Node, &'static str)> {
    let set = |key: &str| spec.get(key).filter(|value| value.bool() == Some(true));
    let host = set("hostNetwork").map(|n| (n, "hostNetwork"));
    let host = host.or_else(|| set("hostPID").map(|n| (n, "hostPID")));
    let host = host.or_else(|| set("hostIPC").map(|n| (n, "hostIPC")));
    let volumes = spec.get("volumes").map(Node::items).unwrap_or_default();
    let host = host.or_else(|| volumes.iter().find_map(|v| Some((v.get("hostPath")?, "hostPath volumes"))));
    host.or_else(|| {
        containers(spec).find_map(|container| {
            let security = container.get("securityContext");
            let privileged = security.and_then(|s| s.get("privileged")).filter(|p| p.bool() == Some(true));
            let added =
                security.and_then(|s| s.at(&["capabilities", "add"])).map(Node::items).unwrap_or_default();
            let beyond =
                |name: &&Node| !name.text().is_some_and(|name| BASELINE_CAPABILITIES.contains(&name));
            let ports = container.get("ports").map(Node::items).unwrap_or_default().iter();
            let mut host_ports =
                ports.filter_map(|port| port.get("hostPort")).filter(|port| port.int() != Some(0));
            privileged
                .map(|node| (node, "privileged containers"))
                .or_else(|| added.iter().find(beyond).map(|node| (node, "that capability")))
                .or_else(|| host_ports.next().map(|node| (node, "hostPort")))
        })
    })
}

/// The first additional requirement of the restricted level that is not met.
fn beyond_restricted(spec: &Node) -> Option<(&Node, &'static str)> {
    containers(spec).find_map(|container| {
        let own = |key: &str| container.at(&["securityContext", key]);
        let of_pod = |key: &str| spec.at(&["securityContext", key]);
        let word = |key: &str| own(key).or_else(|| of_pod(key));
        if own("allowPrivilegeEscalation").and_then(Node::bool) != Some(false) {
            return Some((container, "containers without 'allowPrivilegeEscalation: false'"));
        }
        if word("runAsNonRoot").and_then(Node::bool) != Some(true) {
            return Some((container, "containers without 'runAsNonRoot: true'"));
        }
        let profile = word("seccompProfile").and_then(|profile| profile.text_at("type"));
        if !matches!(profile, Some("RuntimeDefault" | "Localhost")) {
            return Some((container, "containers without a seccompProfile"));
        }
        let dropped = own("capabilities").and_then(|c| c.get("drop")).map(Node::texts).unwrap_or_default();
        (!dropped.iter().any(|name| name == "ALL"))
            .then_some((container, "containers that do not drop all capabilities"))
    })
}

/// Objects that may refuse or delay Pods by rules that this model does not evaluate.
fn limits(objects: &Objects, workload: &mut Workload) {
    for object in objects.of_kind("MutatingAdmissionPolicy") {
        let words = format!("MutatingAdmissionPolicy/{} changes nothing that the boot needs", object.name);
        workload.conditions.push(Condition { words, place: object.at() });
    }
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        for object in objects.of_kind(kind) {
            for hook in object.node.get("webhooks").map(Node::items).unwrap_or_default() {
                // Webhooks behind a Service of the set are part of the model.
                let closed = hook.text_at("failurePolicy") != Some("Ignore");
                let by_url = hook.at(&["clientConfig", "url"]).is_some();
                let conditional = hook.get("matchConditions").is_some_and(|all| !all.items().is_empty());
                if closed && (by_url || conditional) {
                    let name = hook.text_at("name").unwrap_or_default();
                    let words = format!(
                        "the webhook '{name}' of {kind}/{} allows its Pods and its writes",
                        object.name
                    );
                    workload.conditions.push(Condition { words, place: object.place(hook) });
                }
            }
        }
    }
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
