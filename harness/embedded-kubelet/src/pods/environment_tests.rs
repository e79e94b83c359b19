//! Tests environments and command lines of containers written as JSON.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::{Value, json};

use super::*;
use crate::pods::facts::Objects;

struct Some1;

impl Objects for Some1 {
    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>> {
        let map = json!({"data": {"key": "value", "other": "2"}});
        (name == "map").then(|| Arc::new(serde_json::from_value(map).expect("a ConfigMap")))
    }
    fn secret(&self, name: &str) -> Option<Arc<Secret>> {
        let secret = json!({"data": {"token": "czNjcmV0"}});
        (name == "secret").then(|| Arc::new(serde_json::from_value(secret).expect("a Secret")))
    }
}

fn resolve(container: Value, host_ips: &[IpAddr]) -> Result<BTreeMap<String, String>, Refusal> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"}},
        "spec": {"nodeName": "node-1", "containers": [container]},
    }))
    .expect("a Pod");
    let containers = pod.spec.as_ref().map(|spec| spec.containers.clone()).unwrap_or_default();
    let allocatable = BTreeMap::from([("memory".to_owned(), "1Gi".to_owned())]);
    let facts = Facts {
        pod: &pod,
        host_ips,
        known_addresses: String::new(),
        pod_ips: &[],
        allocatable: &allocatable,
        objects: &Some1,
    };
    let cluster = BTreeMap::from([("KUBERNETES_SERVICE_HOST".to_owned(), "127.0.0.1".to_owned())]);
    environment(&containers[0], &cluster, &facts)
}

fn variable(source: Value) -> Value {
    json!({"name": "c", "env": [{"name": "X", "valueFrom": source}]})
}

#[track_caller]
fn check(container: Value, expected: Result<&str, &str>) {
    let host = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1])];
    let got =
        resolve(container, &host).map(|env| env.get("X").cloned().unwrap_or_else(|| "(absent)".to_owned()));
    assert_eq!(got, expected.map(str::to_owned).map_err(|text| Refusal(text.to_owned())));
}

#[test]
fn every_source_is_resolved() {
    check(variable(json!({"fieldRef": {"fieldPath": "status.hostIP"}})), Ok("10.0.0.1"));
    check(variable(json!({"fieldRef": {"fieldPath": "status.hostIPs"}})), Ok("10.0.0.1,fd00::1"));
    check(variable(json!({"fieldRef": {"fieldPath": "spec.nodeName"}})), Ok("node-1"));
    check(variable(json!({"fieldRef": {"fieldPath": "metadata.labels['a']"}})), Ok("b"));
    check(
        variable(json!({"fieldRef": {"fieldPath": "status.phase"}})),
        Err("unsupported fieldPath: status.phase"),
    );
    check(variable(json!({"configMapKeyRef": {"name": "map", "key": "key"}})), Ok("value"));
    check(variable(json!({"secretKeyRef": {"name": "secret", "key": "token"}})), Ok("s3cret"));
    check(variable(json!({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}})), Ok("1024"));
    check(
        json!({"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "X", "value": "$(A)$(B)"}]}),
        Ok("1$(B)"),
    );
    check(
        json!({"name": "c", "env": [{"name": "X", "value": "$(KUBERNETES_SERVICE_HOST)"}]}),
        Ok("127.0.0.1"),
    );
    check(
        json!({"name": "c", "envFrom": [{"prefix": "X_", "configMapRef": {"name": "map"}}],
                 "env": [{"name": "X", "value": "own"}]}),
        Ok("own"),
    );
}

#[test]
fn missing_references_are_refused_in_the_words_of_the_kubelet() {
    check(
        variable(json!({"configMapKeyRef": {"name": "none", "key": "k"}})),
        Err("configmap \"none\" not found"),
    );
    check(variable(json!({"secretKeyRef": {"name": "none", "key": "k"}})), Err("secret \"none\" not found"));
    check(variable(json!({"secretKeyRef": {"name": "none", "key": "k", "optional": true}})), Ok("(absent)"));
    check(
        variable(json!({"configMapKeyRef": {"name": "map", "key": "k"}})),
        Err("couldn't find key k in ConfigMap n/map"),
    );
    check(
        variable(json!({"secretKeyRef": {"name": "secret", "key": "k"}})),
        Err("couldn't find key k in Secret n/secret"),
    );
    check(
        json!({"name": "c", "envFrom": [{"secretRef": {"name": "none"}}]}),
        Err("secret \"none\" not found"),
    );
    let without_address = resolve(variable(json!({"fieldRef": {"fieldPath": "status.hostIP"}})), &[]);
    assert_eq!(without_address, Err(Refusal("host IP unknown; known addresses: []".to_owned())));
}

#[test]
fn commands_and_arguments_replace_the_programs() {
    let program = |keeps: bool| Program {
        image: "ccm".to_owned(),
        entry_point: vec!["/bin/ccm".to_owned()],
        arguments: vec!["--default".to_owned()],
        keeps_entry_point: keeps,
        pulls: true,
        user: None,
        more_arguments: vec!["--bind-address=${NODE_LOOPBACK}".to_owned()],
        environment: BTreeMap::new(),
        shares: Vec::new(),
    };
    let known = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    let placeholders = BTreeMap::from([("NODE_LOOPBACK", "127.16.0.1".to_owned())]);
    let line = |container: Value, keeps: bool| {
        let container: Container = serde_json::from_value(container).expect("a Container");
        command_line(&container, &program(keeps), &known, &placeholders).join(" ")
    };
    let bind = "--bind-address=127.16.0.1";
    assert_eq!(line(json!({"name": "c"}), false), format!("/bin/ccm --default {bind}"));
    assert_eq!(line(json!({"name": "c", "args": ["-a=$(A)"]}), false), format!("/bin/ccm -a=1 {bind}"));
    assert_eq!(line(json!({"name": "c", "command": ["/x", "y"]}), false), format!("/x y {bind}"));
    assert_eq!(
        line(json!({"name": "c", "command": ["/x", "y"], "args": ["z"]}), true),
        format!("/bin/ccm y z {bind}")
    );
}
