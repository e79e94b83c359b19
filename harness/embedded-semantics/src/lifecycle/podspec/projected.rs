//! Validation of volumes that project several sources, and of files with fields of the Pod.
//!
//! Source: `validateProjectionSources` and `validateDownwardAPIVolumeFile` in
//! `pkg/apis/core/validation/validation.go`. Trust bundles and Pod certificates are behind feature gates that are
//! off by default.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{items, mode, not_reserved, present};
use super::references;
use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

/// The Pod's fields that can be in a file.
const FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The shortest and the longest lifetime of a token, in seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// Checks a `projected` volume at a path.
pub(super) fn validate(volume: &Value, path: &str, causes: &mut Vec<Cause>) {
    mode(causes, format!("{path}.defaultMode"), volume.at("defaultMode"));
    let mut taken = BTreeSet::new();
    for (at, source) in volume.list("sources").iter().enumerate() {
        let at = format!("{path}.sources[{at}]");
        for kind in ["secret", "configMap"].into_iter().filter(|kind| source.has(kind)) {
            let own = source.at(kind);
            present(causes, format!("{at}.{kind}.name"), own.text("name"));
            items(own, &format!("{at}.{kind}"), causes);
            for item in own.list("items") {
                conflict(item.text("path"), own.text("name"), path, &mut taken, causes);
            }
        }
        if source.has("downwardAPI") {
            for item in source.list("downwardAPI.items") {
                file(item, &format!("{at}.downwardAPI"), causes);
                conflict(item.text("path"), item.text("path"), path, &mut taken, causes);
            }
        }
        if source.has("serviceAccountToken") {
            token(source.at("serviceAccountToken"), path, &format!("{at}.serviceAccountToken"), causes);
        }
        let kinds = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
        if kinds.iter().filter(|kind| source.has(kind)).count() > 1 {
            causes.push(Cause::forbidden(at, "may not specify more than 1 volume type per source"));
        }
    }
}

/// Notes the path of a file; a second file with the same path is a fault.
fn conflict<'a>(
    target: &'a str,
    shown: &str,
    path: &str,
    taken: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    if !target.is_empty() && !taken.insert(target) {
        causes.push(Cause::invalid(path, shown, "conflicting duplicate paths"));
    }
}

/// Checks a token. The server reports the path of its file for the whole volume.
fn token(token: &Value, of_volume: &str, path: &str, causes: &mut Vec<Cause>) {
    let seconds = token.int("expirationSeconds");
    let why = if seconds < SHORTEST {
        Some("may not specify a duration less than 10 minutes")
    } else if seconds > LONGEST {
        Some("may not specify a duration larger than 2^32 seconds")
    } else {
        None
    };
    causes.extend(why.map(|why| Cause::invalid(format!("{path}.expirationSeconds"), seconds, why)));
    let target = token.text("path");
    present(causes, format!("{of_volume}.path"), target);
    not_reserved(causes, format!("{of_volume}.path"), target);
}

/// Checks a file with a field of the Pod or a resource of a container. The path is that of the list's owner: the
/// server does not say which item it is.
pub(super) fn file(item: &Value, path: &str, causes: &mut Vec<Cause>) {
    let target = item.text("path");
    present(causes, format!("{path}.path"), target);
    not_reserved(causes, format!("{path}.path"), target);
    let (field, resource) = (item.has("fieldRef"), item.has("resourceFieldRef"));
    if field {
        references::field(item.at("fieldRef"), &FIELDS, &format!("{path}.fieldRef"), causes);
        if resource {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            causes.push(Cause::invalid(path, "resource", why));
        }
    } else if resource {
        references::resource(item.at("resourceFieldRef"), true, &format!("{path}.resourceFieldRef"), causes);
    } else {
        causes.push(Cause::required(path, "one of fieldRef and resourceFieldRef is required"));
    }
    mode(causes, format!("{path}.mode"), item.at("mode"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(sources: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        validate(&json!({"sources": sources}), "v", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    fn name_at(path: &str) -> Value {
        json!({"path": path, "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}})
    }

    #[test]
    fn projected_files_do_not_conflict() {
        let of = |path: &str| {
            json!([
                {"configMap": {"name": "m", "items": [{"key": "k", "path": "a"}]}},
                {"downwardAPI": {"items": [name_at(path)]}},
            ])
        };
        says(of("b"), &[]);
        says(of("a"), &["v: Invalid value: \"a\": conflicting duplicate paths"]);
        says(
            json!([{"secret": {"name": "s"}, "configMap": {}}]),
            &[
                "v.sources[0].configMap.name: Required value",
                "v.sources[0]: Forbidden: may not specify more than 1 volume type per source",
            ],
        );
    }

    #[test]
    fn tokens_live_for_ten_minutes_and_have_a_file() {
        let of = |token: Value| json!([{"serviceAccountToken": token}]);
        says(of(json!({"expirationSeconds": 600, "path": "token"})), &[]);
        says(
            of(json!({"expirationSeconds": 300, "path": "token"})),
            &[
                "v.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 300: may not specify a duration less \
             than 10 minutes",
            ],
        );
        says(
            of(json!({"expirationSeconds": LONGEST + 1, "path": "token"})),
            &[
                "v.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a \
             duration larger than 2^32 seconds",
            ],
        );
        says(of(json!({"expirationSeconds": 600})), &["v.path: Required value"]);
        says(
            of(json!({"expirationSeconds": 600, "path": "/token"})),
            &["v.path: Invalid value: \"/token\": must be a relative path"],
        );
    }

    #[test]
    fn files_have_fields_that_volumes_can_show() {
        let of = |item: Value| json!([{"downwardAPI": {"items": [item]}}]);
        says(of(name_at("a")), &[]);
        says(
            of(json!({"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}})),
            &[
                "v.sources[0].downwardAPI.fieldRef.fieldPath: Unsupported value: \"status.hostIP\": supported values: \
             \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\"",
            ],
        );
        says(
            of(json!({"path": "/a", "mode": 512})),
            &[
                "v.sources[0].downwardAPI.path: Invalid value: \"/a\": must be a relative path",
                "v.sources[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
                "v.sources[0].downwardAPI.mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both \
             inclusive",
            ],
        );
    }
}
