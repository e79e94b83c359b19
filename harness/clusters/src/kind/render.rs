//! The kind configuration of a cluster, from its topology and the properties of image and machine.
//!
//! Pure functions. Additions to a topology: kubelets that wait for a cloud provider, unless the cluster is a management
//! cluster (contract ENV-01 to ENV-04), an audit log of service accounts' requests, kind's pod network disabled, no
//! kube-proxy if the image has none, and settings for old control groups or old Kubernetes.

use super::audit;
use super::names::machine_names;
use super::network_proxy::ProxyFolders;
use super::preflight::Cgroups;
use super::record::KubeProxy;
use crate::record::Role;
use crate::spec::{ProviderIds, Purpose};
use crate::topology::Layout;
use crate::version::Version;
use harness_config::{NodeIp, ServingCertificates, yaml};
use serde_json::{Map, Value, json};

/// What the configuration depends on apart from the topology.
#[derive(Clone, Debug)]
pub(super) struct Facts<'a> {
    /// The cluster's name.
    pub(super) cluster: &'a str,
    /// Its purpose.
    pub(super) purpose: Purpose,
    /// Version of Kubernetes in the node image; `None` if kind chooses the image.
    pub(super) kubernetes: Option<&'a Version>,
    /// Port of the loopback address at which this machine reaches the API server. A port in the topology takes
    /// precedence.
    pub(super) api_server_port: u16,
    /// Version of kind.
    pub(super) kind: &'a Version,
    /// Control groups of the machine Docker runs on.
    pub(super) cgroups: Cgroups,
    /// Whether the node image has kube-proxy.
    pub(super) kube_proxy: KubeProxy,
    /// What kubelets write into `spec.providerID`.
    pub(super) provider_id: &'a ProviderIds,
    /// Whether kubelets set a node IP.
    pub(super) node_ip: NodeIp,
    /// The source of the kubelets' serving certificates.
    pub(super) serving: ServingCertificates,
    /// The files of a network proxy on the machines, if one is under test.
    pub(super) network_proxy: Option<&'a ProxyFolders>,
}

/// The format of extra arguments in kubeadm's configuration (contract ENV-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Name to value, up to v1beta3.
    Map,
    /// A list of name and value, from v1beta4 on.
    List,
}

/// A kubeadm configuration version to patch.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    form: Form,
    /// Only set if it is unknown which version kind will use: kind then applies the matching patch.
    api_version: Option<&'static str>,
}

/// An argument and its value; `None` removes an argument that kind would set.
type Argument<'a> = (&'a str, Option<String>);

/// The configuration as text.
pub(super) fn render(layout: &Layout, facts: &Facts<'_>) -> String {
    let mut config = layout.config.clone();
    let networking = object(&mut config, "networking");
    networking.insert("disableDefaultCNI".into(), json!(true));
    networking.entry("apiServerPort").or_insert(json!(facts.api_server_port));
    if facts.kube_proxy == KubeProxy::Absent {
        networking.insert("kubeProxyMode".into(), json!("none"));
    }
    // Before 1.22 kubeadm's etcd requests ephemeral storage, which a kubelet that was just restarted without its Node
    // does not know yet: sometimes it rejects etcd permanently (kubernetes/kubernetes pull request 102673). With the
    // feature gate off, ephemeral storage is ignored.
    if facts.kubernetes.is_some_and(|version| !version.is_at_least(1, 22)) {
        object(&mut config, "featureGates").insert("LocalStorageCapacityIsolation".into(), json!(false));
    }
    let roles = layout.roles();
    let control_planes = roles.iter().filter(|role| **role == Role::ControlPlane).count();
    let patches = list(&mut config, "kubeadmConfigPatches");
    patches.extend(cluster_patches(facts).iter().map(patch_text));
    patches.extend(controller_patches(facts, control_planes).iter().map(patch_text));
    let names = machine_names(facts.cluster, &roles);
    let nodes = config.get_mut("nodes").and_then(Value::as_array_mut).into_iter().flatten();
    for ((node, name), role) in nodes.filter_map(Value::as_object_mut).zip(names).zip(roles) {
        if let Some(folders) = facts.network_proxy {
            list(node, "extraMounts").push(folders.mount(role));
        }
        let Some(provider_id) = facts.provider_id.of(&name) else { continue };
        let arguments = [("provider-id", Some(provider_id))];
        let patches = dialects(facts).into_iter().flat_map(|dialect| kubelet_patches(dialect, &arguments));
        list(node, "kubeadmConfigPatches").extend(patches.map(|patch| patch_text(&patch)));
    }
    yaml::to_string(&config).expect("a kind configuration is plain data")
}

