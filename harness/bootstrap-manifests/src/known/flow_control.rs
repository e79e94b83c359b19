//! Priority levels of the manifests that never serve a request of the CCM (API Priority and Fairness, KEP-1040).

use super::rights::names_account;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Hindrance, Stage, Workload};

/// The precedence of Kubernetes' own schemas for all service accounts, and for those of kube-system
/// (`pkg/apis/flowcontrol/bootstrap`). A lower number comes first.
const OF_ACCOUNTS: i64 = 9000;
const OF_KUBE_SYSTEM: i64 = 900;
/// The precedence of a schema that states none.
const DEFAULT: i64 = 1000;

/// Why the requests of the CCM are never served: their level has no seat of its own, borrows none, and queues them
/// (`dispatchAsMuchAsPossibleLocked`). A level that rejects instead of queueing serves single requests.
pub(super) fn never_served(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    if super::own_identity(objects, workload) {
        return None;
    }
    let precedence = |schema: &Object| {
        schema.node.at(&["spec", "matchingPrecedence"]).and_then(Node::int).unwrap_or(DEFAULT)
    };
    let account = (workload.namespace.as_str(), workload.service_account.as_str());
    let of_kubernetes = if account.0 == "kube-system" { OF_KUBE_SYSTEM } else { OF_ACCOUNTS };
    let schemas = objects.of_kind("FlowSchema");
    let schemas = schemas.filter(|schema| precedence(schema) < of_kubernetes && is_for(schema, account));
    let schema =
        schemas.min_by(|one, other| (precedence(one), &one.name).cmp(&(precedence(other), &other.name)))?;
    let name = schema.node.at(&["spec", "priorityLevelConfiguration", "name"]).and_then(Node::text)?;
    let level = objects.of_kind("PriorityLevelConfiguration").find(|level| level.name == name)?;
    let limited = level.node.at(&["spec", "limited"])?;
    let queues = limited.at(&["limitResponse", "type"]).and_then(Node::text) == Some("Queue");
    // A level that states no bound may borrow all seats of the others.
    let borrows = limited.get("borrowingLimitPercent").is_none_or(Node::is_null);
    let shares = limited.get("nominalConcurrencyShares").filter(|shares| shares.int() == Some(0))?;
    (queues && !borrows).then(|| {
        Hindrance::new(
            Stage::Work,
            format!(
                "FlowSchema/{} puts its requests into the queues of PriorityLevelConfiguration/{name}, which has no share of \
                 the API server and so never serves them",
                schema.name
            ),
            level.place(shares),
            String::from("set nominalConcurrencyShares to 1 or more"),
        )
    })
}

/// Whether a rule of the schema is for every request of the account about objects.
fn is_for(schema: &Object, account: (&str, &str)) -> bool {
    let rules = schema.node.at(&["spec", "rules"]).map(Node::items).unwrap_or_default();
    rules.iter().any(|rule| {
        let items = |field: &str| rule.get(field).map(Node::items).unwrap_or_default();
        let all = |rule: &Node, field: &str| {
            rule.get(field).map(Node::texts).unwrap_or_default().iter().any(|one| one == "*")
        };
        let nodes = |rule: &Node| {
            let texts = |field: &str| rule.get(field).map(Node::texts).unwrap_or_default();
            rule.get("clusterScope").and_then(Node::bool) == Some(true)
                && all(rule, "verbs")
                && (all(rule, "apiGroups") || texts("apiGroups").iter().any(String::is_empty))
                && (all(rule, "resources") || texts("resources").iter().any(|one| one == "nodes"))
        };
        items("subjects").iter().any(|subject| names_account(subject, account))
            && items("resourceRules").iter().any(nodes)
    })
}
