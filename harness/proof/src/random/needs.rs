//! Changes of what the CCM's Pods need before they start: objects, files, identities, resources.

use super::set::{Change, Set, list, pick};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) const CHANGES: &[Change] = &[
    with_a_volume,
    with_a_path_of_the_host,
    with_a_variable,
    with_all_variables_of,
    as_another_account,
    without_a_token,
    without_a_role,
    without_a_binding,
    without_an_object,
    with_another_priority,
    of_a_runtime_class,
    not_as_root,
    with_requests,
    with_a_probe,
    with_pull_secrets,
    behind_a_gate,
];

/// Names of objects that are in no manifests.
const ABSENT: &str = "absent";

fn with_a_volume(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let optional = rng.bool();
    let (kind, source) = match rng.u8(..4) {
        0 => ("ConfigMap", json!({"configMap": {"name": ABSENT, "optional": optional}})),
        1 => ("Secret", json!({"secret": {"secretName": ABSENT, "optional": optional}})),
        2 => ("claim", json!({"persistentVolumeClaim": {"claimName": ABSENT}})),
        _ => (
            "projected ConfigMap",
            json!({"projected": {"sources": [{"configMap": {"name": ABSENT, "optional": optional}}]}}),
        ),
    };
    mounted(set, source)?;
    Some(format!("a volume of an absent {kind}, optional: {optional}"))
}

/// Adds a volume and its mount.
fn mounted(set: &mut Set, mut source: Value) -> Option<()> {
    let spec = set.spec()?;
    let name = format!("more-{}", spec["volumes"].as_array().map_or(0, Vec::len));
    source["name"] = json!(name);
    list(spec, "volumes")?.push(source);
    let mount = json!({"name": name, "mountPath": format!("/var/{name}"), "readOnly": true});
    list(&mut spec["containers"][0], "volumeMounts")?.push(mount);
    Some(())
}

fn with_a_path_of_the_host(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let kind = pick(rng, &["DirectoryOrCreate", "FileOrCreate", "Directory", "File"]);
    let path = match kind {
        "FileOrCreate" => "/tmp/absent-file",
        _ => "/tmp/absent-folder",
    };
    mounted(set, json!({"hostPath": {"path": path, "type": kind}}))?;
    Some(format!("a {kind} of the host"))
}

fn with_a_variable(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (optional, of_secret) = (rng.bool(), rng.bool());
    let reference = json!({"name": ABSENT, "key": "a", "optional": optional});
    let key = if of_secret { "secretKeyRef" } else { "configMapKeyRef" };
    let variable = json!({"name": "MORE", "valueFrom": {key: reference}});
    list(&mut set.spec()?["containers"][0], "env")?.push(variable);
    Some(format!("a variable of an absent {key}, optional: {optional}"))
}

fn with_all_variables_of(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let optional = rng.bool();
    let from = json!({"configMapRef": {"name": ABSENT, "optional": optional}});
    list(&mut set.spec()?["containers"][0], "envFrom")?.push(from);
    Some(format!("all variables of an absent ConfigMap, optional: {optional}"))
}

fn as_another_account(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let name = pick(rng, &["default", ABSENT]);
    set.spec()?["serviceAccountName"] = json!(name);
    Some(format!("the service account {name}"))
}

fn without_a_token(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let spec = set.spec()?;
    spec["automountServiceAccountToken"] = json!(rng.bool());
    Some(format!("automountServiceAccountToken: {}", spec["automountServiceAccountToken"]))
}

fn without_a_role(set: &mut Set, rng: &mut Rng) -> Option<String> {
    set.remove("ClusterRole", rng).map(|name| format!("without the ClusterRole {name}"))
}

fn without_a_binding(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let kind = pick(rng, &["ClusterRoleBinding", "RoleBinding"]);
    set.remove(kind, rng).map(|name| format!("without the {kind} {name}"))
}

fn without_an_object(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let kind = pick(rng, &["ConfigMap", "Secret", "ServiceAccount"]);
    set.remove(kind, rng).map(|name| format!("without the {kind} {name}"))
}

fn with_another_priority(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let name = pick(rng, &["system-node-critical", "system-cluster-critical", ABSENT]);
    let spec = set.spec()?;
    if spec["priorityClassName"] == name {
        return None;
    }
    spec["priorityClassName"] = json!(name);
    Some(format!("the priority class {name}"))
}

fn of_a_runtime_class(set: &mut Set, _: &mut Rng) -> Option<String> {
    set.spec()?["runtimeClassName"] = json!(ABSENT);
    Some("an absent runtime class".to_owned())
}

fn not_as_root(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let user = pick(rng, &[&0_u32, &65_532]);
    let context = &mut set.spec()?["containers"][0]["securityContext"];
    (context["runAsNonRoot"], context["runAsUser"]) = (json!(true), json!(user));
    context["procMount"] = json!("Default");
    Some(format!("runAsNonRoot as user {user}"))
}

fn with_requests(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let amount = pick(rng, &["1m", "100m", "100000"]);
    set.spec()?["containers"][0]["resources"] = json!({"requests": {"cpu": amount}});
    Some(format!("a request of {amount} cpu"))
}

fn with_a_probe(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (kind, port) = (pick(rng, &["readinessProbe", "startupProbe"]), pick(rng, &[&10_258_u16, &9]));
    let probe = json!({
        "httpGet": {"scheme": "HTTPS", "host": "127.0.0.1", "path": "/healthz", "port": port},
        "periodSeconds": 2, "failureThreshold": 30,
    });
    set.spec()?["containers"][0][kind] = probe;
    Some(format!("a {kind} at port {port}"))
}

fn with_pull_secrets(set: &mut Set, _: &mut Rng) -> Option<String> {
    list(set.spec()?, "imagePullSecrets")?.push(json!({"name": ABSENT}));
    Some("an absent pull secret".to_owned())
}

fn behind_a_gate(set: &mut Set, _: &mut Rng) -> Option<String> {
    set.spec()?["schedulingGates"] = json!([{"name": "example.org/never-opened"}]);
    Some("a scheduling gate".to_owned())
}
