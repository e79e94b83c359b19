//! ValidatingAdmissionPolicies: which requests of the boot they check, and what they answer when their expressions are
//! constants. Other expressions are conditions.

use super::matching::{Rules, namespace_labels};
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Condition, Hindrance, Labels, Selector, Stage, Workload};

/// What is known of a list of expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// Records what the policies of the manifests do with the workload.
pub(super) fn apply(objects: &Objects, workload: &mut Workload) {
    for policy in objects.of_kind("ValidatingAdmissionPolicy") {
        // Without a binding that denies, a policy has no effect.
        let bindings = objects.of_kind("ValidatingAdmissionPolicyBinding").filter(|binding| {
            let named = binding.node.at(&["spec", "policyName"]).and_then(Node::text);
            let actions =
                binding.node.at(&["spec", "validationActions"]).map(Node::texts).unwrap_or_default();
            named == Some(policy.name.as_str()) && actions.iter().any(|action| action == "Deny")
        });
        let stages: Vec<Stage> =
            bindings.filter_map(|binding| stage(objects, policy, binding, workload)).collect();
        match stages.first() {
            Some(stage) => one(policy, *stage, workload),
            None if forbids_renewal(policy, workload) => {
                let words = format!("ValidatingAdmissionPolicy/{} lets it renew its Lease", policy.name);
                workload.conditions.push(Condition { words, place: policy.at() });
            }
            None => {}
        }
    }
}

/// The stage of the boot whose requests the policy checks, if there is one.
fn stage(objects: &Objects, policy: &Object, binding: &Object, workload: &Workload) -> Option<Stage> {
    let constraints = policy.node.at(&["spec", "matchConstraints"])?;
    let own = binding.node.at(&["spec", "matchResources"]);
    let labels = namespace_labels(objects, &workload.namespace);
    let in_namespace =
        chosen(Some(constraints), "namespaceSelector", &labels) && chosen(own, "namespaceSelector", &labels);
    let of_pods = in_namespace
        && chosen(Some(constraints), "objectSelector", &workload.labels)
        && chosen(own, "objectSelector", &workload.labels);
    let has = |check: &dyn Fn(&Rules<'_>) -> bool| {
        let listed = Rules::of(constraints.get("resourceRules"));
        let narrowed =
            own.and_then(|own| own.get("resourceRules")).is_none_or(|rules| check(&Rules::of(Some(rules))));
        let excluded =
            constraints.get("excludeResourceRules").is_some_and(|rules| check(&Rules::of(Some(rules))));
        check(&listed) && narrowed && !excluded
    };
    if of_pods && has(&|rules| rules.pods()) || in_namespace && has(&|rules| rules.owners(workload.kind)) {
        return Some(Stage::Creation);
    }
    // The labels of Nodes and Leases are not known here, so a selector of objects leaves it open.
    let of_lease = super::leases::lease_of(workload).is_some_and(|(namespace, _)| {
        let labels = namespace_labels(objects, &namespace);
        let exists = super::leases::lease_exists(objects, workload);
        chosen(Some(constraints), "namespaceSelector", &labels)
            && chosen(own, "namespaceSelector", &labels)
            && has(&|rules| if exists { rules.lease_updates() } else { rules.new_leases() })
    });
    (of_lease || has(&|rules| rules.nodes())).then_some(Stage::Work)
}

/// Whether a selector in a field chooses these labels; an absent one chooses all.
fn chosen(node: Option<&Node>, field: &str, labels: &Labels) -> bool {
    let selector = Selector::read(node.and_then(|node| node.get(field)));
    selector.is_none_or(|selector| selector.chooses(labels))
}

/// Whether a policy may refuse updates of Leases. The first leader creates its Lease, and works until it should have renewed
/// it: whether that is enough depends on the Nodes.
fn forbids_renewal(policy: &Object, workload: &Workload) -> bool {
    let rules = policy.node.at(&["spec", "matchConstraints"]).and_then(|node| node.get("resourceRules"));
    let items = policy.node.at(&["spec", "validations"]).map(Node::items).unwrap_or_default();
    super::leases::lease_of(workload).is_some()
        && Rules::of(rules).lease_updates()
        && items.iter().any(|item| constant(item.text_at("expression")) != Answer::Yes)
}

fn one(policy: &Object, stage: Stage, workload: &mut Workload) {
    let spec = |field: &str| policy.node.at(&["spec", field]);
    let all = |field: &str| {
        let items = spec(field).map(Node::items).unwrap_or_default();
        let answers: Vec<Answer> = items.iter().map(|item| constant(item.text_at("expression"))).collect();
        match answers {
            answers if answers.contains(&Answer::No) => Answer::No,
            answers if answers.contains(&Answer::Unknown) => Answer::Unknown,
            _ => Answer::Yes,
        }
    };
    let conditions = all("matchConditions");
    let answer = if spec("paramKind").is_some() { Answer::Unknown } else { all("validations") };
    let title = format!("ValidatingAdmissionPolicy/{}", policy.name);
    let at_work = stage == Stage::Work;
    let unselected = spec("matchConstraints").and_then(|node| node.get("objectSelector")).is_none();
    match (conditions, answer) {
        (Answer::No, _) | (_, Answer::Yes) => {}
        (Answer::Yes, Answer::No) if !at_work || unselected => {
            let what = if at_work { "its writes" } else { "its Pods" };
            workload.hindrances.push(Hindrance::new(
                stage,
                format!("{title} denies {what}"),
                policy.at(),
                format!("change {title}, or remove its binding"),
            ));
        }
        _ => {
            let words = format!("the expressions of {title} allow its Pods and its writes");
            workload.conditions.push(Condition { words, place: policy.at() });
        }
    }
}

fn constant(expression: Option<&str>) -> Answer {
    match expression.map(str::trim) {
        Some("true") => Answer::Yes,
        Some("false") => Answer::No,
        _ => Answer::Unknown,
    }
}
