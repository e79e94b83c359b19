//! Changes of admission whose effect only a real API server shows: expressions, subresources, roles, versions of Pod
//! security, values that it refuses.

use super::set::{Change, Set, list, pick};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) const CHANGES: &[Change] = &[
    a_policy_with_an_expression,
    a_webhook_with_a_condition,
    a_version_of_pod_security,
    a_role_that_is_aggregated,
    without_watch,
    twice,
    a_number_of_priority,
    with_an_invalid_value,
    at_an_alias,
    with_a_kubeconfig_of_a_map,
];

/// Expressions about Pods and about requests of anyone.
const EXPRESSIONS: &[&str] = &[
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "object.spec.containers.all(c, c.image.contains(':'))",
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.requests))",
    "has(object.spec.priorityClassName)",
    "request.userInfo.username.startsWith('system:serviceaccount:kube-system:')",
    "request.operation == 'CREATE'",
    "object.spec.containers.exists(c, c.name == 'another')",
    "namespaceObject.metadata.name == 'kube-system'",
];

/// A resource of the boot: group, resource, operation.
fn resource(rng: &mut Rng) -> (&'static str, &'static str, &'static str) {
    [
        ("", "pods", "CREATE"),
        ("", "pods/binding", "CREATE"),
        ("", "serviceaccounts/token", "CREATE"),
        ("apps", "replicasets", "CREATE"),
        ("apps", "controllerrevisions", "CREATE"),
        ("", "nodes", "UPDATE"),
    ][rng.usize(..6)]
}

fn a_policy_with_an_expression(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (expression, (group, resource, operation)) = (pick(rng, EXPRESSIONS), resource(rng));
    let rule = json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]});
    set.documents.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "expression"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
    }));
    set.documents.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "expression"}, "spec": {"policyName": "expression", "validationActions": ["Deny"]},
    }));
    Some(format!("a policy for {operation} of {resource}: {expression}"))
}

fn a_webhook_with_a_condition(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let ((group, resource, operation), namespace) = (resource(rng), set.namespace());
    let account = format!("system:serviceaccount:{namespace}:");
    let condition = [
        "true".to_owned(),
        "false".to_owned(),
        format!("!request.userInfo.username.startsWith('{account}')"),
        format!("request.userInfo.username.startsWith('{account}')"),
    ];
    let condition = &condition[rng.usize(..4)];
    let hook = json!({
        "name": "condition.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
        "clientConfig": {"service": {"namespace": namespace, "name": "absent", "path": "/"}},
        "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}],
        "matchConditions": [{"name": "who", "expression": condition}],
    });
    set.documents.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "condition"}, "webhooks": [hook],
    }));
    Some(format!("a webhook without a server for {operation} of {resource} if {condition}"))
}

fn a_version_of_pod_security(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let namespace = set.namespace();
    let level = pick(rng, &["baseline", "restricted"]);
    let version = pick(rng, &["latest", "v1.18", "v1.22", "v1.33", "1.36"]);
    if rng.bool() {
        set.spec()?["hostNetwork"] = json!(false);
    }
    set.documents
        .retain(|one| !(one["kind"] == "Namespace" && one["metadata"]["name"] == namespace.as_str()));
    let labels = json!({
        "pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/enforce-version": version,
    });
    set.documents.insert(
        0,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}),
    );
    Some(format!("Pod Security {level} of {version}"))
}

/// The account's roles are replaced by a built-in one, to which a role of the manifests is added.
fn a_role_that_is_aggregated(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let (bound, added) = (pick(rng, &["view", "edit", "admin"]), pick(rng, &["view", "edit", "admin"]));
    let binding = set.documents.iter_mut().find(|one| one["kind"] == "ClusterRoleBinding")?;
    binding["roleRef"]["name"] = json!(bound);
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{added}");
    set.documents.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "added", "labels": {label: "true"}},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    }));
    Some(format!("the role {bound}, and all rights added to {added}"))
}

fn without_watch(set: &mut Set, _: &mut Rng) -> Option<String> {
    let mut found = false;
    for role in set.documents.iter_mut().filter(|one| one["kind"] == "ClusterRole") {
        for rule in role["rules"].as_array_mut()? {
            let of_nodes =
                rule["resources"].as_array().is_some_and(|all| all.iter().any(|one| one == "nodes"));
            if let Some(verbs) = rule["verbs"].as_array_mut().filter(|_| of_nodes) {
                let before = verbs.len();
                verbs.retain(|verb| verb != "watch");
                found |= verbs.len() != before;
            }
        }
    }
    found.then(|| "no right to watch Nodes".to_owned())
}

/// A second copy of an object, with a field that may or may not be changed.
fn twice(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let what = pick(rng, &["roleRef", "selector", "label"]);
    let mut copy = match what {
        "roleRef" => set.documents.iter().find(|one| one["kind"] == "ClusterRoleBinding")?.clone(),
        _ => set.ccm()?.clone(),
    };
    match what {
        "roleRef" => copy["roleRef"]["name"] = json!("view"),
        "selector" => {
            copy["spec"]["selector"]["matchLabels"]["second"] = json!("yes");
            copy["spec"]["template"]["metadata"]["labels"]["second"] = json!("yes");
        }
        _ => copy["spec"]["template"]["metadata"]["labels"]["second"] = json!("yes"),
    }
    set.documents.push(copy);
    Some(format!("an object twice, with another {what}"))
}

