//! Validation of a Pod's volumes.
//!
//! Source: `ValidateVolumes` in `pkg/apis/core/validation/validation.go`. The volumes of single storage
//! systems other than NFS are not looked into.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checks::{descending, faulty, items, mode, no_backsteps, present, supported};
use super::{is_pod, projected};
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::rules::quantity::Quantity;
use embedded_objects::value::PathAccess as _;

/// The valid volumes of a Pod by name: containers can mount these.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// The allowed values of `hostPath.type`.
const HOST_PATHS: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// The sources of volumes in the order in which the server checks them.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Adds the causes for the volumes of a Pod spec at a path, and returns the valid ones.
pub(super) fn validate<'a>(spec: &'a Value, path: &str, causes: &mut Vec<Cause>) -> Volumes<'a> {
    let mut valid = Volumes::new();
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        let of_spec = path;
        let path = format!("{path}.volumes[{at}]");
        let mut own = Vec::new();
        source(volume, &path, is_pod(of_spec), &mut own);
        let name = volume.text("name");
        let field = format!("{path}.name");
        if name.is_empty() {
            own.push(Cause::required(field.clone(), ""));
        } else {
            faulty(&mut own, field.clone(), name, names::label(name));
        }
        if valid.contains_key(name) {
            own.push(Cause::duplicate(field, name));
        }
        if own.is_empty() {
            valid.insert(name, volume);
        }
        causes.append(&mut own);
    }
    valid
}

fn source(volume: &Value, path: &str, in_pod: bool, causes: &mut Vec<Cause>) {
    let mut sources = SOURCES.iter().copied().filter(|source| volume.has(source));
    let Some(first) = sources.next() else {
        causes.push(Cause::required(path, "must specify a volume type"));
        return;
    };
    let own = volume.at(first);
    let at = format!("{path}.{first}");
    match first {
        "emptyDir" if Quantity::parse(own.text("sizeLimit")).is_ok_and(|limit| limit.is_negative()) => {
            let why = "SizeLimit field must be a valid resource quantity";
            causes.push(Cause::forbidden(format!("{at}.sizeLimit"), why));
        }
        "hostPath" => host_path(own, &at, causes),
        "gitRepo" => {
            present(causes, format!("{at}.repository"), own.text("repository"));
            descending(causes, format!("{at}.directory"), own.text("directory"));
        }
        "secret" | "configMap" => keys(own, first, &at, causes),
        "nfs" => network_file_system(own, &at, causes),
        "persistentVolumeClaim" => present(causes, format!("{at}.claimName"), own.text("claimName")),
        "downwardAPI" => {
            mode(causes, format!("{at}.defaultMode"), own.at("defaultMode"));
            for file in own.list("items") {
                projected::file(file, &at, causes);
            }
        }
        "projected" => projected::validate(own, &at, causes),
        "csi" => driver(own, &at, causes),
        "ephemeral" if !own.has("volumeClaimTemplate") => {
            causes.push(Cause::required(format!("{at}.volumeClaimTemplate"), ""));
        }
        "image" => image(own, &at, in_pod, causes),
        _ => {}
    }
    for extra in sources {
        // The server misspells this one, and writes the next as its internal field.
        let shown = match extra {
            "downwardAPI" => "downwarAPI",
            "cephfs" => "cephFS",
            other => other,
        };
        causes.push(Cause::forbidden(format!("{path}.{shown}"), "may not specify more than 1 volume type"));
    }
}

fn host_path(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    let target = source.text("path");
    if target.is_empty() {
        causes.push(Cause::required(format!("{path}.path"), ""));
        return;
    }
    no_backsteps(causes, format!("{path}.path"), target);
    supported(causes, format!("{path}.type"), source.text("type"), &HOST_PATHS);
}

/// Checks a Secret or ConfigMap as the source of a volume.
fn keys(source: &Value, kind: &str, path: &str, causes: &mut Vec<Cause>) {
    let name = if kind == "secret" { "secretName" } else { "name" };
    present(causes, format!("{path}.{name}"), source.text(name));
    mode(causes, format!("{path}.defaultMode"), source.at("defaultMode"));
    items(source, path, causes);
}

fn network_file_system(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    for name in ["server", "path"] {
        present(causes, format!("{path}.{name}"), source.text(name));
    }
    let target = source.text("path");
    if !target.starts_with('/') {
        causes.push(Cause::invalid(format!("{path}.path"), target, "must be an absolute path"));
    }
}

fn driver(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    let name = source.text("driver");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.driver"), ""));
    } else {
        if name.len() > 63 {
            causes.push(Cause::too_long(format!("{path}.driver"), 63));
        }
        faulty(causes, format!("{path}.driver"), name, names::subdomain(&name.to_lowercase()));
    }
    let secret = "nodePublishSecretRef";
    if source.has(secret) {
        let name = source.text("nodePublishSecretRef.name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.{secret}.name"), ""));
        } else {
            faulty(causes, format!("{path}.name"), name, names::subdomain(name));
        }
    }
}

