//! Validation of the volumes that a container mounts or uses as devices.
//!
//! Source: `ValidateVolumeMounts` and `ValidateVolumeDevices` in `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checks::{descending, supported};
use super::volumes::Volumes;
use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

/// Adds the causes for the mounts and devices of a container at a path.
pub(super) fn validate(container: &Value, path: &str, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (at, mount) in container.list("volumeMounts").iter().enumerate() {
        // The server does not say of some fields which mount they belong to.
        let all = format!("{path}.volumeMounts");
        let path = format!("{all}[{at}]");
        let (name, target) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        if !volumes.contains_key(name) {
            causes.push(Cause::not_found(format!("{path}.name"), name));
        }
        if target.is_empty() {
            causes.push(Cause::required(format!("{path}.mountPath"), ""));
        }
        if !seen.insert(target) {
            causes.push(Cause::invalid(format!("{path}.mountPath"), target, "must be unique"));
        }
        let devices = container.list("volumeDevices");
        if devices.iter().any(|device| device.text("name") == name) {
            let why = "must not already exist in volumeDevices";
            causes.push(Cause::invalid(format!("{path}.name"), name, why));
        }
        if devices.iter().any(|device| device.text("devicePath") == target) {
            let why = "must not already exist as a path in volumeDevices";
            causes.push(Cause::invalid(format!("{path}.mountPath"), target, why));
        }
        descending(causes, format!("{all}.subPath"), mount.text("subPath"));
        let expression = mount.text("subPathExpr");
        if !expression.is_empty() && !mount.text("subPath").is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            causes.push(Cause::invalid(format!("{path}.subPathExpr"), expression, why));
        }
        descending(causes, format!("{all}.subPathExpr"), expression);
        propagation(container, mount, &all, causes);
        read_only(mount, &all, causes);
    }
    devices(container, path, volumes, causes);
}

fn propagation(container: &Value, mount: &Value, all: &str, causes: &mut Vec<Cause>) {
    if !mount.has("mountPropagation") {
        return;
    }
    let (field, way) = (format!("{all}.mountPropagation"), mount.text("mountPropagation"));
    supported(causes, field.clone(), way, &["Bidirectional", "HostToContainer", "None"]);
    if way == "Bidirectional" && !container.truth("securityContext.privileged") {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        causes.push(Cause::forbidden(field, why));
    }
}

