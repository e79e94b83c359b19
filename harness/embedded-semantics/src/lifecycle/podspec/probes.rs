//! Validation of a container's probes and of its hooks at start and stop.
//!
//! Source: `validateProbe`, `validateHandler` and `validateLifecycle` in `pkg/apis/core/validation/validation.go`.
//! Stop signals are behind a feature gate that is off by default.

use serde_json::Value;

use super::checks::{faulty, not_negative, present, supported};
use embedded_objects::cause::Cause;
use embedded_objects::rules::{names, net};
use embedded_objects::value::PathAccess as _;

/// The fields with probes, in the order in which the server checks them.
pub(super) const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Adds the causes for the hooks and probes of a container that runs as long as its Pod. `grace` is the Pod's time
/// to stop, in seconds.
pub(super) fn validate(container: &Value, path: &str, grace: Option<i64>, causes: &mut Vec<Cause>) {
    for hook in ["postStart", "preStop"] {
        let own = container.at("lifecycle").at(hook);
        if !own.is_null() {
            let kinds = ["exec", "httpGet", "tcpSocket", "sleep"];
            handler(own, &kinds, &format!("{path}.lifecycle.{hook}"), grace, causes);
        }
    }
    for name in PROBES.into_iter().filter(|name| container.has(name)) {
        probe(container.at(name), name, &format!("{path}.{name}"), causes);
    }
}

fn probe(probe: &Value, name: &str, path: &str, causes: &mut Vec<Cause>) {
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], path, None, causes);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        not_negative(causes, format!("{path}.{field}"), probe.int(field));
    }
    let grace = format!("{path}.terminationGracePeriodSeconds");
    let seconds = probe.at("terminationGracePeriodSeconds").as_i64();
    if let Some(seconds) = seconds.filter(|seconds| *seconds <= 0) {
        causes.push(Cause::invalid(grace.clone(), seconds, "must be greater than 0"));
    }
    if name == "readinessProbe" {
        let why = "must not be set for readinessProbes";
        causes.extend(seconds.map(|seconds| Cause::invalid(grace, seconds, why)));
    } else if probe.int("successThreshold") != 1 {
        let field = format!("{path}.successThreshold");
        causes.push(Cause::invalid(field, probe.int("successThreshold"), "must be 1"));
    }
}

/// Checks that there is exactly one action of the given kinds, and the first one found.
fn handler(of: &Value, kinds: &[&str], path: &str, grace: Option<i64>, causes: &mut Vec<Cause>) {
    let mut found = kinds.iter().filter(|kind| of.has(kind));
    let Some(&first) = found.next() else {
        causes.push(Cause::required(path, "must specify a handler type"));
        return;
    };
    let (own, at) = (of.at(first), format!("{path}.{first}"));
    match first {
        "exec" if own.list("command").is_empty() => {
            causes.push(Cause::required(format!("{at}.command"), ""));
        }
        "httpGet" => {
            present(causes, format!("{at}.path"), own.text("path"));
            port(own.at("port"), format!("{at}.port"), causes);
            supported(causes, format!("{at}.scheme"), own.text("scheme"), &["HTTP", "HTTPS"]);
            for header in own.list("httpHeaders") {
                header_name(header.text("name"), format!("{at}.httpHeaders"), causes);
            }
        }
        "tcpSocket" | "grpc" => port(own.at("port"), format!("{at}.port"), causes),
        "sleep" => {
            let seconds = own.int("seconds");
            if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
                let why =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                causes.push(Cause::invalid(at, seconds, why));
            }
        }
        _ => {}
    }
    for extra in found {
        causes.push(Cause::forbidden(format!("{path}.{extra}"), "may not specify more than 1 handler type"));
    }
}

/// Checks the number or name of a port.
fn port(port: &Value, path: String, causes: &mut Vec<Cause>) {
    match port {
        Value::String(name) => faulty(causes, path, name, names::port_name(name)),
        number => {
            let number = number.as_i64().unwrap_or_default();
            causes.extend(net::port_fault(number).map(|why| Cause::invalid(path, number, why)));
        }
    }
}

fn header_name(name: &str, path: String, causes: &mut Vec<Cause>) {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        let why = names::pattern(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            &["X-Header-Name"],
        );
        causes.push(Cause::invalid(path, name, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn says(container: Value, expected: &[&str]) {
        let mut causes = Vec::new();
        validate(&container, "c", Some(5), &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn one(name: &str, more: Value, expected: &[&str]) {
        let mut probe = json!({"tcpSocket": {"port": 80}, "successThreshold": 1});
        json_patch::merge(&mut probe, &more);
        says(json!({name: probe}), expected);
    }

    #[test]
    fn probes_have_one_action() {
        one("livenessProbe", json!({}), &[]);
        one(
            "livenessProbe",
            json!({"tcpSocket": null}),
            &["c.livenessProbe: Required value: must specify a handler type"],
        );
        one(
            "livenessProbe",
            json!({"exec": {}, "grpc": {"port": 1}}),
            &[
                "c.livenessProbe.exec.command: Required value",
                "c.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
                "c.livenessProbe.grpc: Forbidden: may not specify more than 1 handler type",
            ],
        );
        one(
            "startupProbe",
            json!({"tcpSocket": null, "grpc": {"port": 0}}),
            &["c.startupProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        );
    }

    #[test]
    fn requests_of_probes_are_well_formed() {
        let of = |request: Value| json!({"tcpSocket": null, "httpGet": request});
        one(
            "readinessProbe",
            of(json!({"path": "/", "port": "web", "scheme": "HTTPS",
            "httpHeaders": [{"name": "X-A", "value": "1"}]})),
            &[],
        );
        one(
            "readinessProbe",
            of(json!({"port": 70000, "scheme": "https", "httpHeaders": [{"name": "a:b"}]})),
            &[
                "c.readinessProbe.httpGet.path: Required value",
                "c.readinessProbe.httpGet.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "c.readinessProbe.httpGet.scheme: Unsupported value: \"https\": supported values: \"HTTP\", \"HTTPS\"",
                "c.readinessProbe.httpGet.httpHeaders: Invalid value: \"a:b\": a valid HTTP header must consist of \
             alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
            ],
        );
    }

    #[test]
    fn numbers_of_probes_fit_their_kind() {
        one("livenessProbe", json!({"terminationGracePeriodSeconds": 5}), &[]);
        one(
            "livenessProbe",
            json!({"terminationGracePeriodSeconds": 0, "successThreshold": 2}),
            &[
                "c.livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
                "c.livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        );
        one("readinessProbe", json!({"successThreshold": 2}), &[]);
        one(
            "readinessProbe",
            json!({"terminationGracePeriodSeconds": 5, "periodSeconds": -1}),
            &[
                "c.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "c.readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes",
            ],
        );
    }

    #[test]
    fn hooks_have_one_action_that_ends_in_time() {
        let of = |hook: Value| json!({"lifecycle": {"preStop": hook}});
        says(of(json!({"sleep": {"seconds": 5}})), &[]);
        says(
            of(json!({"sleep": {"seconds": 10}})),
            &["c.lifecycle.preStop.sleep: Invalid value: 10: must be non-negative and less than \
             terminationGracePeriodSeconds (5)"],
        );
        says(
            of(json!({"exec": {"command": ["x"]}, "sleep": {"seconds": 1}})),
            &["c.lifecycle.preStop.sleep: Forbidden: may not specify more than 1 handler type"],
        );
        says(of(json!({})), &["c.lifecycle.preStop: Required value: must specify a handler type"]);
    }
}
