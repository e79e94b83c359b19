//! From a vendor's manifests to what is applied, every change said openly. Pure.
//!
//! Two forms. *As shipped*: the manifests with placeholders filled in; bootstrap checks judge these. *Replicas*: one
//! single-replica copy of the workload per replica, each with its own cloud credential and secure port, so that the
//! cloud's journal tells the replicas apart even on one node (contract CLOUD-09) and each can be stopped alone.

use super::arguments::{Flag, set_flag};
use super::bounds;
use super::kubeconfig::KUBECONFIG;
use super::manifests::{Manifests, ObjectKey, array_at, key_of, mentions, pod_spec_mut, substitute};
use super::metadata::{self, Metadata};
use super::trust;
use harness_core::ledger::{SetBy, Setting};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Label that tells a copy from its sisters.
pub const REPLICA_LABEL: &str = "ccm-conformance.io/replica";
/// Placeholder of the cloud token in manifests.
pub const TOKEN: &str = "CLOUD_TOKEN";
/// Placeholder of the URL of the cloud's API.
const ENDPOINT: &str = "CLOUD_ENDPOINT";
/// Placeholders of the parts of it, for a CCM that is told host and port apart.
const HOST: &str = "CLOUD_HOST";
const PORT: &str = "CLOUD_PORT";

/// One replica: what sets it apart.
#[derive(Clone, Debug)]
pub struct Replica {
    /// Short name, e.g. `a`; also the name of its cloud credential.
    pub name: String,
    /// Its cloud token.
    pub token: String,
    /// Its `--secure-port`, unique per node under hostNetwork.
    pub secure_port: u16,
    /// URL of the cloud's API for it; empty where the profile says it.
    pub endpoint: String,
}

impl Replica {
    /// The placeholders of its own.
    fn fill_in(&self, table: &mut BTreeMap<String, String>) {
        table.insert(TOKEN.to_owned(), self.token.clone());
        // A driver may leave it to the profile where its cloud is.
        if !self.endpoint.is_empty() {
            table.insert(ENDPOINT.to_owned(), self.endpoint.clone());
            if let Some((host, port)) = host_and_port(&self.endpoint) {
                table.insert(HOST.to_owned(), host);
                table.insert(PORT.to_owned(), port);
            }
        }
    }
}

/// Host and port of a URL; the host without brackets.
fn host_and_port(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let usual = if scheme == "https" { "443" } else { "80" };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, usual),
    };
    Some((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port.to_owned()))
}

/// What is applied.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Objects in the order they are applied.
    pub documents: Vec<Value>,
    /// The workload, or its copies in the order of the replicas.
    pub workloads: Vec<ObjectKey>,
    /// What was changed beyond filling placeholders in.
    pub changes: Vec<Setting>,
}

/// Facts of the cluster and the profile that rendering needs.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Placeholders but those of a replica: `IMAGE`, the profile's own.
    pub placeholders: BTreeMap<String, String>,
    /// The command of the CCM's container where its image is one of several programs; empty where it is the image's own.
    pub command: Vec<String>,
    /// Host and port of the API server, set when the cluster has no kube-proxy and its Service address is dead.
    pub api_server: Option<(String, u16)>,
    /// The first of the supplementary groups by which the cluster tells replicas' packets from others', where it does.
    pub group: Option<u32>,
    /// Variables of the CCM's container, as the profile asks for; values may hold placeholders.
    pub environment: BTreeMap<String, String>,
    /// How the cloud's metadata service is reached, where it has one.
    pub metadata: Option<Metadata>,
    /// The CA by which the cloud's API is known, in PEM, where it is the run's.
    pub cloud_ca: Option<String>,
    /// Flags to set on the copies.
    pub flags: Vec<Flag>,
    /// The secure port the manifests use; copies get their own.
    pub secure_port: u16,
    /// Whether the CCM accepts `--secure-port`.
    pub takes_secure_port: bool,
}

