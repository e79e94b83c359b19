//! The table of kinds, in discovery's order. The facts are those of the discovery documents of Kubernetes 1.36.

use super::{Kind, NameForm, Subresource};

const STANDARD: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CHANGE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];

const fn status(kind: &'static str) -> Subresource {
    Subresource { name: "status", group: "", version: "", kind, verbs: CHANGE }
}

const SCALE: Subresource =
    Subresource { name: "scale", group: "autoscaling", version: "v1", kind: "Scale", verbs: CHANGE };

/// Every kind that is served.
pub static ALL: &[Kind] = &[
    Kind {
        group: "", version: "v1", kind: "Binding", list_kind: "BindingList", plural: "bindings", singular: "binding",
        short_names: &[], categories: &[], namespaced: true,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.Binding",
    },
    Kind {
        group: "", version: "v1", kind: "ConfigMap", list_kind: "ConfigMapList", plural: "configmaps", singular: "configmap",
        short_names: &["cm"], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "qFsyl6wFWjQ=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.ConfigMap",
    },
    Kind {
        group: "", version: "v1", kind: "Endpoints", list_kind: "EndpointsList", plural: "endpoints", singular: "endpoints",
        short_names: &["ep"], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "fWeeMqaN/OA=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "core/v1.Endpoints",
    },
    Kind {
        group: "", version: "v1", kind: "Event", list_kind: "EventList", plural: "events", singular: "event",
        short_names: &["ev"], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "r2yiGXH7wu8=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "core/v1.Event",
    },
    Kind {
        group: "", version: "v1", kind: "Namespace", list_kind: "NamespaceList", plural: "namespaces", singular: "namespace",
        short_names: &["ns"], categories: &[], namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"], subresources: &[Subresource { name: "finalize", group: "", version: "", kind: "Namespace", verbs: &["update"] }, status("Namespace")], storage_hash: "Q3oi5N2YM8M=",
        name_form: NameForm::Label, returns_deleted: true, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.Namespace",
    },
    Kind {
        group: "", version: "v1", kind: "Node", list_kind: "NodeList", plural: "nodes", singular: "node",
        short_names: &["no"], categories: &[], namespaced: false,
        verbs: STANDARD, subresources: &[status("Node")], storage_hash: "XwShjMxG9Fs=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.Node",
    },
    Kind {
        group: "", version: "v1", kind: "Pod", list_kind: "PodList", plural: "pods", singular: "pod",
        short_names: &["po"], categories: &["all"], namespaced: true,
        verbs: STANDARD, subresources: &[Subresource { name: "binding", group: "", version: "", kind: "Binding", verbs: CREATE }, Subresource { name: "eviction", group: "policy", version: "v1", kind: "Eviction", verbs: CREATE }, Subresource { name: "log", group: "", version: "", kind: "Pod", verbs: &["get"] }, status("Pod")], storage_hash: "xPOwRZ+Yhw8=",
        name_form: NameForm::Subdomain, returns_deleted: true, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.Pod",
    },
    Kind {
        group: "", version: "v1", kind: "Secret", list_kind: "SecretList", plural: "secrets", singular: "secret",
        short_names: &[], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "S6u1pOWzb84=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.Secret",
    },
    Kind {
        group: "", version: "v1", kind: "ServiceAccount", list_kind: "ServiceAccountList", plural: "serviceaccounts", singular: "serviceaccount",
        short_names: &["sa"], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[Subresource { name: "token", group: "authentication.k8s.io", version: "v1", kind: "TokenRequest", verbs: CREATE }], storage_hash: "pbx9ZvyFpBE=",
        name_form: NameForm::Subdomain, returns_deleted: true, unconditional_update: true, create_on_update: false,
        type_name: "core/v1.ServiceAccount",
    },
    Kind {
        group: "", version: "v1", kind: "Service", list_kind: "ServiceList", plural: "services", singular: "service",
        short_names: &["svc"], categories: &["all"], namespaced: true,
        verbs: STANDARD, subresources: &[status("Service")], storage_hash: "0/CO1lhkEBI=",
        name_form: NameForm::Label, returns_deleted: true, unconditional_update: true, create_on_update: true,
        type_name: "core/v1.Service",
    },
    Kind {
        group: "apps", version: "v1", kind: "DaemonSet", list_kind: "DaemonSetList", plural: "daemonsets", singular: "daemonset",
        short_names: &["ds"], categories: &["all"], namespaced: true,
        verbs: STANDARD, subresources: &[status("DaemonSet")], storage_hash: "dd7pWHUlMKQ=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "apps/v1.DaemonSet",
    },
    Kind {
        group: "apps", version: "v1", kind: "Deployment", list_kind: "DeploymentList", plural: "deployments", singular: "deployment",
        short_names: &["deploy"], categories: &["all"], namespaced: true,
        verbs: STANDARD, subresources: &[SCALE, status("Deployment")], storage_hash: "8aSe+NMegvE=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "apps/v1.Deployment",
    },
    Kind {
        group: "apps", version: "v1", kind: "ReplicaSet", list_kind: "ReplicaSetList", plural: "replicasets", singular: "replicaset",
        short_names: &["rs"], categories: &["all"], namespaced: true,
        verbs: STANDARD, subresources: &[SCALE, status("ReplicaSet")], storage_hash: "P1RzHs8/mWQ=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "apps/v1.ReplicaSet",
    },
    Kind {
        group: "events.k8s.io", version: "v1", kind: "Event", list_kind: "EventList", plural: "events", singular: "event",
        short_names: &["ev"], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "r2yiGXH7wu8=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "events/v1.Event",
    },
    Kind {
        group: "authentication.k8s.io", version: "v1", kind: "SelfSubjectReview", list_kind: "SelfSubjectReviewList", plural: "selfsubjectreviews", singular: "selfsubjectreview",
        short_names: &[], categories: &[], namespaced: false,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "authentication/v1.SelfSubjectReview",
    },
    Kind {
        group: "authentication.k8s.io", version: "v1", kind: "TokenReview", list_kind: "TokenReviewList", plural: "tokenreviews", singular: "tokenreview",
        short_names: &[], categories: &[], namespaced: false,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "authentication/v1.TokenReview",
    },
    Kind {
        group: "authorization.k8s.io", version: "v1", kind: "LocalSubjectAccessReview", list_kind: "LocalSubjectAccessReviewList", plural: "localsubjectaccessreviews", singular: "localsubjectaccessreview",
        short_names: &[], categories: &[], namespaced: true,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "authorization/v1.LocalSubjectAccessReview",
    },
    Kind {
        group: "authorization.k8s.io", version: "v1", kind: "SelfSubjectAccessReview", list_kind: "SelfSubjectAccessReviewList", plural: "selfsubjectaccessreviews", singular: "selfsubjectaccessreview",
        short_names: &[], categories: &[], namespaced: false,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "authorization/v1.SelfSubjectAccessReview",
    },
    Kind {
        group: "authorization.k8s.io", version: "v1", kind: "SelfSubjectRulesReview", list_kind: "SelfSubjectRulesReviewList", plural: "selfsubjectrulesreviews", singular: "selfsubjectrulesreview",
        short_names: &[], categories: &[], namespaced: false,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "authorization/v1.SelfSubjectRulesReview",
    },
    Kind {
        group: "authorization.k8s.io", version: "v1", kind: "SubjectAccessReview", list_kind: "SubjectAccessReviewList", plural: "subjectaccessreviews", singular: "subjectaccessreview",
        short_names: &[], categories: &[], namespaced: false,
        verbs: CREATE, subresources: &[], storage_hash: "",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "authorization/v1.SubjectAccessReview",
    },
    Kind {
        group: "certificates.k8s.io", version: "v1", kind: "CertificateSigningRequest", list_kind: "CertificateSigningRequestList", plural: "certificatesigningrequests", singular: "certificatesigningrequest",
        short_names: &["csr"], categories: &[], namespaced: false,
        verbs: STANDARD, subresources: &[Subresource { name: "approval", group: "", version: "", kind: "CertificateSigningRequest", verbs: CHANGE }, status("CertificateSigningRequest")], storage_hash: "95fRKMXA+00=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "certificates/v1.CertificateSigningRequest",
    },
    Kind {
        group: "rbac.authorization.k8s.io", version: "v1", kind: "ClusterRoleBinding", list_kind: "ClusterRoleBindingList", plural: "clusterrolebindings", singular: "clusterrolebinding",
        short_names: &[], categories: &[], namespaced: false,
        verbs: STANDARD, subresources: &[], storage_hash: "48tpQ8gZHFc=",
        name_form: NameForm::PathSegment, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "rbac/v1.ClusterRoleBinding",
    },
    Kind {
        group: "rbac.authorization.k8s.io", version: "v1", kind: "ClusterRole", list_kind: "ClusterRoleList", plural: "clusterroles", singular: "clusterrole",
        short_names: &[], categories: &[], namespaced: false,
        verbs: STANDARD, subresources: &[], storage_hash: "bYE5ZWDrJ44=",
        name_form: NameForm::PathSegment, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "rbac/v1.ClusterRole",
    },
    Kind {
        group: "rbac.authorization.k8s.io", version: "v1", kind: "RoleBinding", list_kind: "RoleBindingList", plural: "rolebindings", singular: "rolebinding",
        short_names: &[], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "eGsCzGH6b1g=",
        name_form: NameForm::PathSegment, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "rbac/v1.RoleBinding",
    },
    Kind {
        group: "rbac.authorization.k8s.io", version: "v1", kind: "Role", list_kind: "RoleList", plural: "roles", singular: "role",
        short_names: &[], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "7FuwZcIIItM=",
        name_form: NameForm::PathSegment, returns_deleted: false, unconditional_update: true, create_on_update: true,
        type_name: "rbac/v1.Role",
    },
    Kind {
        group: "storage.k8s.io", version: "v1", kind: "CSINode", list_kind: "CSINodeList", plural: "csinodes", singular: "csinode",
        short_names: &[], categories: &[], namespaced: false,
        verbs: STANDARD, subresources: &[], storage_hash: "Pe62DkZtjuo=",
        name_form: NameForm::Subdomain, returns_deleted: true, unconditional_update: false, create_on_update: false,
        type_name: "storage/v1.CSINode",
    },
    Kind {
        group: "coordination.k8s.io", version: "v1", kind: "Lease", list_kind: "LeaseList", plural: "leases", singular: "lease",
        short_names: &[], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "gqkMMb/YqFM=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: false, create_on_update: true,
        type_name: "coordination/v1.Lease",
    },
    Kind {
        group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", list_kind: "EndpointSliceList", plural: "endpointslices", singular: "endpointslice",
        short_names: &[], categories: &[], namespaced: true,
        verbs: STANDARD, subresources: &[], storage_hash: "qgS0xkrxYAI=",
        name_form: NameForm::Subdomain, returns_deleted: false, unconditional_update: true, create_on_update: false,
        type_name: "discovery/v1.EndpointSlice",
    },
];
