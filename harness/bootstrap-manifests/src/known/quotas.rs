//! Resource quotas and limit ranges of a namespace, as admission applies them to the Pods of a workload.

use super::resources::{amount, items, of_container, of_pod};
use crate::manifest::{Entry, Node, Object, Objects};
use crate::workload::{Condition, Hindrance, Stage, Workload, WorkloadKind, class_of, spec_path};

/// What a quota or a limit range does with the Pods.
pub(super) enum Answer {
    Allows,
    Refuses(String, String),
    Depends(String),
}

/// Records what the quotas and limit ranges of its namespace do with the workload. `pods` is the number of Pods that all
/// workloads of the namespace create.
pub(super) fn apply(objects: &Objects, object: &Object, workload: &mut Workload, pods: i128) {
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return };
    let ranges: Vec<&Object> =
        objects.of_kind("LimitRange").filter(|range| range.namespace == workload.namespace).collect();
    for range in &ranges {
        let answer = limited(range, spec);
        record(range, workload, answer);
    }
    let quotas: Vec<&Object> =
        objects.of_kind("ResourceQuota").filter(|quota| quota.namespace == workload.namespace).collect();
    for quota in quotas {
        let class = workload.priority_class.as_ref().map(|(name, _)| name.as_str());
        let class = class.or_else(|| class_of(objects, workload).map(|class| class.name.as_str()));
        for answer in counted(quota, (workload, class), spec, &ranges, pods) {
            record(quota, workload, answer);
        }
    }
}

fn record(object: &Object, workload: &mut Workload, answer: Answer) {
    let place = object.at();
    match answer {
        Answer::Allows => {}
        Answer::Refuses(words, advice) => {
            workload.hindrances.push(Hindrance::new(Stage::Creation, words, place, advice));
        }
        Answer::Depends(words) => workload.conditions.push(Condition { words, place }),
    }
}

fn containers(spec: &Node) -> impl Iterator<Item = &Node> {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| spec.get(list).map(Node::items).unwrap_or_default())
}

/// Whether a limit range refuses the Pods.
fn limited(range: &Object, spec: &Node) -> Answer {
    let title = format!("LimitRange/{}", range.name);
    let advice = format!("change the resources of its containers, or {title}");
    for item in items(range, "Container") {
        for container in containers(spec) {
            let name = container.text_at("name").unwrap_or_default();
            // Both must keep to both bounds (plugin/pkg/admission/limitranger, `maxConstraint` and `minConstraint`).
            for (bound, side) in
                [("max", "limits"), ("max", "requests"), ("min", "requests"), ("min", "limits")]
            {
                for entry in item.get(bound).map(Node::entries).unwrap_or_default() {
                    let Some(bounded) = amount(Some(&entry.value)) else { continue };
                    let Some(value) = of_container(&[range], container, side, &entry.key) else { continue };
                    if (bound == "max" && value > bounded) || (bound == "min" && value < bounded) {
                        let shown = entry.value.scalar().unwrap_or_default();
                        let words = format!(
                            "{title} refuses its Pods: the {side} of container '{name}' do not keep to the {bound} \
                             of {shown} {}",
                            entry.key
                        );
                        return Answer::Refuses(words, advice);
                    }
                }
            }
        }
        for container in containers(spec) {
            let requests = container.at(&["resources", "requests"]).map(Node::entries).unwrap_or_default();
            let exceeds = |entry: &&Entry| {
                let limit = of_container(&[range], container, "limits", &entry.key);
                amount(Some(&entry.value)).zip(limit).is_some_and(|(request, limit)| request > limit)
            };
            if let Some(entry) = requests.iter().find(exceeds) {
                let words = format!(
                    "{title} gives a container a limit of {} below its request, and the API server refuses its Pods",
                    entry.key
                );
                return Answer::Refuses(words, advice);
            }
        }
        if let Some(entry) = item.get("maxLimitRequestRatio").and_then(|ratios| far(ratios, range, spec)) {
            let words =
                format!("{title} refuses its Pods: a limit of {} is too far above its request", entry.key);
            return Answer::Refuses(words, advice);
        }
    }
    for item in items(range, "Pod") {
        for entry in item.get("max").map(Node::entries).unwrap_or_default() {
            let own = spec.get("containers").map(Node::items).unwrap_or_default();
            let sum: Option<i128> =
                own.iter().map(|container| of_container(&[range], container, "limits", &entry.key)).sum();
            if sum.zip(amount(Some(&entry.value))).is_none_or(|(sum, max)| sum > max) {
                let words = format!("{title} refuses its Pods: their limits exceed its max of {}", entry.key);
                return Answer::Refuses(words, advice);
            }
        }
    }
    for item in items(range, "Pod") {
        for entry in item.get("min").map(Node::entries).unwrap_or_default() {
            let own = spec.get("containers").map(Node::items).unwrap_or_default();
            let sum: Option<i128> =
                own.iter().map(|container| of_container(&[range], container, "requests", &entry.key)).sum();
            if sum.zip(amount(Some(&entry.value))).is_none_or(|(sum, min)| sum < min) {
                let words =
                    format!("{title} refuses its Pods: their requests are below its min of {}", entry.key);
                return Answer::Refuses(words, advice);
            }
        }
    }
    Answer::Allows
}

