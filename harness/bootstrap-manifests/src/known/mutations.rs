//! MutatingAdmissionPolicies: how they change the Pods of the manifests, and which other requests of the boot they are
//! about.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`.

use super::Assumed;
use super::change::{Change, change};
use super::evaluation::Truth;
use super::expressions::{Checked, checked};
use super::policy::{Bound, Parameters};
use super::request::Request;
use crate::accept;
use crate::manifest::{Node, Objects, Place};
use crate::workload::{Condition, Hindrance, Stage, Workload, mounts_token, template_path, workloads};
use embedded_objects::{kinds, patch};
use serde_json::{Value, json};

const KIND: &str = "MutatingAdmissionPolicy";

/// The effect of a policy on an object.
enum Effect {
    /// It is as before.
    None,
    /// It is this.
    Changed(Value),
    /// The API server refuses the request.
    Refused,
    /// The manifests do not show it.
    Unknown,
}

/// What the policies do, by the index of the object of a workload.
#[derive(Default)]
struct Found {
    hindrances: Vec<(usize, Hindrance)>,
    conditions: Vec<(usize, Condition)>,
    templates: Vec<(usize, Node)>,
}

/// The workloads of the set with Pods as the policies change them. `objects` is changed as well: its templates are those of
/// the changed Pods.
pub fn mutated(objects: &mut Objects, assumed: &Assumed, refused: &[usize]) -> Vec<Workload> {
    let mut all = workloads(objects, refused);
    let mut found = Found::default();
    for policy in 0..Bound::all(objects, KIND).len() {
        let bound = Bound::all(objects, KIND)[policy];
        let refuses = Refuses { title: bound.title(), place: bound.policy.at() };
        for workload in &all {
            one(objects, assumed, &bound, workload, &refuses, &mut found);
        }
        let templates = std::mem::take(&mut found.templates);
        if !templates.is_empty() {
            let before = all;
            for (index, template) in templates {
                replace(objects, &before, index, template, &refuses, &mut found);
            }
            all = workloads(objects, refused);
            found.hindrances.extend(other_priorities(&before, &all, &refuses));
        }
    }
    for workload in &mut all {
        let own = |index: usize| Some(index) == workload.object;
        let hindrances = found.hindrances.iter().filter(|(index, _)| own(*index)).map(|(_, one)| one.clone());
        let conditions = found.conditions.iter().filter(|(index, _)| own(*index)).map(|(_, one)| one.clone());
        let (hindrances, conditions): (Vec<_>, Vec<_>) = (hindrances.collect(), conditions.collect());
        workload.hindrances.extend(hindrances);
        workload.conditions.extend(conditions);
    }
    all
}

/// A policy that makes the API server refuse Pods.
struct Refuses {
    title: String,
    place: Place,
}

impl Refuses {
    fn because(&self, what: &str) -> Hindrance {
        let words = format!("{} {what}", self.title);
        let advice = format!("change {}, or remove its binding", self.title);
        Hindrance::new(Stage::Creation, words, self.place.clone(), advice)
    }
}

/// Records what a policy does to the Pods of a workload and to its other requests.
fn one(
    objects: &Objects,
    assumed: &Assumed,
    bound: &Bound<'_>,
    workload: &Workload,
    refuses: &Refuses,
    found: &mut Found,
) {
    let Some(index) = workload.object else { return };
    let mut depends = others(objects, assumed, bound, workload);
    if of_pods(objects, bound, workload) {
        match effect(objects, assumed, bound, &admitted(objects, workload), "Pod") {
            Effect::None => {}
            Effect::Unknown => depends = true,
            Effect::Refused => {
                let what = "cannot change its Pods as it wants to, and they are refused";
                found.hindrances.push((index, refuses.because(what)));
            }
            Effect::Changed(pod) => match template(objects, workload, &pod) {
                Some(template) => found.templates.push((index, template)),
                None => {
                    let what = "takes away the volume of the token of its Pods, which are refused";
                    found.hindrances.push((index, refuses.because(what)));
                }
            },
        }
    }
    if depends {
        let words = format!("{} changes nothing that the boot needs", refuses.title);
        found.conditions.push((index, Condition { words, place: refuses.place.clone() }));
    }
}

/// Gives a workload another template, and records whether the API server refuses Pods of it.
fn replace(
    objects: &mut Objects,
    all: &[Workload],
    index: usize,
    template: Node,
    refuses: &Refuses,
    found: &mut Found,
) {
    let Some(kind) = all.iter().find(|own| own.object == Some(index)).map(|own| own.kind) else { return };
    objects.all[index].node.set(template_path(kind), template);
    if let Some(what) = accept::refused_pods(index, &objects.all[index], kind) {
        let what = format!("changes its Pods so that they are refused: {what}");
        found.hindrances.push((index, refuses.because(&what)));
    }
}

/// The workloads whose Pods a policy has given another priority. The priority was set before, and a change is refused
/// (`plugin/pkg/admission/priority`).
fn other_priorities(before: &[Workload], now: &[Workload], refuses: &Refuses) -> Vec<(usize, Hindrance)> {
    let differs = |workload: &&Workload| {
        before.iter().any(|own| own.object == workload.object && own.priority != workload.priority)
    };
    let hindrance = || refuses.because("changes the priority of its Pods, which is refused");
    now.iter().filter(differs).filter_map(|own| Some((own.object?, hindrance()))).collect()
}

/// Whether the policy is about the creation of the workload's Pods.
fn of_pods(objects: &Objects, bound: &Bound<'_>, workload: &Workload) -> bool {
    bound.in_namespace(objects, &workload.namespace)
        && bound.chooses_object(&workload.labels)
        && bound.has(&|rules| rules.pods())
}

