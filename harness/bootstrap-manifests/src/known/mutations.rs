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
use crate::workload::{
    Condition, Effect as TaintEffect, Hindrance, NOT_READY, Stage, TOKEN_FOLDER, Taint, UNREACHABLE,
    Workload, borne, mounts_token, template_path, workloads,
};
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
    templates: Vec<Changed>,
}

/// A template after a policy has changed the Pods.
struct Changed {
    /// The index of the object of the workload.
    index: usize,
    template: Node,
    /// The number of the Pods' priority that stands in them, if one does.
    priority: Option<i64>,
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
            let priorities: Vec<(usize, Option<i64>)> =
                templates.iter().map(|changed| (changed.index, changed.priority)).collect();
            for changed in templates {
                replace(objects, &all, changed, &refuses, &mut found);
            }
            all = workloads(objects, refused);
            found.hindrances.extend(other_priorities(&all, &priorities, &refuses));
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
            Effect::Changed(pod) if !is_well_formed(&pod) => {
                found.hindrances.push((index, refuses.because("changes its Pods so that they are refused")));
            }
            Effect::Changed(pod) => match template(objects, workload, &pod) {
                Some(template) => {
                    let priority = pod["spec"]["priority"].as_i64();
                    found.templates.push(Changed { index, template, priority });
                }
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
    Changed { index, template, .. }: Changed,
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

/// The workloads whose Pods state another priority than that of their class. The API server has computed the number before
/// policies, and refuses a different one (`plugin/pkg/admission/priority`).
fn other_priorities(
    all: &[Workload],
    stated: &[(usize, Option<i64>)],
    refuses: &Refuses,
) -> Vec<(usize, Hindrance)> {
    let differs = |(index, priority): &&(usize, Option<i64>)| {
        let workload = all.iter().find(|own| own.object == Some(*index));
        workload.zip(*priority).is_some_and(|(workload, priority)| workload.priority != priority)
    };
    let hindrance =
        || refuses.because("changes the priority class of its Pods, and not the number, which is refused");
    stated.iter().filter(differs).map(|(index, _)| (*index, hindrance())).collect()
}

/// Whether the model can read a changed Pod: its specification and its containers are maps.
fn is_well_formed(pod: &Value) -> bool {
    let Some(spec) = pod.get("spec").filter(|spec| spec.is_object()) else { return false };
    ["initContainers", "containers"].iter().all(|list| match spec.get(list) {
        None => true,
        Some(Value::Array(all)) => all.iter().all(Value::is_object),
        Some(_) => false,
    })
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
    // Parameters come first: if they are missing, the conditions do not matter.
    let mut all = bound.parameters(objects, assumed, request.attributes["namespace"].as_str());
    let params = match (all.pop(), all.is_empty()) {
        (Some(Parameters::There(params)), true) => params,
        (Some(Parameters::AbsentAllowed), _) => return Effect::None,
        (Some(Parameters::Error), _) => return failed,
        // Which of several comes last is not evaluated.
        (Some(_) | None, _) => return Effect::Unknown,
    };
    let mut request = Request { params, ..request.clone() };
    match bound.conditions(&request) {
        Truth::Yes => {}
        Truth::No => return Effect::None,
        Truth::Unknown => return Effect::Unknown,
        Truth::Fails => return failed,
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
            Change::Fails => None,
            Change::Of(value) if patches => patched(&object, &value),
            Change::Of(value) => patch::configure(kind, &object, &value).ok(),
        };
        match after.filter(Value::is_object) {
            Some(after) => request.object = Some(after),
            // The other mutations are carried out.
            None if bound.fails_open() => {}
            None => return Effect::Refused,
        }
    }
    match request.object {
        Some(after) if after != before => Effect::Changed(after),
        _ => Effect::None,
    }
}

/// The object after the operations of a JSON patch; `None` if one fails. A test that fails is not an error: then nothing is
/// changed.
fn patched(object: &Value, operations: &Value) -> Option<Value> {
    let mut now = object.clone();
    for operation in operations.as_array()? {
        match patch::json(&now, &json!([operation]).to_string()) {
            Ok(after) => now = after,
            Err(_) if operation["op"] == "test" => return Some(object.clone()),
            Err(_) => return None,
        }
    }
    Some(now)
}

const TOKEN_VOLUME: &str = "kube-api-access-00000";

/// The creation of a Pod of the workload with what the API server adds before policies change it.
fn admitted(objects: &Objects, workload: &Workload) -> Request {
    let mut request = Request::pod(objects, workload);
    let Some(spec) = request.object.as_mut().and_then(|pod| pod.get_mut("spec")) else { return request };
    let token = mounts_token(objects, workload);
    for container in containers(spec) {
        let image = container["image"].as_str().unwrap_or_default();
        let last = image.rsplit('/').next().unwrap_or_default();
        let is_latest = !last.contains([':', '@']) || last.ends_with(":latest");
        let policy = if is_latest { "Always" } else { "IfNotPresent" };
        for (name, value) in [
            ("resources", json!({})),
            ("terminationMessagePath", json!("/dev/termination-log")),
            ("terminationMessagePolicy", json!("File")),
            ("imagePullPolicy", json!(policy)),
        ] {
            if container[name].is_null() {
                container[name] = value;
            }
        }
        if token {
            push(&mut container["volumeMounts"], token_mount());
        }
    }
    if token {
        push(&mut spec["volumes"], token_volume());
    }
    for toleration in default_tolerations(workload) {
        push(&mut spec["tolerations"], toleration);
    }
    request
}

/// All containers of a Pod's specification.
fn containers(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let lists = spec.as_object_mut().into_iter().flat_map(|spec| spec.iter_mut());
    let lists = lists.filter(|(name, _)| matches!(name.as_str(), "initContainers" | "containers"));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten()
}

fn token_mount() -> Value {
    json!({"name": TOKEN_VOLUME, "readOnly": true, "mountPath": TOKEN_FOLDER})
}

fn token_volume() -> Value {
    json!({"name": TOKEN_VOLUME, "projected": {}})
}

/// What the admission plugin `DefaultTolerationSeconds` adds to Pods without such tolerations.
fn default_tolerations(workload: &Workload) -> Vec<Value> {
    let lacks = |key: &&str| !borne(&workload.tolerations, &Taint::new(key, "", TaintEffect::NoExecute));
    let toleration = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    [NOT_READY, UNREACHABLE].into_iter().filter(lacks).map(toleration).collect()
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
    for spec in [&mut before, &mut after].into_iter().filter_map(|pod| pod.get_mut("spec")) {
        take(spec.get_mut("volumes"), &token_volume());
        for toleration in default_tolerations(workload) {
            take(spec.get_mut("tolerations"), &toleration);
        }
        for container in containers(spec) {
            take(container.get_mut("volumeMounts"), &token_mount());
        }
    }
    Some(old.changed(&before, &after))
}

/// Takes the last such item out of a list.
fn take(list: Option<&mut Value>, item: &Value) {
    if let Some(Value::Array(items)) = list
        && let Some(at) = items.iter().rposition(|own| own == item)
    {
        items.remove(at);
    }
}
