//! The fields of a Pod and of its owner for which this model knows their effect. A field of a manifest that is not in
//! this table is reported, never ignored.

use super::kind::{WorkloadKind, spec_path};
use super::outside::Condition;
use crate::manifest::{Node, Object};
use embedded_objects::schema::{self, Shape, TypeId};

/// For each type, the fields that are modelled or cannot keep a Pod from running; `*` for all fields.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "apps/v1.DaemonSetSpec",
        &["selector", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit"],
    ),
    (
        "apps/v1.DeploymentSpec",
        &[
            "replicas",
            "selector",
            "template",
            "strategy",
            "minReadySeconds",
            "revisionHistoryLimit",
            "paused",
            "progressDeadlineSeconds",
        ],
    ),
    ("apps/v1.ReplicaSetSpec", &["replicas", "minReadySeconds", "selector", "template"]),
    ("apps/v1.DaemonSetUpdateStrategy", &["*"]),
    ("apps/v1.DeploymentStrategy", &["*"]),
    ("core/v1.Affinity", &["nodeAffinity", "podAffinity", "podAntiAffinity"]),
    ("core/v1.AppArmorProfile", &["*"]),
    ("core/v1.CSIVolumeSource", &["*"]),
    ("core/v1.Capabilities", &["*"]),
    ("core/v1.ClusterTrustBundleProjection", &["*"]),
    ("core/v1.ConfigMapEnvSource", &["*"]),
    ("core/v1.ConfigMapKeySelector", &["*"]),
    ("core/v1.ConfigMapProjection", &["*"]),
    ("core/v1.ConfigMapVolumeSource", &["*"]),
    (
        "core/v1.Container",
        &[
            "name",
            "image",
            "command",
            "args",
            "workingDir",
            "ports",
            "envFrom",
            "env",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "volumeMounts",
            "volumeDevices",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "imagePullPolicy",
            "securityContext",
            "stdin",
            "stdinOnce",
            "tty",
        ],
    ),
    ("core/v1.ContainerPort", &["*"]),
    ("core/v1.ContainerResizePolicy", &["*"]),
    ("core/v1.ContainerRestartRule", &["*"]),
    ("core/v1.DownwardAPIProjection", &["*"]),
    ("core/v1.DownwardAPIVolumeSource", &["*"]),
    ("core/v1.EmptyDirVolumeSource", &["medium", "sizeLimit"]),
    ("core/v1.EnvFromSource", &["prefix", "configMapRef", "secretRef"]),
    ("core/v1.EnvVar", &["name", "value", "valueFrom"]),
    (
        "core/v1.EnvVarSource",
        &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"],
    ),
    ("core/v1.EphemeralVolumeSource", &["*"]),
    ("core/v1.FileKeySelector", &["*"]),
    ("core/v1.HostAlias", &["*"]),
    ("core/v1.HostPathVolumeSource", &["path", "type"]),
    // The gate of stopSignal is off, so the API server drops it.
    ("core/v1.Lifecycle", &["postStart", "preStop", "stopSignal"]),
    ("core/v1.LifecycleHandler", &["*"]),
    ("core/v1.LocalObjectReference", &["*"]),
    ("core/v1.NodeAffinity", &["*"]),
    ("core/v1.ObjectFieldSelector", &["*"]),
    ("core/v1.PersistentVolumeClaimVolumeSource", &["*"]),
    (
        "core/v1.PodAffinity",
        &[
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ],
    ),
    (
        "core/v1.PodAffinityTerm",
        &[
            "labelSelector",
            "namespaces",
            "topologyKey",
            "namespaceSelector",
            "matchLabelKeys",
            "mismatchLabelKeys",
        ],
    ),
    (
        "core/v1.PodAntiAffinity",
        &[
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ],
    ),
    ("core/v1.PodCertificateProjection", &["*"]),
    ("core/v1.PodDNSConfig", &["*"]),
    ("core/v1.PodOS", &["name"]),
    ("core/v1.PodReadinessGate", &["*"]),
    ("core/v1.PodResourceClaim", &["*"]),
    ("core/v1.PodSchedulingGate", &["name"]),
    ("core/v1.PodSchedulingGroup", &["*"]),
    (
        "core/v1.PodSecurityContext",
        &[
            "runAsUser",
            "runAsGroup",
            "runAsNonRoot",
            "supplementalGroups",
            "fsGroup",
            "sysctls",
            "fsGroupChangePolicy",
            "seccompProfile",
            "appArmorProfile",
        ],
    ),
    (
        "core/v1.PodSpec",
        &[
            "volumes",
            "initContainers",
            "containers",
            "restartPolicy",
            "terminationGracePeriodSeconds",
            "activeDeadlineSeconds",
            "dnsPolicy",
            "nodeSelector",
            "serviceAccountName",
            "serviceAccount",
            "automountServiceAccountToken",
            "nodeName",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "shareProcessNamespace",
            "securityContext",
            "imagePullSecrets",
            "hostname",
            "subdomain",
            "setHostnameAsFQDN",
            "affinity",
            "schedulerName",
            "tolerations",
            "hostAliases",
            "priorityClassName",
            "priority",
            "dnsConfig",
            "readinessGates",
            "runtimeClassName",
            "enableServiceLinks",
            "preemptionPolicy",
            "topologySpreadConstraints",
            "os",
            "hostUsers",
            "schedulingGates",
            "resourceClaims",
            "resources",
            "schedulingGroup",
        ],
    ),
    ("core/v1.PodTemplateSpec", &["metadata", "spec"]),
    ("core/v1.Probe", &["*"]),
    ("core/v1.ProjectedVolumeSource", &["sources", "defaultMode"]),
    ("core/v1.ResourceFieldSelector", &["*"]),
    ("core/v1.ResourceRequirements", &["*"]),
    ("core/v1.SeccompProfile", &["*"]),
    ("core/v1.SecretEnvSource", &["*"]),
    ("core/v1.SecretKeySelector", &["*"]),
    ("core/v1.SecretProjection", &["*"]),
    ("core/v1.SecretVolumeSource", &["*"]),
    (
        "core/v1.SecurityContext",
        &[
            "capabilities",
            "privileged",
            "runAsUser",
            "runAsGroup",
            "runAsNonRoot",
            "readOnlyRootFilesystem",
            "allowPrivilegeEscalation",
            "procMount",
            "seccompProfile",
            "appArmorProfile",
        ],
    ),
    ("core/v1.ServiceAccountTokenProjection", &["*"]),
    ("core/v1.Sysctl", &["*"]),
    ("core/v1.Toleration", &["key", "operator", "value", "effect", "tolerationSeconds"]),
    (
        "core/v1.TopologySpreadConstraint",
        &[
            "maxSkew",
            "topologyKey",
            "whenUnsatisfiable",
            "labelSelector",
            "minDomains",
            "nodeAffinityPolicy",
            "nodeTaintsPolicy",
            "matchLabelKeys",
        ],
    ),
    // For most kinds of volumes it only matters whether the Node can mount them.
    ("core/v1.Volume", &["*"]),
    ("core/v1.VolumeDevice", &["*"]),
    ("core/v1.VolumeMount", &["name", "readOnly", "mountPath", "subPath", "subPathExpr", "mountPropagation"]),
    (
        "core/v1.VolumeProjection",
        &[
            "secret",
            "downwardAPI",
            "configMap",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ],
    ),
    ("core/v1.WeightedPodAffinityTerm", &["*"]),
    ("meta/v1.LabelSelector", &["*"]),
];

