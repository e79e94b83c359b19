//! Rules about Pods and their templates, with the defaults that the server fills in first.

use serde_json::{Value, json};

use crate::server::{Server, Target};

/// What the server says to the creation of a Pod with this spec, without the words about the object.
fn pod(spec: &Value) -> Result<(), String> {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    json_patch::merge(&mut whole, spec);
    sent("/api/v1/namespaces/default/pods", &json!({"metadata": {"name": "p"}, "spec": whole}), "Pod \"p\"")
}

/// What the server says to a DaemonSet whose template has this spec.
fn daemon_set(spec: &Value) -> Result<(), String> {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    json_patch::merge(&mut whole, spec);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": whole});
    let body = json!({"metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    sent("/apis/apps/v1/namespaces/default/daemonsets", &body, "DaemonSet.apps \"d\"")
}

fn sent(path: &str, body: &Value, name: &str) -> Result<(), String> {
    let target = Target::parse(path).expect("a resource");
    let head = format!("{name} is invalid: ");
    Server::new()
        .create(&target, &body.to_string())
        .map(|_| ())
        .map_err(|status| status.message.replacen(&head, "", 1))
}

/// Checks that both a Pod and a template with this spec are refused for the same reason.
#[track_caller]
fn refused(spec: Value, expected: &str) {
    assert_eq!(pod(&spec).expect_err("the Pod is refused"), expected);
    let of_template = format!("spec.template.{expected}");
    assert_eq!(daemon_set(&spec).expect_err("the template is refused"), of_template);
}

#[track_caller]
fn accepted(spec: Value) {
    assert_eq!(pod(&spec), Ok(()));
    assert_eq!(daemon_set(&spec), Ok(()));
}

#[test]
fn a_spec_that_uses_many_fields_is_accepted() {
    accepted(json!({
        "hostNetwork": true,
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["10.96.0.10"], "searches": ["svc.cluster.local"], "options": [{"name": "ndots"}]},
        "hostAliases": [{"ip": "172.18.0.2", "hostnames": ["api.internal"]}],
        "securityContext": {"runAsUser": 0, "fsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}, "minDomains": 1}],
        "volumes": [
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}},
                {"configMap": {"name": "m", "items": [{"key": "k", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
            {"name": "host", "hostPath": {"path": "/etc/kubernetes", "type": "Directory"}},
            {"name": "labels", "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "none"}],
        "initContainers": [{"name": "i", "image": "i"}, {"name": "s", "image": "i", "restartPolicy": "Always",
            "startupProbe": {"httpGet": {"port": 80}}}],
        "containers": [{"name": "c", "image": "i",
            "env": [{"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
            "envFrom": [{"secretRef": {"name": "s"}}],
            "resources": {"limits": {"cpu": "1", "example.com/device": "1"}},
            "livenessProbe": {"httpGet": {"port": 80}, "terminationGracePeriodSeconds": 5},
            "lifecycle": {"preStop": {"sleep": {"seconds": 30}}},
            "volumeMounts": [{"name": "token", "mountPath": "/token", "readOnly": true},
                {"name": "host", "mountPath": "/host", "subPath": "pki"}, {"name": "none", "mountPath": "/none:x"}]}]
    }));
}

#[test]
fn a_faulty_spec_is_refused_in_pods_and_templates() {
    let volume = |source: Value| json!({"volumes": [source]});
    refused(
        volume(json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}})),
        "spec.volumes[0].projected.path: Required value",
    );
    refused(
        volume(
            json!({"name": "v", "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}}]}}),
        ),
        "spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: \"spec.nodeName\": supported values: \
         \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\"",
    );
    refused(
        json!({"initContainers": [{"name": "c", "image": "i"}]}),
        "spec.initContainers[0].name: Duplicate value: \"c\"",
    );
    refused(
        json!({"hostIPC": true, "securityContext": {"sysctls": [{"name": "kernel.sem", "value": "1"}]}}),
        "spec.securityContext.sysctls[0].name: Invalid value: \"kernel.sem\": may not be specified when 'hostIPC' is true",
    );
    let container = |more: Value| {
        let mut container = json!({"name": "c", "image": "i"});
        json_patch::merge(&mut container, &more);
        json!({"terminationGracePeriodSeconds": 5, "containers": [container]})
    };
    refused(
        container(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 6}}}})),
        "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 6: must be non-negative and less than \
         terminationGracePeriodSeconds (5)",
    );
    refused(
        container(
            json!({"securityContext": {"seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}}}),
        ),
        "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: \
         {\"Type\":\"Unconfined\",\"LocalhostProfile\":\"a\"}: can only be set when seccomp type is Localhost",
    );
}

#[test]
fn some_rules_are_for_pods_only() {
    let spaced = json!({"containers": [{"name": "c", "image": "i "}]});
    assert_eq!(daemon_set(&spaced), Ok(()));
    assert_eq!(
        pod(&spaced),
        Err("spec.containers[0].image: Invalid value: \"i \": must not have leading or trailing whitespace"
            .to_owned())
    );
    // A Pod on the host's network gets host ports; its template does not.
    let port = json!([{"containerPort": 80}]);
    let twice = json!({"hostNetwork": true, "containers": [
        {"name": "a", "image": "i", "ports": port}, {"name": "b", "image": "i", "ports": port}]});
    assert_eq!(daemon_set(&twice), Ok(()));
    assert_eq!(
        pod(&twice),
        Err("spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\"".to_owned())
    );
}

#[test]
fn annotations_agree_with_the_template() {
    let path = "/apis/apps/v1/namespaces/default/daemonsets";
    let of = |profile: &str| {
        let template = json!({
            "metadata": {"labels": {"a": "b"},
                "annotations": {"container.apparmor.security.beta.kubernetes.io/c": profile}},
            "spec": {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "c", "image": "i"}]}});
        let body = json!({"metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
        sent(path, &body, "DaemonSet.apps \"d\"")
    };
    assert_eq!(of("runtime/default"), Ok(()));
    assert_eq!(
        of("unconfined"),
        Err("spec.template.spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in \
             annotation and field must match"
            .to_owned())
    );
    assert_eq!(
        of("mine"),
        Err("[spec.template.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: \"mine\": \
             invalid AppArmor profile name: \"mine\", spec.template.spec.containers[0].securityContext.appArmorProfile\
             .type: Forbidden: apparmor type in annotation and field must match]"
            .to_owned())
    );
}
