//! Priority levels of the manifests that never serve a request of the CCM (API Priority and Fairness, KEP-1040).

use super::rights::names_account;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Hindrance, Stage, Workload};

/// The precedence of Kubernetes' own schemas for all service accounts, and for those of kube-system
/// (`pkg/apis/flowcontrol/bootstrap`). A lower number comes first.
const OF_ACCOUNTS: i64 = 9000;
const OF_KUBE_SYSTEM: i64 = 900;
/// The version whose defaults these are; in older ones a share of 0 means the default.
const VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// The precedence of a schema that states none.
const DEFAULT: i64 = 1000;

/// Why the requests of the CCM are never served: their level has no seat of its own, borrows none, and queues them
/// (`dispatchAsMuchAsPossibleLocked`). A level that rejects instead of queueing serves single requests.
pub(super) fn never_served(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    if super::own_identity(objects, workload) {
        return None;
    }
    let precedence = |schema: &Object| {
        let own = schema.node.at(&["spec", "matchingPrecedence"]).and_then(Node::int);
        own.filter(|own| *own != 0).unwrap_or(DEFAULT)
    };
    let account = (workload.namespace.as_str(), workload.service_account.as_str());
    let of_kubernetes = if account.0 == "kube-system" { OF_KUBE_SYSTEM } else { OF_ACCOUNTS };
    let of_kind = |kind| objects.of_kind(kind).filter(|object| object.api_version == VERSION);
    let schemas = of_kind("FlowSchema").filter(|schema| precedence(schema) < of_kubernetes);
    // The first that is about some of its requests; another one may be about the others.
    let schema = schemas
        .filter(|schema| rules_for(schema, account).next().is_some())
        .min_by(|one, other| (precedence(one), &one.name).cmp(&(precedence(other), &other.name)))
        .filter(|schema| rules_for(schema, account).any(is_for_nodes))?;
    let name = schema.node.at(&["spec", "priorityLevelConfiguration", "name"]).and_then(Node::text)?;
    let level = of_kind("PriorityLevelConfiguration").find(|level| level.name == name)?;
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

/// The rules of a schema about requests of the account for objects.
fn rules_for<'o>(schema: &'o Object, account: (&'o str, &'o str)) -> impl Iterator<Item = &'o Node> {
    let rules = schema.node.at(&["spec", "rules"]).map(Node::items).unwrap_or_default();
    let items = |rule: &'o Node, field: &str| rule.get(field).map(Node::items).unwrap_or_default();
    let of_it = rules
        .iter()
        .filter(move |rule| items(rule, "subjects").iter().any(|subject| names_account(subject, account)));
    of_it.flat_map(move |rule| items(rule, "resourceRules"))
}

/// Whether a rule is for every request for Nodes.
fn is_for_nodes(rule: &Node) -> bool {
    let lists = |field: &str, wanted: &str| {
        let all = rule.get(field).map(Node::texts).unwrap_or_default();
        all.iter().any(|one| one == "*" || one == wanted)
    };
    rule.get("clusterScope").and_then(Node::bool) == Some(true)
        && lists("verbs", "*")
        && lists("apiGroups", "")
        && lists("resources", "nodes")
}
