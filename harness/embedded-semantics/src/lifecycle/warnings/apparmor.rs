//! AppArmor profiles: the older annotation of a container, and the field that has replaced it.
//!
//! Source: `applyAppArmorVersionSkew` in `pkg/registry/core/pod/strategy.go`, `ApparmorFieldForAnnotation` in
//! `pkg/api/pod/util.go`, `validateAppArmorAnnotationsAndFieldsMatchOnCreate` in
//! `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};

use super::parts::containers;
use embedded_objects::cause::Cause;
use embedded_objects::value::{Edit as _, PathAccess as _};

const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const FIELD: &str = "securityContext.appArmorProfile";
/// The longest name of a profile, in bytes.
const LONGEST: usize = 4095;

fn deprecated(place: &str) -> String {
    format!("{place}: deprecated since v1.30; use the \"appArmorProfile\" field instead")
}

/// The field that corresponds to an annotation; `None` if there is none.
fn field(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let profile = annotation.strip_prefix(LOCALHOST)?;
            let usable = !profile.is_empty() && profile.trim() == profile && profile.len() <= LONGEST;
            usable.then(|| json!({"type": "Localhost", "localhostProfile": profile}))
        }
    }
}

fn annotation<'a>(pod: &'a Value, container: &Value) -> Option<(String, &'a str)> {
    let key = format!("{ANNOTATION}{}", container.text("name"));
    let text = pod.map("metadata.annotations").get(&key)?.as_str()?;
    Some((key, text))
}

fn is_windows(pod: &Value) -> bool {
    pod.text("spec.os.name") == "windows"
}

/// Sets the fields of a new Pod's containers according to its annotations.
pub(in crate::lifecycle) fn fill_fields(pod: &mut Value) {
    if is_windows(pod) {
        return;
    }
    let of_pod = pod.at("spec").at(FIELD).clone();
    for list in ["spec.initContainers", "spec.containers", "spec.ephemeralContainers"] {
        let wanted: Vec<Option<Value>> = pod
            .list(list)
            .iter()
            .map(|container| {
                let (_, text) = annotation(pod, container).filter(|_| !container.has(FIELD))?;
                field(text).filter(|field| *field != of_pod)
            })
            .collect();
        for (container, wanted) in pod.items(list).iter_mut().zip(wanted) {
            if let Some(wanted) = wanted {
                container.put(FIELD, wanted);
            }
        }
    }
}

/// The warnings about the annotations of a submitted Pod.
pub(super) fn of_sent(pod: &Value) -> Vec<String> {
    if is_windows(pod) {
        return Vec::new();
    }
    let of_pod = pod.at("spec").at(FIELD);
    let warning = |container: &Value| {
        let (key, text) = annotation(pod, container).filter(|_| !container.has(FIELD))?;
        let said_by_pod = field(text).is_some_and(|field| field == *of_pod);
        (!said_by_pod).then(|| deprecated(&format!("metadata.annotations[{key}]")))
    };
    containers(pod.at("spec"), "spec").iter().filter_map(|(container, _)| warning(container)).collect()
}

/// The warning about the annotation of a container in a template.
pub(super) fn of_template(
    template: &Value,
    container: &Value,
    annotated: &dyn Fn(&str) -> String,
    out: &mut Vec<String>,
) {
    let of_pod = template.at("spec").at(FIELD);
    if let Some((key, text)) = annotation(template, container).filter(|_| !container.has(FIELD))
        && (of_pod.is_null() || field(text).is_none_or(|field| field != *of_pod))
    {
        out.push(deprecated(&annotated(&key)));
    }
}

/// The causes if annotation and field of a container of a new Pod, or of a template, contradict each other. The path is
/// that of the spec.
pub(in crate::lifecycle) fn contradictions(pod: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if is_windows(pod) {
        return causes;
    }
    for (container, path) in containers(pod.at("spec"), path) {
        let own = container.at(FIELD);
        let profile = if own.is_null() { pod.at("spec").at(FIELD) } else { own };
        let Some((_, text)) = annotation(pod, container).filter(|_| !profile.is_null()) else { continue };
        let kind = match text {
            "unconfined" => "Unconfined",
            "runtime/default" => "RuntimeDefault",
            _ if text.starts_with(LOCALHOST) => "Localhost",
            _ => "",
        };
        let (part, why) = if kind != profile.text("type") {
            ("type", "apparmor type in annotation and field must match")
        } else if kind == "Localhost"
            && text.strip_prefix(LOCALHOST) != profile.at("localhostProfile").as_str()
        {
            ("localhostProfile", "apparmor profile in annotation and field must match")
        } else {
            continue;
        };
        causes.push(Cause::forbidden(format!("{path}.{FIELD}.{part}"), why));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotation: &str, of_pod: Value, of_container: Value) -> Value {
        json!({"metadata": {"annotations": {format!("{ANNOTATION}c"): annotation}},
            "spec": {"securityContext": {"appArmorProfile": of_pod},
                "containers": [{"name": "c", "securityContext": {"appArmorProfile": of_container}}]}})
    }

    #[test]
    fn fields_follow_annotations_unless_they_say_so_already() {
        let own = |mut pod: Value| {
            fill_fields(&mut pod);
            pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"].clone()
        };
        let default = json!({"type": "RuntimeDefault"});
        assert_eq!(own(pod("runtime/default", Value::Null, Value::Null)), default);
        assert_eq!(own(pod("runtime/default", default.clone(), Value::Null)), Value::Null);
        let local = json!({"type": "Localhost", "localhostProfile": "mine"});
        assert_eq!(own(pod("localhost/mine", Value::Null, Value::Null)), local);
        assert_eq!(own(pod("localhost/", Value::Null, Value::Null)), Value::Null);
        assert_eq!(own(pod("unconfined", Value::Null, local.clone())), local);
        let warnings = of_sent(&pod("unconfined", Value::Null, Value::Null));
        assert!(
            warnings.len() == 1 && warnings[0].contains("use the \"appArmorProfile\" field"),
            "{warnings:?}"
        );
        assert_eq!(of_sent(&pod("runtime/default", default.clone(), Value::Null)), Vec::<String>::new());
        assert_eq!(of_sent(&pod("unconfined", Value::Null, local.clone())), Vec::<String>::new());
    }

    #[test]
    fn contradictory_apparmor_profiles_are_refused() {
        let local = json!({"type": "Localhost", "localhostProfile": "mine"});
        let fields = |annotation: &str| -> Vec<String> {
            let causes = contradictions(&pod(annotation, Value::Null, local.clone()), "spec");
            causes.into_iter().map(|cause| cause.field).collect()
        };
        assert_eq!(fields("localhost/mine"), Vec::<String>::new());
        assert_eq!(fields("localhost/other"), [format!("spec.containers[0].{FIELD}.localhostProfile")]);
        assert_eq!(fields("unconfined"), [format!("spec.containers[0].{FIELD}.type")]);
    }
}
