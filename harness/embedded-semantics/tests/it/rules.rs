//! Rules of kinds that the recorded exchanges do not cover, in the API server's words.

use embedded_objects::kinds;
use embedded_semantics::alloc::Allocator;
use embedded_semantics::lifecycle;
use serde_json::{Value, json};

use crate::server::{Server, Target, context};

/// Creates an object and patches it; returns the result of the patch.
fn patched(path: &str, body: &Value, patch: &Value) -> Result<Value, String> {
    let mut server = Server::new();
    let target = Target::parse(path).expect("a resource");
    let created = server.create(&target, &body.to_string()).expect("a right object");
    let name = created["metadata"]["name"].as_str().expect("a name");
    let (path, sub) = match path.split_once('#') {
        Some((path, sub)) => (path, format!("/{sub}")),
        None => (path, String::new()),
    };
    let target = Target::parse(&format!("{path}/{name}{sub}")).expect("a resource");
    server
        .change(&target, "application/merge-patch+json", &patch.to_string())
        .map_err(|status| status.message)
}

#[track_caller]
fn refused(path: &str, body: Value, patch: Value, expected: &str) {
    assert_eq!(patched(path, &body, &patch).expect_err("it is refused"), expected);
}

#[track_caller]
fn not_created(path: &str, body: Value, expected: &str) {
    let target = Target::parse(path).expect("a resource");
    let status = Server::new().create(&target, &body.to_string()).expect_err("it is refused");
    assert_eq!(status.message, expected);
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(spec: Value) -> Value {
    let mut service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    json_patch::merge(&mut service["spec"], &spec);
    service
}

#[test]
fn addresses_of_services_stay() {
    refused(
        SERVICES,
        service(json!({"clusterIP": "10.96.0.9"})),
        json!({"spec": {"clusterIP": "10.96.0.10"}}),
        "Service \"s\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.96.0.10\"]: may not change once set",
    );
    refused(
        SERVICES,
        service(json!({"type": "LoadBalancer", "loadBalancerClass": "a/b"})),
        json!({"spec": {"loadBalancerClass": "a/c"}}),
        "Service \"s\" is invalid: spec.loadBalancerClass: Invalid value: \"a/c\": may not change once set",
    );
}

#[test]
fn one_family_cannot_give_two() {
    not_created(
        SERVICES,
        service(json!({"ipFamilyPolicy": "RequireDualStack"})),
        "Service \"s\" is invalid: spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
    );
    not_created(
        SERVICES,
        service(json!({"ipFamilies": ["IPv6"]})),
        "Service \"s\" is invalid: spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
    );
}

#[test]
fn two_families_give_two_and_take_one_back() {
    let mut allocator = Allocator::new(&["10.96.0.0/16", "fd00::/112"]).expect("right networks");
    let kind = kinds::find("", "v1", "services").expect("services are served");
    let mut body = service(json!({"ipFamilyPolicy": "PreferDualStack"}));
    body["metadata"]["namespace"] = "default".into();
    let mut old = lifecycle::create(kind, body, &mut context(&mut allocator)).expect("a right Service");
    assert_eq!(old["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(old["spec"]["clusterIPs"], json!(["10.96.0.1", "fd00::1"]));
    old["metadata"]["resourceVersion"] = "1".into();
    let mut new = old.clone();
    new["spec"]["ipFamilyPolicy"] = "SingleStack".into();
    let new = lifecycle::update(kind, None, &old, new, &mut context(&mut allocator)).expect("one is let go");
    assert_eq!(new["spec"]["clusterIPs"], json!(["10.96.0.1"]));
    let freed = "fd00::1".parse().expect("an address");
    assert_eq!(allocator.take_ip(freed), Ok(()), "it is free again");
}

#[test]
fn a_refused_or_dry_write_allocates_nothing() {
    let mut allocator = Allocator::new(&["10.96.0.0/16"]).expect("a right network");
    let kind = kinds::find("", "v1", "services").expect("services are served");
    let mut wrong = service(
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}], "sessionAffinity": "x"}),
    );
    wrong["metadata"]["namespace"] = "default".into();
    lifecycle::create(kind, wrong.clone(), &mut context(&mut allocator)).expect_err("x is not an affinity");
    wrong["spec"]["sessionAffinity"] = "None".into();
    let cx = &mut lifecycle::Context { dry_run: true, ..context(&mut allocator) };
    lifecycle::create(kind, wrong, cx).expect("it is right now");
    assert_eq!(allocator.take_port(30080), Ok(()));
}

