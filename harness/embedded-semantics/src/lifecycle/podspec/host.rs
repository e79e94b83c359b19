//! Validation of what a Pod shares with its host, of its names, and of its operating system.
//!
//! Source: `validateHostUsers`, `validatePodHostName`, `validatePodHostNetworkDeps`, `validateLinux` and
//! `validateWindows` in `pkg/apis/core/validation/validation.go`. Host processes on Windows are not looked into.

use serde_json::Value;

use super::checks::faulty;
use super::is_pod;
use embedded_objects::cause::Cause;
use embedded_objects::rules::names;
use embedded_objects::value::PathAccess as _;

/// Fields of the spec and of its security context that a Windows Pod may not set.
const NOT_IN_WINDOWS_PODS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

/// Fields of a security context that a container of a Windows Pod may not set.
const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The containers of a spec that a Pod starts with, each with its path.
fn containers<'a>(spec: &'a Value, path: &'a str) -> impl Iterator<Item = (&'a Value, String)> {
    ["initContainers", "containers"].into_iter().flat_map(move |list| {
        let containers = spec.list(list).iter().enumerate();
        containers.map(move |(at, container)| (container, format!("{path}.{list}[{at}]")))
    })
}

/// Checks the ports of containers on the host's network.
pub(super) fn ports(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !spec.truth("hostNetwork") {
        return;
    }
    for (at, container) in spec.list("containers").iter().enumerate() {
        for (index, port) in container.list("ports").iter().enumerate() {
            // A template may omit host ports; its Pods get them.
            let checked = is_pod(path) || port.int("hostPort") != 0;
            if checked && port.int("hostPort") != port.int("containerPort") {
                let field = format!("{path}.containers[{at}].ports[{index}].hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.push(Cause::invalid(field, port.int("hostPort"), why));
            }
        }
    }
}

/// Checks what a Pod with users of its own may share with the host.
pub(super) fn users(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if spec.at("hostUsers") != &Value::Bool(false) {
        return;
    }
    // The server writes two of the names with a capital.
    for (name, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.truth(name) {
            causes.push(Cause::forbidden(format!("{path}.{shown}"), "when `hostUsers` is false"));
        }
    }
    for (container, path) in containers(spec, path) {
        if !container.list("volumeDevices").is_empty() {
            causes.push(Cause::forbidden(format!("{path}.volumeDevices"), "when `hostUsers` is false"));
        }
    }
}

/// Checks the name that replaces the Pod's hostname.
pub(super) fn name(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(name) = spec.at("hostnameOverride").as_str() else { return };
    let field = format!("{path}.hostnameOverride");
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.truth(other) {
            causes
                .push(Cause::forbidden(field.clone(), format!("may not be specified when {other} is true")));
        }
    }
    if name.len() > 64 {
        causes.push(Cause::too_long(field.clone(), 64));
    }
    faulty(causes, field, name, names::subdomain(name));
}

/// Checks the operating system, and the fields that it does not have.
pub(super) fn system(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !spec.has("os") {
        return;
    }
    match spec.text("os.name") {
        "" => causes.push(Cause::required(format!("{path}.os.name"), "")),
        "linux" => linux(spec, path, causes),
        "windows" => windows(spec, path, causes),
        other => causes.push(Cause::not_supported(format!("{path}.os"), other, &["linux", "windows"])),
    }
}

fn linux(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let field = "securityContext.windowsOptions";
    let of_pod = [(spec, path.to_owned())];
    for (holder, path) in of_pod.into_iter().chain(containers(spec, path)) {
        if holder.has(field) {
            let why = "windows options cannot be set for a linux pod";
            causes.push(Cause::forbidden(format!("{path}.{field}"), why));
        }
    }
}

fn windows(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let why = "cannot be set for a windows pod";
    for field in NOT_IN_WINDOWS_PODS {
        let set = match field {
            "hostPID" | "hostIPC" => spec.truth(field),
            "securityContext.sysctls" => !spec.list(field).is_empty(),
            _ => spec.has(field),
        };
        if set {
            causes.push(Cause::forbidden(format!("{path}.{field}"), why));
        }
    }
    for (container, path) in containers(spec, path) {
        for field in NOT_IN_WINDOWS_CONTAINERS {
            if container.at("securityContext").has(field) {
                causes.push(Cause::forbidden(format!("{path}.securityContext.{field}"), why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::says;
    use super::*;
    use serde_json::json;

    #[test]
    fn own_users_and_namespaces_of_the_host_exclude_each_other() {
        says(users, json!({"hostUsers": true, "hostPID": true}), &[]);
        says(
            users,
            json!({"hostUsers": false, "hostNetwork": true, "hostPID": true}),
            &[
                "spec.hostNetwork: Forbidden: when `hostUsers` is false",
                "spec.HostPID: Forbidden: when `hostUsers` is false",
            ],
        );
        says(
            users,
            json!({"hostUsers": false, "containers": [{"volumeDevices": [{}]}]}),
            &["spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"],
        );
    }

    #[test]
    fn ports_on_the_host_are_those_of_the_container() {
        let of = |host: i64| json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80, "hostPort": host}]}]});
        says(ports, of(80), &[]);
        says(
            ports,
            of(81),
            &[
                "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
            ],
        );
        let mut causes = Vec::new();
        ports(&of(0), "spec.template.spec", &mut causes);
        assert_eq!(causes, Vec::new(), "a template may omit it");
    }

    #[test]
    fn hostnames_have_one_source() {
        says(name, json!({"hostnameOverride": "a.b"}), &[]);
        says(
            name,
            json!({"hostnameOverride": "a.b", "hostNetwork": true, "setHostnameAsFQDN": true}),
            &[
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
            ],
        );
    }

    #[test]
    fn systems_have_their_own_fields() {
        says(system, json!({"os": {"name": "linux"}, "hostPID": true}), &[]);
        says(
            system,
            json!({"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}}),
            &[
                "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
            ],
        );
        says(system, json!({"os": {"name": "windows"}, "hostPID": false, "hostNetwork": true}), &[]);
        says(
            system,
            json!({"os": {"name": "windows"}, "hostPID": true, "containers": [{"securityContext": {"runAsUser": 1}}]}),
            &[
                "spec.hostPID: Forbidden: cannot be set for a windows pod",
                "spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
            ],
        );
        says(system, json!({"os": {}}), &["spec.os.name: Required value"]);
        says(
            system,
            json!({"os": {"name": "plan9"}}),
            &["spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""],
        );
    }
}