/// Patches for every machine.
fn cluster_patches(facts: &Facts<'_>) -> Vec<Value> {
    let mut patches = Vec::new();
    if facts.purpose == Purpose::Served {
        patches.extend(cloud_patches(facts));
    }
    patches.extend(api_server_patches(facts));
    patches.extend(etcd_patches(facts));
    patches.extend(sparing_patches(facts));
    // From 1.35 on a kubelet does not start on old control groups by default, also one that replaces an older kubelet and
    // reads its configuration. The setting is known from 1.31 on.
    if facts.cgroups == Cgroups::V1 && facts.kubernetes.is_none_or(|version| version.is_at_least(1, 31)) {
        patches.push(json!({ "kind": "KubeletConfiguration", "failCgroupV1": false }));
    }
    // By default a kubelet notices addresses that others write only when it posts a status, every five minutes.
    if facts.serving == ServingCertificates::Requested {
        patches.push(json!({
            "kind": "KubeletConfiguration",
            "serverTLSBootstrap": true,
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "2s",
        }));
    }
    patches
}

/// The settings that make machines wait for a cloud controller manager.
fn cloud_patches(facts: &Facts<'_>) -> Vec<Value> {
    let external = ("cloud-provider", Some("external".to_owned()));
    let mut kubelet: Vec<Argument<'_>> = vec![external];
    if *facts.provider_id == ProviderIds::Empty {
        kubelet.push(("provider-id", Some(String::new())));
    }
    if facts.node_ip == NodeIp::Dropped {
        kubelet.push(("node-ip", None));
    }
    let mut patches = Vec::new();
    for dialect in dialects(facts) {
        patches.extend(kubelet_patches(dialect, &kubelet));
    }
    patches
}

/// The settings of the control plane's own controllers.
fn controller_patches(facts: &Facts<'_>, control_planes: usize) -> Vec<Value> {
    let (mut manager, mut scheduler): (Vec<Argument<'_>>, Vec<Argument<'_>>) = (Vec::new(), Vec::new());
    // From 1.31 on the controller manager has no cloud loops that could be disabled (contract ENV-02).
    let has_loops = facts.kubernetes.is_some_and(|version| !version.is_at_least(1, 31));
    if facts.purpose == Purpose::Served && has_loops {
        manager.push(("cloud-provider", Some("external".to_owned())));
    }
    // Without competitors they need not exit when the API server was away, nor write a Lease every two seconds.
    if control_planes == 1 {
        let alone = ("leader-elect", Some("false".to_owned()));
        manager.push(alone.clone());
        scheduler.push(alone);
    }
    let with_arguments = |dialect: Dialect, arguments: &[Argument<'_>]| {
        let mut arguments = arguments.to_vec();
        if dialect.form == Form::List {
            // A list replaces kind's own.
            arguments.push(("enable-hostpath-provisioner", Some("true".to_owned())));
        }
        json!({ "extraArgs": extra_arguments(dialect, &arguments) })
    };
    let patched = |dialect: Dialect| {
        let mut body = Map::new();
        if !manager.is_empty() {
            body.insert("controllerManager".into(), with_arguments(dialect, &manager));
        }
        if !scheduler.is_empty() {
            body.insert("scheduler".into(), json!({ "extraArgs": extra_arguments(dialect, &scheduler) }));
        }
        (!body.is_empty()).then(|| patch(dialect, "ClusterConfiguration", Value::Object(body)))
    };
    dialects(facts).into_iter().filter_map(patched).collect()
}

/// The settings of API servers, and the files of their machine that they use: for their audit log, and for a network
/// proxy. They are one patch, as the volumes of a later one would replace these.
fn api_server_patches(facts: &Facts<'_>) -> Vec<Value> {
    let (mut arguments, mut volumes) = (Vec::new(), Vec::new());
    if facts.purpose == Purpose::Served {
        arguments.extend(audit::arguments());
        volumes.push(audit::volume());
    }
    if facts.network_proxy.is_some() {
        arguments.extend(ProxyFolders::arguments());
        volumes.push(ProxyFolders::volume());
    }
    if arguments.is_empty() {
        return Vec::new();
    }
    let patched = |dialect: Dialect| {
        let arguments = extra_arguments(dialect, &arguments);
        let api_server = json!({ "extraArgs": arguments, "extraVolumes": volumes });
        patch(dialect, "ClusterConfiguration", json!({ "apiServer": api_server }))
    };
    dialects(facts).into_iter().map(patched).collect()
}