/// The first resource whose limit exceeds its request by more than a ratio. Without a limit or a request there is no
/// ratio, and the Pod is refused.
fn far<'r>(ratios: &'r Node, range: &Object, spec: &Node) -> Option<&'r Entry> {
    ratios.entries().iter().find(|entry| {
        let Some(ratio) = amount(Some(&entry.value)) else { return false };
        containers(spec).any(|container| {
            let of = |side: &str| of_container(&[range], container, side, &entry.key);
            let exceeds = |(limit, request): (i128, i128)| {
                limit.saturating_mul(BILLION) > request.saturating_mul(ratio)
            };
            of("limits").zip(of("requests")).is_none_or(exceeds)
        })
    })
}

/// A ratio is a quantity too, in billionths.
const BILLION: i128 = 1_000_000_000;

/// How many Pods kube-system has at least on a cluster of kubeadm (four static ones, kube-proxy, two of CoreDNS), and at
/// most on those of three control planes and a network plugin.
const LEAST_PODS: i128 = 7;
const MOST_PODS: i128 = 40;

/// What these Pods request at least, in billionths (kubeadm `manifests`; CoreDNS requests 100m and 70Mi, etcd 100Mi).
fn used(shared: bool, side: &str, resource: &str) -> i128 {
    match (shared, side, resource) {
        (true, "requests", "cpu") => 850 * 1_000_000,
        (true, "requests", "memory") => (240 << 20) * BILLION,
        (true, "limits", "memory") => (340 << 20) * BILLION,
        _ => 0,
    }
}

/// What a quota does with the Pods, by resource.
fn counted(
    quota: &Object,
    (workload, class): (&Workload, Option<&str>),
    spec: &Node,
    ranges: &[&Object],
    pods: i128,
) -> Vec<Answer> {
    let title = format!("ResourceQuota/{}", quota.name);
    match in_scope(quota, class, spec, ranges) {
        Some(true) => {}
        Some(false) => return Vec::new(),
        None => return vec![Answer::Depends(format!("{title} allows its Pods"))],
    }
    let own = if workload.kind == WorkloadKind::DaemonSet { 1 } else { i128::from(workload.replicas.max(1)) };
    // Pods of Kubernetes count, too, unless a scope may leave them out.
    let unscoped = ["scopes", "scopeSelector"].iter().all(|field| quota.node.at(&["spec", field]).is_none());
    let shared = unscoped && workload.namespace == "kube-system";
    let mut answers = Vec::new();
    for entry in quota.node.at(&["spec", "hard"]).map(Node::entries).unwrap_or_default() {
        let Some(hard) = amount(Some(&entry.value)) else { continue };
        let shown = format!("{}: {}", entry.key, entry.value.scalar().unwrap_or_default());
        let advice = format!("raise the quota {title}");
        let refuses = |why: String| {
            Answer::Refuses(format!("{title} ({shown}) refuses its Pods: {why}"), advice.clone())
        };
        let depends = || Answer::Depends(format!("{title} ({shown}) leaves room for its Pods"));
        let (side, resource) = match entry.key.as_str() {
            "pods" | "count/pods" => {
                let (least, most) = if shared { (LEAST_PODS, MOST_PODS) } else { (0, 0) };
                answers.push(match hard / BILLION {
                    0 => refuses(String::from("it allows no Pods")),
                    hard if hard <= least => refuses(format!("{least} Pods of Kubernetes are there already")),
                    hard if hard >= pods.saturating_add(most) => Answer::Allows,
                    _ => depends(),
                });
                continue;
            }
            key @ ("cpu" | "memory" | "ephemeral-storage") => ("requests", key),
            key => match key.split_once('.') {
                Some((side @ ("requests" | "limits"), resource)) if resource != "storage" => (side, resource),
                _ => {
                    answers.push(of_objects((key, hard), workload, shared, &refuses, &depends));
                    continue;
                }
            },
        };
        let all = of_pod(spec, ranges, side, resource);
        // Only cpu and memory have to be stated by every container.
        answers.push(match all {
            None if matches!(resource, "cpu" | "memory") => {
                refuses(format!("each of their containers must state {side}.{resource}"))
            }
            None => Answer::Allows,
            Some(sum) if sum > hard => refuses(format!("a Pod alone asks for more {resource}")),
            Some(sum) if sum.saturating_add(used(shared, side, resource)) > hard => {
                refuses(format!("Pods of Kubernetes use so much {resource} that none is left for it"))
            }
            // Other clusters have up to three control planes, and more in kube-system.
            Some(sum)
                if sum.saturating_mul(own.max(pods)).saturating_add(4 * used(shared, side, resource))
                    <= hard =>
            {
                Answer::Allows
            }
            Some(_) => depends(),
        });
    }
    answers
}

