//! Turns a vendor's manifests into the objects that are applied, and records every change. Pure functions.
//!
//! Two forms. *As shipped*: the manifests with placeholders filled in; bootstrap checks judge these. *Replicas*: one
//! single-replica copy of the workload per replica, each with its own cloud credential and secure port, so that the
//! cloud's journal tells the replicas apart even on one node (contract CLOUD-09) and each can be stopped alone.

mod edits;
mod released;
mod replica;

use super::arguments::{Flag, set_flag};
use super::bounds;
use super::kubeconfig::KUBECONFIG;
use super::manifests::{Manifests, ObjectKey, key_of, mentions, pod_spec_mut, substitute};
use super::metadata::{self, Metadata};
use super::trust;
pub use edits::REPLICA_LABEL;
use edits::{join_group, move_port, refer_to, set_apart, set_variable};
use harness_core::ledger::{SetBy, Setting};
pub(super) use released::{Placed, as_released};
use replica::{ENDPOINT, HOST, NO_PROXY, PORT, PROXY};
pub use replica::{Replica, TOKEN};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The objects to apply.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Objects in the order they are applied.
    pub documents: Vec<Value>,
    /// The workload, or its copies in the order of the replicas.
    pub workloads: Vec<ObjectKey>,
    /// What was changed apart from filling in placeholders.
    pub changes: Vec<Setting>,
}

/// Properties of the cluster and the profile that rendering needs.
#[derive(Clone, Debug, Default)]
pub struct RenderContext {
    /// Placeholders except those of a replica: `IMAGE`, and the profile's own.
    pub placeholders: BTreeMap<String, String>,
    /// The command of the CCM's container if its image contains several programs; empty for the image's own.
    pub command: Vec<String>,
    /// Host and port of the API server, set if the cluster has no kube-proxy and its Service address does not work.
    pub api_server: Option<(String, u16)>,
    /// The first of the supplementary groups that distinguish the packets of replicas, if the cluster uses them.
    pub group: Option<u32>,
    /// Variables of the CCM's container from the profile; values may contain placeholders.
    pub environment: BTreeMap<String, String>,
    /// How the cloud's metadata service is reached, if it has one.
    pub metadata: Option<Metadata>,
    /// Whether the CCM reaches the cloud through the variable `HTTP_PROXY`.
    pub http_proxy: bool,
    /// The CA of the cloud's API in PEM, if it is the run's.
    pub cloud_ca: Option<String>,
    /// Flags to set on the copies, and on a release in an upgrade.
    pub flags: Vec<Flag>,
    /// The secure port the manifests use; copies get their own.
    pub secure_port: u16,
    /// Whether the CCM accepts `--secure-port`.
    pub takes_secure_port: bool,
}

/// The manifests as shipped, with the credential and the endpoint of `first`.
pub fn as_shipped(manifests: &Manifests, first: Option<&Replica>, around: &RenderContext) -> Rendered {
    shipped(manifests, Renderer::of(manifests, around), first)
}

fn shipped(manifests: &Manifests, mut renderer: Renderer<'_>, first: Option<&Replica>) -> Rendered {
    let around = renderer.around;
    renderer.reach_api_server();
    renderer.use_local_image();
    renderer.set_command();
    if let Some(group) = around.group {
        join_group(&mut renderer.workload, group);
        let what = format!("supplementary group {group}, used to cut it off from the API server");
        renderer.changes.push(by_us(what));
    }
    renderer.reach_metadata();
    renderer.set_environment();
    renderer.use_http_proxy();
    first.iter().for_each(|replica| replica.fill_in(&mut renderer.table, around.http_proxy));
    let certificates = renderer.trust_the_cloud();
    let Renderer { workload, table, changes, .. } = renderer;
    let mut documents = manifests.documents.clone();
    documents[manifests.workload] = workload;
    documents.extend(certificates);
    documents.iter_mut().for_each(|document| substitute(document, &table));
    in_order(documents, vec![manifests.workload_key()], changes)
}

/// One copy of the workload per replica.
pub fn replicas(manifests: &Manifests, replicas: &[Replica], around: &RenderContext) -> Rendered {
    let mut renderer = Renderer::of(manifests, around);
    renderer.reach_api_server();
    renderer.use_local_image();
    renderer.set_command();
    renderer.reach_metadata();
    renderer.set_environment();
    renderer.become_deployment();
    renderer.drop_anti_affinity();
    let certificates = renderer.trust_the_cloud();
    renderer.drop_other_ports();
    renderer.set_bounds();
    renderer.set_flags();
    renderer.use_http_proxy();
    let copies = Copies::of(manifests, replicas);
    renderer.tell_of(&copies);
    if let Some(first) = replicas.first().filter(|_| !copies.are_apart) {
        first.fill_in(&mut renderer.table, around.http_proxy);
    }
    let mut documents: Vec<Value> = certificates.into_iter().collect();
    documents.extend(copies.common.iter().map(|document| filled_in(document, &renderer.table)));
    let mut workloads = Vec::new();
    for (index, replica) in (0_u32..).zip(replicas) {
        let copy = renderer.copy((index, replica), &copies.per_replica, &mut documents);
        workloads.push(key_of(&copy));
        documents.push(copy);
    }
    in_order(documents, workloads, renderer.changes)
}

