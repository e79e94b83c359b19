//! What each kind does differently.

use serde_json::Value;

use super::event::Event;
use super::node::Node;
use super::pod::Pod;
use super::rbac::Rbac;
use super::service::Service;
use super::workload::Workload;
use super::{Context, endpoints, meta, small};
use crate::alloc::Allocator;
use crate::cause::Cause;
use crate::kinds::Kind;
use crate::status::Status;

/// The hooks of one kind; what a kind does not override, it does as every kind does.
pub(super) trait Strategy: Sync {
    /// Fills in defaults of a decoded object.
    fn default(&self, _object: &mut Value) {}

    /// Sets and drops what a creation may not bring.
    fn prepare_create(&self, _object: &mut Value, _cx: &mut Context<'_>) {}

    /// Allocates for a creation.
    fn allocate_create(&self, _object: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// The causes beyond metadata of an object that is created.
    fn validate_create(&self, _object: &Value, _cx: &Context<'_>) -> Vec<Cause> {
        Vec::new()
    }

    /// Keeps what an update of the object or of one subresource may not change.
    fn prepare_update(&self, _sub: Option<&str>, _old: &Value, _new: &mut Value, _cx: &mut Context<'_>) {}

    /// Allocates for an update of the object itself.
    fn allocate_update(&self, _old: &Value, _new: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// The causes of an update beyond those every kind has. Kinds check metadata once more themselves.
    fn validate_update(
        &self,
        _kind: &Kind,
        _sub: Option<&str>,
        old: &Value,
        new: &Value,
        _cx: &Context<'_>,
    ) -> Vec<Cause> {
        meta::changed(old, new)
    }

    /// Gives back what an object had.
    fn released(&self, _object: &Value, _allocator: &mut Allocator) {}

    /// Takes what a stored object has.
    fn restored(&self, _object: &Value, _allocator: &mut Allocator) {}
}

struct Plain;

impl Strategy for Plain {}

/// The strategy of a kind.
pub(super) fn of(kind: &Kind) -> &'static dyn Strategy {
    match (kind.group, kind.kind) {
        ("", "Service") => &Service,
        ("", "Node") => &Node,
        ("", "Pod") => &Pod,
        ("", "ConfigMap") => &small::ConfigMap,
        ("", "Secret") => &small::Secret,
        ("", "Namespace") => &small::Namespace,
        ("", "ServiceAccount") => &small::ServiceAccount,
        ("", "Endpoints") => &endpoints::Endpoints,
        ("", "Event") => &Event::Core,
        ("events.k8s.io", "Event") => &Event::New,
        ("coordination.k8s.io", "Lease") => &small::Lease,
        ("discovery.k8s.io", "EndpointSlice") => &endpoints::Slice,
        ("certificates.k8s.io", "CertificateSigningRequest") => &small::SigningRequest,
        ("apps", "Deployment") => &Workload::Deployment,
        ("apps", "ReplicaSet") => &Workload::ReplicaSet,
        ("apps", "DaemonSet") => &Workload::DaemonSet,
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => &Rbac::Role,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &Rbac::Binding,
        _ => &Plain,
    }
}
