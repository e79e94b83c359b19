//! Load balancers of the native dialect.

use crate::support::{TestCloud, firewall, load_balancer, on, until};
use fake_cloud_driver::{Effect, LbState, LoadBalancer, Match, Op, Settings};
use serde_json::{Value, json};

#[tokio::test]
async fn a_load_balancer_from_creation_to_deletion() {
    let cloud = TestCloud::start().await;
    let expected = json!({
        "id": "lb-1", "name": "web", "owner": "u-1", "state": "active",
        "frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080}], "backends": ["i-1", "i-2"],
        "health_check": {"protocol": "HTTP", "path": "/healthz", "port": 10256}, "session_affinity": "ClientIP",
        "source_ranges": ["0.0.0.0/0"], "addresses": [{"ip": "203.0.113.1"}],
    });
    assert_eq!(cloud.post("/v1/load-balancers", load_balancer("web", "u-1")).await.answers(201), expected);
    assert_eq!(cloud.get("/v1/load-balancers/lb-1").await.answers(200), expected);
    let listed = json!({"load_balancers": [expected], "next_page": null});
    for query in ["", "?owner=u-1", "?name=web", "?owner=u-1&name=web&page=1&per_page=5"] {
        assert_eq!(cloud.get(&format!("/v1/load-balancers{query}")).await.answers(200), listed, "{query}");
    }
    for query in ["?owner=u-2", "?name=we", "?owner="] {
        let empty = json!({"load_balancers": [], "next_page": null});
        assert_eq!(cloud.get(&format!("/v1/load-balancers{query}")).await.answers(200), empty, "{query}");
    }
    let update = json!({"frontends": [], "backends": ["i-2"]});
    let updated = cloud.put("/v1/load-balancers/lb-1", update).await.answers(200);
    let kept = json!({
        "id": "lb-1", "name": "web", "owner": "u-1", "state": "active", "frontends": [], "backends": ["i-2"],
        "health_check": null, "session_affinity": "None", "source_ranges": [], "addresses": [{"ip": "203.0.113.1"}],
    });
    assert_eq!(updated, kept);
    let body = json!({"backends": ["i-2", "i-1", "i-1"]});
    let updated = cloud.put("/v1/load-balancers/lb-1/backends", body).await.answers(200);
    assert_eq!((&updated["backends"], &updated["name"]), (&json!(["i-1", "i-2"]), &json!("web")));
    assert_eq!(cloud.delete("/v1/load-balancers/lb-1").await.answers(204), Value::Null);
    let gone = "load balancer lb-1 does not exist";
    assert_eq!(cloud.get("/v1/load-balancers/lb-1").await.fails(404, "not_found"), gone);
    assert_eq!(cloud.delete("/v1/load-balancers/lb-1").await.fails(404, "not_found"), gone);
    cloud.put("/v1/load-balancers/lb-1/backends", json!({"backends": []})).await.fails(404, "not_found");
}

#[tokio::test]
async fn a_fault_makes_one_load_balancer_slow_and_leaves_others_quick() {
    let cloud = TestCloud::start().await;
    let slow = Match { resource: Some("u-1".to_owned()), ..on(Op::LbCreate) };
    cloud.inject(slow, Effect::SlowProvisioning { ms: 60_000 }).await;
    let made = cloud.post("/v1/load-balancers", load_balancer("slow", "u-1")).await.answers(201);
    assert_eq!((&made["state"], &made["addresses"]), (&json!("provisioning"), &json!([])));
    let made = cloud.post("/v1/load-balancers", load_balancer("quick", "u-2")).await.answers(201);
    assert_eq!(made["state"], json!("active"));
    assert_eq!(cloud.driver.settings().await.expect("settings").provisioning_ms, Some(0));
}

#[tokio::test]
async fn a_load_balancer_can_be_renamed_but_names_are_unique() {
    let cloud = TestCloud::start().await;
    cloud.load_balancer("a", "u-1").await;
    cloud.load_balancer("b", "u-1").await;
    let taken = cloud.post("/v1/load-balancers", load_balancer("a", "u-2")).await.fails(409, "conflict");
    assert_eq!(taken, "load balancer lb-1 has the name a");
    cloud.put("/v1/load-balancers/lb-1", load_balancer("b", "u-1")).await.fails(409, "conflict");
    let renamed = cloud.put("/v1/load-balancers/lb-1", load_balancer("c", "u-9")).await.answers(200);
    assert_eq!((&renamed["name"], &renamed["owner"]), (&json!("c"), &json!("u-9")));
    assert_eq!(cloud.load_balancer("a", "u-1").await, "lb-3");
}

#[tokio::test]
async fn the_clouds_own_fields_are_refused() {
    let cloud = TestCloud::start().await;
    cloud.load_balancer("a", "u-1").await;
    for (field, value) in
        [("id", json!("lb-7")), ("state", json!("active")), ("addresses", json!([])), ("x", json!(1))]
    {
        let mut body = load_balancer("b", "u-1");
        body[field] = value;
        let message = cloud.post("/v1/load-balancers", body.clone()).await.fails(422, "invalid");
        assert!(message.contains(&format!("unknown field `{field}`")), "{message}");
        cloud.put("/v1/load-balancers/lb-1", body).await.fails(422, "invalid");
    }
    let unknown = json!({"backends": ["i-9"]});
    cloud.put("/v1/load-balancers/lb-1/backends", unknown).await.fails(422, "invalid");
    assert_eq!(cloud.driver.inventory().await.expect("inventory").load_balancers.len(), 1);
}