/// Types whose fields are not walked: their values are free, or belong to other kinds.
const OPAQUE: &[&str] = &["meta/v1.ObjectMeta"];

/// The fields of the manifest whose effect this model does not know.
pub(super) fn without_opinion(object: &Object, kind: WorkloadKind, spec: &Node) -> Vec<Condition> {
    let mut found = Vec::new();
    let top = match kind {
        WorkloadKind::Deployment => Some("apps/v1.DeploymentSpec"),
        WorkloadKind::DaemonSet => Some("apps/v1.DaemonSetSpec"),
        WorkloadKind::ReplicaSet if object.kind == "ReplicaSet" => Some("apps/v1.ReplicaSetSpec"),
        _ => None,
    };
    match (top.and_then(schema::find), object.node.get("spec")) {
        (Some(ty), Some(top)) => walk(object, ty, top, "spec", &mut found),
        _ => {
            let path = spec_path(kind).join(".");
            schema::find("core/v1.PodSpec").iter().for_each(|ty| walk(object, *ty, spec, &path, &mut found));
        }
    }
    found
}

fn walk(object: &Object, ty: TypeId, node: &Node, path: &str, found: &mut Vec<Condition>) {
    let known = schema::get(ty);
    if OPAQUE.contains(&known.name) {
        return;
    }
    let fields = KNOWN.iter().find(|(name, _)| *name == known.name).map_or(&[][..], |(_, fields)| fields);
    for entry in node.entries().iter().filter(|entry| !entry.value.is_null()) {
        // Fields that Kubernetes does not know are reported elsewhere.
        let Some(field) = known.field(&entry.key) else { continue };
        let path = format!("{path}.{}", entry.key);
        if !fields.contains(&"*") && !fields.contains(&field.json) {
            let words = format!("{path} keeps no Pod from running, on which this model has no opinion");
            found.push(Condition { words, place: object.place_of(node, &entry.key) });
            continue;
        }
        below(object, &field.shape, &entry.value, &path, found);
    }
}

