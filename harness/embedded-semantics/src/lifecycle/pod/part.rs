//! Subresources that change one part of a Pod: added debug containers, and resources of running containers.
//!
//! Source: `podEphemeralContainersStrategy` and `podResizeStrategy` in `pkg/registry/core/pod/strategy.go`.

use serde_json::Value;

use crate::lifecycle::podspec;
use embedded_objects::cause::Cause;
use embedded_objects::value::{Edit as _, PathAccess as _};

const EPHEMERAL: &str = "spec.ephemeralContainers";

/// Keeps everything of the old Pod except the part of the subresource.
pub(super) fn prepare(part: &str, old: &Value, new: &mut Value) {
    let mut kept = old.clone();
    if part == "resize" {
        for list in ["spec.containers", "spec.initContainers"] {
            resize(&mut kept, new, list);
        }
    } else {
        put_or_clear(&mut kept, EPHEMERAL, new.at(EPHEMERAL));
    }
    for own in ["metadata.resourceVersion", "metadata.managedFields"] {
        put_or_clear(&mut kept, own, new.at(own));
    }
    if kept.at("spec") != old.at("spec") {
        kept.put("metadata.generation", old.int("metadata.generation") + 1);
    }
    *new = kept;
}

/// Takes over the resources of each container in a list.
fn resize(kept: &mut Value, new: &Value, list: &str) {
    for container in kept.items(list) {
        let wanted = new.list(list).iter().find(|other| other.text("name") == container.text("name"));
        for field in ["resources", "resizePolicy"] {
            if let Some(wanted) = wanted {
                put_or_clear(container, field, wanted.at(field));
            }
        }
    }
}

fn put_or_clear(object: &mut Value, path: &str, value: &Value) {
    if value.is_null() {
        object.clear(path);
    } else {
        object.put(path, value.clone());
    }
}

/// The causes for a change of the part.
pub(super) fn validate(part: &str, old: &Value, new: &Value) -> Vec<Cause> {
    if part == "resize" {
        let mut causes = podspec::validate(new.at("spec"), "spec");
        let (before, after) = (old.text("status.qosClass"), podspec::quality_of_service(new.at("spec")));
        if before != after {
            let why = "Pod QOS Class may not change as a result of resizing";
            causes.push(Cause::invalid("spec", after, why));
        }
        return causes;
    }
    let mut causes = Vec::new();
    let all = new.list(EPHEMERAL);
    for known in old.list(EPHEMERAL) {
        let name = known.text("name");
        match all.iter().find(|container| container.text("name") == name) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                causes.push(Cause::forbidden(EPHEMERAL, why));
            }
            Some(other) if other != known => {
                let why = format!("existing ephemeral containers {name:?} may not be changed\n");
                causes.push(Cause::forbidden(EPHEMERAL, why));
            }
            Some(_) => {}
        }
    }
    for (at, container) in all.iter().enumerate() {
        let (name, path) = (container.text("name"), format!("{EPHEMERAL}[{at}]"));
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        let taken = |list: &str| new.list(list).iter().any(|other| other.text("name") == name);
        let twice = all[..at].iter().any(|other| other.text("name") == name);
        if twice || taken("spec.containers") || taken("spec.initContainers") {
            causes.push(Cause::duplicate(format!("{path}.name"), name));
        }
        if container.text("image").is_empty() {
            causes.push(Cause::required(format!("{path}.image"), ""));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({"metadata": {"name": "p", "generation": 1, "labels": {"a": "b"}}, "status": {"qosClass": "BestEffort"},
            "spec": {"containers": [{"name": "c", "image": "i"}]}})
    }

    #[test]
    fn a_debugging_container_is_added_and_nothing_else_changes() {
        let old = pod();
        let mut new = old.clone();
        new.put(EPHEMERAL, json!([{"name": "debug", "image": "tools"}]));
        new.put("metadata.labels", json!({"a": "other"}));
        prepare("ephemeralcontainers", &old, &mut new);
        assert_eq!(new["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(new.int("metadata.generation"), 2);
        assert_eq!(validate("ephemeralcontainers", &old, &new), Vec::new());
        assert_eq!(validate("ephemeralcontainers", &new, &old).len(), 1, "it may not be removed");
        let mut same = old.clone();
        same.put(EPHEMERAL, json!([{"name": "c", "image": "tools"}]));
        assert_eq!(validate("ephemeralcontainers", &old, &same).len(), 1, "the name is taken");
    }

    #[test]
    fn a_resize_changes_resources_and_not_the_class_of_service() {
        let old = pod();
        let mut new = old.clone();
        new.put(
            "spec.containers",
            json!([{"name": "c", "image": "other", "resources": {"requests": {"cpu": "1"}}}]),
        );
        prepare("resize", &old, &mut new);
        assert_eq!(new["spec"]["containers"][0]["image"], "i");
        assert_eq!(new["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");
        let causes = validate("resize", &old, &new);
        assert!(causes.iter().any(|cause| cause.message.contains("QOS Class")), "{causes:?}");
    }
}
