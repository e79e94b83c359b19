//! The strategy of each kind.

use super::custom::Resource;
use super::definition::Definition;
use super::event::Event;
use super::job::Job;
use super::node::Node;
use super::pod::Pod;
use super::rbac::Rbac;
use super::service::Service;
use super::stored::Stored;
use super::strategy::Strategy;
use super::workload::Workload;
use super::{endpoints, simple_kinds};
use embedded_objects::kinds::Kind;

struct Plain;

impl Strategy for Plain {}

/// The strategy of a kind.
pub(super) fn of(kind: &Kind) -> &'static dyn Strategy {
    if kind.custom.is_some() {
        let has_status = kind.subresource("status").is_some();
        return if has_status { &Resource { has_status: true } } else { &Resource { has_status: false } };
    }
    match (kind.group, kind.kind) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &Definition,
        ("", "Service") => &Service,
        ("", "Node") => &Node,
        ("", "Pod") => &Pod,
        ("", "ConfigMap") => &simple_kinds::ConfigMap,
        ("", "Secret") => &simple_kinds::Secret,
        ("", "Namespace") => &simple_kinds::Namespace,
        ("", "ServiceAccount") => &simple_kinds::ServiceAccount,
        ("", "Endpoints") => &endpoints::Endpoints,
        ("", "Event") => &Event::Core,
        ("events.k8s.io", "Event") => &Event::New,
        ("coordination.k8s.io", "Lease") => &simple_kinds::Lease,
        ("discovery.k8s.io", "EndpointSlice") => &endpoints::Slice,
        ("certificates.k8s.io", "CertificateSigningRequest") => &simple_kinds::SigningRequest,
        ("batch", "Job") => &Job,
        ("apps", "Deployment") => &Workload::Deployment,
        ("apps", "ReplicaSet") => &Workload::ReplicaSet,
        ("apps", "DaemonSet") => &Workload::DaemonSet,
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => &Rbac::Role,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &Rbac::Binding,
        ("storage.k8s.io", "CSINode") | ("", "Binding") => &Plain,
        _ if kind.stored() => &Stored,
        _ => &Plain,
    }
}