/// Checks an image as the source of a volume. A template may leave it out.
fn image(source: &Value, path: &str, in_pod: bool, causes: &mut Vec<Cause>) {
    if in_pod {
        present(causes, format!("{path}.reference"), source.text("reference"));
    }
    let policy = source.text("pullPolicy");
    if !policy.is_empty() {
        supported(causes, format!("{path}.pullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(volumes: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        validate(&json!({"volumes": volumes}), "spec", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn one(source: Value, expected: &[&str]) {
        let mut volume = source;
        volume["name"] = "v".into();
        says(json!([volume]), expected);
    }

    #[test]
    fn volumes_have_one_name_and_one_source() {
        says(json!([{"name": "a", "emptyDir": {}}, {"name": "b", "iscsi": {}}]), &[]);
        says(
            json!([{"name": "a"}, {"name": "b", "secret": {"secretName": "s"}, "emptyDir": {}, "downwardAPI": {}}]),
            &[
                "spec.volumes[0]: Required value: must specify a volume type",
                "spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[1].downwarAPI: Forbidden: may not specify more than 1 volume type",
            ],
        );
        says(
            json!([{"emptyDir": {}}, {"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
            &["spec.volumes[0].name: Required value", "spec.volumes[2].name: Duplicate value: \"a\""],
        );
    }

    #[test]
    fn a_volume_with_a_fault_cannot_be_mounted() {
        let spec =
            json!({"volumes": [{"name": "a", "hostPath": {"path": ""}}, {"name": "b", "emptyDir": {}}]});
        let valid = validate(&spec, "spec", &mut Vec::new());
        assert_eq!(valid.into_keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn paths_on_the_host_are_plain() {
        one(json!({"hostPath": {"path": "/a", "type": "File"}}), &[]);
        one(json!({"hostPath": {"path": "/a..b", "type": ""}}), &[]);
        one(json!({"hostPath": {"path": ""}}), &["spec.volumes[0].hostPath.path: Required value"]);
        one(
            json!({"hostPath": {"path": "/a/../b", "type": "Folder"}}),
            &[
                "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                "spec.volumes[0].hostPath.type: Unsupported value: \"Folder\": supported values: \"\", \"BlockDevice\", \
             \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
            ],
        );
    }

    #[test]
    fn files_of_secrets_and_config_maps_stay_in_their_volume() {
        let items = json!([{"key": "k", "path": "a/b", "mode": 0o600}]);
        one(json!({"secret": {"secretName": "s", "defaultMode": 0o777, "items": items}}), &[]);
        one(
            json!({"configMap": {"items": [{"path": "/a"}, {"key": "k", "path": "..b", "mode": -1}]}}),
            &[
                "spec.volumes[0].configMap.name: Required value",
                "spec.volumes[0].configMap.items[0].key: Required value",
                "spec.volumes[0].configMap.items[0].path: Invalid value: \"/a\": must be a relative path",
                "spec.volumes[0].configMap.items[1].path: Invalid value: \"..b\": must not start with '..'",
                "spec.volumes[0].configMap.items[1].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), \
             both inclusive",
            ],
        );
        one(
            json!({"secret": {"defaultMode": 1000}}),
            &[
                "spec.volumes[0].secret.secretName: Required value",
                "spec.volumes[0].secret.defaultMode: Invalid value: 1000: must be a number between 0 and 0777 (octal), \
             both inclusive",
            ],
        );
    }

    #[test]
    fn other_sources_have_what_they_need() {
        one(json!({"emptyDir": {"sizeLimit": "1Mi"}}), &[]);
        one(
            json!({"emptyDir": {"sizeLimit": "-1"}}),
            &[
                "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity",
            ],
        );
        one(json!({"nfs": {"server": "s", "path": "/p"}}), &[]);
        one(
            json!({"nfs": {"path": "p"}}),
            &[
                "spec.volumes[0].nfs.server: Required value",
                "spec.volumes[0].nfs.path: Invalid value: \"p\": must be an absolute path",
            ],
        );
        one(json!({"persistentVolumeClaim": {"claimName": "c"}}), &[]);
        one(
            json!({"persistentVolumeClaim": {}}),
            &["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
        );
        one(json!({"csi": {"driver": "Driver.example.com", "nodePublishSecretRef": {"name": "s"}}}), &[]);
        one(
            json!({"csi": {"nodePublishSecretRef": {}}}),
            &[
                "spec.volumes[0].csi.driver: Required value",
                "spec.volumes[0].csi.nodePublishSecretRef.name: Required value",
            ],
        );
        one(json!({"gitRepo": {"repository": "r", "directory": "d"}}), &[]);
        one(
            json!({"gitRepo": {"directory": "/d"}}),
            &[
                "spec.volumes[0].gitRepo.repository: Required value",
                "spec.volumes[0].gitRepo.directory: Invalid value: \"/d\": must be a relative path",
            ],
        );
        one(json!({"ephemeral": {"volumeClaimTemplate": {}}}), &[]);
        one(json!({"ephemeral": {}}), &["spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"]);
        one(json!({"image": {"reference": "r", "pullPolicy": "Always"}}), &[]);
        one(json!({"image": {}}), &["spec.volumes[0].image.reference: Required value"]);
        let mut causes = Vec::new();
        validate(&json!({"volumes": [{"name": "v", "image": {}}]}), "spec.template.spec", &mut causes);
        assert_eq!(causes, Vec::new(), "a template may leave the reference out");
    }
}
