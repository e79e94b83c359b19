//! ValidatingAdmissionPolicies: which requests of the boot they check, and what their expressions answer. Expressions that
//! the manifests do not decide are conditions.

use super::Assumed;
use super::evaluation::Truth;
use super::matching::Rules;
use super::policy::{Bound, Parameters};
use super::request::Request;
use crate::manifest::{Node, Objects};
use crate::workload::{Condition, Hindrance, Labels, Stage, Workload, mounts_token};

/// Records what the policies of the manifests do with the workload.
pub(super) fn apply(objects: &Objects, assumed: &Assumed, workload: &mut Workload) {
    for bound in denying(objects) {
        let mut all = checked(objects, &bound, workload);
        all.sort_by_key(|(checked, _)| *checked);
        for (checked, request) in all {
            let namespace = request.attributes["namespace"].as_str();
            let mut parameters = bound.parameters(objects, assumed, namespace).into_iter();
            let is_denied = parameters.any(|one| judged(&bound, checked, &request, one, workload));
            // Nodes with and without taints are independent of each other.
            if is_denied && checked < Checked::TaintedNodes {
                break;
            }
        }
    }
}

/// The policies with bindings that deny.
fn denying(objects: &Objects) -> impl Iterator<Item = Bound<'_>> {
    Bound::all(objects, "ValidatingAdmissionPolicy").into_iter().filter(|bound| {
        let actions = bound.binding.node.at(&["spec", "validationActions"]).map(Node::texts);
        actions.unwrap_or_default().iter().any(|action| action == "Deny")
    })
}

/// The requests of the boot that a policy checks, the earliest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Checked {
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
pub(super) fn checked(objects: &Objects, bound: &Bound<'_>, workload: &Workload) -> Vec<(Checked, Request)> {
    let mut all = Vec::new();
    let in_namespace = |name: &str| bound.in_namespace(objects, name);
    let has = |check: &dyn Fn(&Rules<'_>) -> bool| bound.has(check);
    if in_namespace(&workload.namespace) {
        if bound.chooses_object(&workload.labels) && has(&|rules| rules.pods()) {
            all.push((Checked::Creation, Request::pod(objects, workload)));
        }
        if has(&|rules| rules.owners(workload.kind)) {
            all.push((Checked::Creation, Request::owner(objects, workload)));
        }
        // A binding and a request for a token have no labels.
        let unlabelled = bound.chooses_object(&Labels::new());
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

/// Whether the policy is about the request, and whether it then allows it.
fn answer(bound: &Bound<'_>, request: &Request, parameters: Parameters) -> (Truth, Truth) {
    // An error denies the request, unless the policy fails open.
    let of_error = if bound.fails_open() { Truth::Yes } else { Truth::No };
    let settled = |truth: Truth| if truth == Truth::Fails { of_error } else { truth };
    // Parameters come first: if they are missing, the conditions do not matter.
    let params = match parameters {
        Parameters::There(params) => params,
        Parameters::AbsentAllowed => return (Truth::Yes, Truth::Yes),
        Parameters::Error => return (Truth::Yes, of_error),
        Parameters::Unknown => return (bound.conditions(request), Truth::Unknown),
    };
    let request = Request { params, ..request.clone() };
    match bound.conditions(&request) {
        Truth::Fails => (Truth::Yes, of_error),
        conditions => (conditions, settled(bound.all_true("validations", &request, &bound.variables()))),
    }
}

/// Records what the policy does with one request; returns whether it is denied.
fn judged(
    bound: &Bound<'_>,
    checked: Checked,
    request: &Request,
    parameters: Parameters,
    workload: &mut Workload,
) -> bool {
    let (conditions, answer) = answer(bound, request, parameters);
    let (title, policy) = (bound.title(), bound.policy);
    let (stage, what) = match checked {
        Checked::Creation => (Stage::Creation, "its Pods"),
        Checked::Binding => (Stage::Scheduling, "the binding of its Pods to Nodes"),
        Checked::Tokens => (Stage::Start, "the tokens of its Pods"),
        Checked::Work | Checked::Renewal => (Stage::Work, "its writes"),
        Checked::TaintedNodes => (Stage::TaintedNodes, "its updates of Nodes with taints"),
        Checked::UntaintedNodes => (Stage::UntaintedNodes, "its updates of Nodes without taints"),
    };
    let mut depends = |words: String| {
        if !workload.conditions.iter().any(|known| known.words == words) {
            workload.conditions.push(Condition { words, place: policy.at() });
        }
    };
    match (conditions, answer) {
        (Truth::No, _) | (_, Truth::Yes) => {}
        _ if checked == Checked::Renewal => depends(format!("{title} lets it renew its Lease")),
        (Truth::Yes, Truth::No) if checked < Checked::Work || bound.chooses_every_object() => {
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
