//! What a RuntimeClass of the manifests adds to the Pods that name it: node labels and tolerations (admission plugin
//! `RuntimeClass`).

use super::hindrance::Hindrance;
use super::kind::spec_path;
use super::outside::handler_of;
use super::placement::{node_selector, tolerations};
use super::pods::Workload;
use super::refs::Stage;
use crate::manifest::Objects;

/// Adds the settings of the workload's RuntimeClass.
pub(super) fn apply(objects: &Objects, workload: &mut Workload) {
    let Some(object) = workload.object.map(|index| &objects.all[index]) else { return };
    let named = object.node.at(spec_path(workload.kind)).and_then(|spec| spec.text_at("runtimeClassName"));
    let Some(class) = objects.of_kind("RuntimeClass").find(|class| Some(class.name.as_str()) == named) else {
        return;
    };
    // containerd always has this handler.
    if class.node.text_at("handler") == Some("runc") {
        workload.conditions.retain(|condition| condition.words != handler_of(&class.name));
    }
    if let Some(scheduling) = class.node.get("scheduling") {
        for (key, value, place) in node_selector(class, scheduling) {
            match workload.node_selector.iter().find(|(own, ..)| *own == key) {
                Some((_, own, _)) if *own != value => {
                    let words = format!(
                        "RuntimeClass/{} selects Nodes with {key}={value}, and the Pod selects {key}={own}",
                        class.name
                    );
                    let advice = format!("let the Pod and RuntimeClass/{} select the same Nodes", class.name);
                    workload.hindrances.push(Hindrance::new(Stage::Creation, words, place, advice));
                }
                Some(_) => {}
                None => workload.node_selector.push((key, value, place)),
            }
        }
        workload.tolerations.extend(tolerations(class, scheduling));
    }
}