/// The objects, in the order in which they are applied.
fn in_order(mut documents: Vec<Value>, workloads: Vec<ObjectKey>, changes: Vec<Setting>) -> Rendered {
    documents.sort_by_key(|document| rank(document["kind"].as_str().unwrap_or_default()));
    Rendered { documents, workloads, changes }
}

fn filled_in(document: &Value, table: &BTreeMap<String, String>) -> Value {
    let mut document = document.clone();
    substitute(&mut document, table);
    document
}

/// Which objects besides the workload the copies share, and which each copy has for itself.
struct Copies<'a> {
    count: usize,
    /// Whether each copy uses its own endpoint of the cloud.
    are_apart: bool,
    /// Whether they serve another cluster than the one on which they run.
    are_hosted: bool,
    common: Vec<&'a Value>,
    per_replica: Vec<&'a Value>,
}

impl<'a> Copies<'a> {
    fn of(manifests: &'a Manifests, replicas: &[Replica]) -> Copies<'a> {
        let are_apart = replicas.iter().any(|replica| replica.endpoint != replicas[0].endpoint);
        let is_own = |document: &&Value| {
            mentions(document, TOKEN)
                || mentions(document, KUBECONFIG)
                || are_apart && [ENDPOINT, HOST, PORT].iter().any(|part| mentions(document, part))
        };
        let numbered = manifests.documents.iter().enumerate();
        let others = numbered.filter(|(index, _)| *index != manifests.workload).map(|(_, document)| document);
        let (per_replica, common) = others.partition(is_own);
        let are_hosted = manifests.documents.iter().any(|document| mentions(document, KUBECONFIG));
        Copies { count: replicas.len(), are_apart, are_hosted, common, per_replica }
    }
}

/// A workload while the vendor's manifests are turned into the objects to apply.
struct Renderer<'a> {
    around: &'a RenderContext,
    /// The index of the CCM's container.
    container: usize,
    workload: Value,
    /// The placeholders collected so far.
    table: BTreeMap<String, String>,
    changes: Vec<Setting>,
}

