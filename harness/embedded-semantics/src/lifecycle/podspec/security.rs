//! Validation of the security contexts of Pods and containers.
//!
//! Source: `validatePodSpecSecurityContext` and `ValidateSecurityContext` in
//! `pkg/apis/core/validation/validation.go`. Options for Windows are not looked into, and neither is
//! `seLinuxChangePolicy`, whose values depend on a feature gate.

use serde_json::{Value, json};

use super::checks::{descending, supported};
use super::sysctls;
use crate::lifecycle::internal;
use embedded_objects::cause::{Cause, Reason};
use embedded_objects::value::PathAccess as _;

/// The longest name of an AppArmor profile, in bytes.
const LONGEST_PROFILE: usize = 4095;

/// The kinds of profiles of both seccomp and AppArmor.
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// Adds the causes for the security context of a Pod spec at a path.
pub(super) fn of_pod(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let context = spec.at("securityContext");
    let path = format!("{path}.securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        identity(context.at(field), format!("{path}.{field}"), causes);
    }
    for (at, group) in context.list("supplementalGroups").iter().enumerate() {
        identity(group, format!("{path}.supplementalGroups[{at}]"), causes);
    }
    if spec.truth("hostPID") && spec.truth("shareProcessNamespace") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.push(Cause::invalid(format!("{path}.shareProcessNamespace"), true, why));
    }
    sysctls::validate(spec, &path, causes);
    choice(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &path, causes);
    seccomp(context, &path, causes);
    apparmor(context, &path, causes);
    choice(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &path, causes);
}

/// Adds the causes for the security context of a container at a path. `host_users` is whether the Pod's users are
/// those of the host.
pub(super) fn of_container(container: &Value, path: &str, host_users: bool, causes: &mut Vec<Cause>) {
    let context = container.at("securityContext");
    if context.is_null() {
        return;
    }
    let path = format!("{path}.securityContext");
    for field in ["runAsUser", "runAsGroup"] {
        identity(context.at(field), format!("{path}.{field}"), causes);
    }
    choice(context, "procMount", &["Default", "Unmasked"], &path, causes);
    if host_users && context.text("procMount") == "Unmasked" {
        let why = "`hostUsers` must be false to use `Unmasked`";
        causes.push(Cause::invalid(format!("{path}.procMount"), "Unmasked", why));
    }
    seccomp(context, &path, causes);
    if context.at("allowPrivilegeEscalation") == &json!(false) {
        // The server looks for this spelling only, which container runtimes do not use.
        let adds = context.list("capabilities.add").iter().any(|name| name == "CAP_SYS_ADMIN");
        let shown = internal::inline("SecurityContext", context);
        if context.truth("privileged") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            causes.push(invalid(path.clone(), &shown, why));
        }
        if adds {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            causes.push(invalid(path.clone(), &shown, why));
        }
    }
    apparmor(context, &path, causes);
}

/// Checks the number of a user or group, if there is one.
fn identity(number: &Value, path: String, causes: &mut Vec<Cause>) {
    if let Some(number) = number.as_i64()
        && !(0..=i64::from(i32::MAX)).contains(&number)
    {
        causes.push(Cause::invalid(path, number, "must be between 0 and 2147483647, inclusive"));
    }
}

/// Checks a field with a fixed set of values, if it is there.
fn choice(context: &Value, field: &str, possible: &[&str], path: &str, causes: &mut Vec<Cause>) {
    if let Some(value) = context.at(field).as_str() {
        supported(causes, format!("{path}.{field}"), value, possible);
    }
}