/// The manifests as shipped, with the credential and the endpoint of `first`.
pub fn as_shipped(manifests: &Manifests, first: Option<&Replica>, around: &Surroundings) -> Rendered {
    let mut changes = Vec::new();
    let mut documents = manifests.documents.clone();
    reach_api_server(&mut documents[manifests.workload], around, &mut changes);
    use_local_image(&mut documents[manifests.workload], manifests.container, &mut changes);
    set_command(&mut documents[manifests.workload], manifests.container, around, &mut changes);
    if let Some(group) = around.group {
        join_group(&mut documents[manifests.workload], group);
        changes
            .push(by_us(format!("supplementary group {group}, by which it is cut off from the API server")));
    }
    let mut table = around.placeholders.clone();
    reach_metadata(&mut documents[manifests.workload], manifests.container, around, &mut table, &mut changes);
    set_environment(&mut documents[manifests.workload], manifests.container, around, &mut changes);
    first.iter().for_each(|replica| replica.fill_in(&mut table));
    let certificates = trust_the_cloud(
        &mut documents[manifests.workload],
        manifests.container,
        around,
        &mut table,
        &mut changes,
    );
    documents.extend(certificates);
    documents.iter_mut().for_each(|document| substitute(document, &table));
    documents.sort_by_key(|document| rank(document["kind"].as_str().unwrap_or_default()));
    Rendered { documents, workloads: vec![manifests.workload_key()], changes }
}

/// One copy of the workload per replica.
pub fn replicas(manifests: &Manifests, replicas: &[Replica], around: &Surroundings) -> Rendered {
    let mut changes = Vec::new();
    let mut template = manifests.documents[manifests.workload].clone();
    reach_api_server(&mut template, around, &mut changes);
    use_local_image(&mut template, manifests.container, &mut changes);
    set_command(&mut template, manifests.container, around, &mut changes);
    let mut common = around.placeholders.clone();
    reach_metadata(&mut template, manifests.container, around, &mut common, &mut changes);
    set_environment(&mut template, manifests.container, around, &mut changes);
    to_deployment(&mut template, &mut changes);
    drop_anti_affinity(&mut template, &mut changes);
    let certificates = trust_the_cloud(&mut template, manifests.container, around, &mut common, &mut changes);
    drop_other_ports(&mut template, around.secure_port, &mut changes);
    changes.extend(bounds::set(&mut template, manifests.container).map(by_us));
    for flag in &around.flags {
        set_flag(&mut template, manifests.container, flag);
        let by = if flag.from == SetBy::Profile { "profile" } else { "timing" };
        changes.push(Setting::of_manifests(format!("{flag}, as the {by} asks for"), flag.from));
    }
    let is_apart = replicas.iter().any(|replica| replica.endpoint != replicas[0].endpoint);
    let is_own = |document: &Value| {
        mentions(document, TOKEN)
            || mentions(document, KUBECONFIG)
            || is_apart && [ENDPOINT, HOST, PORT].iter().any(|part| mentions(document, part))
    };
    let is_hosted = manifests.documents.iter().any(|document| mentions(document, KUBECONFIG));
    changes.push(by_us(format!(
        "{} single-replica copies of the workload, each with its own cloud credential{}{}{}",
        replicas.len(),
        if is_apart { " and endpoint" } else { "" },
        if is_hosted { " and kubeconfig" } else { "" },
        if around.takes_secure_port { " and secure port" } else { "" },
    )));
    if let Some(group) = around.group {
        changes.push(by_us(format!(
            "a supplementary group for each copy, from {group} on, by which it is cut off from the API server"
        )));
    }

    let per_replica: Vec<&Value> = manifests
        .documents
        .iter()
        .enumerate()
        .filter(|(index, document)| *index != manifests.workload && is_own(document))
        .map(|(_, document)| document)
        .collect();
    if let Some(first) = replicas.first().filter(|_| !is_apart) {
        first.fill_in(&mut common);
    }
    let mut documents: Vec<Value> = certificates.into_iter().collect();
    for (index, document) in manifests.documents.iter().enumerate() {
        if index != manifests.workload && !is_own(document) {
            let mut document = document.clone();
            substitute(&mut document, &common);
            documents.push(document);
        }
    }
    let mut workloads = Vec::new();
    for (index, replica) in (0_u32..).zip(replicas) {
        let mut table = common.clone();
        replica.fill_in(&mut table);
        let mut copy = template.clone();
        if let Some(group) = around.group {
            join_group(&mut copy, group + index);
        }
        for document in &per_replica {
            let key = key_of(document);
            let renamed = format!("{}-{}", key.name, replica.name);
            let mut document = (*document).clone();
            document["metadata"]["name"] = json!(renamed);
            document["metadata"]["labels"][REPLICA_LABEL] = json!(replica.name);
            substitute(&mut document, &table);
            documents.push(document);
            refer_to(&mut copy["spec"]["template"]["spec"], &key.kind, &key.name, &renamed);
        }
        set_apart(&mut copy, &replica.name);
        if around.takes_secure_port {
            let port = Flag::of(&format!("secure-port={}", replica.secure_port), SetBy::Harness);
            set_flag(&mut copy, manifests.container, &port);
            move_port(&mut copy, manifests.container, around.secure_port, replica.secure_port);
        }
        substitute(&mut copy, &table);
        workloads.push(key_of(&copy));
        documents.push(copy);
    }
    documents.sort_by_key(|document| rank(document["kind"].as_str().unwrap_or_default()));
    Rendered { documents, workloads, changes }
}