#[tokio::test]
async fn provisioning_and_deletion_take_time() {
    let cloud = TestCloud::start().await;
    let hour = Some(3_600_000);
    cloud.set(Settings { provisioning_ms: hour, deletion_ms: hour, ..Settings::default() }).await;
    let created = cloud.post("/v1/load-balancers", load_balancer("a", "u-1")).await.answers(201);
    assert_eq!((&created["state"], &created["addresses"]), (&json!("provisioning"), &json!([])));
    for _ in 0..2 {
        let deleted = cloud.delete("/v1/load-balancers/lb-1").await.answers(202);
        assert_eq!(deleted["state"], "deleting");
    }
    assert_eq!(cloud.get("/v1/load-balancers/lb-1").await.answers(200)["state"], "deleting");
    cloud.put("/v1/load-balancers/lb-1/backends", json!({"backends": []})).await.fails(409, "conflict");
    cloud.post("/v1/load-balancers", load_balancer("a", "u-1")).await.fails(409, "conflict");
    cloud.post("/v1/firewalls", firewall("a", "u-1", Some("lb-1"))).await.fails(409, "conflict");

    cloud.set(Settings { provisioning_ms: Some(20), deletion_ms: Some(20), ..Settings::default() }).await;
    let id = cloud.load_balancer("b", "u-1").await;
    let path = format!("/v1/load-balancers/{id}");
    let active = until(async || {
        let read = cloud.get(&path).await.answers(200);
        (read["state"] == "active").then_some(read)
    });
    assert_eq!(active.await["addresses"], json!([{"ip": "203.0.113.2"}]));
    cloud.delete(&path).await.answers(202);
    until(async || (cloud.get(&path).await.status == 404).then_some(())).await;
}

#[tokio::test]
async fn a_load_balancer_in_use_stays() {
    let cloud = TestCloud::start().await;
    let id = cloud.load_balancer("a", "u-1").await;
    cloud.post("/v1/firewalls", firewall("a", "u-1", Some(&id))).await.answers(201);
    let message = cloud.delete("/v1/load-balancers/lb-1").await.fails(409, "conflict");
    assert_eq!(message, "load balancer lb-1 is in use: firewall fw-1 refers to it");
    cloud.delete("/v1/firewalls/fw-1").await.answers(204);
    cloud.delete("/v1/load-balancers/lb-1").await.answers(204);
}

#[tokio::test]
async fn lists_may_be_stale_but_objects_are_not() {
    let cloud = TestCloud::start().await;
    cloud.set(Settings { stale_ms: Some(3_600_000), ..Settings::default() }).await;
    cloud.load_balancer("a", "u-1").await;
    let listed = cloud.get("/v1/load-balancers?owner=u-1").await.answers(200);
    assert_eq!(listed["load_balancers"], json!([]));
    cloud.get("/v1/load-balancers/lb-1").await.answers(200);
    assert_eq!(
        cloud.get("/v1/instances?name=node-i-1").await.answers(200)["instances"].as_array().map(Vec::len),
        Some(1)
    );
    cloud.set(Settings { stale_ms: Some(0), ..Settings::default() }).await;
    let listed = cloud.get("/v1/load-balancers?owner=u-1").await.answers(200);
    assert_eq!(listed["load_balancers"][0]["id"], "lb-1");
}

#[tokio::test]
async fn the_driver_changes_load_balancers_behind_everybodys_back() {
    let cloud = TestCloud::start().await;
    let id = cloud.load_balancer("a", "u-1").await;
    cloud.post("/v1/firewalls", firewall("a", "u-1", Some(&id))).await.answers(201);
    let before = cloud.driver.inventory().await.expect("inventory");
    let tampered = LoadBalancer {
        backends: Vec::new(),
        state: LbState::Provisioning,
        ..before.load_balancers[0].clone()
    };
    cloud.driver.put_load_balancer(&tampered).await.expect("put");
    assert_eq!(cloud.get("/v1/load-balancers/lb-1").await.answers(200)["state"], "provisioning");
    cloud.driver.delete_load_balancer(&id, false).await.expect("deleted");
    let orphans = cloud.driver.inventory().await.expect("inventory").auxiliaries;
    assert_eq!(orphans[0].load_balancer.as_deref(), Some("lb-1"));
    cloud.driver.restore(&before).await.expect("restored");
    cloud.driver.delete_load_balancer(&id, true).await.expect("deleted");
    let after = cloud.driver.inventory().await.expect("inventory");
    assert!(after.load_balancers.is_empty() && after.auxiliaries.is_empty());
    let missing = cloud.driver.delete_load_balancer(&id, true).await.expect_err("gone");
    assert!(missing.is_not_found(), "{missing}");
    let entries = cloud.journal().await;
    assert!(entries.iter().all(|entry| entry.op != Op::LbDelete), "the journal is about the cloud API only");
}
