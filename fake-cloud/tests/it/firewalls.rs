//! Firewalls of the native dialect.

use crate::support::{TestCloud, firewall};
use fake_cloud_driver::Op;
use serde_json::json;

#[tokio::test]
async fn a_firewall_from_creation_to_deletion() {
    let cloud = TestCloud::start().await;
    let lb = cloud.load_balancer("web", "u-1").await;
    let expected = json!({
        "id": "fw-1", "name": "web", "owner": "u-1", "load_balancer": "lb-1", "source_ranges": ["192.0.2.0/24"],
        "ports": [{"port": 80, "protocol": "TCP"}],
    });
    assert_eq!(cloud.post("/v1/firewalls", firewall("web", "u-1", Some(&lb))).await.answers(201), expected);
    let listed = json!({"firewalls": [expected], "next_page": null});
    for query in ["", "?owner=u-1", "?load_balancer=lb-1", "?owner=u-1&load_balancer=lb-1"] {
        assert_eq!(cloud.get(&format!("/v1/firewalls{query}")).await.answers(200), listed, "{query}");
    }
    let other = cloud.get("/v1/firewalls?owner=u-2").await.answers(200);
    assert_eq!(other, json!({"firewalls": [], "next_page": null}));
    let loose = cloud.put("/v1/firewalls/fw-1", json!({"name": "loose"})).await.answers(200);
    let bare = json!({
        "id": "fw-1", "name": "loose", "owner": "", "load_balancer": null, "source_ranges": [], "ports": [],
    });
    assert_eq!(loose, bare);
    let inventory = cloud.driver.inventory().await.expect("inventory");
    assert_eq!((inventory.auxiliaries[0].kind.as_str(), inventory.auxiliaries.len()), ("firewall", 1));
    cloud.delete("/v1/firewalls/fw-1").await.answers(204);
    let message = cloud.delete("/v1/firewalls/fw-1").await.fails(404, "not_found");
    assert_eq!(message, "firewall fw-1 does not exist");
    cloud.put("/v1/firewalls/fw-1", json!({"name": "x"})).await.fails(404, "not_found");
}

#[tokio::test]
async fn invalid_values_are_refused() {
    let cloud = TestCloud::start().await;
    cloud.post("/v1/firewalls", firewall("a", "", None)).await.answers(201);
    cloud.post("/v1/firewalls", firewall("a", "", None)).await.fails(409, "conflict");
    let message = cloud.post("/v1/firewalls", firewall("b", "", Some("lb-9"))).await.fails(422, "invalid");
    assert_eq!(message, "load balancer lb-9 does not exist");
    let mut body = firewall("b", "", None);
    body["ports"] = json!([{"port": 0, "protocol": "TCP"}]);
    cloud.post("/v1/firewalls", body.clone()).await.fails(422, "invalid");
    body["ports"] = json!([{"port": 1, "protocol": "ICMP"}]);
    cloud.post("/v1/firewalls", body.clone()).await.fails(422, "invalid");
    body["ports"] = json!([]);
    body["source_ranges"] = json!(["anywhere"]);
    cloud.post("/v1/firewalls", body).await.fails(422, "invalid");
    cloud.post("/v1/firewalls", json!({"name": ""})).await.fails(422, "invalid");
    cloud.post("/v1/firewalls", json!({"name": "c", "id": "fw-5"})).await.fails(422, "invalid");
}

#[tokio::test]
async fn the_journal_knows_whose_a_firewall_is() {
    let cloud = TestCloud::start().await;
    let lb = cloud.load_balancer("web", "u-1").await;
    cloud.post("/v1/firewalls", firewall("web", "", Some(&lb))).await.answers(201);
    cloud.put("/v1/firewalls/fw-1", firewall("web", "u-1", Some(&lb))).await.answers(200);
    cloud.delete("/v1/firewalls/fw-1").await.answers(204);
    let entries = cloud.journal().await;
    let seen: Vec<_> = entries.iter().map(|e| (e.op, e.resource.as_deref(), e.owner.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (Op::LbCreate, Some("lb-1"), Some("u-1")),
            (Op::AuxCreate, Some("fw-1"), Some("u-1")),
            (Op::AuxUpdate, Some("fw-1"), Some("u-1")),
            (Op::AuxDelete, Some("fw-1"), Some("u-1")),
        ]
    );
}