/// Order of application: what others refer to comes first.
pub fn rank(kind: &str) -> u8 {
    match kind {
        "Namespace" => 0,
        "CustomResourceDefinition" | "PriorityClass" => 1,
        "ServiceAccount" => 2,
        "Role" | "ClusterRole" => 3,
        "RoleBinding" | "ClusterRoleBinding" => 4,
        "Secret" | "ConfigMap" => 5,
        "Deployment" | "DaemonSet" | "StatefulSet" | "Pod" => 9,
        _ => 6,
    }
}

/// A change that the machinery needs.
fn by_us(what: impl fmt::Display) -> Setting {
    Setting::of_manifests(what, SetBy::Harness)
}

fn reach_api_server(workload: &mut Value, around: &Surroundings, changes: &mut Vec<Setting>) {
    let Some((host, port)) = &around.api_server else { return };
    let Some(containers) = pod_spec_mut(workload)["containers"].as_array_mut() else { return };
    for container in containers {
        for (name, value) in
            [("KUBERNETES_SERVICE_HOST", host.clone()), ("KUBERNETES_SERVICE_PORT", port.to_string())]
        {
            let env = array_at(container, "env");
            env.retain(|entry| entry["name"] != name);
            env.push(json!({"name": name, "value": value}));
        }
    }
    changes.push(by_us(
        "KUBERNETES_SERVICE_HOST and _PORT name the API server, as the cluster has no kube-proxy",
    ));
}

fn use_local_image(workload: &mut Value, container: usize, changes: &mut Vec<Setting>) {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    if container["imagePullPolicy"] != "IfNotPresent" && container["imagePullPolicy"] != "Never" {
        container["imagePullPolicy"] = json!("IfNotPresent");
        changes.push(by_us("imagePullPolicy IfNotPresent, as the image is loaded into the nodes"));
    }
}

/// Has the Pods' processes be of a group that nobody else is of.
fn join_group(workload: &mut Value, group: u32) {
    let spec = pod_spec_mut(workload);
    if !spec["securityContext"].is_object() {
        spec["securityContext"] = json!({});
    }
    array_at(&mut spec["securityContext"], "supplementalGroups").push(json!(group));
}

/// Says which program of its image the CCM is, where the manifests leave it to the image.
fn set_command(workload: &mut Value, container: usize, around: &Surroundings, changes: &mut Vec<Setting>) {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    if !around.command.is_empty() && container.get("command").is_none() {
        container["command"] = json!(around.command);
        changes
            .push(by_us(format!("command {}, as the image is the harness's own", around.command.join(" "))));
    }
}

/// The profile's variables; one of the same name in the manifests gives way.
fn set_environment(
    workload: &mut Value,
    container: usize,
    around: &Surroundings,
    changes: &mut Vec<Setting>,
) {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    for (name, value) in &around.environment {
        let env = array_at(container, "env");
        env.retain(|entry| entry["name"] != *name);
        env.push(json!({"name": name, "value": value}));
        let what = format!("variable {name}, as the profile asks for");
        changes.push(Setting::of_manifests(what, SetBy::Profile));
    }
}

/// Has the CCM's container reach the cloud's metadata service, where there is one.
fn reach_metadata(
    workload: &mut Value,
    container: usize,
    around: &Surroundings,
    table: &mut BTreeMap<String, String>,
    changes: &mut Vec<Setting>,
) {
    let metadata = around.metadata.as_ref();
    let changed = metadata.and_then(|metadata| metadata::reach(workload, container, metadata, table));
    changes.extend(changed.map(by_us));
}