fn seccomp(context: &Value, path: &str, causes: &mut Vec<Cause>) {
    let profile = context.at("seccompProfile");
    if profile.is_null() {
        return;
    }
    let path = format!("{path}.seccompProfile");
    let kind = profile.text("type");
    if kind.is_empty() {
        let why = "type is required when seccompProfile is set";
        causes.push(Cause::required(format!("{path}.type"), why));
    } else {
        supported(causes, format!("{path}.type"), kind, &PROFILES);
    }
    let field = format!("{path}.localhostProfile");
    match (kind, profile.at("localhostProfile").as_str()) {
        ("Localhost", None) => {
            causes.push(Cause::required(field, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(file)) => descending(causes, field, file),
        (_, Some(_)) => {
            let shown = internal::inline("SeccompProfile", profile);
            causes.push(invalid(field, &shown, "can only be set when seccomp type is Localhost"));
        }
        (_, None) => {}
    }
}

fn apparmor(context: &Value, path: &str, causes: &mut Vec<Cause>) {
    let profile = context.at("appArmorProfile");
    if profile.is_null() {
        return;
    }
    let path = format!("{path}.appArmorProfile");
    let field = format!("{path}.localhostProfile");
    let name = profile.at("localhostProfile").as_str();
    match profile.text("type") {
        "Localhost" => {
            let name = name.unwrap_or_default();
            if name != name.trim() {
                causes.push(Cause::invalid(field.clone(), name, "must not be padded with whitespace"));
            } else if name.is_empty() {
                causes.push(Cause::required(field.clone(), "must be set when AppArmor type is Localhost"));
            }
            if name.len() > LONGEST_PROFILE {
                causes.push(Cause::too_long(field, LONGEST_PROFILE));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            let why = "can only be set when AppArmor type is Localhost";
            causes.extend(name.map(|name| Cause::invalid(field, name, why)));
        }
        "" => {
            let why = "type is required when appArmorProfile is set";
            causes.push(Cause::required(format!("{path}.type"), why));
        }
        other => causes.push(Cause::not_supported(format!("{path}.type"), other, &PROFILES)),
    }
}

/// The cause for an invalid structure, shown as JSON in the order of its fields.
fn invalid(field: String, shown: &str, why: &str) -> Cause {
    Cause { reason: Reason::Invalid, field, message: format!("Invalid value: {shown}: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn pod(spec: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        of_pod(&spec, "spec", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn container(context: Value, host_users: bool, expected: &[&str]) {
        let mut causes = Vec::new();
        of_container(&json!({"securityContext": context}), "c", host_users, &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn users_and_groups_are_small_numbers() {
        pod(
            json!({"securityContext": {"runAsUser": 0, "fsGroup": 2_147_483_647, "supplementalGroups": [1]}}),
            &[],
        );
        pod(
            json!({"securityContext": {"runAsUser": -1, "supplementalGroups": [1, 2_147_483_648_i64]}}),
            &[
                "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.supplementalGroups[1]: Invalid value: 2147483648: must be between 0 and 2147483647, \
             inclusive",
            ],
        );
        container(
            json!({"runAsGroup": -5}),
            true,
            &["c.securityContext.runAsGroup: Invalid value: -5: must be between 0 and 2147483647, inclusive"],
        );
    }

    #[test]
    fn settings_of_pods_agree() {
        pod(json!({"hostPID": true, "shareProcessNamespace": false}), &[]);
        pod(
            json!({"hostPID": true, "shareProcessNamespace": true}),
            &[
                "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot \
             both be enabled",
            ],
        );
        let policies = |of_files: &str, of_groups: &str| json!({"securityContext": {"fsGroupChangePolicy": of_files, "supplementalGroupsPolicy": of_groups}});
        pod(policies("OnRootMismatch", "Strict"), &[]);
        pod(
            policies("Sometimes", "None"),
            &[
                "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
             \"OnRootMismatch\"",
                "spec.securityContext.supplementalGroupsPolicy: Unsupported value: \"None\": supported values: \"Merge\", \
             \"Strict\"",
            ],
        );
    }

    #[test]
    fn seccomp_profiles_have_a_file_if_they_are_local() {
        let of = |profile: Value| json!({"seccompProfile": profile});
        container(of(json!({"type": "Localhost", "localhostProfile": "a/b.json"})), true, &[]);
        container(of(json!({"type": "RuntimeDefault"})), true, &[]);
        container(
            of(json!({"type": "Localhost"})),
            true,
            &[
                "c.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is \
             Localhost",
            ],
        );
        container(
            of(json!({"type": "Localhost", "localhostProfile": "/a"})),
            true,
            &[
                "c.securityContext.seccompProfile.localhostProfile: Invalid value: \"/a\": must be a relative path",
            ],
        );
        container(
            of(json!({"type": "RuntimeDefault", "localhostProfile": "a"})),
            true,
            &["c.securityContext.seccompProfile.localhostProfile: Invalid value: \
             {\"Type\":\"RuntimeDefault\",\"LocalhostProfile\":\"a\"}: can only be set when seccomp type is Localhost"],
        );
        container(
            of(json!({})),
            true,
            &[
                "c.securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set",
            ],
        );
        pod(
            json!({"securityContext": of(json!({"type": "Default"}))}),
            &[
                "spec.securityContext.seccompProfile.type: Unsupported value: \"Default\": supported values: \"Localhost\", \
             \"RuntimeDefault\", \"Unconfined\"",
            ],
        );
    }

    #[test]
    fn apparmor_profiles_have_a_name_if_they_are_local() {
        let of = |profile: Value| json!({"appArmorProfile": profile});
        container(of(json!({"type": "Localhost", "localhostProfile": "mine"})), true, &[]);
        container(
            of(json!({"type": "Localhost"})),
            true,
            &[
                "c.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is \
             Localhost",
            ],
        );
        container(
            of(json!({"type": "Localhost", "localhostProfile": " a"})),
            true,
            &[
                "c.securityContext.appArmorProfile.localhostProfile: Invalid value: \" a\": must not be padded with \
             whitespace",
            ],
        );
        container(
            of(json!({"type": "Unconfined", "localhostProfile": "a"})),
            true,
            &[
                "c.securityContext.appArmorProfile.localhostProfile: Invalid value: \"a\": can only be set when AppArmor \
             type is Localhost",
            ],
        );
        pod(
            json!({"securityContext": of(json!({"type": "Off"}))}),
            &[
                "spec.securityContext.appArmorProfile.type: Unsupported value: \"Off\": supported values: \"Localhost\", \
             \"RuntimeDefault\", \"Unconfined\"",
            ],
        );
    }

    #[test]
    fn privileges_do_not_contradict_each_other() {
        container(json!({"procMount": "Unmasked"}), false, &[]);
        container(
            json!({"procMount": "Unmasked"}),
            true,
            &[
                "c.securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`",
            ],
        );
        container(
            json!({"procMount": "Open"}),
            false,
            &[
                "c.securityContext.procMount: Unsupported value: \"Open\": supported values: \"Default\", \"Unmasked\"",
            ],
        );
        container(
            json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["SYS_ADMIN"]}}),
            true,
            &[],
        );
        container(
            json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}),
            true,
            &[
                "c.securityContext: Invalid value: {\"Capabilities\":{\"Add\":[\"CAP_SYS_ADMIN\"],\"Drop\":null},\
             \"Privileged\":null,\"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":null,\
             \"RunAsGroup\":null,\"RunAsNonRoot\":null,\"ReadOnlyRootFilesystem\":null,\
             \"AllowPrivilegeEscalation\":false,\"ProcMount\":null,\"SeccompProfile\":null,\
             \"AppArmorProfile\":null}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
             CAP_SYS_ADMIN",
            ],
        );
    }
}