/// Whether the boot depends on what the policy does to requests other than the creation of Pods.
fn others(objects: &Objects, assumed: &Assumed, bound: &Bound<'_>, workload: &Workload) -> bool {
    let all = checked(objects, bound, workload);
    let others = all.iter().filter(|(checked, request)| {
        *checked != Checked::Creation || request.attributes["resource"]["resource"] != "pods"
    });
    others.into_iter().any(|(_, request)| {
        let kind = request.attributes["kind"]["kind"].as_str().unwrap_or_default();
        match effect(objects, assumed, bound, request, kind) {
            Effect::None => false,
            // Labels and annotations of Nodes and Leases do not matter to the boot.
            Effect::Changed(after) => {
                request.object.as_ref().is_none_or(|before| before["spec"] != after["spec"])
            }
            Effect::Refused | Effect::Unknown => true,
        }
    })
}

/// The effect of the policy on a request for an object of a kind of the core group.
fn effect(objects: &Objects, assumed: &Assumed, bound: &Bound<'_>, request: &Request, kind: &str) -> Effect {
    let failed = if bound.fails_open() { Effect::None } else { Effect::Refused };
    let parameters = bound.parameters(objects, assumed, request.attributes["namespace"].as_str());
    let mut request = request.clone();
    match (bound.conditions(&request), parameters) {
        (Truth::No, _) | (_, Parameters::AbsentAllowed) => return Effect::None,
        (Truth::Unknown, _) | (_, Parameters::Unknown) => return Effect::Unknown,
        (Truth::Fails, _) | (_, Parameters::Error) => return failed,
        (Truth::Yes, Parameters::There(value)) => request.params = value,
    }
    let Some(before) = request.object.clone() else { return Effect::Unknown };
    let Some(kind) = kinds::by_kind(before["apiVersion"].as_str().unwrap_or("v1"), kind) else {
        return Effect::Unknown;
    };
    let variables = bound.variables();
    for mutation in bound.items("mutations") {
        let object = request.object.clone().unwrap_or_default();
        let (field, patches) = match mutation.text_at("patchType") {
            Some("JSONPatch") => ("jsonPatch", true),
            _ => ("applyConfiguration", false),
        };
        let expression = mutation.at(&[field, "expression"]).and_then(Node::text).unwrap_or_default();
        let after = match change(expression, &request, &variables) {
            Change::Unknown => return Effect::Unknown,
            Change::Fails => return failed,
            Change::Of(value) if patches => patch::json(&object, &value.to_string()).map_err(|_| ()),
            Change::Of(value) => patch::configure(kind, &object, &value).map_err(|_| ()),
        };
        match after {
            Ok(after) => request.object = Some(after),
            Err(()) => return failed,
        }
    }
    match request.object {
        Some(after) if after != before => Effect::Changed(after),
        _ => Effect::None,
    }
}

const TOKEN_VOLUME: &str = "kube-api-access-00000";

/// The creation of a Pod of the workload with everything that the API server adds before policies change it.
fn admitted(objects: &Objects, workload: &Workload) -> Request {
    let mut request = Request::pod(objects, workload);
    let Some(pod) = &mut request.object else { return request };
    let spec = &mut pod["spec"];
    let token = mounts_token(objects, workload);
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            for (name, value) in [
                ("resources", json!({})),
                ("terminationMessagePath", json!("/dev/termination-log")),
                ("terminationMessagePolicy", json!("File")),
                ("imagePullPolicy", json!("IfNotPresent")),
            ] {
                if container[name].is_null() {
                    container[name] = value;
                }
            }
            if token {
                push(&mut container["volumeMounts"], token_mount());
            }
        }
    }
    if token {
        push(&mut spec["volumes"], token_volume());
    }
    for toleration in default_tolerations() {
        push(&mut spec["tolerations"], toleration);
    }
    request
}

fn token_mount() -> Value {
    json!({"name": TOKEN_VOLUME, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"})
}

fn token_volume() -> Value {
    json!({"name": TOKEN_VOLUME, "projected": {}})
}

/// What the admission plugin `DefaultTolerationSeconds` adds. Pods that have such tolerations get two more here, which are
/// taken out again.
fn default_tolerations() -> [Value; 2] {
    ["not-ready", "unreachable"].map(|condition| {
        json!({"key": format!("node.kubernetes.io/{condition}"), "operator": "Exists", "effect": "NoExecute",
               "tolerationSeconds": 300})
    })
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

/// The template of the workload after its Pods have become this one; `None` if its containers no longer have the volume of
/// their token.
fn template(objects: &Objects, workload: &Workload, pod: &Value) -> Option<Node> {
    let old = objects.all[workload.object?].node.at(template_path(workload.kind))?;
    let mut before = admitted(objects, workload).object?;
    let mut after = pod.clone();
    let lacks =
        |pod: &Value| !pod["spec"]["volumes"].as_array().is_some_and(|all| all.contains(&token_volume()));
    if mounts_token(objects, workload) && lacks(&after) {
        return None;
    }
    for pod in [&mut before, &mut after] {
        let spec = &mut pod["spec"];
        take(&mut spec["volumes"], &token_volume());
        default_tolerations().iter().for_each(|toleration| take(&mut spec["tolerations"], toleration));
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                take(&mut container["volumeMounts"], &token_mount());
            }
        }
    }
    Some(old.changed(&before, &after))
}

/// Takes an item out of a list.
fn take(list: &mut Value, item: &Value) {
    if let Value::Array(items) = list {
        items.retain(|own| own != item);
    }
}
