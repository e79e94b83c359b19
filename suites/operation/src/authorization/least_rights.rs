//! The minimal rights of a CCM of the framework, as a table (contract AUTH-01 to -12). Pure functions.

use harness_testkit::prelude::*;
use k8s_openapi::api::rbac::v1::PolicyRule;

/// Where a row's rights are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the whole cluster.
    Everywhere,
    /// In the namespace of the CCM's Lease.
    OfTheLease,
    /// In `kube-system`.
    KubeSystem,
}

/// A row of the contract's table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The id of the row.
    pub id: &'static str,
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    place: Place,
}

const fn row(
    id: &'static str,
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Row {
    Row { id, groups, resources, verbs, place: Place::Everywhere }
}

/// The table. Row -13 is about rights that a flag needs, and row -14 about rights that every account has.
const TABLE: [Row; 13] = [
    row("AUTH-01", &[""], &["nodes"], &["list", "watch"]),
    row("AUTH-02", &[""], &["nodes"], &["get"]),
    row("AUTH-03", &[""], &["nodes"], &["update"]),
    row("AUTH-04", &[""], &["nodes"], &["patch"]),
    row("AUTH-05", &[""], &["nodes"], &["delete"]),
    row("AUTH-06", &[""], &["nodes/status"], &["patch"]),
    row("AUTH-07", &[""], &["services"], &["list", "watch", "get"]),
    row("AUTH-08", &[""], &["services/status"], &["patch"]),
    row("AUTH-09", &["", "events.k8s.io"], &["events"], &["create", "patch", "update"]),
    Row {
        place: Place::OfTheLease,
        ..row("AUTH-10", &["coordination.k8s.io"], &["leases"], &["get", "create", "update"])
    },
    Row { place: Place::KubeSystem, ..row("AUTH-11", &[""], &["configmaps"], &["get", "list", "watch"]) },
    row("AUTH-12", &["authentication.k8s.io"], &["tokenreviews"], &["create"]),
    row("AUTH-12", &["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
];

/// The rights that only `--use-service-account-credentials` needs (AUTH-13).
const OF_A_FLAG: [Row; 2] = [
    row("AUTH-13", &[""], &["serviceaccounts"], &["get", "create"]),
    row("AUTH-13", &[""], &["serviceaccounts/token"], &["create"]),
];

/// The one ConfigMap that AUTH-11 is about.
const AUTHENTICATION: &str = "extension-apiserver-authentication";

/// Rights that a grant may contain in addition to the table, because the contract lists them as extras in AUTH-21.
const EXTRAS: [Row; 4] = [
    row("AUTH-21", &[""], &["services"], &["patch"]),
    row("AUTH-21", &[""], &["endpoints"], &["get", "list", "watch", "create", "update", "patch", "delete"]),
    row(
        "AUTH-21",
        &["discovery.k8s.io"],
        &["endpointslices"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
    ),
    row("AUTH-21", &[""], &["pods"], &["get", "list", "watch"]),
];

impl Row {
    fn grant(&self, lease_namespace: &str) -> Grant {
        let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let named = self.id == "AUTH-11";
        Grant {
            by: self.id.to_owned(),
            within: match self.place {
                Place::Everywhere => None,
                Place::OfTheLease => Some(lease_namespace.to_owned()),
                Place::KubeSystem => Some("kube-system".to_owned()),
            },
            rule: PolicyRule {
                api_groups: Some(strings(self.groups)),
                resources: Some(strings(self.resources)),
                resource_names: named.then(|| vec![AUTHENTICATION.to_owned()]),
                verbs: strings(self.verbs),
                ..PolicyRule::default()
            },
        }
    }

    fn covers(&self, group: &str, resource: &str, verb: &str) -> bool {
        self.groups.contains(&group) && self.resources.contains(&resource) && self.verbs.contains(&verb)
    }

    /// Whether a grant in this namespace, or in all if it is `None`, reaches no farther than the row requires.
    fn is_place_of(&self, within: Option<&str>, lease_namespace: &str) -> bool {
        match self.place {
            Place::Everywhere => true,
            Place::OfTheLease => within == Some(lease_namespace),
            Place::KubeSystem => within == Some("kube-system"),
        }
    }
}

/// The right of a row that an access review asks about: its first verb of its first resource.
pub(super) fn right_of(id: &str, lease_namespace: &str) -> Right {
    let row = TABLE.iter().chain(&OF_A_FLAG).find(|row| row.id == id).unwrap_or(&TABLE[0]);
    Right {
        verb: row.verbs[0].to_owned(),
        group: row.groups[0].to_owned(),
        resource: row.resources[0].to_owned(),
        within: row.grant(lease_namespace).within,
    }
}

/// An empty grant. It keeps the namespace in the list, so that earlier rights there are removed.
fn nothing(within: Option<String>) -> Grant {
    let rule = PolicyRule { verbs: Vec::new(), ..PolicyRule::default() };
    Grant { by: String::new(), within, rule }
}

/// The rights of the table except the rows `without`, and granted rights that the table does not cover.
/// Wildcards are left out, because their purpose is unknown.
pub(super) fn least(granted: &[Grant], without: &[&str], lease_namespace: &str) -> Vec<Grant> {
    let of_table =
        TABLE.iter().filter(|row| !without.contains(&row.id)).map(|row| row.grant(lease_namespace));
    let others = granted.iter().flat_map(|grant| {
        others(&grant.rule, without).into_iter().map(|rule| Grant { rule, ..grant.clone() })
    });
    of_table.chain(others).collect()
}

/// The same with all rows, as a trial needs it.
pub(crate) fn least_rights(cx: &CheckCx) -> impl FnOnce(&[Grant]) -> Vec<Grant> + use<> {
    let namespace = cx.lease_namespace();
    move |granted| least(granted, &[], &namespace)
}

/// The parts of a rule that the table does not cover, or that are one of the known extras.
fn others(rule: &PolicyRule, without: &[&str]) -> Vec<PolicyRule> {
    if rule.non_resource_urls.as_ref().is_some_and(|urls| !urls.is_empty()) {
        return vec![rule.clone()];
    }
    let (groups, resources) =
        (rule.api_groups.clone().unwrap_or_default(), rule.resources.clone().unwrap_or_default());
    if groups.iter().chain(&resources).any(|text| text.contains('*')) {
        return Vec::new();
    }
    let is_in_table = |resource: &String| {
        // Each of these rows is about one object or a flag; other objects may be needed for other purposes.
        let about = |row: &&Row| !matches!(row.id, "AUTH-11" | "AUTH-13") || without.contains(&row.id);
        let mut rows = TABLE.iter().chain(&OF_A_FLAG).filter(about);
        rows.any(|row| row.resources.contains(&resource.as_str()))
    };
    let patches =
        rule.verbs.iter().any(|verb| verb == "patch") && resources.iter().any(|one| one == "services");
    let patched = patches.then(|| PolicyRule {
        resources: Some(vec!["services".to_owned()]),
        verbs: vec!["patch".to_owned()],
        ..rule.clone()
    });
    let left: Vec<String> = resources.into_iter().filter(|resource| !is_in_table(resource)).collect();
    let left = (!left.is_empty()).then(|| PolicyRule { resources: Some(left), ..rule.clone() });
    patched.into_iter().chain(left).collect()
}

/// Describes the wildcards in the grants.
pub(super) fn wildcards(granted: &[Grant]) -> Vec<String> {
    let is_wild = |grant: &&Grant| {
        let rule = &grant.rule;
        let lists = [&rule.api_groups, &rule.resources, &rule.non_resource_urls];
        let mut texts = lists.into_iter().flatten().flatten().chain(&rule.verbs);
        texts.any(|text| text == "*" || text.ends_with("/*") || text.starts_with("*/"))
    };
    granted.iter().filter(is_wild).map(show).collect()
}

/// Describes the rights beyond the table and the contract's extras: verb, resource, role. Wildcards are left
/// to [`wildcards`]. `accounts`: whether the CCM creates accounts for its controllers
/// (`--use-service-account-credentials`), the only reason for the rights of those. A right that is needed in
/// one namespace is too much in all of them: an account that may write every Lease can make any Node look
/// dead, or alive.
pub(super) fn beyond(granted: &[Grant], accounts: bool, lease_namespace: &str) -> Vec<String> {
    let mut beyond = Vec::new();
    for grant in granted {
        let rule = &grant.rule;
        if wildcards(std::slice::from_ref(grant)).len() == 1 {
            continue;
        }
        let (groups, resources) =
            (rule.api_groups.clone().unwrap_or_default(), rule.resources.clone().unwrap_or_default());
        for (group, resource) in groups.iter().flat_map(|group| resources.iter().map(move |r| (group, r))) {
            let needed =
                |verb: &&String| is_needed(grant, (group, resource, verb), accounts, lease_namespace);
            let more = rule.verbs.iter().filter(|verb| !needed(verb));
            let more: Vec<&str> = more.map(String::as_str).collect();
            if !more.is_empty() {
                let of = if group.is_empty() { String::new() } else { format!(".{group}") };
                beyond.push(format!("{} {resource}{of} ({})", more.join(","), place(grant)));
            }
        }
    }
    beyond.sort();
    beyond.dedup();
    beyond
}

fn is_needed(
    grant: &Grant,
    (group, resource, verb): (&str, &str, &str),
    accounts: bool,
    lease_namespace: &str,
) -> bool {
    // Kinds that the provider defines.
    let is_own = group.contains('.') && !group.ends_with(".k8s.io") && group != "k8s.io";
    let is_named = grant.rule.resource_names.as_ref().is_some_and(|names| !names.is_empty());
    let by_name =
        is_named && matches!(resource, "secrets" | "configmaps") && matches!(verb, "get" | "list" | "watch");
    let in_namespace =
        grant.within.is_some() && resource == "configmaps" && matches!(verb, "get" | "list" | "watch");
    let of_a_flag = OF_A_FLAG.iter().filter(|_| accounts);
    let rows = TABLE.iter().chain(of_a_flag).chain(&EXTRAS).filter(|row| row.id != "AUTH-11");
    let is_of = |row: &Row| row.is_place_of(grant.within.as_deref(), lease_namespace);
    let mut rows = rows.filter(|row| is_of(row));
    is_own || by_name || in_namespace || rows.any(|row| row.covers(group, resource, verb))
}

fn place(grant: &Grant) -> String {
    match &grant.within {
        None => grant.by.clone(),
        Some(namespace) => format!("{} in {namespace}", grant.by),
    }
}

fn show(grant: &Grant) -> String {
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
    let rule = &grant.rule;
    let what = match rule.non_resource_urls.as_ref().filter(|urls| !urls.is_empty()) {
        Some(urls) => urls.join(","),
        None => format!("{} of groups \"{}\"", list(&rule.resources), list(&rule.api_groups)),
    };
    format!("{} {what} ({})", rule.verbs.join(","), place(grant))
}

/// Empty grants for the namespaces that a list of grants no longer contains, so that earlier rights there are
/// removed.
pub(super) fn emptied(before: &[Grant], mut now: Vec<Grant>) -> Vec<Grant> {
    for grant in before {
        if !now.iter().any(|other| other.within == grant.within) {
            now.push(nothing(grant.within.clone()));
        }
    }
    now
}

/// Describes the granted rights that no request used; `used` contains verb, group and resource of the requests.
pub(super) fn unused(granted: &[Grant], used: &[(String, String, String)], account: &Account) -> Vec<String> {
    let mut unused = Vec::new();
    for grant in granted {
        let rule = &grant.rule;
        let has = |list: &Option<Vec<String>>, text: &str| {
            list.iter().flatten().any(|item| item == "*" || item == text)
        };
        let idle = rule.verbs.iter().filter(|verb| {
            let mut fitting = used.iter().filter(|(used, group, resource)| {
                (*verb == "*" || *verb == used)
                    && has(&rule.api_groups, group)
                    && has(&rule.resources, resource)
            });
            fitting.next().is_none()
        });
        let idle: Vec<&str> = idle.map(String::as_str).collect();
        if !idle.is_empty() && rule.non_resource_urls.is_none() {
            let resources = rule.resources.clone().unwrap_or_default().join(",");
            unused.push(format!("{} {resources} ({})", idle.join(","), place(grant)));
        }
    }
    if unused.is_empty() { vec![format!("none of {}", account.user())] } else { unused }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn grant(rule: Value) -> Grant {
        let rule = serde_json::from_value(rule).expect("a rule");
        Grant { by: "ClusterRole ccm".into(), within: None, rule }
    }

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Grant {
        grant(json!({"apiGroups": groups, "resources": resources, "verbs": verbs}))
    }

    #[test]
    fn a_row_that_is_left_out_leaves_no_rule() {
        let all = least(&[], &[], "kube-system");
        let less = least(&[], &["AUTH-03"], "kube-system");
        assert_eq!(all.len(), TABLE.len());
        assert!(
            less.iter()
                .all(|grant| !grant.rule.verbs.contains(&"update".to_owned()) || grant.by != "AUTH-03")
        );
        assert_eq!(less.len() + 1, all.len());
    }

    #[test]
    fn rights_outside_the_table_are_kept_and_wildcards_are_not() {
        let granted = [
            rule(&[""], &["nodes", "secrets"], &["get", "create"]),
            rule(&["*"], &["*"], &["*"]),
            rule(&["acme.example"], &["pools"], &["*"]),
            rule(&[""], &["services"], &["get", "patch"]),
            rule(&[""], &["services", "services/status", "pods"], &["list", "patch"]),
        ];
        let kept: Vec<_> = least(&granted, &[], "ns").into_iter().skip(TABLE.len()).collect();
        let resources: Vec<_> =
            kept.iter().map(|grant| grant.rule.resources.clone().unwrap_or_default()).collect();
        assert_eq!(resources, [["secrets"], ["pools"], ["services"], ["services"], ["pods"]]);
        let verbs: Vec<&[String]> = kept.iter().map(|grant| grant.rule.verbs.as_slice()).collect();
        assert_eq!(verbs[2..], [vec!["patch"], vec!["patch"], vec!["list", "patch"]]);
    }

    #[test]
    fn rights_beyond_the_table_are_named() {
        let beyond_table = |granted: &[Grant], accounts| beyond(granted, accounts, "kube-system");
        let fine = [
            rule(&[""], &["nodes"], &["get", "list", "watch", "update", "patch", "delete"]),
            rule(&[""], &["services"], &["list", "patch", "watch", "get"]),
            rule(&["acme.example"], &["pools"], &["delete"]),
            grant(
                json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]}),
            ),
        ];
        assert!(beyond_table(&fine, false).is_empty(), "{:?}", beyond_table(&fine, false));
        let leases = rule(&["coordination.k8s.io"], &["leases"], &["get", "update"]);
        let of_the_lease = |within: &str| [Grant { within: Some(within.to_owned()), ..leases.clone() }];
        assert!(beyond_table(&of_the_lease("kube-system"), false).is_empty());
        let (elsewhere, everywhere) = (of_the_lease("kube-node-lease"), [leases.clone()]);
        let why = "get,update leases.coordination.k8s.io (ClusterRole ccm";
        assert_eq!(beyond_table(&elsewhere, false), [format!("{why} in kube-node-lease)")]);
        assert_eq!(beyond_table(&everywhere, false), [format!("{why})")]);
        let more = [rule(&[""], &["secrets", "nodes"], &["get", "create"]), rule(&[""], &["*"], &["get"])];
        let account = [rule(&[""], &["serviceaccounts/token"], &["create"])];
        assert!(beyond_table(&account, true).is_empty());
        assert_eq!(beyond_table(&account, false), ["create serviceaccounts/token (ClusterRole ccm)"]);
        assert_eq!(
            beyond_table(&more, false),
            ["create nodes (ClusterRole ccm)", "get,create secrets (ClusterRole ccm)"]
        );
        assert_eq!(wildcards(&more), ["get * of groups \"\" (ClusterRole ccm)"]);
    }

    #[test]
    fn an_unused_right_is_reported() {
        let account = Account { namespace: "n".into(), name: "a".into() };
        let granted = [rule(&[""], &["nodes"], &["get", "delete"])];
        let used = [("get".to_owned(), String::new(), "nodes".to_owned())];
        assert_eq!(unused(&granted, &used, &account), ["delete nodes (ClusterRole ccm)"]);
    }
}