/// Puts the CA of the cloud into the CCM's container, and says where it is; what it is in there.
fn trust_the_cloud(
    workload: &mut Value,
    container: usize,
    around: &Surroundings,
    table: &mut BTreeMap<String, String>,
    changes: &mut Vec<Setting>,
) -> Option<Value> {
    let certificates = trust::mount(workload, container, around.cloud_ca.as_ref()?);
    table.extend(trust::placeholders());
    changes.push(by_us("a volume with the CA of the run's proxy, by which the cloud is known"));
    Some(certificates)
}

fn to_deployment(workload: &mut Value, changes: &mut Vec<Setting>) {
    let kind = workload["kind"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "Deployment" => {}
        "Pod" => {
            let (metadata, spec) = (workload["metadata"].clone(), workload["spec"].clone());
            *workload = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                "spec": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {}}, "spec": spec}},
            });
            changes.push(by_us("the Pod is run as a Deployment"));
        }
        _ => {
            workload["apiVersion"] = json!("apps/v1");
            workload["kind"] = json!("Deployment");
            if let Some(spec) = workload["spec"].as_object_mut() {
                for field in ["updateStrategy", "serviceName", "podManagementPolicy", "volumeClaimTemplates"]
                {
                    spec.remove(field);
                }
            }
            changes.push(by_us(format!("the {kind} is run as Deployments")));
        }
    }
    workload["spec"]["replicas"] = json!(1);
    workload["spec"]["strategy"] = json!({"type": "Recreate"});
}

fn drop_anti_affinity(workload: &mut Value, changes: &mut Vec<Setting>) {
    let affinity = &mut workload["spec"]["template"]["spec"]["affinity"];
    if affinity.as_object_mut().is_some_and(|map| map.remove("podAntiAffinity").is_some()) {
        changes.push(by_us("pod anti-affinity left out, so that copies can share a node"));
    }
    if affinity.is_null() {
        // Looking a field up by index creates it; null is what the API server takes for absent.
        *affinity = json!({});
    }
}

/// On the hosts' network a declared port is one of the node's: two copies with the same one would not share it.
fn drop_other_ports(workload: &mut Value, secure_port: u16, changes: &mut Vec<Setting>) {
    let spec = pod_spec_mut(workload);
    if spec["hostNetwork"] != true {
        return;
    }
    let mut dropped = false;
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        if let Some(ports) = container.get_mut("ports").and_then(Value::as_array_mut) {
            let before = ports.len();
            ports.retain(|port| port["containerPort"] == secure_port);
            dropped |= ports.len() < before;
        }
    }
    if dropped {
        changes.push(by_us("declared ports but the secure one left out, so that copies can share a node"));
    }
}

fn move_port(workload: &mut Value, container: usize, from: u16, to: u16) {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        for field in ["containerPort", "hostPort"] {
            if port[field] == from {
                port[field] = json!(to);
            }
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        for kind in ["httpGet", "tcpSocket"] {
            if container.get(probe).and_then(|p| p.get(kind)).is_some_and(|p| p["port"] == from) {
                container[probe][kind]["port"] = json!(to);
            }
        }
    }
}

/// Gives a copy its own name and labels.
fn set_apart(workload: &mut Value, replica: &str) {
    let name = workload["metadata"]["name"].as_str().unwrap_or("ccm").to_owned();
    workload["metadata"]["name"] = json!(format!("{name}-{replica}"));
    workload["metadata"]["labels"][REPLICA_LABEL] = json!(replica);
    workload["spec"]["selector"]["matchLabels"][REPLICA_LABEL] = json!(replica);
    workload["spec"]["template"]["metadata"]["labels"][REPLICA_LABEL] = json!(replica);
}

/// Points references to a Secret or ConfigMap at its copy.
fn refer_to(value: &mut Value, kind: &str, name: &str, renamed: &str) {
    let fields: &[&str] = match kind {
        "Secret" => &["secret", "secretKeyRef", "secretRef"],
        "ConfigMap" => &["configMap", "configMapKeyRef", "configMapRef"],
        _ => &[],
    };
    match value {
        Value::Object(map) => {
            for (field, inner) in map.iter_mut() {
                if fields.contains(&field.as_str()) {
                    for key in ["name", "secretName"] {
                        if inner.get(key).is_some_and(|n| n == name) {
                            inner[key] = json!(renamed);
                        }
                    }
                }
                refer_to(inner, kind, name, renamed);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| refer_to(item, kind, name, renamed)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
