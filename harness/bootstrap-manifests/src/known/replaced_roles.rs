//! ClusterRoles of Kubernetes' own components that the manifests replace. The API server writes their rules only when it starts
//! (`PostStartHook` of `storage_rbac.go`), so until then the component has what the manifests grant.

use super::rights::role_grants;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{Hindrance, Stage, Workload, WorkloadKind};

/// A role, and a right without which its component does not do its part of a boot: group, resource and verb.
type Needed = (&'static str, (&'static str, &'static str, &'static str));

const SCHEDULER: Needed = ("system:kube-scheduler", ("", "pods/binding", "create"));

/// Why no Pod of the workload is created or scheduled, if a role of the manifests is the reason. One that comes after the
/// workload may come too late to matter.
pub(super) fn too_small(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    const PODS: (&str, &str, &str) = ("", "pods", "create");
    let creators: &[Needed] = match workload.kind {
        WorkloadKind::Deployment => &[
            ("system:controller:deployment-controller", ("apps", "replicasets", "create")),
            ("system:controller:replicaset-controller", PODS),
        ],
        WorkloadKind::ReplicaSet => &[("system:controller:replicaset-controller", PODS)],
        WorkloadKind::DaemonSet => &[("system:controller:daemon-set-controller", PODS)],
        WorkloadKind::StatefulSet => &[("system:controller:statefulset-controller", PODS)],
        WorkloadKind::Job => &[("system:controller:job-controller", PODS)],
        WorkloadKind::CronJob => &[
            ("system:controller:cronjob-controller", ("batch", "jobs", "create")),
            ("system:controller:job-controller", PODS),
        ],
        WorkloadKind::Pod => &[],
    };
    let is_scheduled = workload.node_name.is_none() && workload.scheduler.is_none();
    let stages = creators.iter().map(|needed| (Stage::Creation, needed));
    let scheduling = is_scheduled.then_some((Stage::Scheduling, &SCHEDULER));
    stages.chain(scheduling).find_map(|(stage, (name, right))| {
        let role = replaced(objects, workload, name).filter(|role| !role_grants(objects, role, *right))?;
        let (_, resource, verb) = right;
        Some(Hindrance::new(
            stage,
            format!("ClusterRole/{name} of the manifests replaces that of Kubernetes, and no longer allows it to {verb} {resource}"),
            role.at(),
            format!("remove ClusterRole/{name} from the manifests"),
        ))
    })
}

/// The role with this name before the workload. kubectl changes only what a manifest states, and other bindings of the manifests
/// may give the component what the role lacks.
fn replaced<'o>(objects: &'o Objects, workload: &Workload, name: &str) -> Option<&'o Object> {
    let own = workload.object?;
    let states_rules =
        |role: &Object| ["rules", "aggregationRule"].iter().any(|key| role.node.get(key).is_some());
    let mut roles = objects.numbered("ClusterRole");
    let (_, role) = roles.find(|(index, role)| role.name == name && *index < own && states_rules(role))?;
    let component = name.rsplit(':').next().unwrap_or_default();
    let names_it = |subject: &Node| {
        let given = subject.text_at("name").unwrap_or_default();
        subject.text_at("kind") == Some("Group") || given == name || given.ends_with(component)
    };
    let bindings = ["ClusterRoleBinding", "RoleBinding"].into_iter().flat_map(|kind| objects.of_kind(kind));
    let mut subjects = bindings.filter_map(|binding| binding.node.get("subjects")).flat_map(Node::items);
    (!subjects.any(names_it)).then_some(role)
}
