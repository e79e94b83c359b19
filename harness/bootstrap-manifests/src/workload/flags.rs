//! Flags of the framework whose value is written as a word of its own.

use super::container::Container;
use super::go_values::{TRUTHS, is_plain};
use super::hindrance::Hindrance;
use super::kind::{Role, spec_path};
use super::pods::Workload;
use super::refs::Stage;
use crate::manifest::{Node, Object, Objects};

/// Flags of truth values, which take a value only after `=` (`k8s.io/cloud-provider`, `k8s.io/component-base`, `apiserver`).
const OF_TRUTH: &[&str] = &[
    "allocate-node-cidrs",
    "allow-untagged-cloud",
    "authentication-skip-lookup",
    "authentication-tolerate-lookup-failure",
    "configure-cloud-routes",
    "contention-profiling",
    "enable-leader-migration",
    "leader-elect",
    "profiling",
    "use-service-account-credentials",
];

/// Arguments that a program of the framework does not accept: blank ones, and truth values that are none.
pub(super) fn refused_arguments(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    if workload.role != Role::Ccm {
        return None;
    }
    let object = &objects.all[workload.object?];
    let spec = object.node.at(spec_path(workload.kind))?;
    let nodes = spec.get("containers").map(Node::items).unwrap_or_default();
    let containers = workload.containers.iter().filter(|container| container.position.is_some());
    containers.zip(nodes).find_map(|(container, node)| {
        let is_foreign =
            container.flag("leader-elect").is_none() && container.flag("cloud-provider").is_none();
        let written: Vec<&Node> =
            ["command", "args"].iter().filter_map(|list| node.get(list)).flat_map(Node::items).collect();
        let before = std::iter::once("").chain(container.arguments.iter().map(|(text, _)| text.as_str()));
        container.arguments.iter().zip(written).zip(before).find_map(|(((argument, place), written), before)| {
            // Behind a flag without '=' it may be that flag's value.
            let takes_a_value = |flag: &str| !flag.contains('=') && !OF_TRUTH.contains(&flag);
            if is_foreign || before.strip_prefix("--").is_some_and(takes_a_value) {
                return None;
            }
            let exits = |words: String, advice: &str| {
                Some(Hindrance::new(Stage::Work, words, place.clone(), advice.to_owned()))
            };
            if !argument.is_empty() && argument.trim().is_empty() {
                let words = "the process exits, as one of its arguments contains only blanks";
                return exits(words.to_owned(), "remove the blank argument");
            }
            if let Some(variable) = undefined(argument, container, node, objects, object) {
                let words = format!(
                    "the process exits, as the variable {variable} is not defined and '{argument}' stays as an argument"
                );
                return exits(words, "define the variable, or remove the argument");
            }
            if let Some(level) = verbosity(argument).filter(|level| level.parse::<i32>().is_err()) {
                let words = format!("the process exits, as '{argument}' is one argument with a blank in it");
                return exits(words, &format!("write -v={}", level.trim()));
            }
            let (name, value) = argument.strip_prefix("--")?.split_once('=')?;
            // A variable that the manifests do not show may have any value; an escaped one has none.
            let is_known = !value.contains('$') || written.text().is_some_and(|text| text.contains("$$("));
            if !OF_TRUTH.contains(&name) || TRUTHS.contains(&value) || !is_known || value.contains("${") {
                return None;
            }
            exits(
                format!("the process exits, as '{value}' is not a value of --{name}"),
                "write true or false",
            )
        })
    })
}

/// The value of the short flag `-v`, if it is in the same argument and known.
fn verbosity(argument: &str) -> Option<&str> {
    let value = argument.strip_prefix("-v").filter(|value| !value.is_empty())?;
    let value = value.strip_prefix('=').unwrap_or(value);
    let looks_like_one = value.trim().chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '+'));
    (looks_like_one && is_plain(value)).then_some(value)
}

/// The variable of an argument `$(NAME)` that is certainly not defined.
fn undefined<'a>(
    argument: &'a str,
    container: &Container,
    node: &Node,
    objects: &Objects,
    object: &Object,
) -> Option<&'a str> {
    let name = argument.strip_prefix("$(")?.strip_suffix(')')?;
    let of_kubernetes =
        name.starts_with("KUBERNETES_") || name.contains("_SERVICE_") || name.contains("_PORT");
    if of_kubernetes || node.get("envFrom").is_some() || container.env.iter().any(|(own, ..)| own == name) {
        return None;
    }
    let items = node.get("env").map(Node::items).unwrap_or_default();
    let Some(item) = items.iter().find(|item| item.text_at("name") == Some(name)) else { return Some(name) };
    let key = item.at(&["valueFrom", "configMapKeyRef"])?;
    let map = objects.find("ConfigMap", &object.namespace, key.text_at("name")?)?;
    let is_optional = key.get("optional").and_then(Node::bool) == Some(true);
    (is_optional && map.node.at(&["data", key.text_at("key")?]).is_none()).then_some(name)
}

/// A truth value after a blank: the program takes the flag for true and the word for an argument, which a program of the
/// framework refuses (`app/controllermanager.go`, `Args`).
pub(super) fn separate_values(workload: &Workload) -> Option<Hindrance> {
    // Only programs of the framework are known to have these flags and no arguments.
    if workload.role != Role::Ccm || workload.flag("cloud-provider").is_none() {
        return None;
    }
    let containers = workload.containers.iter().filter(|container| !container.init);
    containers.flat_map(|container| container.arguments.windows(2)).find_map(|words| {
        let [(flag, _), (value, place)] = words else { return None };
        let name = flag.strip_prefix("--")?;
        (OF_TRUTH.contains(&name) && matches!(value.as_str(), "true" | "false")).then(|| {
            Hindrance::new(
                Stage::Work,
                format!(
                    "'{flag} {value}' sets {flag} to true, and the process exits because of the argument '{value}'"
                ),
                place.clone(),
                format!("write {flag}={value}"),
            )
        })
    })
}
