//! Validation of the template of a workload's Pods.
//!
//! Source: `ValidatePodTemplateSpec` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::annotations;
use super::validate::validate as of_pod;
use crate::lifecycle::meta;
use crate::lifecycle::warnings::apparmor;
use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

/// The causes for a template at a path. The server leaves `metadata` out of the paths of labels and annotations.
pub(crate) fn validate(template: &Value, path: &str) -> Vec<Cause> {
    let notes = format!("{path}.annotations");
    let of_spec = format!("{path}.spec");
    let mut causes = meta::labels(template.at("metadata.labels"), &format!("{path}.labels"));
    causes.extend(meta::annotations(template.at("metadata.annotations"), &notes));
    causes.extend(annotations::validate(template, &notes));
    causes.extend(of_pod(template.at("spec"), &of_spec));
    causes.extend(annotations::seccomp_contradictions(template, &of_spec));
    causes.extend(apparmor::contradictions(template, &of_spec));
    if !template.list("spec.ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(format!("{of_spec}.ephemeralContainers"), why));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_have_annotations_that_agree_with_their_fields() {
        let container = json!({"name": "c", "image": "i", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File", "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}});
        let of = |annotation: &str| {
            let template = json!({
                "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": annotation}},
                "spec": {"restartPolicy": "Always", "dnsPolicy": "Default", "containers": [container]}});
            validate(&template, "t").iter().map(Cause::text).collect::<Vec<_>>()
        };
        assert_eq!(of("runtime/default"), Vec::<String>::new());
        assert_eq!(
            of("unconfined"),
            [
                "t.spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field \
             must match",
            ]
        );
    }
}
