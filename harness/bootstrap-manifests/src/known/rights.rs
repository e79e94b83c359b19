//! Whether a CCM's service account has the permissions to initialise Nodes (contract area AUTH).

use super::Assumed;
use super::roles::BuiltIn;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Condition, Workload};
use serde::Serialize;

/// What a permission is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Need {
    /// Without it no Node is initialised.
    Initialise,
    /// Without it Nodes are initialised but have no addresses.
    Addresses,
    /// Without it no replica becomes the leader.
    Election,
    /// Without it a process of the framework exits at its start unless it tolerates that. Many have the tolerance
    /// compiled in (digitalocean v0.1.68 starts without), so the boot does not wait for it.
    Start,
    /// Without it something other than the boot fails.
    Other,
}

/// A missing permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What fails without it.
    pub need: Need,
    /// Row of the contract.
    pub row: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, in the plural.
    pub resource: &'static str,
    /// The verb, such as `patch`.
    pub verb: &'static str,
}

struct Row(&'static str, Need, &'static str, &'static str, &'static [&'static str]);

/// Rows AUTH-01 to -11, which every CCM on the framework needs. Without load balancers AUTH-07 and -08 are unused, so
/// they never decide a boot.
const ROWS: &[Row] = &[
    Row("AUTH-01", Need::Initialise, "", "nodes", &["list"]),
    // Without it the CCM lists the Nodes again and again (client-go, `ListAndWatch`), so each is initialised, but late.
    Row("AUTH-01", Need::Other, "", "nodes", &["watch"]),
    Row("AUTH-02", Need::Other, "", "nodes", &["get"]),
    Row("AUTH-03", Need::Initialise, "", "nodes", &["update"]),
    Row("AUTH-04", Need::Other, "", "nodes", &["patch"]),
    Row("AUTH-05", Need::Other, "", "nodes", &["delete"]),
    Row("AUTH-06", Need::Addresses, "", "nodes/status", &["patch"]),
    Row("AUTH-07", Need::Other, "", "services", &["list", "watch"]),
    Row("AUTH-08", Need::Other, "", "services/status", &["patch"]),
    Row("AUTH-09", Need::Other, "", "events", &["create", "patch"]),
    Row("AUTH-10", Need::Election, "coordination.k8s.io", "leases", &["get", "create", "update"]),
    Row("AUTH-11", Need::Start, "", "configmaps", &["get"]),
];

/// Row AUTH-13, which a CCM needs if each of its controllers has an account of its own. Those accounts exist, and have the
/// permissions of Kubernetes' own controllers of the same names.
const OF_ACCOUNTS: [Row; 2] = [
    Row("AUTH-13", Need::Initialise, "", "serviceaccounts", &["get"]),
    Row("AUTH-13", Need::Initialise, "", "serviceaccounts/token", &["create"]),
];
/// The account of the controller that initialises Nodes.
const OF_NODES: &str = "node-controller";

/// The permissions that the workload's service account lacks; empty if it authenticates in another way.
pub fn gaps(objects: &Objects, assumed: &Assumed, workload: &Workload) -> Vec<Gap> {
    let own_identity = super::api_server::own_identity(objects, workload);
    let account = (workload.namespace.as_str(), workload.service_account.as_str());
    if own_identity || assumed.holds("ServiceAccount", account.0, account.1) {
        return Vec::new();
    }
    let rules = rules_of(objects, account);
    let lock = super::leases::lease_of(workload).map(|(_, name)| name).unwrap_or_default();
    let lease = workload.flag("leader-elect-resource-namespace").map_or_else(
        // The framework's default (component-base config).
        || String::from("kube-system"),
        |(namespace, _)| namespace,
    );
    let elects = workload.flag("leader-elect").is_none_or(|(value, _)| value != "false");
    let tolerant = ["authentication-tolerate-lookup-failure", "authentication-skip-lookup"]
        .iter()
        .any(|flag| workload.flag(flag).is_some_and(|(value, _)| value == "true"));
    // Then each controller has an account of its own.
    let split = workload.flag("use-service-account-credentials").is_some_and(|(value, _)| value == "true");
    let services = workload.runs_controller(&["service", "service-lb-controller"]);
    let lifecycle = workload.runs_controller(&["cloud-node-lifecycle", "cloud-node-lifecycle-controller"]);
    let unused = |row: &str, need: Need| {
        // The informers of all controllers use the CCM's own account.
        (split && !matches!(need, Need::Election | Need::Start) && !matches!(row, "AUTH-01" | "AUTH-13"))
            || (!services && matches!(row, "AUTH-07" | "AUTH-08"))
            || (!lifecycle && row == "AUTH-05")
    };
    let mut gaps = Vec::new();
    for Row(row, need, group, resource, verbs) in ROWS.iter().chain(OF_ACCOUNTS.iter().filter(|_| split)) {
        let needless =
            unused(row, *need) || (*need == Need::Election && !elects) || (*need == Need::Start && tolerant);
        // A Lease of the manifests need not be created.
        let made = *need == Need::Election && super::leases::lease_exists(objects, workload);
        for verb in verbs.iter().filter(|verb| !(needless || made && **verb == "create")) {
            let home = if *resource == "leases" { lease.as_str() } else { "kube-system" };
            let may = |verb: &str| rules.iter().any(|rule| rule.grants((group, resource, verb), home, &lock));
            // Some client libraries read a list by watching; the others depend on it (`lists_by_watching`).
            let watches = (*resource, *verb) == ("nodes", "list") && may("watch");
            if !may(verb) {
                let need = if watches { Need::Other } else { *need };
                gaps.push(Gap { need, row, group, resource, verb });
            }
        }
    }
    gaps
}

/// Whether a ClusterRole of the manifests grants a right in every namespace.
pub(super) fn role_grants(objects: &Objects, role: &Object, right: (&str, &str, &str)) -> bool {
    let rule = |node| Rule { node: RuleSource::Written(node), namespace: None };
    super::roles::rules_of(objects, role).into_iter().any(|node| rule(node).grants(right, "", ""))
}

/// The groups of a service account in this namespace.
fn groups_of(namespace: &str) -> [String; 3] {
    [
        String::from("system:serviceaccounts"),
        format!("system:serviceaccounts:{namespace}"),
        String::from("system:authenticated"),
    ]
}

/// Whether a subject of a flow schema is the account, or one of its groups.
pub(super) fn names_account(subject: &Node, account: (&str, &str)) -> bool {
    let groups = groups_of(account.0);
    let of = |kind: &str, field: &str| subject.at(&[kind, field]).and_then(Node::text).unwrap_or_default();
    match subject.text_at("kind") {
        Some("ServiceAccount") => {
            let name = of("serviceAccount", "name");
            of("serviceAccount", "namespace") == account.0 && (name == account.1 || name == "*")
        }
        Some("Group") => {
            of("group", "name") == "*" || groups.iter().any(|group| group == of("group", "name"))
        }
        Some("User") => {
            let name = of("user", "name");
            name == "*" || name == format!("system:serviceaccount:{}:{}", account.0, account.1)
        }
        _ => false,
    }
}

/// What a program depends on that may watch Nodes, but not list them: since 1.35 client-go fills its caches by a watch that
/// begins with what is there (`WatchListClient`).
pub(super) fn lists_by_watching(
    objects: &Objects,
    assumed: &Assumed,
    workload: &Workload,
) -> Option<Condition> {
    let gaps = gaps(objects, assumed, workload);
    let lacks = |verb: &str| gaps.iter().any(|gap| gap.resource == "nodes" && gap.verb == verb);
    let words =
        "its client library reads Nodes by watching them (client-go 0.35 or newer), as it may not list them";
    let place = workload.service_account_place.clone();
    (lacks("list") && !lacks("watch")).then(|| Condition { words: words.to_owned(), place })
}

struct Rule<'a> {
    node: RuleSource<'a>,
    /// The namespace in which a Role applies; `None` for all namespaces.
    namespace: Option<&'a str>,
}

enum RuleSource<'a> {
    Written(&'a Node),
    Everything,
    /// A rule of a role that a new cluster has.
    BuiltIn(BuiltIn),
}

impl Rule<'_> {
    /// Whether the rule grants group, resource and verb. A Role counts only for leases, accounts and the authentication
    /// map, in the namespace where they are.
    fn grants(&self, (group, resource, verb): (&str, &str, &str), home: &str, lock: &str) -> bool {
        let local = ["leases", "configmaps", "serviceaccounts", "serviceaccounts/token"].contains(&resource);
        if self.namespace.is_some_and(|namespace| !local || namespace != home) {
            return false;
        }
        match &self.node {
            RuleSource::Everything => true,
            RuleSource::BuiltIn(rule) => rule.grants((group, resource, verb)),
            RuleSource::Written(node) => {
                let lists = |field: &str, wanted: &[&str]| {
                    let all = node.get(field).map(Node::texts).unwrap_or_default();
                    all.iter().any(|given| given == "*" || wanted.contains(&given.as_str()))
                };
                let sub = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
                let mut resources = vec![resource];
                resources.extend(sub.as_deref());
                let names = node.get("resourceNames").map(Node::texts).unwrap_or_default();
                let wanted = "extension-apiserver-authentication";
                // Creation cannot be restricted by name, and the names of Nodes are not known beforehand.
                let named = names.is_empty()
                    || (resource == "configmaps" && names.iter().any(|name| name == wanted))
                    || (resource.starts_with("serviceaccounts") && names.iter().any(|name| name == OF_NODES))
                    || (resource == "leases" && verb != "create" && names.iter().any(|name| name == lock));
                lists("apiGroups", &[group])
                    && lists("resources", &resources)
                    && lists("verbs", &[verb])
                    && named
            }
        }
    }
}