/// Kinds of which kubeadm has made an object in kube-system, for CoreDNS.
const OF_KUBERNETES: &[&str] = &["count/deployments.apps", "count/replicasets.apps"];

/// A quota on the number of objects of a kind; `shared` if it counts those of Kubernetes, too.
fn of_objects(
    (key, hard): (&str, i128),
    workload: &Workload,
    shared: bool,
    refuses: &impl Fn(String) -> Answer,
    depends: &impl Fn() -> Answer,
) -> Answer {
    let own = match workload.kind {
        WorkloadKind::Deployment => &["count/deployments.apps", "count/replicasets.apps"][..],
        WorkloadKind::DaemonSet => &["count/daemonsets.apps", "count/controllerrevisions.apps"],
        WorkloadKind::StatefulSet => &["count/statefulsets.apps", "count/controllerrevisions.apps"],
        WorkloadKind::ReplicaSet => &["count/replicasets.apps", "replicationcontrollers"],
        WorkloadKind::Job => &["count/jobs.batch"],
        WorkloadKind::CronJob => &["count/cronjobs.batch", "count/jobs.batch"],
        WorkloadKind::Pod => &[],
    };
    match own.contains(&key) {
        true if hard < BILLION => refuses(String::from("it allows no object of that kind")),
        true if hard < 2 * BILLION
            && shared
            && OF_KUBERNETES.contains(&key)
            && workload.name != "coredns" =>
        {
            refuses(String::from("Kubernetes has one such object there already"))
        }
        true => depends(),
        false => Answer::Allows,
    }
}

/// Whether an affinity of the Pods names namespaces, even their own (`crossNamespacePodAffinityTerms`).
fn reaches_out(spec: &Node) -> bool {
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let of = |list: &str| spec.at(&["affinity", kind, list]).map(Node::items).unwrap_or_default();
        let required = of("requiredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = of("preferredDuringSchedulingIgnoredDuringExecution").iter();
        required.chain(preferred.filter_map(|item| item.get("podAffinityTerm"))).any(|term| {
            term.get("namespaces").is_some_and(|names| !names.items().is_empty())
                || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
        })
    })
}

/// Whether the scopes of a quota include the Pods; `None` if that is not evaluated.
fn in_scope(quota: &Object, class: Option<&str>, spec: &Node, ranges: &[&Object]) -> Option<bool> {
    let mut wanted: Vec<(String, String, Vec<String>)> = Vec::new();
    for scope in quota.node.at(&["spec", "scopes"]).map(Node::texts).unwrap_or_default() {
        wanted.push((scope, String::from("Exists"), Vec::new()));
    }
    let expressions = quota.node.at(&["spec", "scopeSelector", "matchExpressions"]).map(Node::items);
    for expression in expressions.unwrap_or_default() {
        let text = |key: &str| expression.text_at(key).unwrap_or_default().to_owned();
        let values = expression.get("values").map(Node::texts).unwrap_or_default();
        wanted.push((text("scopeName"), text("operator"), values));
    }
    // Only processors and memory count (`GetPodQOS`), with what limit ranges add.
    let states = |container: &Node, side: &str| {
        ["cpu", "memory"]
            .iter()
            .any(|resource| of_container(ranges, container, side, resource).is_some_and(|own| own > 0))
    };
    let best_effort = containers(spec)
        .all(|container| !states(container, "requests") && !states(container, "limits"))
        && spec.get("resources").is_none_or(|own| own.entries().is_empty());
    let ends = spec.get("activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null());
    let named = |values: &[String]| class.is_some_and(|class| values.iter().any(|own| own == class));
    for (scope, operator, values) in wanted {
        let within = match (scope.as_str(), operator.as_str()) {
            ("BestEffort", _) => best_effort,
            ("NotBestEffort", _) => !best_effort,
            ("Terminating", _) => ends,
            ("NotTerminating", _) => !ends,
            ("CrossNamespacePodAffinity", _) => reaches_out(spec),
            ("PriorityClass", "In") => named(&values),
            ("PriorityClass", "NotIn") => !named(&values),
            ("PriorityClass", "Exists") => class.is_some(),
            ("PriorityClass", "DoesNotExist") => class.is_none(),
            _ => return None,
        };
        if !within {
            return Some(false);
        }
    }
    Some(true)
}
