//! Requests of the boot to the API server, as the expressions of admission see them.

use super::leases::{lease_exists, lease_of};
use super::matching::namespace_labels;
use super::resources::added;
use crate::manifest::{Node, Object, Objects};
use crate::workload::{CONTROL_PLANE, Workload, WorkloadKind, spec_path, template_path};
use serde_json::{Value, json};

/// A request: what is known of it beforehand.
#[derive(Clone)]
pub(super) struct Request {
    /// The variable `request` of an expression.
    pub(super) attributes: Value,
    /// The variable `object`; `None` if it is not known.
    pub(super) object: Option<Value>,
    /// The variable `namespaceObject`; `None` for an object without a namespace.
    pub(super) namespace: Option<Value>,
    /// The variable `params`; `None` if it is not known.
    pub(super) params: Option<Value>,
    /// Whether the object has no other fields than these and the hidden ones.
    pub(super) is_complete: bool,
    /// Whether the name of the object is known.
    pub(super) shows_name: bool,
    /// Fields of the object whose values are not known.
    pub(super) hidden: &'static [&'static str],
}

/// The attributes that requests differ in.
struct Attributes<'a> {
    operation: &'a str,
    group: &'a str,
    kind: &'a str,
    resource: &'a str,
    sub_resource: &'a str,
    namespace: Option<&'a str>,
    /// The user; `None` if it is not known.
    user: Option<String>,
}

impl Request {
    fn new(objects: &Objects, attributes: Attributes<'_>, object: Option<Value>) -> Request {
        let Attributes { operation, group, kind, resource, sub_resource, namespace, user } = attributes;
        let mut all = json!({
            "operation": operation,
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "subResource": sub_resource,
            "requestKind": {"group": group, "version": "v1", "kind": kind},
            "requestResource": {"group": group, "version": "v1", "resource": resource},
            "requestSubResource": sub_resource,
            "dryRun": false,
        });
        if let Some(user) = user {
            all["userInfo"] = json!({"username": user, "groups": groups_of(&user)});
        }
        if let Some(namespace) = namespace {
            all["namespace"] = json!(namespace);
        }
        let of_namespace =
            |name: &str| json!({"metadata": {"name": name, "labels": namespace_labels(objects, name)}});
        let namespace = namespace.map(of_namespace);
        Request {
            attributes: all,
            object,
            namespace,
            params: None,
            is_complete: false,
            shows_name: false,
            hidden: &[],
        }
    }

    /// The creation of a Pod of the workload by its controller.
    pub(super) fn pod(objects: &Objects, workload: &Workload) -> Request {
        let user = match workload.kind {
            WorkloadKind::Deployment | WorkloadKind::ReplicaSet => Some("replicaset-controller"),
            WorkloadKind::DaemonSet => Some("daemon-set-controller"),
            WorkloadKind::StatefulSet => Some("statefulset-controller"),
            WorkloadKind::Job | WorkloadKind::CronJob => Some("job-controller"),
            WorkloadKind::Pod => None,
        };
        let namespace = Some(workload.namespace.as_str());
        let (operation, kind, resource, user) = ("CREATE", "Pod", "pods", user.map(controller));
        let attributes =
            Attributes { operation, group: "", kind, resource, sub_resource: "", namespace, user };
        let hidden: &[&str] = match (super::is_ordinary(workload), workload.kind) {
            (true, _) => &["image", "labels", "annotations"],
            // Their controller binds them to their Nodes by an affinity.
            (false, WorkloadKind::DaemonSet) => &["affinity"],
            (false, _) => &[],
        };
        Request { hidden, ..Request::new(objects, attributes, pod_of(objects, workload)) }
    }

    /// The creation of what stands between the workload and its Pods.
    pub(super) fn owner(objects: &Objects, workload: &Workload) -> Request {
        let (group, kind, resource, user) = match workload.kind {
            WorkloadKind::CronJob => ("batch", "Job", "jobs", "cronjob-controller"),
            WorkloadKind::DaemonSet => {
                ("apps", "ControllerRevision", "controllerrevisions", "daemon-set-controller")
            }
            WorkloadKind::StatefulSet => {
                ("apps", "ControllerRevision", "controllerrevisions", "statefulset-controller")
            }
            _ => ("apps", "ReplicaSet", "replicasets", "deployment-controller"),
        };
        let namespace = Some(workload.namespace.as_str());
        let user = Some(controller(user));
        let attributes =
            Attributes { operation: "CREATE", group, kind, resource, sub_resource: "", namespace, user };
        Request::new(objects, attributes, None)
    }

