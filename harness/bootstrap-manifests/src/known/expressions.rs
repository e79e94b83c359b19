//! ValidatingAdmissionPolicies: which requests of the boot they check, and what their expressions answer. Expressions that
//! the manifests do not decide are conditions.

use super::Assumed;
use super::evaluation::{Truth, truth};
use super::matching::{Rules, namespace_labels};
use super::request::Request;
use crate::manifest::{Node, Object, Objects, Place};
use crate::workload::{Condition, Hindrance, Labels, Selector, Stage, Workload, mounts_token};

/// Records what the policies of the manifests do with the workload.
pub(super) fn apply(objects: &Objects, assumed: &Assumed, workload: &mut Workload) {
    for policy in objects.of_kind("ValidatingAdmissionPolicy") {
        for binding in bindings(objects, policy) {
            let mut all = checked(objects, policy, binding, workload);
            all.sort_by_key(|(checked, _)| *checked);
            for (checked, request) in all {
                let namespace = request.attributes["namespace"].as_str();
                let parameters = parameters((objects, assumed), policy, binding, namespace);
                // Nodes with and without taints are independent of each other.
                if one(policy, checked, &request, parameters, workload) && checked < Checked::TaintedNodes {
                    break;
                }
            }
        }
    }
}

/// The policies that deny the creation of an ordinary Pod in the namespace `default`, for certain.
pub fn denied_ordinary_pods(objects: &Objects, assumed: &Assumed) -> Vec<(String, Place)> {
    let denies = |policy: &&Object| {
        bindings(objects, policy).any(|binding| {
            let request = Request::ordinary_pod(objects);
            let parameters = parameters((objects, assumed), policy, binding, Some("default"));
            let scope = Scope { policy, binding };
            scope.in_namespace(objects, "default")
                && scope.chooses("objectSelector", &Labels::new())
                && scope.has(&|rules| rules.pods())
                && answer(policy, &request, parameters) == (Truth::Yes, Truth::No)
        })
    };
    let denying = objects.of_kind("ValidatingAdmissionPolicy").filter(denies);
    denying.map(|policy| (format!("ValidatingAdmissionPolicy/{}", policy.name), policy.at())).collect()
}

/// The bindings of a policy that deny. Without one it has no effect.
fn bindings<'o>(objects: &'o Objects, policy: &Object) -> impl Iterator<Item = &'o Object> {
    objects.of_kind("ValidatingAdmissionPolicyBinding").filter(|binding| {
        let named = binding.node.at(&["spec", "policyName"]).and_then(Node::text);
        let actions = binding.node.at(&["spec", "validationActions"]).map(Node::texts).unwrap_or_default();
        named == Some(policy.name.as_str()) && actions.iter().any(|action| action == "Deny")
    })
}

/// What a binding does about the parameters of its policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parameters {
    /// There are some, or none are needed: the expressions decide.
    There,
    /// There are none, and then it allows every request.
    AbsentAllowed,
    /// There are none although there must be, or they cannot be looked up: the failure policy decides.
    Error,
    /// The manifests do not show it.
    Unknown,
}

