//! The minimal permissions of a CCM on the framework (contract rows AUTH-01 to -12), as YAML.

use bootstrap_manifests::known::Gap;
use bootstrap_manifests::workload::Workload;

/// The manifests, with names in braces to be filled in.
const MANIFESTS: &str = "apiVersion: v1
kind: ServiceAccount
metadata:
  name: {account}
  namespace: {namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {name}
rules:
  - apiGroups: [\"\"]
    resources: [nodes]
    verbs: [get, list, watch, update, patch, delete]
  - apiGroups: [\"\"]
    resources: [nodes/status]
    verbs: [patch]
  - apiGroups: [\"\"]
    resources: [services]
    verbs: [get, list, watch]
  - apiGroups: [\"\"]
    resources: [services/status]
    verbs: [patch]
  - apiGroups: [\"\", events.k8s.io]
    resources: [events]
    verbs: [create, patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {name}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {name}
subjects:
  - kind: ServiceAccount
    name: {account}
    namespace: {namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {name}:leader-election
  namespace: kube-system
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {name}:leader-election
  namespace: kube-system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {name}:leader-election
subjects:
  - kind: ServiceAccount
    name: {account}
    namespace: {namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {name}:extension-apiserver-authentication-reader
  namespace: kube-system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: extension-apiserver-authentication-reader
subjects:
  - kind: ServiceAccount
    name: {account}
    namespace: {namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {name}:auth-delegator
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:auth-delegator
subjects:
  - kind: ServiceAccount
    name: {account}
    namespace: {namespace}
";

/// Service account, roles and bindings for a workload: what grants these permissions, or everything if the workload has no
/// account of its own. The account is then named after the workload.
pub(crate) fn rbac(workload: &Workload, gaps: &[Gap]) -> String {
    let namespace = &workload.namespace;
    let account = account(workload);
    let name = rights_name(account);
    let documents: Vec<String> = match account == workload.service_account {
        true => MANIFESTS.split("---\n").filter_map(|document| granting(document, gaps)).collect(),
        false => vec![MANIFESTS.to_owned()],
    };
    let text = documents.join("---\n");
    text.replace("{name}", &name).replace("{account}", account).replace("{namespace}", namespace)
}

/// A document with the rules that grant these permissions; `None` if it has none of them.
fn granting(document: &str, gaps: &[Gap]) -> Option<String> {
    let lacks = |resources: &[&str]| gaps.iter().any(|gap| resources.contains(&gap.resource));
    let is_needed = if document.contains("leader-election") {
        lacks(&["leases"])
    } else if document.contains("authentication-reader") {
        lacks(&["configmaps"])
    } else if document.contains("auth-delegator") {
        false
    } else if document.contains("kind: ServiceAccount\nmetadata") {
        true
    } else {
        lacks(&["nodes", "nodes/status", "services", "services/status", "events"])
    };
    let Some((head, rules)) = document.split_once("rules:\n").filter(|_| document.contains("name: {name}\n"))
    else {
        return is_needed.then(|| document.to_owned());
    };
    let of_gaps = rules.split_inclusive("]\n").collect::<Vec<&str>>();
    let rules = of_gaps.chunks(3).map(|rule| rule.concat());
    let kept: String = rules
        .filter(|rule| gaps.iter().any(|gap| rule.contains(&format!("resources: [{}]", gap.resource))))
        .collect();
    is_needed.then(|| format!("{head}rules:\n{kept}"))
}

/// The name of the roles and bindings for an account.
pub(super) fn rights_name(account: &str) -> String {
    format!("system:{account}")
}

/// The account that gets the permissions: never the default account that all Pods of the namespace share.
pub(super) fn account(workload: &Workload) -> &str {
    match workload.service_account.as_str() {
        "default" => &workload.name,
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bootstrap_manifests::known::Need;

    fn kept(resources: &[&'static str]) -> Vec<String> {
        let gap =
            |resource: &&'static str| Gap { need: Need::Other, row: "", group: "", resource, verb: "get" };
        let gaps: Vec<Gap> = resources.iter().map(gap).collect();
        MANIFESTS.split("---\n").filter_map(|document| granting(document, &gaps)).collect()
    }

    #[test]
    fn only_what_is_missing_is_granted() {
        let reader = kept(&["configmaps"]);
        assert_eq!(reader.len(), 2, "{reader:?}");
        assert!(reader[1].contains("extension-apiserver-authentication-reader"), "{reader:?}");
        let nodes = kept(&["nodes/status"]);
        assert_eq!(nodes.len(), 3, "an account, a role and its binding: {nodes:?}");
        assert!(nodes[1].contains("resources: [nodes/status]\n    verbs: [patch]\n"), "{nodes:?}");
        assert_eq!(nodes[1].matches("resources:").count(), 1, "{nodes:?}");
        assert_eq!(kept(&["leases", "events"]).len(), 5);
    }
}
