//! Validation of the kernel parameters of a Pod.
//!
//! Source: `validateSysctls` in `pkg/apis/core/validation/validation.go`, and
//! `k8s.io/component-helpers/node/util/sysctl`.

use std::collections::BTreeSet;

use serde_json::Value;

use embedded_objects::cause::Cause;
use embedded_objects::value::PathAccess as _;

/// The longest name, in bytes.
const LONGEST: usize = 253;

/// The parameters that each namespace for communication between processes has for itself. The last two are old names of
/// groups.
const IPC: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.shm",
    "kernel.msg",
];

/// Adds the causes for the parameters of a Pod spec whose security context is at a path.
pub(super) fn validate(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (at, parameter) in spec.list("securityContext.sysctls").iter().enumerate() {
        let field = format!("{path}.sysctls[{at}].name");
        let name = parameter.text("name");
        if name.is_empty() {
            causes.push(Cause::required(field.clone(), ""));
        } else if !well_formed(name) {
            let part = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
            let why =
                format!("must have at most {LONGEST} characters and match regex ^({part}[\\./])*{part}$");
            causes.push(Cause::invalid(field.clone(), name, why));
        } else if seen.contains(name) {
            causes.push(Cause::duplicate(field.clone(), name));
        }
        let normal = normal(name);
        let known = normal.split('*').next().unwrap_or_default();
        if spec.truth("hostNetwork") && known.starts_with("net.") {
            causes.push(Cause::invalid(field, name, "may not be specified when 'hostNetwork' is true"));
        } else if spec.truth("hostIPC") && (IPC.contains(&known) || known.starts_with("fs.mqueue.")) {
            causes.push(Cause::invalid(field, name, "may not be specified when 'hostIPC' is true"));
        }
        seen.insert(name);
    }
}

fn well_formed(name: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || b"-_".contains(byte))
    };
    name.len() <= LONGEST && name.split(['.', '/']).all(part)
}

/// A name with dots between its parts: a name whose first separator is a slash has dots and slashes exchanged.
fn normal(name: &str) -> String {
    if name.find(['.', '/']).is_none_or(|at| name[at..].starts_with('.')) {
        return name.to_owned();
    }
    let exchange = |ch: char| match ch {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(exchange).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(shared: &str, names: &[&str], expected: &[&str]) {
        let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
        let mut causes = Vec::new();
        validate(&json!({shared: true, "securityContext": {"sysctls": list}}), "c", &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn names_of_parameters_are_well_formed_and_unique() {
        says("hostPID", &["kernel.shmmax", "net/ipv4/conf/eno2.100/rp_filter"], &[]);
        says("hostPID", &["a.b", "a.b"], &["c.sysctls[1].name: Duplicate value: \"a.b\""]);
        says(
            "hostPID",
            &["", "a..b"],
            &[
                "c.sysctls[0].name: Required value",
                "c.sysctls[1].name: Invalid value: \"a..b\": must have at most 253 characters and match regex \
             ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            ],
        );
    }

    #[test]
    fn parameters_of_the_host_are_not_set() {
        says("hostNetwork", &["kernel.shmmax"], &[]);
        says("hostIPC", &["net.core.somaxconn"], &[]);
        says(
            "hostNetwork",
            &["net/core/somaxconn"],
            &[
                "c.sysctls[0].name: Invalid value: \"net/core/somaxconn\": may not be specified when 'hostNetwork' is true",
            ],
        );
        says(
            "hostIPC",
            &["kernel.shmmax", "fs.mqueue.msg_max"],
            &[
                "c.sysctls[0].name: Invalid value: \"kernel.shmmax\": may not be specified when 'hostIPC' is true",
                "c.sysctls[1].name: Invalid value: \"fs.mqueue.msg_max\": may not be specified when 'hostIPC' is true",
            ],
        );
    }
}
