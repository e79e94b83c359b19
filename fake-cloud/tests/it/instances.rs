//! Reading instances.

use crate::support::{TestCloud, instance};
use fake_cloud_driver::{Instance, InstanceState, Op, Settings};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn one_instance_is_as_the_driver_put_it() {
    let cloud = TestCloud::start().await;
    let expected = json!({
        "id": "i-1", "name": "node-i-1", "provider_id": "native://i-1", "type": "m1.small", "zone": "zone-a",
        "region": "region-1", "state": "running", "labels": {"rack": "r1"},
        "addresses": [{"type": "InternalIP", "address": "192.0.2.10"}],
    });
    assert_eq!(cloud.get("/v1/instances/i-1").await.answers(200), expected);
    let bare = Instance {
        provider_id: None,
        zone: String::new(),
        addresses: Vec::new(),
        state: InstanceState::Stopped,
        ..instance("i-1")
    };
    cloud.driver.put_instance(&bare).await.expect("put");
    let read = cloud.get("/v1/instances/i-1").await.answers(200);
    assert_eq!(
        (&read["provider_id"], &read["zone"], &read["state"]),
        (&Value::Null, &json!(""), &json!("stopped"))
    );
    let message = cloud.get("/v1/instances/i-9").await.fails(404, "not_found");
    assert_eq!(message, "instance i-9 does not exist");
}

#[tokio::test]
async fn look_ups_by_name_and_provider_id() {
    let cloud = TestCloud::start().await;
    cloud
        .driver
        .put_instance(&Instance { name: "node-i-1".to_owned(), ..instance("i-3") })
        .await
        .expect("put");
    let ids = async |path: &str| ids(&cloud.get(path).await.answers(200));
    assert_eq!(ids("/v1/instances?name=node-i-1").await, ["i-1", "i-3"]);
    assert_eq!(ids("/v1/instances?provider_id=native://i-2").await, ["i-2"]);
    assert_eq!(ids("/v1/instances?name=node-i-1&provider_id=native%3A%2F%2Fi-3").await, ["i-3"]);
    assert_eq!(ids("/v1/instances?name=nobody").await, [""; 0]);
    assert_eq!(ids("/v1/instances?name=").await, [""; 0]);
    let ops: Vec<Op> = cloud.journal().await.iter().map(|entry| entry.op).collect();
    assert!(ops.iter().all(|op| *op == Op::InstanceGet), "{ops:?}");
    let journal = cloud.journal().await;
    assert_eq!(journal[0].resource.as_deref(), Some("name=node-i-1"));
    assert_eq!(journal[2].resource.as_deref(), Some("name=node-i-1&provider_id=native://i-3"));
}

#[tokio::test]
async fn lists_come_in_pages() {
    let cloud = TestCloud::start().await;
    let many: Vec<Instance> = (0..5).map(|number| instance(&format!("n-{number}"))).collect();
    cloud.driver.put_instances(&many).await.expect("put");
    let page = async |query: &str| {
        let body = cloud.get(&format!("/v1/instances{query}")).await.answers(200);
        (ids(&body), body["next_page"].clone())
    };
    assert_eq!(page("").await.0.len(), 7);
    assert_eq!(page("?per_page=3").await, (strings(&["i-1", "i-2", "n-0"]), json!(2)));
    assert_eq!(page("?per_page=3&page=3").await, (strings(&["n-4"]), Value::Null));
    assert_eq!(page("?per_page=7").await.1, Value::Null);
    assert_eq!(
        page("?page=18446744073709551615&per_page=18446744073709551615").await,
        (strings(&[]), Value::Null)
    );
    cloud.set(Settings { page_size: Some(2), ..Settings::default() }).await;
    assert_eq!(page("?per_page=100").await, (strings(&["i-1", "i-2"]), json!(2)));
    assert_eq!(page("?page=4").await, (strings(&["n-4"]), Value::Null));
    assert_eq!(page("?page=5").await, (strings(&[]), Value::Null));
    for bad in [
        "?page=0",
        "?page=-1",
        "?page=x",
        "?page=",
        "?per_page=0",
        "?page=%2B1",
        "?page=99999999999999999999",
    ] {
        cloud.get(&format!("/v1/instances{bad}")).await.fails(422, "invalid");
    }
}

#[tokio::test]
async fn instances_cannot_be_changed_by_callers() {
    let cloud = TestCloud::start().await;
    cloud.delete("/v1/instances/i-1").await.fails(403, "forbidden");
    cloud.put("/v1/instances/i-1", json!({})).await.fails(403, "forbidden");
    cloud.post("/v1/instances", json!({})).await.fails(403, "forbidden");
    let journal = cloud.journal().await;
    assert!(journal.iter().all(|entry| entry.op == Op::InstanceWrite && entry.write));
    assert_eq!(cloud.driver.inventory().await.expect("inventory").instances.len(), 2);
}

#[tokio::test]
async fn names_may_hold_anything() {
    let cloud = TestCloud::start().await;
    for id in ["ümläut", "a/b", "a b", "per%cent", "q?u=e&r#y", "名前", "..x"] {
        let odd = Instance { name: format!("{id}!"), ..instance(id) };
        cloud.driver.put_instance(&odd).await.expect("put");
        assert_eq!(cloud.driver.get_instance(id).await.expect("there"), odd);
        let mut url = reqwest::Url::parse(&cloud.url("/v1/instances")).expect("a URL");
        url.path_segments_mut().expect("a base").push(id);
        let path = url.path().to_owned();
        assert_eq!(cloud.get(&path).await.answers(200)["name"], odd.name);
        let found = crate::support::Reply::of(
            cloud.request(Method::GET, "/v1/instances").query(&[("name", &odd.name)]),
        );
        assert_eq!(ids(&found.await.answers(200)), [id]);
        cloud.driver.delete_instance(id).await.expect("deleted");
        cloud.get(&path).await.fails(404, "not_found");
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn ids(page: &Value) -> Vec<String> {
    let list = page["instances"].as_array().expect("a list");
    list.iter().map(|instance| instance["id"].as_str().expect("an id").to_owned()).collect()
}
