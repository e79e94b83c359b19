//! ValidatingAdmissionPolicies: which requests of the boot they check, and what they answer when their expressions are
//! constants. Other expressions are conditions.

use super::Assumed;
use super::matching::{Rules, namespace_labels};
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Condition, Hindrance, Labels, Selector, Stage, Workload, mounts_token};

/// What is known of a list of expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// Records what the policies of the manifests do with the workload.
pub(super) fn apply(objects: &Objects, assumed: &Assumed, workload: &mut Workload) {
    for policy in objects.of_kind("ValidatingAdmissionPolicy") {
        // Without a binding that denies, a policy has no effect.
        let bindings = objects.of_kind("ValidatingAdmissionPolicyBinding").filter(|binding| {
            let named = binding.node.at(&["spec", "policyName"]).and_then(Node::text);
            let actions =
                binding.node.at(&["spec", "validationActions"]).map(Node::texts).unwrap_or_default();
            named == Some(policy.name.as_str()) && actions.iter().any(|action| action == "Deny")
        });
        let checked = bindings.filter_map(|binding| {
            let parameters = parameters((objects, assumed), policy, binding, workload);
            Some((checked(objects, policy, binding, workload)?, parameters))
        });
        if let Some((checked, parameters)) = checked.min_by_key(|(checked, _)| *checked) {
            one(policy, checked, parameters, workload);
        }
    }
}

/// What a binding does about the parameters of its policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parameters {
    /// There are some, or none are needed: the expressions decide.
    There,
    /// There are none, and then it allows every request.
    AbsentAllowed,
    /// There are none, and then it denies every request.
    AbsentDenied,
    /// The manifests do not show it.
    Unknown,
}

fn parameters(
    (objects, assumed): (&Objects, &Assumed),
    policy: &Object,
    binding: &Object,
    workload: &Workload,
) -> Parameters {
    let Some(kind) = policy.node.at(&["spec", "paramKind"]) else { return Parameters::There };
    let Some(wanted) = binding.node.at(&["spec", "paramRef"]) else { return Parameters::Unknown };
    let (Some(kind), Some(name)) = (kind.text_at("kind"), wanted.text_at("name")) else {
        return Parameters::Unknown;
    };
    if !matches!(kind, "ConfigMap" | "Secret") {
        return Parameters::Unknown;
    }
    let namespace = wanted.text_at("namespace").unwrap_or(&workload.namespace);
    let exists = objects.find(kind, namespace, name).is_some() || assumed.holds(kind, namespace, name);
    match wanted.text_at("parameterNotFoundAction") {
        _ if exists => Parameters::There,
        Some("Allow") => Parameters::AbsentAllowed,
        _ => Parameters::AbsentDenied,
    }
}

/// The requests of the boot that a policy checks, the earliest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Checked {
    /// Creation of the Pods, or of what stands between them and the workload.
    Creation,
    /// Binding of the Pods to Nodes.
    Binding,
    /// The kubelets' requests for the tokens of the Pods.
    Tokens,
    /// Writes without which a CCM does not work.
    Work,
    /// Renewal of the Lease. The first leader creates it, and works until it should have renewed it: whether that is enough
    /// depends on the Nodes.
    Renewal,
}

/// The first requests of the boot that the policy checks, if there are any.
fn checked(objects: &Objects, policy: &Object, binding: &Object, workload: &Workload) -> Option<Checked> {
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
        return Some(Checked::Creation);
    }
    // A binding and a request for a token have no labels.
    let unlabelled = in_namespace
        && chosen(Some(constraints), "objectSelector", &Labels::new())
        && chosen(own, "objectSelector", &Labels::new());
    if unlabelled && has(&|rules| rules.bindings()) {
        return Some(Checked::Binding);
    }
    if unlabelled && has(&|rules| rules.tokens()) && mounts_token(objects, workload) {
        return Some(Checked::Tokens);
    }
    // The labels of Nodes and Leases are not known here, so a selector of objects leaves it open.
    if has(&|rules| rules.nodes()) {
        return Some(Checked::Work);
    }
    let (namespace, _) = super::leases::lease_of(workload)?;
    let labels = namespace_labels(objects, &namespace);
    if !chosen(Some(constraints), "namespaceSelector", &labels) || !chosen(own, "namespaceSelector", &labels)
    {
        return None;
    }
    let updates = has(&|rules| rules.lease_updates());
    match super::leases::lease_exists(objects, workload) {
        true => updates.then_some(Checked::Work),
        false if has(&|rules| rules.new_leases()) => Some(Checked::Work),
        false => updates.then_some(Checked::Renewal),
    }
}

/// Whether a selector in a field chooses these labels; an absent one chooses all.
fn chosen(node: Option<&Node>, field: &str, labels: &Labels) -> bool {
    let selector = Selector::read(node.and_then(|node| node.get(field)));
    selector.is_none_or(|selector| selector.chooses(labels))
}

fn one(policy: &Object, checked: Checked, parameters: Parameters, workload: &mut Workload) {
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
    let answer = match parameters {
        Parameters::There => all("validations"),
        Parameters::AbsentAllowed => Answer::Yes,
        Parameters::AbsentDenied => Answer::No,
        Parameters::Unknown => Answer::Unknown,
    };
    let title = format!("ValidatingAdmissionPolicy/{}", policy.name);
    let (stage, what) = match checked {
        Checked::Creation => (Stage::Creation, "its Pods"),
        Checked::Binding => (Stage::Scheduling, "the binding of its Pods to Nodes"),
        Checked::Tokens => (Stage::Start, "the tokens of its Pods"),
        Checked::Work | Checked::Renewal => (Stage::Work, "its writes"),
    };
    let unselected = spec("matchConstraints").and_then(|node| node.get("objectSelector")).is_none();
    match (conditions, answer) {
        (Answer::No, _) | (_, Answer::Yes) => {}
        _ if checked == Checked::Renewal => {
            let words = format!("{title} lets it renew its Lease");
            workload.conditions.push(Condition { words, place: policy.at() });
        }
        (Answer::Yes, Answer::No) if checked < Checked::Work || unselected => {
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