    /// The binding of a Pod by the scheduler.
    pub(super) fn binding(objects: &Objects, workload: &Workload) -> Request {
        let attributes = Attributes {
            operation: "CREATE",
            group: "",
            kind: "Binding",
            resource: "pods",
            sub_resource: "binding",
            namespace: Some(&workload.namespace),
            user: workload.scheduler.is_none().then(|| "system:kube-scheduler".to_owned()),
        };
        let object = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": workload.namespace, "name": "", "uid": ""},
            "target": {"kind": "Node", "name": ""},
        });
        // The admission plugin PodTopologyLabels gives it the labels of zone and region.
        let hidden = &["target.name", "topology.kubernetes.io"];
        Request { is_complete: true, hidden, ..Request::new(objects, attributes, Some(object)) }
    }

    /// A kubelet's request for a token of the service account.
    pub(super) fn token(objects: &Objects, workload: &Workload) -> Request {
        let attributes = Attributes {
            operation: "CREATE",
            group: "",
            kind: "TokenRequest",
            resource: "serviceaccounts",
            sub_resource: "token",
            namespace: Some(&workload.namespace),
            user: None,
        };
        Request::new(objects, attributes, None)
    }

    /// The creation of the ConfigMap with the authority of the API server (`kube-root-ca.crt`) in the workload's namespace.
    pub(super) fn authority(objects: &Objects, workload: &Workload) -> Request {
        let attributes = Attributes {
            operation: "CREATE",
            group: "",
            kind: "ConfigMap",
            resource: "configmaps",
            sub_resource: "",
            namespace: Some(&workload.namespace),
            user: Some(controller("root-ca-cert-publisher")),
        };
        Request::new(objects, attributes, None)
    }

    /// The creation of the workload itself, by a user who is not known.
    pub(super) fn object(objects: &Objects, workload: &Workload) -> Request {
        let (group, resource) = match workload.kind {
            WorkloadKind::Deployment => ("apps", "deployments"),
            WorkloadKind::DaemonSet => ("apps", "daemonsets"),
            WorkloadKind::StatefulSet => ("apps", "statefulsets"),
            WorkloadKind::ReplicaSet => ("apps", "replicasets"),
            WorkloadKind::Job => ("batch", "jobs"),
            WorkloadKind::CronJob => ("batch", "cronjobs"),
            WorkloadKind::Pod => ("", "pods"),
        };
        let kind = workload.kind.to_string();
        let attributes = Attributes {
            operation: "CREATE",
            group,
            kind: &kind,
            resource,
            sub_resource: "",
            namespace: Some(&workload.namespace),
            user: None,
        };
        Request::new(objects, attributes, None)
    }

    /// The CCM's update that initialises a Node, with or without a taint that stays.
    pub(super) fn node(objects: &Objects, workload: &Workload, tainted: bool) -> Request {
        let mut spec = json!({"providerID": ""});
        if tainted {
            spec["taints"] = json!([{"key": CONTROL_PLANE, "effect": "NoSchedule"}]);
        }
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {}, "spec": spec});
        let hidden = &["providerID", "podCIDR", "podCIDRs", "metadata"];
        Request { is_complete: true, hidden, ..Request::of_node(objects, workload, "", Some(object)) }
    }

    /// The CCM's update of the status of a Node.
    pub(super) fn node_status(objects: &Objects, workload: &Workload) -> Request {
        Request::of_node(objects, workload, "status", None)
    }

    fn of_node(objects: &Objects, workload: &Workload, sub_resource: &str, object: Option<Value>) -> Request {
        let attributes = Attributes {
            operation: "UPDATE",
            group: "",
            kind: "Node",
            resource: "nodes",
            sub_resource,
            namespace: None,
            user: account_of(objects, workload),
        };
        Request::new(objects, attributes, object)
    }

    /// The CCM's write of its Lease.
    pub(super) fn lease(objects: &Objects, workload: &Workload, operation: &str, namespace: &str) -> Request {
        let attributes = Attributes {
            operation,
            group: "coordination.k8s.io",
            kind: "Lease",
            resource: "leases",
            sub_resource: "",
            namespace: Some(namespace),
            user: account_of(objects, workload),
        };
        let object = lease_of(workload).and_then(|(_, name)| {
            let seconds = lease_seconds(workload)?;
            Some(json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"namespace": namespace, "name": name},
                "spec": {"holderIdentity": "", "leaseDurationSeconds": seconds, "acquireTime": "", "renewTime": "",
                         "leaseTransitions": 0},
            }))
        });
        // A Lease of the manifests may have more fields.
        let is_complete = object.is_some() && !lease_exists(objects, workload);
        let hidden = &["holderIdentity", "acquireTime", "renewTime", "leaseTransitions"];
        let shows_name = object.is_some();
        let mut request = Request::new(objects, attributes, object);
        // The name of a program that is not known to use the framework may be another one.
        let names_it = shows_name || workload.flag("leader-elect-resource-name").is_some();
        if let Some((_, name)) = lease_of(workload).filter(|_| names_it) {
            request.attributes["name"] = json!(name);
        }
        Request { is_complete, shows_name, hidden, ..request }
    }
}

