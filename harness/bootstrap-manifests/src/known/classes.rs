//! Fields of Pods that admission plugins compare with the class that the Pod names: a Pod that states something else than
//! its PriorityClass or RuntimeClass is refused (`plugin/pkg/admission/priority`, `plugin/pkg/admission/runtimeclass`).

use crate::manifest::{Node, Object, Objects};
use crate::workload::{Hindrance, Stage, Workload, preempts, spec_path};

/// What the plugins refuse about the Pods of the workload.
pub(super) fn refused(objects: &Objects, object: &Object, workload: &Workload) -> Option<Hindrance> {
    let spec = object.node.at(spec_path(workload.kind))?;
    let never = |node: &Node, words: String, advice: &str| {
        Some(Hindrance::new(Stage::Creation, words, object.place(node), advice.to_owned()))
    };
    let stated = spec.get("priority").and_then(|node| Some((node, node.int()?)));
    if let Some((node, priority)) = stated
        && is_known(objects, workload)
        && priority != workload.priority
    {
        let words =
            format!("its priority {priority} is not that of its class, which is {}", workload.priority);
        return never(node, words, "remove 'priority': the class determines it");
    }
    if let Some(policy) = spec.get("preemptionPolicy")
        && is_known(objects, workload)
        && let Some(text) = policy.text()
        && (text == "Never") == preempts(objects, workload)
    {
        let words = format!("its preemptionPolicy '{text}' is not that of its class");
        return never(policy, words, "remove 'preemptionPolicy': the class determines it");
    }
    let overhead = spec.get("overhead").filter(|overhead| !overhead.entries().is_empty())?;
    let name = spec.text_at("runtimeClassName").unwrap_or_default();
    let class = objects.of_kind("RuntimeClass").find(|class| class.name == name);
    let of_class = class.and_then(|class| class.node.at(&["overhead", "podFixed"]));
    if !name.is_empty() && (class.is_none() || of_class.is_some()) {
        return None;
    }
    let words = "it states an overhead, and no RuntimeClass of its own has one".to_owned();
    never(overhead, words, "remove 'overhead': the RuntimeClass determines it")
}

/// Whether the manifests show which priority its class has.
fn is_known(objects: &Objects, workload: &Workload) -> bool {
    match &workload.priority_class {
        None => true,
        Some((name, _)) => {
            name.starts_with("system-") || objects.of_kind("PriorityClass").any(|class| class.name == *name)
        }
    }
}
