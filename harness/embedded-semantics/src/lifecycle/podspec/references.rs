//! Validation of references from a Pod to its own fields and to the resources of its containers.
//!
//! Source: `validateObjectFieldSelector` and `validateContainerResourceFieldSelector` in
//! `pkg/apis/core/validation/validation.go`, `pkg/apis/core/pods/helpers.go`, `pkg/fieldpath/fieldpath.go`.

use serde_json::Value;

use super::checks::faulty;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::rules::quantity::Quantity;
use embedded_objects::value::PathAccess as _;

/// The fields with a name that the API knows, whether or not they can be used in a certain place.
const KNOWN: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The resources of a container that can be referred to, with huge pages.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The units of amounts of memory.
const UNITS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Checks a `fieldRef` at a path, given the fields that can be used there.
pub(super) fn field(reference: &Value, possible: &[&str], path: &str, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "fieldPath"] {
        if reference.text(name).is_empty() {
            causes.push(Cause::required(format!("{path}.{name}"), ""));
            return;
        }
    }
    let (version, text) = (reference.text("apiVersion"), reference.text("fieldPath"));
    let at = format!("{path}.fieldPath");
    let mut unknown = |why: String| {
        causes.push(Cause::invalid(at.clone(), text, format!("error converting fieldPath: {why}")));
    };
    if version != "v1" {
        unknown(format!("unsupported pod version: {version}"));
        return;
    }
    match subscripted(text) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            faulty(causes, path.to_owned(), &key, names::qualified(&key));
        }
        Some(("metadata.labels", key)) => faulty(causes, path.to_owned(), key, names::qualified(key)),
        Some(_) => unknown(format!("field label does not support subscript: {text}")),
        None => {
            let internal = if text == "spec.host" { "spec.nodeName" } else { text };
            if !KNOWN.contains(&internal) {
                unknown(format!("field label not supported: {text}"));
            } else if !possible.contains(&internal) {
                causes.push(Cause::not_supported(at, internal, possible));
            }
        }
    }
}

/// The parts of a field's path such as `metadata.labels['app']`; `None` if it has no key in brackets.
fn subscripted(text: &str) -> Option<(&str, &str)> {
    let (field, key) = text.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Checks a `resourceFieldRef` at a path. In a volume it must name its container.
pub(super) fn resource(reference: &Value, in_volume: bool, path: &str, causes: &mut Vec<Cause>) {
    let name = reference.text("resource");
    let huge_pages = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if in_volume && reference.text("containerName").is_empty() {
        causes.push(Cause::required(format!("{path}.containerName"), ""));
    } else if name.is_empty() {
        causes.push(Cause::required(format!("{path}.resource"), ""));
    } else if !RESOURCES.contains(&name) && !huge_pages {
        causes.push(Cause::not_supported(format!("{path}.resource"), name, &RESOURCES));
    }
    let Ok(divisor) = Quantity::parse(reference.text("divisor")) else { return };
    let divisor = divisor.text();
    let (units, what) = match name {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"][..], "1m and 1 are supported with the cpu resource"),
        "limits.memory" | "requests.memory" => (&UNITS[..], "are supported with the memory resource"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&UNITS[..], "are supported with the local ephemeral storage resource")
        }
        _ if huge_pages => (&UNITS[..], "are supported with the hugepages resource"),
        _ => return,
    };
    if divisor != "0" && !units.contains(&divisor.as_str()) {
        let listed =
            if units.len() == UNITS.len() { format!("{} {what}", UNITS.join(", ")) } else { what.to_owned() };
        let why = format!("only divisor's values {listed}");
        causes.push(Cause::invalid(format!("{path}.divisor"), name, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(check: impl Fn(&mut Vec<Cause>), expected: &[&str]) {
        let mut causes = Vec::new();
        check(&mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn references_name_fields_that_are_there() {
        let of = |text: &str, expected: &[&str]| {
            let reference = json!({"apiVersion": "v1", "fieldPath": text});
            says(|causes| field(&reference, &["metadata.name", "spec.nodeName"], "r", causes), expected);
        };
        of("metadata.name", &[]);
        of("spec.host", &[]);
        of("metadata.labels['a/b']", &[]);
        of("metadata.annotations['A/b']", &[]);
        of(
            "metadata.labels['']",
            &[
                "r: Invalid value: \"\": name part must be non-empty",
                "r: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
             for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        );
        of("", &["r.fieldPath: Required value"]);
        of(
            "status.phase",
            &[
                "r.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"spec.nodeName\"",
            ],
        );
        of(
            "status.address",
            &[
                "r.fieldPath: Invalid value: \"status.address\": error converting fieldPath: field label not supported: \
             status.address",
            ],
        );
        of(
            "spec.x['y']",
            &[
                "r.fieldPath: Invalid value: \"spec.x['y']\": error converting fieldPath: field label does not support \
             subscript: spec.x['y']",
            ],
        );
    }

    #[test]
    fn references_name_resources_of_containers() {
        let of = |reference: Value, in_volume: bool, expected: &[&str]| {
            says(|causes| resource(&reference, in_volume, "r", causes), expected);
        };
        of(json!({"resource": "limits.cpu", "divisor": "1m"}), false, &[]);
        of(json!({"resource": "requests.hugepages-2Mi", "divisor": "0"}), false, &[]);
        of(json!({"resource": "limits.memory", "divisor": "1Mi", "containerName": "c"}), true, &[]);
        of(json!({"resource": "limits.cpu"}), true, &["r.containerName: Required value"]);
        of(
            json!({"resource": "limits.gpu"}),
            false,
            &["r.resource: Unsupported value: \"limits.gpu\": supported values: \"limits.cpu\", \
             \"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", \
             \"requests.memory\""],
        );
        of(
            json!({"resource": "limits.cpu", "divisor": "1Mi"}),
            false,
            &[
                "r.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource",
            ],
        );
        of(
            json!({"resource": "limits.memory", "divisor": "2Mi"}),
            false,
            &[
                "r.divisor: Invalid value: \"limits.memory\": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, \
             1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource",
            ],
        );
    }
}