fn below(object: &Object, shape: &Shape, node: &Node, path: &str, found: &mut Vec<Condition>) {
    match shape.bare() {
        Shape::Struct(ty) if is_walked(*ty) => walk(object, *ty, node, path, found),
        Shape::List(inner) => {
            for (at, item) in node.items().iter().enumerate() {
                below(object, inner, item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

/// Types without an entry are those below a type that is modelled as a whole.
fn is_walked(ty: TypeId) -> bool {
    KNOWN.iter().any(|(name, _)| *name == schema::get(ty).name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Fields with an unknown effect according to this table; extend this or the table above when the schema grows.
    const NONE: &[&str] = &[
        "core/v1.PodSecurityContext.seLinuxChangePolicy",
        "core/v1.PodSecurityContext.seLinuxOptions",
        "core/v1.PodSecurityContext.supplementalGroupsPolicy",
        "core/v1.PodSecurityContext.windowsOptions",
        "core/v1.PodSpec.ephemeralContainers",
        "core/v1.PodSpec.hostnameOverride",
        "core/v1.PodSpec.overhead",
        "core/v1.SecurityContext.seLinuxOptions",
        "core/v1.SecurityContext.windowsOptions",
        "core/v1.VolumeMount.recursiveReadOnly",
    ];

    #[test]
    fn every_field_of_a_pod_is_judged_or_named() {
        let mut open = vec!["apps/v1.DeploymentSpec", "apps/v1.DaemonSetSpec", "apps/v1.ReplicaSetSpec"];
        let (mut seen, mut without) = (BTreeSet::new(), BTreeSet::new());
        while let Some(name) = open.pop() {
            if OPAQUE.contains(&name) || !seen.insert(name) {
                continue;
            }
            let fields = KNOWN.iter().find(|(known, _)| *known == name);
            let (_, fields) = fields.unwrap_or_else(|| panic!("{name} is in no row of the table"));
            let ty = schema::get(schema::find(name).expect("a type of the schema"));
            for field in &ty.flat {
                if !fields.contains(&"*") && !fields.contains(&field.json) {
                    without.insert(format!("{name}.{}", field.json));
                    continue;
                }
                let mut shape = field.shape.bare();
                while let Shape::List(inner) | Shape::Map(inner) = shape {
                    shape = inner.bare();
                }
                if let Shape::Struct(below) = shape
                    && (!fields.contains(&"*") || name == "core/v1.Volume" && is_walked(*below))
                {
                    open.push(schema::get(*below).name);
                }
            }
            for field in fields.iter().filter(|field| **field != "*") {
                assert!(ty.field(field).is_some(), "{name} has no field {field}");
            }
        }
        let named: BTreeSet<String> = NONE.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(without, named);
    }
}