#[test]
fn ports_of_one_number_share_a_node_port() {
    let target = Target::parse(SERVICES).expect("a resource");
    let body = service(json!({"type": "NodePort", "ports": [
        {"name": "a", "port": 53, "protocol": "UDP"}, {"name": "b", "port": 53, "protocol": "TCP"}]}));
    let created = Server::new().create(&target, &body.to_string()).expect("a right Service");
    assert_eq!(created["spec"]["ports"][0]["nodePort"], created["spec"]["ports"][1]["nodePort"]);
}

#[test]
fn nodes_keep_what_is_settled() {
    let node =
        json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}});
    refused(
        "/api/v1/nodes",
        node,
        json!({"spec": {"podCIDRs": ["10.0.1.0/24"]}}),
        "Node \"n\" is invalid: spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
    );
    not_created(
        "/api/v1/nodes",
        json!({"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Nope"}]}}),
        "Node \"n\" is invalid: metadata.taints[0].effect: Unsupported value: \"Nope\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
    );
}

#[test]
fn wrong_types_are_reported_as_go_does() {
    not_created(
        SERVICES,
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": "80"}]}}),
        "Service in version \"v1\" cannot be handled as a Service: json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32",
    );
}

#[test]
fn labels_are_checked_four_times_on_an_update_and_reported_once() {
    let fault = "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    refused(
        "/api/v1/nodes",
        json!({"metadata": {"name": "n"}}),
        json!({"metadata": {"labels": {"a": "-"}}}),
        &format!("Node \"n\" is invalid: {fault}"),
    );
}

#[test]
fn small_kinds_have_their_rules() {
    refused(
        "/api/v1/namespaces/default/configmaps",
        json!({"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": true}),
        json!({"data": {"a": "2"}}),
        "ConfigMap \"c\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
    );
    refused(
        "/api/v1/namespaces/default/secrets",
        json!({"metadata": {"name": "s"}}),
        json!({"type": "other"}),
        "Secret \"s\" is invalid: type: Invalid value: \"other\": field is immutable",
    );
    not_created(
        "/api/v1/namespaces/default/secrets",
        json!({"metadata": {"name": "s"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "AA=="}}),
        "Secret \"s\" is invalid: data[tls.key]: Required value",
    );
    not_created(
        "/api/v1/namespaces/x/events",
        json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "y"}}),
        "Event \"e\" is invalid: involvedObject.namespace: Invalid value: \"y\": does not match event.namespace",
    );
    refused(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        json!({"metadata": {"name": "a:b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}}),
        json!({"roleRef": {"name": "q"}}),
        "ClusterRoleBinding.rbac.authorization.k8s.io \"a:b\" is invalid: roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\"Name\":\"q\"}: cannot change roleRef",
    );
    not_created(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}]}),
        "EndpointSlice.discovery.k8s.io \"e\" is invalid: endpoints[0].addresses[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
    );
    not_created(
        "/apis/apps/v1/namespaces/default/deployments",
        json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        "Deployment.apps \"d\" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`]",
    );
    not_created(
        "/api/v1/namespaces/default/pods",
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}}),
        "Pod \"p\" is invalid: [spec.containers[0].image: Required value, spec.containers[0].volumeMounts[0].name: Not found: \"v\"]",
    );
}

#[test]
fn both_groups_see_the_same_event() {
    let core = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "n"}, "message": "m", "reason": "r", "source": {"component": "c"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "count": 2});
    let core = embedded_objects::typed::decode_object(&core).expect("a right Event");
    let new = lifecycle::event_from_core(&core);
    assert_eq!(new["regarding"]["name"], "n");
    assert_eq!(new["note"], "m");
    assert_eq!(new["deprecatedCount"], 2);
    assert_eq!(lifecycle::event_to_core(&new), core);
}

#[test]
fn a_token_is_mounted_where_nothing_else_is() {
    let mut pod = json!({"spec": {"containers": [{"name": "c"}]}});
    lifecycle::mount_token(&mut pod, &json!({"imagePullSecrets": [{"name": "s"}]}), "abcde");
    assert_eq!(pod["spec"]["volumes"][0]["name"], "kube-api-access-abcde");
    assert_eq!(pod["spec"]["imagePullSecrets"][0]["name"], "s");
    let mount = "/var/run/secrets/kubernetes.io/serviceaccount";
    assert_eq!(pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], mount);
    let mut own = json!({"spec": {"automountServiceAccountToken": false, "containers": [{"name": "c"}]}});
    lifecycle::mount_token(&mut own, &json!({}), "abcde");
    assert_eq!(own["spec"].get("volumes"), None);
}
