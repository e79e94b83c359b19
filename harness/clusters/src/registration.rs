//! The taints and labels that kubeadm and kind set on a Node of a topology when it registers, read from a kind
//! configuration as far as it contains them.
//!
//! kind applies the cluster's `kubeadmConfigPatches` before the node's own, each as a JSON merge patch (RFC 7386) of the
//! configuration of the same kind: `InitConfiguration` for the first control plane, `JoinConfiguration` for all others.

use harness_config::yaml;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// An initial taint of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTaint {
    /// Its key.
    pub key: String,
    /// Its value, often empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// What a Node has initially in addition to what kubelet and cloud set on every Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Whether it has the taint that kubeadm sets on control planes.
    pub kubeadms_taint: bool,
    /// Taints from the topology.
    pub taints: Vec<PlannedTaint>,
    /// Labels from the topology.
    pub labels: BTreeMap<String, String>,
    /// Why taints or labels are unknown, if the topology sets them in a way that is not supported here.
    pub unknown: Option<String>,
}

/// A node's position among the others, which determines its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The only machine: kind removes kubeadm's taint, so that Pods have somewhere to run.
    Only,
    /// The first control plane of kubeadm.
    FirstControlPlane,
    /// A control plane that joins.
    ControlPlane,
    /// A worker.
    Worker,
}

/// Reads the initial state of `node` on a cluster with that configuration.
///
/// # Errors
/// What is wrong with a patch, as a fragment after the topology's name.
pub(super) fn registration(
    config: &Map<String, Value>,
    node: &Value,
    place: Place,
) -> Result<Registration, String> {
    let kind = match place {
        Place::Only | Place::FirstControlPlane => "InitConfiguration",
        Place::ControlPlane | Place::Worker => "JoinConfiguration",
    };
    let mut read = Reading { kind, ..Reading::default() };
    read.labels.extend(strings(node.get("labels")));
    for level in [config.get("kubeadmConfigPatches"), node.get("kubeadmConfigPatches")] {
        for patch in level.and_then(Value::as_array).into_iter().flatten() {
            read.merge(patch)?;
        }
    }
    for level in [config.get("kubeadmConfigPatchesJSON6902"), node.get("kubeadmConfigPatchesJSON6902")] {
        for patch in level.and_then(Value::as_array).into_iter().flatten() {
            read.refuse_operations(patch);
        }
    }
    let control_plane = place != Place::Worker;
    let mut taints = read.registered;
    taints.extend(read.taints.clone().unwrap_or_default());
    if place == Place::Only {
        taints.retain(|taint| !taint.key.starts_with("node-role.kubernetes.io/"));
    }
    Ok(Registration {
        kubeadms_taint: control_plane && place != Place::Only && read.taints.is_none(),
        taints,
        labels: read.labels,
        unknown: read.unknown,
    })
}

/// The result of the patches so far for one node.
#[derive(Default)]
struct Reading {
    /// The kind of configuration with which the node is set up.
    kind: &'static str,
    /// `nodeRegistration.taints`; kubeadm's default if there are none.
    taints: Option<Vec<PlannedTaint>>,
    /// The kubelet's `--register-with-taints`.
    registered: Vec<PlannedTaint>,
    labels: BTreeMap<String, String>,
    unknown: Option<String>,
}

impl Reading {
    fn merge(&mut self, patch: &Value) -> Result<(), String> {
        let text = patch.as_str().ok_or("an entry of its kubeadmConfigPatches is not a string")?;
        let documents: Vec<Value> = yaml::from_str_multi(text, Path::new("kubeadmConfigPatches"))
            .map_err(|error| format!("an entry of its kubeadmConfigPatches is not YAML: {}", error.what))?;
        for document in documents {
            let registration = document.get("nodeRegistration");
            let (Some(Value::Object(registration)), true) =
                (registration, document.get("kind").and_then(Value::as_str) == Some(self.kind))
            else {
                continue;
            };
            if let Some(version) = document.get("apiVersion").and_then(Value::as_str) {
                // kind ignores a patch for another version than that of the configuration it writes.
                self.unknown = Some(format!("a patch of {} applies to {version} only", self.kind));
            }
            match registration.get("taints") {
                None => {}
                Some(Value::Null) => self.taints = None,
                Some(list) => self.taints = Some(taints(list)?),
            }
            self.arguments(registration.get("kubeletExtraArgs"))?;
        }
        Ok(())
    }

    /// The kubelet's arguments, as a map (up to v1beta3) or as a list of names and values.
    fn arguments(&mut self, arguments: Option<&Value>) -> Result<(), String> {
        let named = |argument: &Value| {
            let name = argument.get("name")?.as_str()?.to_owned();
            Some((name, argument.get("value").cloned().unwrap_or_default()))
        };
        let all: Vec<(String, Value)> = match arguments {
            Some(Value::Object(map)) => map.clone().into_iter().collect(),
            Some(Value::Array(list)) => list.iter().filter_map(named).collect(),
            _ => Vec::new(),
        };
        for (name, value) in all {
            let value = value.as_str().unwrap_or_default();
            match name.as_str() {
                "register-with-taints" => {
                    let parts = value.split(',').filter(|part| !part.is_empty());
                    self.registered = parts.map(argument_taint).collect::<Result<_, _>>()?;
                }
                "node-labels" => {
                    let pairs = value.split(',').filter_map(|pair| pair.split_once('='));
                    self.labels = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn refuse_operations(&mut self, patch: &Value) {
        let ours = patch.get("kind").and_then(Value::as_str) == Some(self.kind);
        let text = patch.get("patch").and_then(Value::as_str).unwrap_or_default();
        if ours && text.contains("nodeRegistration") {
            self.unknown = Some(format!("a JSON 6902 patch of {} changes nodeRegistration", self.kind));
        }
    }
}

fn taints(list: &Value) -> Result<Vec<PlannedTaint>, String> {
    let list = list.as_array().ok_or("nodeRegistration.taints in its kubeadmConfigPatches is not a list")?;
    list.iter()
        .map(|taint| {
            let text = |key: &str| taint.get(key).and_then(Value::as_str).unwrap_or_default();
            planned(text("key"), text("value"), text("effect"))
        })
        .collect()
}

/// Parses `key=value:Effect` or `key:Effect`.
fn argument_taint(text: &str) -> Result<PlannedTaint, String> {
    let (rest, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    planned(key, value, effect)
}

fn planned(key: &str, value: &str, effect: &str) -> Result<PlannedTaint, String> {
    if key.is_empty() || !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(format!("its kubeadmConfigPatches have the invalid taint '{key}={value}:{effect}'"));
    }
    Ok(PlannedTaint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
}

fn strings(map: Option<&Value>) -> BTreeMap<String, String> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