/// Checks whether what is mounted below the mount can be read-only as well.
fn read_only(mount: &Value, all: &str, causes: &mut Vec<Cause>) {
    let field = format!("{all}.recursiveReadOnly");
    match mount.at("recursiveReadOnly").as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.truth("readOnly") {
                causes.push(Cause::forbidden(field.clone(), "may only be specified when readOnly is true"));
            }
            if !matches!(mount.at("mountPropagation").as_str(), None | Some("None")) {
                let why = "may only be specified when mountPropagation is None or not specified";
                causes.push(Cause::forbidden(field, why));
            }
        }
        Some(other) => supported(causes, field, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn devices(container: &Value, path: &str, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (at, device) in container.list("volumeDevices").iter().enumerate() {
        let path = format!("{path}.volumeDevices[{at}]");
        let (name, target) = (device.text("name"), device.text("devicePath"));
        let (of_name, of_target) = (format!("{path}.name"), format!("{path}.devicePath"));
        if name.is_empty() {
            causes.push(Cause::required(of_name.clone(), ""));
        } else if !names.insert(name) {
            causes.push(Cause::invalid(of_name.clone(), name, "must be unique"));
        }
        match volumes.get(name) {
            None => causes.push(Cause::not_found(of_name.clone(), name)),
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                causes.push(Cause::invalid(of_name.clone(), name, why));
            }
            Some(_) => {}
        }
        if target.is_empty() {
            causes.push(Cause::required(of_target.clone(), ""));
        }
        if paths.contains(target) {
            causes.push(Cause::invalid(of_target.clone(), target, "must be unique"));
        }
        if target.split('/').any(|element| element == "..") {
            causes.push(Cause::invalid(of_target.clone(), target, "can not contain backsteps ('..')"));
        } else {
            paths.insert(target);
        }
        let mounts = container.list("volumeMounts");
        if mounts.iter().any(|mount| mount.text("name") == name) {
            causes.push(Cause::invalid(of_name, name, "must not already exist in volumeMounts"));
        }
        if mounts.iter().any(|mount| mount.text("mountPath") == target) {
            causes.push(Cause::invalid(
                of_target,
                target,
                "must not already exist as a path in volumeMounts",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(container: Value, expected: &[&str]) {
        let (plain, claim) = (json!({"emptyDir": {}}), json!({"persistentVolumeClaim": {"claimName": "c"}}));
        let volumes = Volumes::from([("v", &plain), ("claim", &claim)]);
        let mut causes = Vec::new();
        validate(&container, "c", &volumes, &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn mount(more: Value, expected: &[&str]) {
        let mut mount = json!({"name": "v", "mountPath": "/v"});
        json_patch::merge(&mut mount, &more);
        says(json!({"volumeMounts": [mount]}), expected);
    }

    #[test]
    fn containers_mount_volumes_once_at_each_place() {
        mount(json!({}), &[]);
        mount(json!({"mountPath": "/v:x"}), &[]);
        mount(json!({"name": "w"}), &["c.volumeMounts[0].name: Not found: \"w\""]);
        let one = json!({"name": "v", "mountPath": "/v"});
        says(
            json!({"volumeMounts": [one, one]}),
            &["c.volumeMounts[1].mountPath: Invalid value: \"/v\": must be unique"],
        );
    }

    #[test]
    fn parts_of_volumes_are_below_them() {
        mount(json!({"subPath": "a/b"}), &[]);
        mount(
            json!({"subPath": "/a"}),
            &["c.volumeMounts.subPath: Invalid value: \"/a\": must be a relative path"],
        );
        mount(json!({"subPathExpr": "$(A)"}), &[]);
        mount(
            json!({"subPath": "a", "subPathExpr": "../a"}),
            &[
                "c.volumeMounts[0].subPathExpr: Invalid value: \"../a\": subPathExpr and subPath are mutually exclusive",
                "c.volumeMounts.subPathExpr: Invalid value: \"../a\": must not contain '..'",
            ],
        );
    }

    #[test]
    fn mounts_are_shared_in_allowed_ways() {
        mount(json!({"mountPropagation": "HostToContainer"}), &[]);
        mount(
            json!({"mountPropagation": "Bidirectional"}),
            &[
                "c.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to \
             privileged containers",
            ],
        );
        mount(
            json!({"mountPropagation": "Both"}),
            &[
                "c.volumeMounts.mountPropagation: Unsupported value: \"Both\": supported values: \"Bidirectional\", \
             \"HostToContainer\", \"None\"",
            ],
        );
        mount(json!({"recursiveReadOnly": "Enabled", "readOnly": true}), &[]);
        mount(
            json!({"recursiveReadOnly": "Enabled"}),
            &["c.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
        );
    }

    #[test]
    fn devices_are_claims() {
        says(json!({"volumeDevices": [{"name": "claim", "devicePath": "/dev/x"}]}), &[]);
        says(
            json!({"volumeDevices": [{"name": "v", "devicePath": "/dev/../x"}]}),
            &[
                "c.volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or \
             Ephemeral for block mode",
                "c.volumeDevices[0].devicePath: Invalid value: \"/dev/../x\": can not contain backsteps ('..')",
            ],
        );
        says(
            json!({"volumeDevices": [{"name": "claim", "devicePath": "/x"}],
                "volumeMounts": [{"name": "claim", "mountPath": "/v"}]}),
            &[
                "c.volumeMounts[0].name: Invalid value: \"claim\": must not already exist in volumeDevices",
                "c.volumeDevices[0].name: Invalid value: \"claim\": must not already exist in volumeMounts",
            ],
        );
    }
}