/// The duration of the CCM's Lease: the flag's, or the framework's default if it is a program of the framework.
fn lease_seconds(workload: &Workload) -> Option<i64> {
    const DEFAULT: i64 = 15;
    match workload.flag("leader-elect-lease-duration") {
        Some((text, _)) => text.strip_suffix('s')?.parse().ok(),
        None => workload.flag("cloud-provider").map(|_| DEFAULT),
    }
}

/// A controller of kube-controller-manager, which uses an account for each (kubeadm sets
/// `--use-service-account-credentials`).
fn controller(name: &str) -> String {
    format!("system:serviceaccount:kube-system:{name}")
}

/// The groups of a user.
fn groups_of(user: &str) -> Vec<String> {
    let mut groups = vec!["system:authenticated".to_owned()];
    if let Some(account) = user.strip_prefix("system:serviceaccount:") {
        let namespace = account.split(':').next().unwrap_or_default();
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups
}

/// The user of the CCM; `None` if it brings an identity of its own, or one for each controller.
fn account_of(objects: &Objects, workload: &Workload) -> Option<String> {
    let separate = workload
        .flag("use-service-account-credentials")
        .is_some_and(|(value, _)| value == "true" || value.is_empty());
    let own = separate || super::own_identity(objects, workload);
    (!own).then(|| format!("system:serviceaccount:{}:{}", workload.namespace, workload.service_account))
}

/// A Pod of the workload, as its template describes it.
fn pod_of(objects: &Objects, workload: &Workload) -> Option<Value> {
    let object = &objects.all[workload.object?];
    let template = object.node.at(template_path(workload.kind))?;
    let mut spec = object.node.at(spec_path(workload.kind)).map(Node::json)?;
    // One that the API server refuses is not judged further.
    let is_list_of_maps = |list: &str| {
        spec.get(list).and_then(Value::as_array).is_none_or(|all| all.iter().all(Value::is_object))
    };
    if !spec.is_object() || !["initContainers", "containers"].into_iter().all(is_list_of_maps) {
        return None;
    }
    let mut metadata = json!({"namespace": workload.namespace});
    for field in ["labels", "annotations"] {
        // The API server leaves out what is empty.
        if let Some(own) = template.at(&["metadata", field]).filter(|own| !own.entries().is_empty()) {
            metadata[field] = own.json();
        }
    }
    // What the API server adds to every Pod.
    for (name, value) in [
        ("serviceAccountName", json!(workload.service_account)),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
        ("serviceAccount", json!(workload.service_account)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
    ] {
        if spec[name].is_null() {
            spec[name] = value;
        }
    }
    spec["priority"] = json!(workload.priority);
    fill_resources(objects, workload, object.node.at(spec_path(workload.kind))?, &mut spec);
    Some(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
}

/// Writes what the API server adds to containers before any policy is asked: requests that are limits (`SetDefaults_Pod`), and
/// what limit ranges of the namespace add (`mergePodResourceRequirements`).
fn fill_resources(objects: &Objects, workload: &Workload, node: &Node, spec: &mut Value) {
    let ranges: Vec<&Object> =
        objects.of_kind("LimitRange").filter(|range| range.namespace == workload.namespace).collect();
    for list in ["initContainers", "containers"] {
        let nodes = node.get(list).map(Node::items).unwrap_or_default();
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, own) in containers.zip(nodes) {
            // Other values than maps are refused.
            let is_map = |value: &Value| value.is_null() || value.is_object();
            let resources = &container["resources"];
            if !is_map(resources) || !is_map(&resources["limits"]) || !is_map(&resources["requests"]) {
                continue;
            }
            for limit in own.at(&["resources", "limits"]).map(Node::entries).unwrap_or_default() {
                let request = &mut container["resources"]["requests"][&limit.key];
                if request.is_null() {
                    *request = limit.value.json();
                }
            }
            for (side, resource, amount) in added(&ranges, own) {
                container["resources"][side][resource] = json!(amount);
            }
        }
    }
}