/// Lets the operating system decide when etcd's writes go to disk: otherwise each write of the API server waits for a
/// busy disk, and clusters do not outlive their machine anyway. Kubernetes has an etcd with this flag, 3.5, from 1.22 on.
fn etcd_patches(facts: &Facts<'_>) -> Vec<Value> {
    if facts.kubernetes.is_none_or(|version| !version.is_at_least(1, 22)) {
        return Vec::new();
    }
    let patched = |dialect: Dialect| {
        let arguments = extra_arguments(dialect, &[("unsafe-no-fsync", Some("true".to_owned()))]);
        patch(dialect, "ClusterConfiguration", json!({ "etcd": { "local": { "extraArgs": arguments } } }))
    };
    dialects(facts).into_iter().map(patched).collect()
}

/// How much a program of the control plane allocates, in percent of what it uses, before it collects garbage (`GOGC`;
/// Go's default is 100).
const GARBAGE_PERCENT: &str = "300";

/// Settings that save processor time: less frequent garbage collection, and elliptic curve keys, which are faster to
/// create and in each handshake than RSA keys. kubeadm supports both from v1beta4 on.
fn sparing_patches(facts: &Facts<'_>) -> Vec<Value> {
    let variables = json!({ "extraEnvs": [{ "name": "GOGC", "value": GARBAGE_PERCENT }] });
    let body = json!({
        "encryptionAlgorithm": "ECDSA-P256",
        "apiServer": variables,
        "controllerManager": variables,
        "scheduler": variables,
        "etcd": { "local": variables },
    });
    let knows = dialects(facts).into_iter().filter(|dialect| dialect.form == Form::List);
    knows.map(|dialect| patch(dialect, "ClusterConfiguration", body.clone())).collect()
}

/// The kubeadm configuration versions that may be used; kind has supported v1beta4 since 0.32.
fn dialects(facts: &Facts<'_>) -> Vec<Dialect> {
    let knows_lists = facts.kind.is_at_least(0, 32);
    match facts.kubernetes {
        Some(version) if version.is_at_least(1, 36) && knows_lists => {
            vec![Dialect { form: Form::List, api_version: None }]
        }
        Some(_) => vec![Dialect { form: Form::Map, api_version: None }],
        None => vec![
            Dialect { form: Form::Map, api_version: Some("kubeadm.k8s.io/v1beta3") },
            Dialect { form: Form::List, api_version: Some("kubeadm.k8s.io/v1beta4") },
        ],
    }
}

fn kubelet_patches(dialect: Dialect, arguments: &[Argument<'_>]) -> Vec<Value> {
    let registration =
        json!({ "nodeRegistration": { "kubeletExtraArgs": extra_arguments(dialect, arguments) } });
    ["InitConfiguration", "JoinConfiguration"].map(|kind| patch(dialect, kind, registration.clone())).into()
}

fn extra_arguments(dialect: Dialect, arguments: &[Argument<'_>]) -> Value {
    match dialect.form {
        Form::Map => arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect::<Map<_, _>>()
            .into(),
        Form::List => arguments.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect(),
    }
}

fn patch(dialect: Dialect, kind: &str, body: Value) -> Value {
    let mut patch = Map::new();
    if let Some(api_version) = dialect.api_version {
        patch.insert("apiVersion".into(), json!(api_version));
    }
    patch.insert("kind".into(), json!(kind));
    if let Value::Object(body) = body {
        patch.extend(body);
    }
    Value::Object(patch)
}

fn patch_text(patch: &Value) -> Value {
    Value::String(yaml::to_string(patch).expect("a patch is plain data"))
}

fn object<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = parent.entry(key).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("it was just made an object")
}

fn list<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    let slot = parent.entry(key).or_insert(Value::Null);
    if !slot.is_array() {
        *slot = json!([]);
    }
    slot.as_array_mut().expect("it was just made a list")
}

#[cfg(test)]
mod tests;
