//! Validation of a container's environment variables.
//!
//! Source: `ValidateEnv`, `ValidateEnvFrom` and `validateFileKeyRefVolumes` in
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::checks::{faulty, no_backsteps};
use super::references;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names::{self, Faults};
use embedded_objects::value::PathAccess as _;

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

const ONE_OF: &str =
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
const ONLY_ONE: &str = "may not have more than one field specified at a time";

/// Adds the causes for the variables of a container at a path.
pub(super) fn validate(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (at, variable) in container.list("env").iter().enumerate() {
        let path = format!("{path}.env[{at}]");
        let name = variable.text("name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else {
            faulty(causes, format!("{path}.name"), name, names::env_name(name));
        }
        if variable.has("valueFrom") {
            source(variable, &format!("{path}.valueFrom"), causes);
        }
    }
    let all = format!("{path}.envFrom");
    for (at, from) in container.list("envFrom").iter().enumerate() {
        let path = format!("{all}[{at}]");
        let prefix = from.text("prefix");
        if !prefix.is_empty() {
            faulty(causes, format!("{path}.prefix"), prefix, names::env_name(prefix));
        }
        let kinds = ["configMapRef", "secretRef"];
        for kind in kinds.iter().filter(|kind| from.has(kind)) {
            let name = from.text(&format!("{kind}.name"));
            let check = |name: &str| names::subdomain(&names::masked(name));
            required(name, check, &format!("{path}.{kind}.name"), causes);
        }
        let why = match kinds.iter().filter(|kind| from.has(kind)).count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => ONLY_ONE,
        };
        causes.push(Cause::invalid(all.clone(), "", why));
    }
}

/// Checks the source of a variable's value at a path.
fn source(variable: &Value, path: &str, causes: &mut Vec<Cause>) {
    let from = variable.at("valueFrom");
    if from.has("fieldRef") {
        references::field(from.at("fieldRef"), &FIELDS, &format!("{path}.fieldRef"), causes);
    }
    if from.has("resourceFieldRef") {
        let path = format!("{path}.resourceFieldRef");
        references::resource(from.at("resourceFieldRef"), false, &path, causes);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"].into_iter().filter(|kind| from.has(kind)) {
        let (own, path) = (from.at(kind), format!("{path}.{kind}"));
        faulty(causes, format!("{path}.name"), own.text("name"), names::subdomain(own.text("name")));
        required(own.text("key"), names::data_key, &format!("{path}.key"), causes);
    }
    if from.has("fileKeyRef") {
        let (own, path) = (from.at("fileKeyRef"), format!("{path}.fileKeyRef"));
        required(own.text("key"), names::env_name, &format!("{path}.key"), causes);
        required(own.text("volumeName"), names::label, &format!("{path}.volumeName"), causes);
        let file = own.text("path");
        if file.is_empty() {
            causes.push(Cause::required(format!("{path}.path"), ""));
        }
        no_backsteps(causes, format!("{path}.path"), file);
    }
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let why = match (kinds.iter().filter(|kind| from.has(kind)).count(), variable.text("value")) {
        (0, _) => ONE_OF,
        (1, "") => return,
        (_, "") => ONLY_ONE,
        _ => "may not be specified when `value` is not empty",
    };
    causes.push(Cause::invalid(path, "", why));
}

/// Checks a name that must be there.
fn required(name: &str, check: impl Fn(&str) -> Faults, path: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        causes.push(Cause::required(path, ""));
    } else {
        faulty(causes, path.to_owned(), name, check(name));
    }
}

/// Adds the causes for variables from files whose volume is not an empty directory of the Pod.
pub(super) fn files(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for list in ["initContainers", "containers"] {
        for (index, container) in spec.list(list).iter().enumerate() {
            for (at, variable) in container.list("env").iter().enumerate() {
                if !variable.has("valueFrom.fileKeyRef") {
                    continue;
                }
                let name = variable.text("valueFrom.fileKeyRef.volumeName");
                let field = format!("{path}.{list}[{index}].env[{at}].valueFrom.fileKeyRef.volumeName");
                // The last volume of a name counts.
                match spec.list("volumes").iter().rfind(|volume| volume.text("name") == name) {
                    None => causes.push(Cause::not_found(field, name)),
                    Some(volume) if !volume.has("emptyDir") => {
                        let why = "referenced volume must be of type emptyDir";
                        causes.push(Cause::invalid(field, name, why));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(container: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        validate(&container, "c", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn from(source: Value, expected: &[&str]) {
        says(json!({"env": [{"name": "A", "valueFrom": source}]}), expected);
    }

    #[test]
    fn variables_have_one_source() {
        says(json!({"env": [{"name": "A.b", "value": "v"}]}), &[]);
        says(
            json!({"env": [{"name": "A=b", "value": "v", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}),
            &[
                "c.env[0].name: Invalid value: \"A=b\": a valid environment variable name must consist only of printable \
                 ASCII characters other than '='",
                "c.env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            ],
        );
        from(json!({}), &[&format!("c.env[0].valueFrom: Invalid value: \"\": {ONE_OF}")]);
        let key = json!({"name": "n", "key": "k"});
        from(json!({"configMapKeyRef": key}), &[]);
        from(
            json!({"configMapKeyRef": key, "secretKeyRef": key}),
            &[&format!("c.env[0].valueFrom: Invalid value: \"\": {ONLY_ONE}")],
        );
    }

    #[test]
    fn variables_refer_to_what_there_is() {
        from(json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}}), &[]);
        from(
            json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}),
            &[
                "c.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"metadata.labels\": supported values: \
             \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \
             \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
            ],
        );
        from(
            json!({"resourceFieldRef": {}}),
            &["c.env[0].valueFrom.resourceFieldRef.resource: Required value"],
        );
        from(
            json!({"secretKeyRef": {"name": "n"}}),
            &["c.env[0].valueFrom.secretKeyRef.key: Required value"],
        );
        from(
            json!({"secretKeyRef": {"name": "n", "key": ".."}}),
            &["c.env[0].valueFrom.secretKeyRef.key: Invalid value: \"..\": must not be '..'"],
        );
        from(json!({"fileKeyRef": {"key": "K", "volumeName": "v", "path": "a"}}), &[]);
        from(
            json!({"fileKeyRef": {"key": "K", "volumeName": "v", "path": "../a"}}),
            &["c.env[0].valueFrom.fileKeyRef.path: Invalid value: \"../a\": must not contain '..'"],
        );
    }

    #[test]
    fn all_variables_of_an_object_have_one_source() {
        says(json!({"envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}]}), &[]);
        says(
            json!({"envFrom": [{"configMapRef": {}}, {}]}),
            &[
                "c.envFrom[0].configMapRef.name: Required value",
                "c.envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
            ],
        );
    }

    #[test]
    fn files_with_variables_are_in_empty_directories() {
        let of = |volume: Value| {
            let variable = json!({"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v"}}});
            let mut causes = Vec::new();
            files(&json!({"volumes": [volume], "containers": [{"env": [variable]}]}), "spec", &mut causes);
            causes.iter().map(Cause::text).collect::<Vec<_>>()
        };
        let field = "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName";
        assert_eq!(of(json!({"name": "v", "emptyDir": {}})), Vec::<String>::new());
        assert_eq!(
            of(json!({"name": "v", "secret": {}})),
            [format!("{field}: Invalid value: \"v\": referenced volume must be of type emptyDir")]
        );
        assert_eq!(of(json!({"name": "w"})), [format!("{field}: Not found: \"v\"")]);
    }
}