fn a_number_of_priority(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let number = [0, 1000, 2_000_000_000, 2_000_001_000][rng.usize(..4)];
    set.spec()?["priority"] = json!(number);
    Some(format!("the priority {number}"))
}

/// A value that the API server or a kubelet refuses, or one next to it that they accept.
fn with_an_invalid_value(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let good = rng.bool();
    let spec = set.spec()?;
    let volume = |name: &str, source: Value| {
        let mut volume = source;
        volume["name"] = json!(name);
        volume
    };
    let what = match rng.u8(..8) {
        0 => {
            let mode = if good { 0o777 } else { 0o1000 };
            let map = json!({"configMap": {"name": "kube-root-ca.crt", "defaultMode": mode}});
            list(spec, "volumes")?.push(volume("mode", map));
            "a mode of files"
        }
        1 => {
            let path = if good { "/tmp" } else { "/tmp/../etc" };
            list(spec, "volumes")?.push(volume("path", json!({"hostPath": {"path": path}})));
            "a path of the host"
        }
        2 => {
            let seconds = if good { 600 } else { 300 };
            let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": seconds}});
            list(spec, "volumes")?.push(volume("token", json!({"projected": {"sources": [token]}})));
            "a lifetime of a token"
        }
        3 => {
            let servers = if good { vec!["192.0.2.1"] } else { vec!["192.0.2.1"; 4] };
            spec["dnsConfig"] = json!({"nameservers": servers});
            "a number of name servers"
        }
        4 => {
            let hook = match good {
                true => json!({"sleep": {"seconds": 1}}),
                false => json!({"sleep": {"seconds": 3600}}),
            };
            spec["containers"][0]["lifecycle"] = json!({"preStop": hook});
            "a pause before its end"
        }
        5 => {
            let kind = if good { json!({"type": "RuntimeDefault"}) } else { json!({"type": "Localhost"}) };
            spec["containers"][0]["securityContext"]["seccompProfile"] = kind;
            "a seccomp profile"
        }
        6 => {
            let medium = if good { "Memory" } else { "Ram" };
            list(spec, "volumes")?.push(volume("scratch", json!({"emptyDir": {"medium": medium}})));
            "a medium of a volume"
        }
        _ => {
            let address = if good { "192.0.2.7" } else { "192.0.2" };
            list(spec, "hostAliases")?.push(json!({"ip": address, "hostnames": ["acme.example"]}));
            "an alias"
        }
    };
    Some(format!("{what}, valid: {good}"))
}

/// The API server by a name that an alias explains, or by the address of the Node.
fn at_an_alias(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let own = rng.bool();
    let spec = set.spec()?;
    let env = list(&mut spec["containers"][0], "env")?;
    env.retain(|one| one["name"] != "KUBERNETES_SERVICE_HOST" && one["name"] != "KUBERNETES_SERVICE_PORT");
    env.push(match own {
        true => json!({"name": "KUBERNETES_SERVICE_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}),
        false => json!({"name": "KUBERNETES_SERVICE_HOST", "value": "kubernetes.default.svc"}),
    });
    env.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": if own { "6443" } else { "443" }}));
    if !own {
        list(spec, "hostAliases")?.push(json!({"ip": "10.96.0.1", "hostnames": ["kubernetes.default.svc"]}));
    }
    Some(format!(
        "the API server at {}",
        if own { "the address of its Node" } else { "an alias of its Service" }
    ))
}

fn with_a_kubeconfig_of_a_map(set: &mut Set, rng: &mut Rng) -> Option<String> {
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    let fault = pick(rng, &["none", "context", "user", "authority", "port"]);
    let server = if fault == "port" { "https://10.96.0.1:6443" } else { "https://10.96.0.1:443" };
    let mut cluster = json!({"server": server});
    if fault != "authority" {
        cluster["certificate-authority"] = json!(format!("{folder}/ca.crt"));
    }
    let file = json!({
        "apiVersion": "v1", "kind": "Config",
        "current-context": if fault == "context" { "other" } else { "own" },
        "contexts": [{"name": "own", "context": {"cluster": "own", "user": if fault == "user" { "other" } else { "own" }}}],
        "clusters": [{"name": "own", "cluster": cluster}],
        "users": [{"name": "own", "user": {"tokenFile": format!("{folder}/token")}}],
    });
    let namespace = set.namespace();
    let container = &mut set.spec()?["containers"][0];
    let place = if container["args"].is_array() { "args" } else { "command" };
    list(container, place)?.push(json!("--kubeconfig=/own/kubeconfig"));
    list(container, "volumeMounts")?.push(json!({"name": "own", "mountPath": "/own"}));
    list(set.spec()?, "volumes")?.push(json!({"name": "own", "configMap": {"name": "own"}}));
    set.documents.insert(
        0,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": namespace},
            "data": {"kubeconfig": file.to_string()}}),
    );
    Some(format!("a kubeconfig in a ConfigMap, fault: {fault}"))
}
