//! Validation of annotations that say something about a Pod.
//!
//! Source: `ValidatePodSpecificAnnotations` and `validateSeccompAnnotationsAndFields` in
//! `pkg/apis/core/validation/validation.go`, `pkg/apis/core/helper/helpers.go`.

use serde_json::Value;

use super::checks::descending;
use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The causes for the annotations of a Pod or template; the path is that of the annotations.
pub(crate) fn validate(pod: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in pod.map("metadata.annotations") {
        let value = value.as_str().unwrap_or_default();
        let field = format!("{path}[{key}]");
        if key == MIRROR && pod.text("spec.nodeName").is_empty() {
            let why = "must set spec.nodeName if mirror pod annotation is set";
            causes.push(Cause::invalid(field, value, why));
        } else if key == DELETION_COST && !small_number(value) {
            causes.push(Cause::invalid(field, value, "must be a 32bit integer"));
        } else if key == SECCOMP_OF_POD || key.starts_with(SECCOMP_OF_CONTAINER) {
            seccomp(value, format!("{path}.{key}"), &mut causes);
        } else if let Some(name) = key.strip_prefix(APPARMOR) {
            if !has_container(pod, name) {
                causes.push(Cause::invalid(field.clone(), name, "container not found"));
            }
            let known = ["", "runtime/default", "unconfined"].contains(&value);
            if !known && !value.starts_with(LOCALHOST) {
                let why = format!("invalid AppArmor profile name: {value:?}");
                causes.push(Cause::invalid(field, value, why));
            }
        }
    }
    causes
}

fn has_container(pod: &Value, name: &str) -> bool {
    let spec = pod.at("spec");
    LISTS.iter().any(|list| spec.list(list).iter().any(|container| container.text("name") == name))
}

/// Whether a text is a number of 32 bits without a plus sign or leading zeros.
fn small_number(text: &str) -> bool {
    let first = text.starts_with(|ch: char| ch == '-' || ('1'..='9').contains(&ch));
    (first || text == "0") && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &str, field: String, causes: &mut Vec<Cause>) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        other => match other.strip_prefix(LOCALHOST) {
            Some(file) => descending(causes, field, file),
            None => causes.push(Cause::invalid(field, other, "must be a valid seccomp profile")),
        },
    }
}

/// The causes if an annotation and a field with a seccomp profile contradict each other in a new Pod or a template. The
/// path is that of the spec.
pub(crate) fn seccomp_contradictions(pod: &Value, path: &str) -> Vec<Cause> {
    let spec = pod.at("spec");
    let mut causes: Vec<Cause> = contradiction(pod, SECCOMP_OF_POD, spec, path).into_iter().collect();
    for list in LISTS {
        for (at, container) in spec.list(list).iter().enumerate() {
            let key = format!("{SECCOMP_OF_CONTAINER}{}", container.text("name"));
            causes.extend(contradiction(pod, &key, container, &format!("{path}.{list}[{at}]")));
        }
    }
    causes
}

fn contradiction(pod: &Value, key: &str, holder: &Value, path: &str) -> Option<Cause> {
    let annotation = pod.map("metadata.annotations").get(key)?.as_str()?;
    let profile = holder.at("securityContext.seccompProfile");
    let same = match profile.text("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => ["runtime/default", "docker/default"].contains(&annotation),
        "Localhost" => annotation.starts_with(LOCALHOST),
        _ => true,
    };
    let path = format!("{path}.securityContext.seccompProfile");
    if !same {
        let why = "seccomp type in annotation and field must match";
        return Some(Cause::forbidden(format!("{path}.type"), why));
    }
    let differs = profile.text("type") == "Localhost"
        && annotation.strip_prefix(LOCALHOST) != profile.at("localhostProfile").as_str();
    let why = "seccomp profile in annotation and field must match";
    differs.then(|| Cause::forbidden(format!("{path}.localhostProfile"), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(key: &str, value: &str, expected: &[&str]) {
        let pod = json!({"metadata": {"annotations": {key: value}}, "spec": {"containers": [{"name": "c"}]}});
        let texts: Vec<String> = validate(&pod, "a").iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn annotations_about_pods_are_well_formed() {
        says("example.com/any", "+", &[]);
        says(DELETION_COST, "-10", &[]);
        says(
            DELETION_COST,
            "+10",
            &[
                "a[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"+10\": must be a 32bit integer",
            ],
        );
        says(
            MIRROR,
            "x",
            &[
                "a[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set",
            ],
        );
        says(SECCOMP_OF_POD, "localhost/a.json", &[]);
        says(
            SECCOMP_OF_POD,
            "default",
            &[
                "a.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \"default\": must be a valid seccomp profile",
            ],
        );
        says(&format!("{APPARMOR}c"), "unconfined", &[]);
        says(
            &format!("{APPARMOR}d"),
            "none",
            &[
                "a[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: \"d\": container not found",
                "a[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: \"none\": invalid AppArmor profile \
             name: \"none\"",
            ],
        );
    }

    #[test]
    fn seccomp_profiles_do_not_contradict_each_other() {
        let of = |annotation: &str, profile: Value| {
            let pod = json!({"metadata": {"annotations": {SECCOMP_OF_POD: annotation}},
                "spec": {"securityContext": {"seccompProfile": profile}}});
            seccomp_contradictions(&pod, "spec").iter().map(Cause::text).collect::<Vec<_>>()
        };
        let local = json!({"type": "Localhost", "localhostProfile": "a"});
        let path = "spec.securityContext.seccompProfile";
        assert_eq!(of("docker/default", json!({"type": "RuntimeDefault"})), Vec::<String>::new());
        assert_eq!(of("localhost/a", local.clone()), Vec::<String>::new());
        assert_eq!(
            of("localhost/b", local),
            [format!(
                "{path}.localhostProfile: Forbidden: seccomp profile in annotation and field must match"
            )]
        );
        assert_eq!(
            of("unconfined", json!({"type": "RuntimeDefault"})),
            [format!("{path}.type: Forbidden: seccomp type in annotation and field must match")]
        );
    }
}
