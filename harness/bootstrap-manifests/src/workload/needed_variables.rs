//! Variables whose values a program cannot use: empty ones, and those in which `$(NAME)` is not replaced
//! (`makeEnvironmentVariables` in `pkg/kubelet/kubelet_pods.go`).

use super::hindrance::Hindrance;
use super::kind::{Role, spec_path};
use super::outside::Condition;
use super::pods::Workload;
use super::refs::Stage;
use super::variables::{own_label, value_of};
use crate::manifest::{Node, Object, Objects, Place};

/// Endings of the names of variables without whose value a program cannot work.
const NEEDED: &[&str] = &["ENDPOINT", "URL", "HOST", "ADDRESS", "SERVER", "TOKEN", "FILE", "PATH", "CONFIG"];

fn is_needed(name: &str) -> bool {
    NEEDED.iter().any(|ending| name.to_uppercase().ends_with(ending))
}

/// What is wrong with the variables of a program.
#[derive(Default)]
struct Found {
    hindrances: Vec<Hindrance>,
    conditions: Vec<Condition>,
}

impl Found {
    fn never(&mut self, words: String, place: Place, advice: String) {
        self.hindrances.push(Hindrance::new(Stage::Work, words, place, advice));
    }
}

/// Records the variables that the program cannot use.
pub(super) fn judge(objects: &Objects, workload: &mut Workload) {
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return };
    let Some(spec) = object.node.at(spec_path(workload.kind)) else { return };
    if !matches!(workload.role, Role::Ccm | Role::NodeManager) {
        return;
    }
    let mut found = Found::default();
    for container in spec.get("containers").map(Node::items).unwrap_or_default() {
        empty(object, container, &mut found);
        of_maps(objects, object, container, &mut found);
        too_late(objects, object, container, &mut found);
        of_runtime(object, container, &mut found);
    }
    workload.hindrances.extend(found.hindrances);
    workload.conditions.extend(found.conditions);
}

fn variables(container: &Node) -> &[Node] {
    container.get("env").map(Node::items).unwrap_or_default()
}

fn name_of(variable: &Node) -> &str {
    variable.text_at("name").unwrap_or_default()
}

/// Variables with a label or an annotation that the Pods do not have.
fn empty(object: &Object, container: &Node, found: &mut Found) {
    for variable in variables(container) {
        let name = name_of(variable);
        let Some(path) = variable.at(&["valueFrom", "fieldRef", "fieldPath"]).and_then(Node::text) else {
            continue;
        };
        if is_needed(name) && own_label(object, path).is_some_and(|value| value.is_empty()) {
            let words = format!("the variable {name} is empty, as its Pods have no {path}");
            found.never(
                words,
                object.place(variable),
                format!("add it to the template, or set {name} in another way"),
            );
        }
    }
}

/// Values from ConfigMaps, in which a kubelet replaces nothing.
fn of_maps(objects: &Objects, object: &Object, container: &Node, found: &mut Found) {
    let mut unreplaced = |name: &str, value: &str, at: &Node| {
        if is_needed(name) && value.contains("$(") {
            let words = format!(
                "the variable {name} contains '{value}', in which nothing is replaced, as it comes from a ConfigMap"
            );
            let advice =
                String::from("write the whole value in the ConfigMap, or set the variable with 'value'");
            found.never(words, object.place(at), advice);
        }
    };
    for source in container.get("envFrom").map(Node::items).unwrap_or_default() {
        let name = source.at(&["configMapRef", "name"]).and_then(Node::text).unwrap_or_default();
        let map = objects.find("ConfigMap", &object.namespace, name);
        let prefix = source.text_at("prefix").unwrap_or_default();
        for entry in map.and_then(|map| map.node.get("data")).map(Node::entries).unwrap_or_default() {
            let name = format!("{prefix}{}", entry.key);
            // A variable in `env` replaces it.
            if !variables(container).iter().any(|own| name_of(own) == name) {
                unreplaced(&name, &entry.value.scalar().unwrap_or_default(), source);
            }
        }
    }
    for variable in variables(container) {
        let from = variable.get("valueFrom").filter(|from| from.get("configMapKeyRef").is_some());
        if let Some(value) = from.and_then(|from| value_of(objects, object, from)) {
            unreplaced(name_of(variable), &value, variable);
        }
    }
}

/// A limit of memory that Go's runtime does not understand: the program ends at once (`readGOMEMLIMIT` in
/// `runtime/mgcpacer.go`).
fn of_runtime(object: &Object, container: &Node, found: &mut Found) {
    const NAME: &str = "GOMEMLIMIT";
    let Some(variable) = variables(container).iter().rfind(|variable| name_of(variable) == NAME) else {
        return;
    };
    let value = variable.get("value").and_then(Node::scalar).unwrap_or_default();
    let number = value.strip_suffix('B').map_or(value.as_str(), |rest| {
        ["Ki", "Mi", "Gi", "Ti"].iter().find_map(|unit| rest.strip_suffix(unit)).unwrap_or(rest)
    });
    let is_size = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    if value.is_empty() || value == "off" || value.contains("$(") || is_size {
        return;
    }
    let words = format!("Go programs end at once with {NAME}={value}, which is not a size");
    let advice = format!("write {NAME} with a unit such as MiB, which is not the same as Mi");
    found.never(words, object.place(variable), advice);
}

/// Whether an object of `envFrom` defines a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    No,
    /// The manifests do not contain the object.
    Perhaps,
    Yes,
}

fn holds(objects: &Objects, object: &Object, source: &Node, variable: &str) -> Held {
    let Some(key) = variable.strip_prefix(source.text_at("prefix").unwrap_or_default()) else {
        return Held::No;
    };
    let map = source.at(&["configMapRef", "name"]).and_then(Node::text);
    match map.and_then(|map| objects.find("ConfigMap", &object.namespace, map)) {
        None => Held::Perhaps,
        Some(map) if map.node.at(&["data", key]).is_some() => Held::Yes,
        Some(_) => Held::No,
    }
}

/// Variables that use others which are defined after them.
fn too_late(objects: &Objects, object: &Object, container: &Node, found: &mut Found) {
    let all = variables(container);
    // Variables of Services are there from the start.
    let of_service =
        |name: &str| ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"].iter().any(|part| name.contains(part));
    let defined =
        |name: &str| all.iter().position(|variable| name_of(variable) == name).filter(|_| !of_service(name));
    for (at, variable) in all.iter().enumerate() {
        let value = variable.get("value").and_then(Node::scalar).unwrap_or_default();
        let used = value.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
        let sources = container.get("envFrom").map(Node::items).unwrap_or_default();
        let held = |name: &str| sources.iter().map(|source| holds(objects, object, source, name)).max();
        // Variables of `envFrom` come first, and one of them may have the same name.
        let mut late = used
            .filter(|(name, _)| defined(name).is_some_and(|other| other >= at))
            .map(|(name, _)| (name, held(name).unwrap_or(Held::No)))
            .filter(|(_, held)| *held != Held::Yes);
        let Some((later, held)) = late.next() else { continue };
        let (name, place) = (name_of(variable), object.place(variable));
        if held == Held::No && is_needed(name) {
            let words = format!(
                "the variable {name} uses $({later}), which is defined after it, so that it is not replaced"
            );
            found.never(words, place, format!("define {later} before {name}"));
        } else {
            let words = format!("it works with the variable {name} in which $({later}) is not replaced");
            found.conditions.push(Condition { words, place });
        }
    }
}