fn parameters(
    (objects, assumed): (&Objects, &Assumed),
    policy: &Object,
    binding: &Object,
    namespace: Option<&str>,
) -> Parameters {
    let Some(kind) = policy.node.at(&["spec", "paramKind"]) else { return Parameters::There };
    let Some(wanted) = binding.node.at(&["spec", "paramRef"]) else { return Parameters::Unknown };
    let (Some(kind), Some(name)) = (kind.text_at("kind"), wanted.text_at("name")) else {
        return Parameters::Unknown;
    };
    if !matches!(kind, "ConfigMap" | "Secret") {
        return Parameters::Unknown;
    }
    // Without a namespace it is that of the object, and an object without one is an error (`CollectParams`).
    let Some(namespace) = wanted.text_at("namespace").or(namespace) else {
        return Parameters::Error;
    };
    let exists = objects.find(kind, namespace, name).is_some() || assumed.holds(kind, namespace, name);
    match wanted.text_at("parameterNotFoundAction") {
        _ if exists => Parameters::There,
        Some("Allow") => Parameters::AbsentAllowed,
        _ => Parameters::Error,
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
    /// Initialisation of Nodes with a taint that stays.
    TaintedNodes,
    /// Initialisation of Nodes without one.
    UntaintedNodes,
    /// Renewal of the Lease. The first leader creates it, and works until it should have renewed it: whether that is enough
    /// depends on the Nodes.
    Renewal,
}

/// The requests of the boot that the policy checks.
fn checked(
    objects: &Objects,
    policy: &Object,
    binding: &Object,
    workload: &Workload,
) -> Vec<(Checked, Request)> {
    let mut all = Vec::new();
    let scope = Scope { policy, binding };
    let chooses = |field: &str, labels: &Labels| scope.chooses(field, labels);
    let in_namespace = |name: &str| scope.in_namespace(objects, name);
    let has = |check: &dyn Fn(&Rules<'_>) -> bool| scope.has(check);
    if in_namespace(&workload.namespace) {
        if chooses("objectSelector", &workload.labels) && has(&|rules| rules.pods()) {
            all.push((Checked::Creation, Request::pod(objects, workload)));
        }
        if has(&|rules| rules.owners(workload.kind)) {
            all.push((Checked::Creation, Request::owner(objects, workload)));
        }
        // A binding and a request for a token have no labels.
        let unlabelled = chooses("objectSelector", &Labels::new());
        if unlabelled && has(&|rules| rules.bindings()) {
            all.push((Checked::Binding, Request::binding(objects, workload)));
        }
        if unlabelled && has(&|rules| rules.tokens()) && mounts_token(objects, workload) {
            all.push((Checked::Tokens, Request::token(objects, workload)));
        }
    }
    // The labels of Nodes and Leases are not known here, so a selector of objects leaves it open.
    if has(&|rules| rules.nodes()) {
        all.push((Checked::TaintedNodes, Request::node(objects, workload, true)));
        all.push((Checked::UntaintedNodes, Request::node(objects, workload, false)));
    }
    let lease = super::leases::lease_of(workload).filter(|(namespace, _)| in_namespace(namespace));
    if let Some((namespace, _)) = lease {
        let request = |operation| Request::lease(objects, workload, operation, &namespace);
        let updates = has(&|rules| rules.lease_updates());
        match super::leases::lease_exists(objects, workload) {
            true if updates => all.push((Checked::Work, request("UPDATE"))),
            false if has(&|rules| rules.new_leases()) => all.push((Checked::Work, request("CREATE"))),
            false if updates => all.push((Checked::Renewal, request("UPDATE"))),
            _ => {}
        }
    }
    all
}

/// The requests that a policy is about, narrowed by one of its bindings.
struct Scope<'o> {
    policy: &'o Object,
    binding: &'o Object,
}

impl Scope<'_> {
    fn constraints(&self) -> Option<&Node> {
        self.policy.node.at(&["spec", "matchConstraints"])
    }

    fn narrowed(&self) -> Option<&Node> {
        self.binding.node.at(&["spec", "matchResources"])
    }

    fn chooses(&self, field: &str, labels: &Labels) -> bool {
        chosen(self.constraints(), field, labels) && chosen(self.narrowed(), field, labels)
    }

    fn in_namespace(&self, objects: &Objects, name: &str) -> bool {
        self.chooses("namespaceSelector", &namespace_labels(objects, name))
    }

    fn has(&self, check: &dyn Fn(&Rules<'_>) -> bool) -> bool {
        let Some(constraints) = self.constraints() else { return false };
        let rules = |node: Option<&Node>| node.is_some_and(|rules| check(&Rules::of(Some(rules))));
        let narrowed = self.narrowed().and_then(|own| own.get("resourceRules"));
        rules(constraints.get("resourceRules"))
            && narrowed.is_none_or(|own| rules(Some(own)))
            && !rules(constraints.get("excludeResourceRules"))
    }
}

/// Whether a selector in a field chooses these labels; an absent one chooses all.
fn chosen(node: Option<&Node>, field: &str, labels: &Labels) -> bool {
    let selector = Selector::read(node.and_then(|node| node.get(field)));
    selector.is_none_or(|selector| selector.chooses(labels))
}

/// Whether the policy is about the request, and whether it then allows it.
fn answer(policy: &Object, request: &Request, parameters: Parameters) -> (Truth, Truth) {
    let items = |field: &str| policy.node.at(&["spec", field]).map(Node::items).unwrap_or_default();
    let variable =
        |item: &Node| Some((item.text_at("name")?.to_owned(), item.text_at("expression")?.to_owned()));
    let variables: Vec<(String, String)> = items("variables").iter().filter_map(variable).collect();
    let all = |field: &str, variables: &[(String, String)]| {
        let of_item = |item: &Node| truth(item.text_at("expression").unwrap_or_default(), request, variables);
        Truth::all(items(field).iter().map(of_item))
    };
    // An error denies the request, unless the policy fails open.
    let of_error = match policy.node.at(&["spec", "failurePolicy"]).and_then(Node::text) {
        Some("Ignore") => Truth::Yes,
        _ => Truth::No,
    };
    let settled = |truth: Truth| if truth == Truth::Fails { of_error } else { truth };
    // Conditions are evaluated before the variables.
    match (all("matchConditions", &[]), parameters) {
        (Truth::Fails, _) => (Truth::Yes, of_error),
        (conditions, Parameters::There) => (conditions, settled(all("validations", &variables))),
        (conditions, Parameters::AbsentAllowed) => (conditions, Truth::Yes),
        (conditions, Parameters::Error) => (conditions, of_error),
        (conditions, Parameters::Unknown) => (conditions, Truth::Unknown),
    }
}

/// Records what the policy does with one request; returns whether it is denied.
fn one(
    policy: &Object,
    checked: Checked,
    request: &Request,
    parameters: Parameters,
    workload: &mut Workload,
) -> bool {
    let (conditions, answer) = answer(policy, request, parameters);
    let title = format!("ValidatingAdmissionPolicy/{}", policy.name);
    let (stage, what) = match checked {
        Checked::Creation => (Stage::Creation, "its Pods"),
        Checked::Binding => (Stage::Scheduling, "the binding of its Pods to Nodes"),
        Checked::Tokens => (Stage::Start, "the tokens of its Pods"),
        Checked::Work | Checked::Renewal => (Stage::Work, "its writes"),
        Checked::TaintedNodes => (Stage::TaintedNodes, "its updates of Nodes with taints"),
        Checked::UntaintedNodes => (Stage::UntaintedNodes, "its updates of Nodes without taints"),
    };
    let unselected = policy.node.at(&["spec", "matchConstraints", "objectSelector"]).is_none();
    let mut depends = |words: String| {
        if !workload.conditions.iter().any(|known| known.words == words) {
            workload.conditions.push(Condition { words, place: policy.at() });
        }
    };
    match (conditions, answer) {
        (Truth::No, _) | (_, Truth::Yes) => {}
        _ if checked == Checked::Renewal => depends(format!("{title} lets it renew its Lease")),
        (Truth::Yes, Truth::No) if checked < Checked::Work || unselected => {
            workload.hindrances.push(Hindrance::new(
                stage,
                format!("{title} denies {what}"),
                policy.at(),
                format!("change {title}, or remove its binding"),
            ));
            return true;
        }
        _ => depends(format!("the expressions of {title} allow its Pods and its writes")),
    }
    false
}
