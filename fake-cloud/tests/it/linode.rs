//! The dialect `linode` and everything that works in the same way in every dialect: faults, barriers,
//! journal, inventory, the strict and the lenient cloud. Its individual calls are tested with the vendor's
//! own client (`tests/clients/linode`).

use crate::support::{Reply, TestCloud, about, on, until};
use fake_cloud::Unknown;
use fake_cloud_driver::{
    Address, Effect, Frontend, HealthCheck, Instance, InstanceState, LbState, Match, Op, Settings,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn linode(number: u64) -> Instance {
    let address = |kind: &str, address: String| Address { kind: kind.to_owned(), address };
    Instance {
        id: number.to_string(),
        name: format!("node-{number}"),
        provider_id: Some(format!("linode://{number}")),
        instance_type: "g6-standard-2".to_owned(),
        zone: String::new(),
        region: "us-ord".to_owned(),
        addresses: vec![
            address("InternalIP", format!("192.168.0.{number}")),
            address("ExternalIP", format!("198.51.100.{number}")),
            address("ExternalIP", format!("2001:db8::{number}")),
        ],
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

async fn start(unknown: Unknown) -> TestCloud {
    TestCloud::speaking("linode", unknown, &[linode(1), linode(2)]).await
}

fn config(port: u16, node_port: u16) -> Value {
    let node = |number: u64| {
        json!({
            "address": format!("192.168.0.{number}:{node_port}"), "label": format!("node-{number}"),
            "weight": 100, "mode": "accept",
        })
    };
    json!({
        "port": port, "protocol": "tcp", "proxy_protocol": "none", "algorithm": "roundrobin",
        "check": "connection", "check_interval": 5, "check_timeout": 3, "check_attempts": 2,
        "check_passive": true, "nodes": [node(1), node(2)],
    })
}

/// A NodeBalancer for the Service with this namespace and name, as the CCM creates it.
fn balancer(label: &str, service: &str) -> Value {
    json!({
        "label": label, "region": "us-ord", "client_conn_throttle": 0, "type": "common",
        "tags": ["kubernetes", service], "configs": [config(80, 30080)],
    })
}

async fn created(cloud: &TestCloud, label: &str, service: &str) -> Value {
    cloud.post("/v4/nodebalancers", balancer(label, service)).await.answers(200)
}

async fn found_by(cloud: &TestCloud, filter: Value) -> Reply {
    let call = cloud.request(Method::GET, "/v4/nodebalancers").header("X-Filter", filter.to_string());
    Reply::of(call).await
}

#[track_caller]
fn refused(reply: Reply, status: u16, field: Option<&str>) -> String {
    let body = reply.answers(status);
    assert_eq!(body["errors"][0]["field"].as_str(), field, "{body}");
    body["errors"][0]["reason"].as_str().expect("a reason").to_owned()
}

#[tokio::test]
async fn an_instance_is_shown_with_what_the_ccm_reads() {
    let cloud = start(Unknown::Refused).await;
    let shown = cloud.get("/v4/linode/instances/1").await.answers(200);
    for (field, value) in [
        ("id", json!(1)),
        ("label", json!("node-1")),
        ("type", json!("g6-standard-2")),
        ("region", json!("us-ord")),
        ("status", json!("running")),
        ("ipv4", json!(["192.168.0.1", "198.51.100.1"])),
        ("ipv6", json!("2001:db8::1/128")),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    let off = Instance { state: InstanceState::Stopped, addresses: Vec::new(), ..linode(2) };
    cloud.driver.put_instance(&off).await.expect("put");
    let listed = cloud.get("/v4/linode/instances?page=1&page_size=500").await.answers(200);
    assert_eq!(listed["data"][0], shown);
    let off = &listed["data"][1];
    assert_eq!((&off["status"], &off["ipv4"], &off["ipv6"]), (&json!("offline"), &json!([]), &Value::Null));
    assert_eq!((&listed["page"], &listed["pages"], &listed["results"]), (&json!(1), &json!(1), &json!(2)));
}

#[tokio::test]
async fn a_balancer_is_whole_at_once_and_is_found_by_its_address() {
    let cloud = start(Unknown::Refused).await;
    let slow =
        Settings { provisioning_ms: Some(3_600_000), deletion_ms: Some(3_600_000), ..Settings::default() };
    cloud.set(slow).await;
    let made = created(&cloud, "ccm-0a", "default/web").await;
    assert!(made["hostname"].is_string() && made["ipv4"].is_string(), "{made}");
    created(&cloud, "ccm-0b", "default/api").await;
    for field in ["ipv4", "label"] {
        let found = found_by(&cloud, json!({field: made[field]})).await.answers(200);
        assert_eq!((&found["data"], &found["results"]), (&json!([made]), &json!(1)), "{field}");
    }
    let lb = &cloud.driver.inventory().await.expect("inventory").load_balancers[0];
    assert_eq!((lb.owner.as_str(), lb.state), ("default/web", LbState::Active));
    let both = ["192.168.0.1", "192.168.0.2"].map(str::to_owned).to_vec();
    assert_eq!(lb.backends, both);
    let check = HealthCheck { protocol: "TCP".to_owned(), path: String::new(), port: 30080 };
    let port = Frontend::new(80, "TCP", 30080);
    assert_eq!(lb.frontends, [Frontend { backends: Some(both), health_check: Some(check.clone()), ..port }]);
    assert_eq!(lb.health_check, Some(check));
    assert_eq!(cloud.delete(&format!("/v4/nodebalancers/{}", lb.id)).await.answers(200), json!({}));
    let found = found_by(&cloud, json!({"ipv4": made["ipv4"]})).await.answers(200);
    assert_eq!(found["data"], json!([]));
}

#[tokio::test]
async fn a_rebuilt_config_keeps_the_nodes_it_names() {
    let cloud = start(Unknown::Refused).await;
    let id = created(&cloud, "ccm-0a", "default/web").await["id"].clone();
    let configs = format!("/v4/nodebalancers/{id}/configs");
    let first = cloud.get(&configs).await.answers(200)["data"][0].clone();
    assert_eq!((&first["nodebalancer_id"], &first["nodes_status"]["up"]), (&id, &json!(2)));
    let one = format!("{configs}/{}", first["id"]);
    let nodes = cloud.get(&format!("{one}/nodes")).await.answers(200)["data"].clone();
    let mut wanted = config(80, 30080);
    wanted["nodes"] = json!([
        {"id": nodes[1]["id"], "address": "192.168.0.2:30080", "label": "node-2"},
        {"address": "192.168.0.3:30080", "label": "node-3"},
    ]);
    let rebuilt = cloud.post(&format!("{one}/rebuild"), wanted.clone()).await.answers(200);
    assert_eq!((&rebuilt["id"], &rebuilt["check"]), (&first["id"], &json!("connection")));
    let after = cloud.get(&format!("{one}/nodes")).await.answers(200)["data"].clone();
    assert_eq!(after[0]["id"], nodes[1]["id"]);
    assert!(nodes.as_array().is_some_and(|old| old.iter().all(|node| node["id"] != after[1]["id"])));
    wanted["nodes"][0]["id"] = nodes[0]["id"].clone();
    refused(cloud.post(&format!("{one}/rebuild"), wanted).await, 400, Some("id"));

    let mut bare = config(443, 30443);
    bare["nodes"] = json!([]);
    let second = cloud.post(&configs, bare).await.answers(200);
    let kept = cloud.driver.inventory().await.expect("inventory").load_balancers.remove(0);
    assert_eq!(
        (kept.frontends.len(), kept.backends),
        (1, vec!["192.168.0.2".to_owned(), "192.168.0.3".to_owned()])
    );
    cloud.delete(&format!("{configs}/{}", second["id"])).await.answers(200);
    refused(cloud.delete(&format!("{configs}/{}", second["id"])).await, 404, None);
}

#[tokio::test]
async fn invalid_values_are_refused_with_their_field() {
    let cloud = start(Unknown::Refused).await;
    created(&cloud, "ccm-0a", "default/web").await;
    let cases = [
        ("/label", json!("ccm-0a"), "label"),
        ("/label", json!("x"), "label"),
        ("/region", json!(""), "region"),
        ("/type", json!("huge"), "type"),
        ("/tags", json!(["ab"]), "tags"),
        ("/client_conn_throttle", json!(21), "client_conn_throttle"),
        ("/configs/0/port", json!(0), "port"),
        ("/configs/0/protocol", json!("sctp"), "protocol"),
        ("/configs/0/protocol", json!("https"), "ssl_cert"),
        ("/configs/0/check", json!("http"), "check_path"),
        ("/configs/0/nodes/0/address", json!("192.168.0.1"), "address"),
        ("/configs/0/nodes/0/address", json!("192.168.0.2:30080"), "address"),
        ("/configs/0/nodes/0/label", json!("x"), "label"),
        ("/configs/0/nodes/0/weight", json!(256), "weight"),
        ("/configs/0/nodes/0/mode", json!("lazy"), "mode"),
    ];
    for (pointer, value, field) in cases {
        let mut wanted = balancer("ccm-0b", "default/web");
        *wanted.pointer_mut(pointer).expect("a field") = value;
        refused(cloud.post("/v4/nodebalancers", wanted).await, 400, Some(field));
    }
    let mut twice = balancer("ccm-0b", "default/web");
    twice["configs"] = json!([config(80, 30080), config(80, 30081)]);
    refused(cloud.post("/v4/nodebalancers", twice.clone()).await, 400, Some("port"));
    twice["configs"][1]["protocol"] = json!("udp");
    twice["configs"][1]["check_passive"] = json!(false);
    refused(cloud.post("/v4/nodebalancers", twice.clone()).await, 400, Some("mode"));
    for node in twice["configs"][1]["nodes"].as_array_mut().expect("nodes") {
        node.as_object_mut().expect("a node").remove("mode");
    }
    cloud.post("/v4/nodebalancers", twice).await.answers(200);
    refused(found_by(&cloud, json!([1])).await, 400, Some("X-Filter"));
    refused(cloud.get("/v4/linode/instances?page_size=501").await, 400, Some("page_size"));
    refused(cloud.get("/v4/nodebalancers/999").await, 404, None);
    refused(cloud.delete("/v4/linode/instances/1").await, 403, None);
    let stranger = cloud.http.get(cloud.url("/v4/nodebalancers")).bearer_auth("wrong");
    assert_eq!(refused(Reply::of(stranger).await, 401, None), "Invalid Token");
}

#[tokio::test]
async fn calls_mean_to_the_model_what_they_are() {
    let cloud = start(Unknown::Refused).await;
    let made = created(&cloud, "ccm-0a", "default/web").await;
    let id = made["id"].to_string();
    let lb = format!("/v4/nodebalancers/{id}");
    cloud.get("/v4/profile").await.answers(200);
    cloud.get("/v4/linode/instances?page=1&page_size=500").await.answers(200);
    cloud.get("/v4/linode/instances/1").await.answers(200);
    cloud.get("/v4/nodebalancers?page=1").await.answers(200);
    found_by(&cloud, json!({"ipv4": made["ipv4"]})).await.answers(200);
    cloud.get(&format!("{lb}/configs")).await.answers(200);
    cloud.get(&format!("{lb}/firewalls")).await.answers(200);
    cloud
        .put(
            &lb,
            json!({"label": "ccm-0a", "client_conn_throttle": 5, "tags": ["kubernetes", "default/web"]}),
        )
        .await
        .answers(200);
    cloud.delete(&lb).await.answers(200);
    let journal = cloud.journal().await;
    let shown: Vec<_> = journal.iter().map(|e| (e.op, e.resource.as_deref().unwrap_or_default())).collect();
    let by_address = format!("ipv4={}", made["ipv4"].as_str().expect("text"));
    assert_eq!(
        shown,
        [
            (Op::LbCreate, id.as_str()),
            (Op::Other, ""),
            (Op::InstanceList, ""),
            (Op::InstanceGet, "1"),
            (Op::LbList, ""),
            (Op::LbGet, &by_address),
            (Op::LbGet, &id),
            (Op::AuxRead, &id),
            (Op::LbUpdate, &id),
            (Op::LbDelete, &id),
        ][..]
    );
    for index in [0, 5, 6, 7, 8, 9] {
        assert_eq!(journal[index].owner.as_deref(), Some("default/web"), "{}", journal[index].request);
    }
}

#[tokio::test]
async fn faults_and_barriers_find_a_balancer_by_whom_it_belongs_to() {
    let cloud = start(Unknown::Refused).await;
    let status = |status| Effect::Status { status, retry_after_s: Some(7) };
    let fault = cloud.inject(Match { ops: vec![Op::LbCreate], ..about("default/web") }, status(503)).await;
    let reply = cloud.post("/v4/nodebalancers", balancer("ccm-0a", "default/web")).await;
    assert_eq!(reply.retry_after.as_deref(), Some("7"));
    refused(reply, 503, None);
    cloud.driver.clear_fault(fault).await.expect("cleared");
    let made = created(&cloud, "ccm-0a", "default/web").await;
    let other = created(&cloud, "ccm-0b", "default/api").await;
    cloud.inject(Match { ops: vec![Op::LbGet], ..about("default/web") }, status(500)).await;
    refused(found_by(&cloud, json!({"ipv4": made["ipv4"]})).await, 500, None);
    found_by(&cloud, json!({"ipv4": other["ipv4"]})).await.answers(200);
    let barrier = cloud.driver.raise_barrier(&on(Op::LbDelete)).await.expect("a barrier");
    let path = format!("/v4/nodebalancers/{}", other["id"]);
    let waits = async {
        until(async || (cloud.driver.barrier(barrier.id).await.ok()?.waiting == 1).then_some(())).await;
        cloud.get(&path).await.answers(200);
        cloud.driver.release_barrier(barrier.id).await.expect("released");
    };
    let (deleted, ()) = tokio::join!(cloud.delete(&path), waits);
    deleted.answers(200);
    refused(cloud.get(&path).await, 404, None);
}

#[tokio::test]
async fn unknown_calls_and_fields_are_refused() {
    let cloud = start(Unknown::Refused).await;
    let mut wanted = balancer("ccm-0a", "default/web");
    wanted["configs"][0]["colour"] = json!("red");
    refused(cloud.post("/v4/nodebalancers", wanted).await, 501, None);
    refused(found_by(&cloud, json!({"+and": [{"label": "a"}]})).await, 501, None);
    refused(cloud.get("/v4/vpcs").await, 501, None);
    let unknown: Vec<_> = cloud.journal().await.into_iter().filter_map(|entry| entry.unknown).collect();
    assert_eq!(unknown.len(), 3, "{unknown:?}");
    let lenient = start(Unknown::PassedOver).await;
    lenient.get("/v4/vpcs").await.answers(200);
}