impl<'a> Renderer<'a> {
    fn of(manifests: &Manifests, around: &'a RenderContext) -> Renderer<'a> {
        Renderer {
            around,
            container: manifests.container,
            workload: manifests.documents[manifests.workload].clone(),
            table: around.placeholders.clone(),
            changes: Vec::new(),
        }
    }

    /// The CCM's container.
    fn container(&mut self) -> &mut Value {
        &mut pod_spec_mut(&mut self.workload)["containers"][self.container]
    }

    fn reach_api_server(&mut self) {
        let Some((host, port)) = &self.around.api_server else { return };
        let Some(containers) = pod_spec_mut(&mut self.workload)["containers"].as_array_mut() else { return };
        for container in containers {
            set_variable(container, "KUBERNETES_SERVICE_HOST", host);
            set_variable(container, "KUBERNETES_SERVICE_PORT", &port.to_string());
        }
        self.changes.push(by_us(
            "KUBERNETES_SERVICE_HOST and _PORT name the API server, as the cluster has no kube-proxy",
        ));
    }

    fn use_local_image(&mut self) {
        let container = self.container();
        if container["imagePullPolicy"] != "IfNotPresent" && container["imagePullPolicy"] != "Never" {
            container["imagePullPolicy"] = json!("IfNotPresent");
            self.changes.push(by_us("imagePullPolicy IfNotPresent, as the image is loaded into the nodes"));
        }
    }

    /// Sets which program of its image the CCM is, if the manifests do not.
    fn set_command(&mut self) {
        let command = &self.around.command;
        let container = self.container();
        if !command.is_empty() && container.get("command").is_none() {
            container["command"] = json!(command);
            let what = format!("command {}, as the image is the harness's own", command.join(" "));
            self.changes.push(by_us(what));
        }
    }

    /// Sets the profile's variables; they replace those of the same name in the manifests.
    fn set_environment(&mut self) {
        for (name, value) in &self.around.environment {
            set_variable(self.container(), name, value);
            let what = format!("variable {name}, as the profile requires");
            self.changes.push(Setting::of_manifests(what, SetBy::Profile));
        }
    }

    /// Has the CCM's container reach the cloud through the run's proxy, where the profile asks for it.
    fn use_http_proxy(&mut self) {
        if !self.around.http_proxy {
            return;
        }
        let proxy = format!("${{{PROXY}}}");
        for (name, value) in [("HTTP_PROXY", proxy.as_str()), ("http_proxy", &proxy), ("NO_PROXY", NO_PROXY)]
        {
            set_variable(self.container(), name, value);
        }
        let what =
            "variables HTTP_PROXY and NO_PROXY, so that its calls to the cloud go through the run's proxy";
        self.changes.push(Setting::of_manifests(what, SetBy::Profile));
    }

    /// Configures the CCM's container for the cloud's metadata service, if there is one.
    fn reach_metadata(&mut self) {
        let Renderer { around, container, workload, table, changes } = self;
        let metadata = around.metadata.as_ref();
        let changed = metadata.and_then(|metadata| metadata::reach(workload, *container, metadata, table));
        changes.extend(changed.map(by_us));
    }

    /// Adds the cloud's CA to the CCM's container, and fills in its path; returns the ConfigMap.
    fn trust_the_cloud(&mut self) -> Option<Value> {
        let ca = self.around.cloud_ca.as_ref()?;
        let certificates = trust::mount(&mut self.workload, self.container, ca);
        self.table.extend(trust::placeholders());
        self.changes.push(by_us("a volume with the run's CA, to verify the cloud's certificate"));
        Some(certificates)
    }

    fn become_deployment(&mut self) {
        let workload = &mut self.workload;
        let kind = workload["kind"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "Deployment" => {}
            "Pod" => {
                let (metadata, spec) = (workload["metadata"].clone(), workload["spec"].clone());
                *workload = json!({
                    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                    "spec": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {}}, "spec": spec}},
                });
                self.changes.push(by_us("the Pod is run as a Deployment"));
            }
            _ => {
                workload["apiVersion"] = json!("apps/v1");
                workload["kind"] = json!("Deployment");
                if let Some(spec) = workload["spec"].as_object_mut() {
                    let others =
                        ["updateStrategy", "serviceName", "podManagementPolicy", "volumeClaimTemplates"];
                    spec.retain(|field, _| !others.contains(&field.as_str()));
                }
                self.changes.push(by_us(format!("the {kind} is run as Deployments")));
            }
        }
        workload["spec"]["replicas"] = json!(1);
        workload["spec"]["strategy"] = json!({"type": "Recreate"});
    }

    fn drop_anti_affinity(&mut self) {
        let affinity = &mut self.workload["spec"]["template"]["spec"]["affinity"];
        if affinity.as_object_mut().is_some_and(|map| map.remove("podAntiAffinity").is_some()) {
            self.changes.push(by_us("pod anti-affinity removed, so that copies can share a node"));
        }
        if affinity.is_null() {
            // Accessing a field by index creates it; the API server treats null as absent.
            *affinity = json!({});
        }
    }

    /// On the host's network a declared port is a port of the node: two copies with the same one could not share it.
    fn drop_other_ports(&mut self) {
        let secure_port = self.around.secure_port;
        let spec = pod_spec_mut(&mut self.workload);
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
            let what = "declared ports removed except the secure one, so that copies can share a node";
            self.changes.push(by_us(what));
        }
    }

    fn set_bounds(&mut self) {
        self.changes.extend(bounds::set(&mut self.workload, self.container).map(by_us));
    }

    fn set_flags(&mut self) {
        for flag in &self.around.flags {
            set_flag(&mut self.workload, self.container, flag);
            let by = if flag.from == SetBy::Profile { "profile" } else { "timing" };
            self.changes.push(Setting::of_manifests(format!("{flag}, as the {by} requires"), flag.from));
        }
    }

    fn tell_of(&mut self, copies: &Copies<'_>) {
        self.changes.push(by_us(format!(
            "{} single-replica copies of the workload, each with its own cloud credential{}{}{}",
            copies.count,
            if copies.are_apart { " and endpoint" } else { "" },
            if copies.are_hosted { " and kubeconfig" } else { "" },
            if self.around.takes_secure_port { " and secure port" } else { "" },
        )));
        if let Some(group) = self.around.group {
            self.changes.push(by_us(format!(
                "a supplementary group for each copy, from {group} on, used to cut it off from the API server"
            )));
        }
    }

    /// The workload of one replica; its own objects are added to `documents`.
    fn copy(&self, (index, replica): (u32, &Replica), own: &[&Value], documents: &mut Vec<Value>) -> Value {
        let around = self.around;
        let mut table = self.table.clone();
        replica.fill_in(&mut table, around.http_proxy);
        let mut copy = self.workload.clone();
        if let Some(group) = around.group {
            join_group(&mut copy, group + index);
        }
        for document in own {
            let key = key_of(document);
            let renamed = format!("{}-{}", key.name, replica.name);
            let mut document = (*document).clone();
            document["metadata"]["name"] = json!(renamed);
            document["metadata"]["labels"][REPLICA_LABEL] = json!(replica.name);
            documents.push(filled_in(&document, &table));
            refer_to(&mut copy["spec"]["template"]["spec"], &key.kind, &key.name, &renamed);
        }
        set_apart(&mut copy, &replica.name);
        if around.takes_secure_port {
            let port = Flag::of(&format!("secure-port={}", replica.secure_port), SetBy::Harness);
            set_flag(&mut copy, self.container, &port);
            move_port(&mut copy, self.container, around.secure_port, replica.secure_port);
        }
        substitute(&mut copy, &table);
        copy
    }
}

/// Order of application: objects that others refer to come first.
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

/// Records a change that the harness needs.
fn by_us(what: impl fmt::Display) -> Setting {
    Setting::of_manifests(what, SetBy::Harness)
}

#[cfg(test)]
mod tests;
