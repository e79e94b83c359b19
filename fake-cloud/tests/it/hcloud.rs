//! The dialect `hcloud` and everything that works in the same way in every dialect: faults, barriers,
//! journal, inventory, the strict and the lenient cloud. Its individual calls are tested with the vendor's
//! own client (`tests/clients/hcloud`).

use crate::support::{Reply, TestCloud, about, answered, on, until};
use fake_cloud::Unknown;
use fake_cloud_driver::{Address, Effect, Fault, Instance, InstanceState, Match, Op, Outcome, Route};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn server(number: u64) -> Instance {
    let address = |kind: &str, address: String| Address { kind: kind.to_owned(), address };
    Instance {
        id: number.to_string(),
        name: format!("node-{number}"),
        provider_id: Some(format!("hcloud://{number}")),
        instance_type: "cpx11".to_owned(),
        zone: "fsn1-dc14".to_owned(),
        region: "fsn1".to_owned(),
        addresses: vec![
            address("InternalIP", format!("10.0.0.{number}")),
            address("ExternalIP", format!("198.51.100.{number}")),
        ],
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

async fn start(unknown: Unknown) -> TestCloud {
    TestCloud::speaking("hcloud", unknown, &[server(1), server(2)]).await
}

/// A load balancer for the Service with this uid, as the CCM creates it.
fn balancer(uid: &str) -> Value {
    json!({
        "name": format!("a{uid}"),
        "load_balancer_type": 1,
        "location": "fsn1",
        "labels": {"hcloud-ccm/service-uid": uid},
    })
}

async fn created(cloud: &TestCloud, uid: &str) -> u64 {
    let body = cloud.post("/v1/load_balancers", balancer(uid)).await.answers(201);
    body["load_balancer"]["id"].as_u64().expect("an id")
}

#[track_caller]
fn refused(reply: Reply, status: u16, code: &str) {
    let body = reply.answers(status);
    assert_eq!(body["error"]["code"], code, "{body}");
}

#[tokio::test]
async fn calls_mean_to_the_model_what_they_are() {
    let cloud = start(Unknown::Refused).await;
    let id = created(&cloud, "4be1").await;
    let (lb, target) = (format!("/v1/load_balancers/{id}"), json!({"type": "server", "server": {"id": 1}}));
    cloud.get("/v1/locations?page=1&per_page=50").await.answers(200);
    cloud.get("/v1/servers?page=1&per_page=50").await.answers(200);
    cloud.get("/v1/servers?name=node-2").await.answers(200);
    cloud.get("/v1/servers/1").await.answers(200);
    cloud.get("/v1/load_balancers?label_selector=hcloud-ccm%2Fservice-uid%3D4be1").await.answers(200);
    cloud.post(&format!("{lb}/actions/add_target"), target).await.answers(201);
    cloud
        .post(
            "/v1/networks/1/actions/add_route",
            json!({"destination": "10.244.1.0/24", "gateway": "10.0.0.1"}),
        )
        .await;
    cloud.get("/v1/networks/1").await.answers(200);
    cloud.get("/v1/certificates?name=c").await.answers(200);
    cloud.delete("/v1/servers/1").await.answers(403);
    cloud.delete(&lb).await.answers(200);
    let journal = cloud.journal().await;
    let shown: Vec<_> = journal.iter().map(|e| (e.op, e.resource.as_deref().unwrap_or_default())).collect();
    let id = id.to_string();
    assert_eq!(
        shown,
        [
            (Op::LbCreate, id.as_str()),
            (Op::Other, ""),
            (Op::InstanceList, ""),
            (Op::InstanceGet, "name=node-2"),
            (Op::InstanceGet, "1"),
            (Op::LbList, "label_selector=hcloud-ccm/service-uid=4be1"),
            (Op::LbUpdate, &id),
            (Op::RouteCreate, journal[7].resource.as_deref().expect("a route")),
            (Op::RouteList, ""),
            (Op::AuxRead, "name=c"),
            (Op::InstanceWrite, "1"),
            (Op::LbDelete, &id),
        ][..]
    );
    for index in [0, 5, 6, 11] {
        assert_eq!(journal[index].owner.as_deref(), Some("4be1"), "{}", journal[index].request);
    }
}

#[tokio::test]
async fn faults_hit_whichever_way_an_object_is_named() {
    let cloud = start(Unknown::Refused).await;
    let status = |status| Effect::Status { status, retry_after_s: None };
    let matching = Match { ops: vec![Op::LbCreate], ..about("4be1") };
    let fault = Fault { matching, effect: status(503), calls: Some(1), for_ms: None };
    cloud.driver.inject(&fault).await.expect("a fault");
    refused(cloud.post("/v1/load_balancers", balancer("4be1")).await, 503, "service_error");
    let id = created(&cloud, "4be1").await;
    cloud.inject(about("hcloud://2"), status(500)).await;
    refused(cloud.get("/v1/servers/2").await, 500, "server_error");
    refused(cloud.get("/v1/servers?name=node-2").await, 500, "server_error");
    cloud.get("/v1/servers/1").await.answers(200);
    cloud.inject(Match { ops: vec![Op::LbUpdate], ..about("4be1") }, Effect::LoseAnswer { ms: None }).await;
    let change = cloud.request(Method::POST, &format!("/v1/load_balancers/{id}/actions/change_algorithm"));
    change.json(&json!({"type": "least_connections"})).send().await.expect_err("no answer");
    let lb = cloud.get(&format!("/v1/load_balancers/{id}")).await.answers(200);
    assert_eq!(lb["load_balancer"]["algorithm"]["type"], "least_connections", "it was done all the same");
}

#[tokio::test]
async fn a_barrier_holds_a_deletion() {
    let cloud = start(Unknown::Refused).await;
    let id = created(&cloud, "4be1").await;
    let barrier = cloud.driver.raise_barrier(&on(Op::LbDelete)).await.expect("a barrier");
    let path = format!("/v1/load_balancers/{id}");
    let waits = async {
        until(async || (cloud.driver.barrier(barrier.id).await.ok()?.waiting == 1).then_some(())).await;
        cloud.get(&path).await.answers(200);
        cloud.driver.release_barrier(barrier.id).await.expect("released");
    };
    let (deleted, ()) = tokio::join!(cloud.delete(&path), waits);
    deleted.answers(200);
    refused(cloud.get(&path).await, 404, "not_found");
}

#[tokio::test]
async fn an_action_that_fails_is_a_fault_that_has_hit() {
    let cloud = start(Unknown::Refused).await;
    let id = created(&cloud, "4be1").await;
    let fault = cloud.inject(on(Op::LbUpdate), Effect::FailAction { code: "server_error".to_owned() }).await;
    let path = format!("/v1/load_balancers/{id}");
    let body = json!({"type": "least_connections"});
    let action = cloud.post(&format!("{path}/actions/change_algorithm"), body).await.answers(201);
    assert_eq!(
        (&action["action"]["status"], &action["action"]["error"]["code"]),
        (&json!("error"), &json!("server_error"))
    );
    let renamed = cloud.put(&path, json!({"name": "renamed"})).await.answers(200);
    assert_eq!(renamed["load_balancer"]["algorithm"]["type"], "round_robin", "nothing was changed");
    let outcomes: Vec<Outcome> =
        cloud.journal().await.into_iter().skip(1).map(|entry| entry.outcome).collect();
    // Renaming begins no action, so no action can fail.
    assert_eq!(outcomes, [Outcome::Faulted { status: Some(201), fault }, answered(200)]);
}

#[tokio::test]
async fn a_dialect_without_actions_has_none_to_fail() {
    let cloud = TestCloud::speaking("linode", Unknown::Refused, &[]).await;
    let effect = Effect::FailAction { code: "x".to_owned() };
    let fault = Fault { matching: Match::default(), effect, calls: None, for_ms: None };
    let error = cloud.driver.inject(&fault).await.expect_err("refused");
    assert!(error.to_string().contains("dialect linode has no actions that could fail"), "{error}");
}

#[tokio::test]
async fn leftovers_of_a_service_are_counted() {
    let cloud = start(Unknown::Refused).await;
    let baseline = cloud.driver.inventory().await.expect("inventory");
    let id = created(&cloud, "4be1").await;
    let certificate = json!({
        "name": "c", "type": "managed", "domain_names": ["a.example"], "labels": {"hcloud-ccm/service-uid": "4be1"},
    });
    cloud.post("/v1/certificates", certificate).await.answers(201);
    let actions = format!("/v1/load_balancers/{id}/actions");
    let service = json!({"protocol": "tcp", "listen_port": 80, "destination_port": 30080});
    let before = cloud.driver.inventory().await.expect("inventory");
    cloud.post(&format!("{actions}/add_service"), service).await.answers(201);
    cloud.post(&format!("{actions}/attach_to_network"), json!({"network": 1})).await.answers(201);
    let changed = before.diff(&cloud.driver.inventory().await.expect("inventory")).to_string();
    for part in ["frontends", "health_check", "private_ip"] {
        assert!(changed.contains(part), "{part} in {changed}");
    }
    let owned = cloud.driver.inventory().await.expect("inventory").owned_by("4be1");
    assert_eq!((owned.load_balancers.len(), owned.auxiliaries.len()), (1, 1));
    cloud.delete(&format!("/v1/load_balancers/{id}")).await.answers(200);
    let left = baseline.diff(&cloud.driver.inventory().await.expect("inventory"));
    assert_eq!(
        (left.added.len(), left.added[0].summary.as_str()),
        (1, "certificate for nothing, name c, owner 4be1")
    );
}

#[tokio::test]
async fn objects_created_by_the_driver_are_shown() {
    let cloud = start(Unknown::Refused).await;
    let id = created(&cloud, "4be1").await;
    let mut lb = cloud.driver.inventory().await.expect("inventory").load_balancers.remove(0);
    lb.frontends = vec![fake_cloud_driver::Frontend::new(9, "TCP", 99)];
    lb.backends = vec!["2".to_owned()];
    lb.details = Value::Null;
    cloud.driver.put_load_balancer(&lb).await.expect("put");
    let shown = cloud.get(&format!("/v1/load_balancers/{id}")).await.answers(200);
    let shown = &shown["load_balancer"];
    assert_eq!(shown["services"][0]["destination_port"], 99);
    assert_eq!(shown["targets"][0]["server"]["id"], 2);
    assert_eq!(shown["labels"], json!({"hcloud-ccm/service-uid": "4be1"}));
}

#[tokio::test]
async fn instances_have_numbers() {
    let cloud = start(Unknown::Refused).await;
    let nameless = Instance { id: "i-1".to_owned(), ..server(3) };
    let error = cloud.driver.put_instance(&nameless).await.expect_err("refused");
    assert!(error.to_string().contains("in dialect hcloud an id is a number"), "{error}");
    cloud.driver.put_instances(&[server(3), nameless]).await.expect_err("all or none");
    assert_eq!(cloud.driver.inventory().await.expect("inventory").instances.len(), 2);
}

#[tokio::test]
async fn a_lenient_cloud_does_what_it_understands() {
    let mut body = balancer("4be1");
    body["gadget"] = json!({"size": 7});
    let strict = start(Unknown::Refused).await;
    refused(strict.post("/v1/load_balancers", body.clone()).await, 501, "unsupported_error");
    let lenient = start(Unknown::PassedOver).await;
    lenient.post("/v1/load_balancers?colour=red", body).await.answers(201);
    assert_eq!(lenient.get("/v1/volumes").await.answers(200), json!({}));
    for (cloud, count) in [(strict, 0), (lenient, 1)] {
        let entry = &cloud.journal().await[0];
        assert!(entry.unknown.is_some(), "{}", entry.request);
        assert_eq!(cloud.driver.inventory().await.expect("inventory").load_balancers.len(), count);
    }
}

#[tokio::test]
async fn nothing_ends_the_cloud() {
    let cloud = start(Unknown::Refused).await;
    let id = created(&cloud, "4be1").await;
    let lb = format!("/v1/load_balancers/{id}/actions");
    let bodies = [
        "",
        "{",
        "null",
        "7",
        "[]",
        "{}",
        "{\"listen_port\": -1}",
        "{\"type\": 1}",
        "\"\u{0}\"",
        "{\"network\": 1e99}",
    ];
    let actions = [
        "add_service",
        "update_service",
        "delete_service",
        "add_target",
        "remove_target",
        "attach_to_network",
        "detach_from_network",
        "change_algorithm",
        "change_type",
        "change_dns_ptr",
        "change_protection",
    ];
    for body in bodies {
        for action in actions {
            let call = cloud.request(Method::POST, &format!("{lb}/{action}")).body(body.to_owned());
            let status = Reply::of(call).await.status;
            assert!([400, 422].contains(&status), "{action} {body}: {status}");
        }
    }
    for path in [
        "servers/0",
        "servers/-1",
        "servers/9e9",
        "load_balancers/x",
        "certificates/ ",
        "actions/99999999999999999999",
    ] {
        refused(cloud.get(&format!("/v1/{path}")).await, 404, "not_found");
    }
    for query in
        ["page=0", "page=x", "per_page=51", "per_page=0", "sort=colour", "sort=id:up", "label_selector=,"]
    {
        refused(cloud.get(&format!("/v1/servers?{query}")).await, 422, "invalid_input");
    }
    let far = cloud.get("/v1/servers?page=18446744073709551615&per_page=50").await.answers(200);
    assert_eq!(far["servers"], json!([]));
}

#[tokio::test]
async fn routes_can_be_put_there_and_calls_about_them_fail_or_wait() {
    let cloud = start(Unknown::Refused).await;
    let seed = |destination: &str, target: Option<&str>| Route {
        id: String::new(),
        destination: destination.to_owned(),
        target_instance: target.map(str::to_owned),
        target_addresses: Vec::new(),
        blackhole: target.is_none(),
    };
    cloud.driver.put_route(&seed("10.244.8.0/24", Some("1"))).await.expect("a stray");
    cloud.driver.put_route(&seed("100.64.0.1/32", None)).await.expect("a black hole");
    let network = cloud.get("/v1/networks/1").await.answers(200);
    assert_eq!(
        network["network"]["routes"],
        json!([
            {"destination": "10.244.8.0/24", "gateway": "10.0.0.1"},
            {"destination": "100.64.0.1/32", "gateway": "10.255.0.1"},
        ])
    );
    let route = |destination: &str| json!({"destination": destination, "gateway": "10.0.0.1"});
    let (add, delete) = ("/v1/networks/1/actions/add_route", "/v1/networks/1/actions/delete_route");
    // By the network of the route, with any call.
    let status = Effect::Status { status: 503, retry_after_s: None };
    cloud.inject(Match { ops: vec![Op::RouteCreate], ..about("10.244.1.0/24") }, status.clone()).await;
    refused(cloud.post(add, route("10.244.1.0/24")).await, 503, "service_error");
    cloud.post(add, route("10.244.2.0/24")).await.answers(201);
    let fault = cloud.inject(Match { ops: vec![Op::RouteList], ..Match::default() }, status.clone()).await;
    refused(cloud.get("/v1/networks/1").await, 503, "service_error");
    cloud.driver.clear_fault(fault).await.expect("cleared");
    cloud.inject(Match { ops: vec![Op::RouteDelete], ..about("10.244.8.0/24") }, status).await;
    refused(cloud.post(delete, route("10.244.8.0/24")).await, 503, "service_error");
    let held = Match { ops: vec![Op::RouteCreate], ..about("10.244.3.0/24") };
    let barrier = cloud.driver.raise_barrier(&held).await.expect("raised");
    let call = cloud.request(Method::POST, add).json(&route("10.244.3.0/24")).send();
    let call = tokio::spawn(call);
    until(async || (cloud.driver.barrier(barrier.id).await.ok()?.waiting == 1).then_some(())).await;
    assert_eq!(cloud.driver.inventory().await.expect("inventory").routes.len(), 3);
    cloud.driver.release_barrier(barrier.id).await.expect("released");
    assert_eq!(call.await.expect("no panic").expect("an answer").status().as_u16(), 201);
    assert_eq!(cloud.driver.inventory().await.expect("inventory").routes.len(), 4);
}
