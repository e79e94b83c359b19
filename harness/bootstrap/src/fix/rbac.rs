//! The minimal permissions of a CCM on the framework (contract rows AUTH-01 to -12), as YAML.

use crate::workload::Workload;

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

/// Service account, roles and bindings for a workload. The account is named after the workload if the workload has no
/// account of its own.
pub(crate) fn rbac(workload: &Workload) -> String {
    let namespace = &workload.namespace;
    let account = account(workload);
    let name = rights_name(account);
    MANIFESTS.replace("{name}", &name).replace("{account}", account).replace("{namespace}", namespace)
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
