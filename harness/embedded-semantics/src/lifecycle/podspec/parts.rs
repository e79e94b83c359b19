//! Validation of a Pod's volumes and of its containers' references and privileges.
//!
//! Source: `ValidateVolumes`, `validateEnvVarValueFrom`, `ValidateSecurityContext`,
//! `validateMountPropagation` in `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

/// The allowed values of `hostPath.type`.
const HOST_PATHS: [&str; 7] =
    ["BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// The Pod's fields that variables can refer to.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The causes for volumes and containers in a Pod spec at a path.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        one_volume(volume, &format!("{path}.volumes[{at}]"), &mut causes);
    }
    for list in ["initContainers", "containers"] {
        for (at, container) in spec.list(list).iter().enumerate() {
            one_container(container, &format!("{path}.{list}[{at}]"), &mut causes);
        }
    }
    causes
}

fn one_volume(volume: &Value, path: &str, causes: &mut Vec<Cause>) {
    let members = volume.as_object().into_iter().flatten();
    let sources: Vec<&String> =
        members.filter(|(key, value)| *key != "name" && !value.is_null()).map(|(key, _)| key).collect();
    if sources.is_empty() {
        causes.push(Cause::required(path, "must specify a volume type"));
    }
    for extra in sources.iter().skip(1) {
        causes.push(Cause::forbidden(format!("{path}.{extra}"), "may not specify more than 1 volume type"));
    }
    if volume.has("hostPath") {
        if volume.text("hostPath.path").is_empty() {
            causes.push(Cause::required(format!("{path}.hostPath.path"), ""));
        }
        let kind = volume.text("hostPath.type");
        if !kind.is_empty() && !HOST_PATHS.contains(&kind) {
            causes.push(Cause::not_supported(format!("{path}.hostPath.type"), kind, &HOST_PATHS));
        }
    }
}

fn one_container(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, variable) in container.list("env").iter().enumerate() {
        let field = variable.text("valueFrom.fieldRef.fieldPath");
        let of_map = |map: &str| field.strip_prefix(map).is_some_and(|rest| rest.starts_with("['"));
        let known = FIELDS.contains(&field) || of_map("metadata.labels") || of_map("metadata.annotations");
        if variable.has("valueFrom.fieldRef") && !known {
            let path = format!("{path}.env[{at}].valueFrom.fieldRef.fieldPath");
            causes.push(match field {
                "" => Cause::required(path, ""),
                _ => {
                    let why = format!("error converting fieldPath: field label not supported: {field}");
                    Cause::invalid(path, field, why)
                }
            });
        }
    }
    let privileged = container.truth("securityContext.privileged");
    if privileged && container.at("securityContext.allowPrivilegeEscalation") == &Value::Bool(false) {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        let context = container.at("securityContext").clone();
        causes.push(Cause::invalid(format!("{path}.securityContext"), context, why));
    }
    for (at, mount) in container.list("volumeMounts").iter().enumerate() {
        if mount.text("mountPropagation") == "Bidirectional" && !privileged {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            causes.push(Cause::forbidden(format!("{path}.volumeMounts[{at}].mountPropagation"), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(spec: Value, expected: &[&str]) {
        let texts: Vec<String> = validate(&spec, "spec").iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn volumes_have_one_source() {
        says(json!({"volumes": [{"name": "a", "emptyDir": {}}]}), &[]);
        says(
            json!({"volumes": [{"name": "a"}, {"name": "b", "emptyDir": {}, "secret": {}}]}),
            &[
                "spec.volumes[0]: Required value: must specify a volume type",
                "spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type",
            ],
        );
        says(
            json!({"volumes": [{"name": "a", "hostPath": {"path": "/a", "type": "Folder"}}]}),
            &[
                "spec.volumes[0].hostPath.type: Unsupported value: \"Folder\": supported values: \"BlockDevice\", \
               \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
            ],
        );
    }

    #[test]
    fn containers_ask_for_what_there_is() {
        let of = |field: &str| json!({"containers": [{"env": [{"valueFrom": {"fieldRef": {"fieldPath": field}}}]}]});
        says(of("status.hostIP"), &[]);
        says(of("metadata.labels['app']"), &[]);
        says(
            of("status.address"),
            &[
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"status.address\": error \
               converting fieldPath: field label not supported: status.address",
            ],
        );
        says(
            json!({"containers": [{"volumeMounts": [{"mountPropagation": "Bidirectional"}]}]}),
            &[
                "spec.containers[0].volumeMounts[0].mountPropagation: Forbidden: Bidirectional mount propagation is \
               available only to privileged containers",
            ],
        );
    }
}