fn rules_of<'a>(objects: &'a Objects, account: (&str, &str)) -> Vec<Rule<'a>> {
    let mut rules = Vec::new();
    for (kind, cluster_wide) in [("ClusterRoleBinding", true), ("RoleBinding", false)] {
        for binding in objects.of_kind(kind).filter(|binding| binds(binding, account)) {
            let namespace = (!cluster_wide).then_some(binding.namespace.as_str());
            let Some(role) = binding.node.get("roleRef") else { continue };
            let (kind, name) =
                (role.text_at("kind").unwrap_or_default(), role.text_at("name").unwrap_or_default());
            let written = objects.of_kind(kind).find(|object| {
                object.name == name && (kind == "ClusterRole" || object.namespace == binding.namespace)
            });
            match written {
                Some(object) => {
                    let items = super::roles::rules_of(objects, object).into_iter();
                    rules.extend(items.map(|node| Rule { node: RuleSource::Written(node), namespace }));
                }
                None if kind == "ClusterRole" && name == "cluster-admin" => {
                    rules.push(Rule { node: RuleSource::Everything, namespace });
                }
                None => {
                    let known = if kind == "Role" {
                        format!("{}/{name}", binding.namespace)
                    } else {
                        name.to_owned()
                    };
                    let own = super::roles::built_in(&known).unwrap_or_default().into_iter();
                    rules.extend(own.map(|rule| Rule { node: RuleSource::BuiltIn(rule), namespace }));
                    let added = super::roles::added(objects, &known).into_iter();
                    rules.extend(added.map(|node| Rule { node: RuleSource::Written(node), namespace }));
                }
            }
        }
    }
    rules
}

/// Whether a binding names the account, directly or by one of its groups.
fn binds(binding: &Object, (namespace, name): (&str, &str)) -> bool {
    let subjects = binding.node.get("subjects").map(Node::items).unwrap_or_default();
    let groups = groups_of(namespace);
    let user = format!("system:serviceaccount:{namespace}:{name}");
    subjects.iter().any(|subject| {
        let own = subject.text_at("name").unwrap_or_default();
        match subject.text_at("kind") {
            // In a RoleBinding the namespace is by default that of the binding.
            Some("ServiceAccount") => {
                let home = subject.text_at("namespace").filter(|named| !named.is_empty());
                let default = (binding.kind == "RoleBinding").then_some(binding.namespace.as_str());
                own == name && home.or(default) == Some(namespace)
            }
            Some("Group") => groups.iter().any(|group| group == own),
            Some("User") => own == user,
            _ => false,
        }
    })
}
