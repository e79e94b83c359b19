//! Routes of the native dialect.

use crate::support::TestCloud;
use fake_cloud_driver::Route;
use serde_json::json;

#[tokio::test]
async fn a_route_from_creation_to_deletion() {
    let cloud = TestCloud::start().await;
    let body = json!({"destination": "10.244.1.0/24", "target_instance": "i-1"});
    let expected = json!({
        "id": "r-1", "destination": "10.244.1.0/24", "target_instance": "i-1", "target_addresses": ["192.0.2.10"],
        "blackhole": false,
    });
    assert_eq!(cloud.post("/v1/routes", body.clone()).await.answers(201), expected);
    assert_eq!(cloud.get("/v1/routes").await.answers(200), json!({"routes": [expected], "next_page": null}));
    let message = cloud.post("/v1/routes", body).await.fails(409, "conflict");
    assert_eq!(message, "route r-1 leads to 10.244.1.0/24");
    cloud.driver.delete_instance("i-1").await.expect("deleted");
    assert_eq!(cloud.get("/v1/routes?page=1").await.answers(200)["routes"][0]["blackhole"], true);
    cloud.delete("/v1/routes/r-1").await.answers(204);
    cloud.delete("/v1/routes/r-1").await.fails(404, "not_found");
}

#[tokio::test]
async fn invalid_values_are_refused() {
    let cloud = TestCloud::start().await;
    let bodies = [
        json!({"destination": "10.244.1.0/24", "target_instance": "i-9"}),
        json!({"destination": "10.244.1.1/24", "target_instance": "i-1"}),
        json!({"destination": "", "target_instance": "i-1"}),
        json!({"destination": "10.244.1.0/24"}),
        json!({"destination": "10.244.1.0/24", "target_instance": "i-1", "blackhole": false}),
        json!({"destination": 7, "target_instance": "i-1"}),
    ];
    for body in bodies {
        cloud.post("/v1/routes", body).await.fails(422, "invalid");
    }
    cloud.get("/v1/routes?owner=x").await.fails(422, "invalid");
    cloud.get("/v1/routes/r-1").await.fails(501, "unknown_endpoint");
}

#[tokio::test]
async fn the_driver_puts_routes_of_any_kind() {
    let cloud = TestCloud::start().await;
    let stray = Route {
        id: String::new(),
        destination: "10.99.0.0/24".to_owned(),
        target_instance: Some("nobody".to_owned()),
        target_addresses: Vec::new(),
        blackhole: false,
    };
    let put = cloud.driver.put_route(&stray).await.expect("put");
    assert_eq!((put.id.as_str(), put.blackhole), ("r-1", true));
    let moved = Route { target_instance: Some("i-2".to_owned()), ..put };
    let moved = cloud.driver.put_route(&Route { blackhole: false, ..moved }).await.expect("put");
    assert!(!moved.blackhole);
    let listed = cloud.get("/v1/routes").await.answers(200);
    assert_eq!(listed["routes"][0]["target_instance"], "i-2");
    cloud.driver.delete_route("r-1").await.expect("deleted");
    assert!(cloud.driver.delete_route("r-1").await.expect_err("gone").is_not_found());
}
