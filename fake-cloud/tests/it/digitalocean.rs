//! Dialect `digitalocean`: start-up, droplets, pages, errors, faults, and unknown calls.

use crate::digitalocean_cloud::{Answer, Calls, created, droplet, load_balancer, start, start_with};
use crate::support::{about, answered, on};
use fake_cloud::Unknown;
use fake_cloud_driver::{Effect, Fault, Instance, InstanceState, Match, Op, Settings};
use reqwest::Method;
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|item| item["id"].as_u64().expect("a number")).collect()
}

#[tokio::test]
async fn a_droplet_is_an_instance() {
    let cloud = start().await;
    let shown = cloud.call("GET", "/v2/droplets/101", None).await.answers(200);
    let shown = &shown["droplet"];
    for (field, value) in [
        ("id", json!(101)),
        ("name", json!("node-101")),
        ("status", json!("active")),
        ("size_slug", json!("s-1vcpu-2gb")),
        ("memory", json!(2048)),
        ("kernel", Value::Null),
        ("next_backup_window", Value::Null),
        ("tags", json!([])),
        ("volume_ids", json!([])),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    assert_eq!(shown["region"]["slug"], "fra1");
    let created_at = shown["created_at"].as_str().expect("a time");
    assert!(created_at.len() == 20 && created_at.ends_with('Z'), "{created_at}");
    let v4 = json!([
        {"ip_address": "10.1.2.3", "netmask": "255.255.0.0", "gateway": "10.1.0.1", "type": "private"},
        {"ip_address": "198.51.100.9", "netmask": "255.255.255.0", "gateway": "198.51.100.1", "type": "public"},
    ]);
    assert_eq!(shown["networks"], json!({"v4": v4, "v6": []}));

    let off = Instance { state: InstanceState::Stopped, ..droplet(101) };
    cloud.driver.put_instance(&off).await.expect("put");
    let shown = cloud.call("GET", "/v2/droplets/101", None).await.answers(200);
    assert_eq!(shown["droplet"]["status"], "off");
    cloud.driver.delete_instance("101").await.expect("deleted");
    for gone in ["101", "0102", "+102", "node-102", "102%20", "99999999999999999999"] {
        let answer = cloud.call("GET", &format!("/v2/droplets/{gone}"), None).await;
        assert_eq!(answer.fails(404, "not_found"), "The resource you were accessing could not be found.");
    }
}

#[tokio::test]
async fn droplets_are_found_by_exact_name() {
    let cloud = start().await;
    for (name, found) in [("node-101", vec![101]), ("NODE-102", vec![102]), ("node-10", vec![])] {
        let path = format!("/v2/droplets?name={name}&page=1&per_page=50");
        let listed = cloud.call("GET", &path, None).await.answers(200);
        assert_eq!((ids(&listed["droplets"]), &listed["links"]), (found.clone(), &json!({})), "{name}");
        assert_eq!(listed["meta"], json!({"total": found.len()}));
    }
    let listed = cloud.call("GET", "/v2/droplets?name=", None).await.answers(200);
    assert_eq!(ids(&listed["droplets"]), [101, 102]);
    let ops: Vec<Op> = cloud.journal().await.iter().map(|entry| entry.op).collect();
    assert_eq!(ops, [Op::InstanceGet, Op::InstanceGet, Op::InstanceGet, Op::InstanceList]);
    assert_eq!(cloud.journal().await[0].resource.as_deref(), Some("name=node-101"));
}

#[tokio::test]
async fn pages_say_where_the_others_are() {
    let cloud = start().await;
    let all: Vec<Instance> = (1001..=1047).map(droplet).collect();
    cloud.driver.put_instances(&all).await.expect("instances");
    let base = cloud.url("/v2/droplets");
    let link = |page: u64| format!("{base}?page={page}&per_page=20");
    let page = async |number: u64| {
        let path = format!("/v2/droplets?page={number}&per_page=20");
        let listed = cloud.call("GET", &path, None).await.answers(200);
        (ids(&listed["droplets"]).len(), listed["links"].clone(), listed["meta"]["total"].clone())
    };
    let first = json!({"pages": {"next": link(2), "last": link(3)}});
    assert_eq!(page(1).await, (20, first, json!(49)));
    let middle = json!({"pages": {"first": link(1), "prev": link(1), "next": link(3), "last": link(3)}});
    assert_eq!(page(2).await, (20, middle, json!(49)));
    let last = json!({"pages": {"first": link(1), "prev": link(2)}});
    assert_eq!(page(3).await, (9, last, json!(49)));
    let beyond = json!({"pages": {"first": link(1), "prev": link(3)}});
    assert_eq!(page(u64::MAX).await, (0, beyond, json!(49)));

    let default = cloud.call("GET", "/v2/droplets", None).await.answers(200);
    assert_eq!(default["droplets"].as_array().map(Vec::len), Some(20));
    assert_eq!(default["links"]["pages"]["next"], json!(format!("{base}?page=2")));
    cloud.set(Settings { page_size: Some(1000), ..Settings::default() }).await;
    let all = cloud.call("GET", "/v2/droplets?per_page=200", None).await.answers(200);
    assert_eq!((all["droplets"].as_array().map(Vec::len), &all["links"]), (Some(49), &json!({})));
    cloud.set(Settings { page_size: Some(7), ..Settings::default() }).await;
    let few = cloud.call("GET", "/v2/droplets?per_page=18446744073709551615", None).await.answers(200);
    assert_eq!(few["droplets"].as_array().map(Vec::len), Some(7));
    for bad in
        ["page=0", "page=-1", "page=x", "page=", "per_page=0", "per_page=1e3", "page=18446744073709551616"]
    {
        let answer = cloud.call("GET", &format!("/v2/droplets?{bad}"), None).await;
        let message = answer.fails(422, "unprocessable_entity");
        assert!(message.ends_with("page must be a number from 1"), "{bad}: {message}");
    }
}

#[tokio::test]
async fn start_up_finds_account_and_regions() {
    let cloud = start().await;
    let account = cloud.call("GET", "/v2/account", None).await.answers(200);
    assert_eq!(account["account"]["status"], "active");
    cloud
        .driver
        .put_instance(&Instance { region: "region-1".to_owned(), ..droplet(101) })
        .await
        .expect("put");
    let listed = cloud.call("GET", "/v2/regions?page=1&per_page=50", None).await.answers(200);
    let regions = listed["regions"].as_array().expect("a list");
    let slugs: Vec<&str> = regions.iter().map(|region| region["slug"].as_str().expect("text")).collect();
    assert!(slugs.contains(&"fra1") && slugs.contains(&"nyc3") && slugs.contains(&"region-1"), "{slugs:?}");
    assert!(regions.iter().all(|region| region["available"] == true && region["sizes"].is_array()));
}

#[tokio::test]
async fn calls_without_a_token_are_refused() {
    let cloud = start().await;
    let url = cloud.url("/v2/droplets");
    let anonymous = Answer::of(cloud.http.get(&url)).await;
    assert_eq!(anonymous.fails(401, "unauthorized"), "Unable to authenticate you");
    let wrong = Answer::of(cloud.http.get(&url).bearer_auth("wrong")).await;
    wrong.fails(401, "unauthorized");
    assert_eq!(cloud.journal().await[1].outcome, answered(401));
}

#[tokio::test]
async fn droplets_cannot_be_changed_by_callers() {
    let cloud = start().await;
    for (method, path) in
        [("POST", "/v2/droplets"), ("DELETE", "/v2/droplets/101"), ("POST", "/v2/droplets/101/actions")]
    {
        cloud.call(method, path, Some(json!({}))).await.fails(403, "forbidden");
    }
    let journal = cloud.journal().await;
    assert!(journal.iter().all(|entry| entry.op == Op::InstanceWrite && entry.write));
    assert_eq!(cloud.driver.inventory().await.expect("inventory").instances.len(), 2);
}

#[tokio::test]
async fn unknown_calls_and_fields_are_reported() {
    let cloud = start().await;
    let unknown = [
        ("GET", "/v2/vpcs", None),
        ("GET", "/", None),
        ("GET", "/v2/droplets/101/neighbors", None),
        ("PATCH", "/v2/load_balancers/1", Some(json!({}))),
        ("POST", "/v2/load_balancers/1/droplets", Some(json!({"droplet_ids": [101]}))),
        ("GET", "/v2/droplets?tag_name=web", None),
        ("GET", "/v2/regions/fra1?x=1", None),
        ("GET", "/v2/account?x=1", None),
    ];
    for (method, path, body) in &unknown {
        cloud.call(method, path, body.clone()).await.fails(501, "not_implemented");
    }
    for (field, value) in [
        ("tag", json!("web")),
        ("ip", json!("192.0.2.1")),
        ("type", json!("GLOBAL")),
        ("validate_only", json!(true)),
        ("target_load_balancer_ids", json!(["a"])),
        ("brand_new", json!(null)),
    ] {
        let mut wanted = load_balancer("a");
        wanted[field] = value;
        let answer = cloud.call("POST", "/v2/load_balancers", Some(wanted)).await;
        answer.fails(501, "not_implemented");
    }
    let journal = cloud.journal().await;
    assert!(journal.iter().all(|entry| entry.unknown.is_some() && entry.outcome == answered(501)));
    let last = journal.last().and_then(|entry| entry.unknown.as_deref());
    assert_eq!(last, Some("this dialect does not know the field brand_new"));
    assert!(cloud.driver.inventory().await.expect("inventory").load_balancers.is_empty());
}

#[tokio::test]
async fn a_lenient_cloud_passes_over_what_it_does_not_know() {
    let cloud = start_with(Unknown::PassedOver).await;
    cloud.call("GET", "/v2/vpcs", None).await.answers(200);
    let mut wanted = load_balancer("a");
    wanted["brand_new"] = json!(1);
    cloud.call("POST", "/v2/load_balancers", Some(wanted)).await.answers(202);
    assert!(cloud.journal().await.iter().all(|entry| entry.unknown.is_some()));
}

#[tokio::test]
async fn faults_speak_the_dialect() {
    let cloud = start().await;
    let effect = Effect::Status { status: 429, retry_after_s: Some(3) };
    cloud
        .driver
        .inject(&Fault { matching: about("node-101"), effect, calls: Some(1), for_ms: None })
        .await
        .expect("in force");
    let limited = cloud.call("GET", "/v2/droplets/101", None).await;
    assert_eq!(limited.fails(429, "too_many_requests"), "API rate limit exceeded.");
    assert_eq!(limited.headers["retry-after"], "3");
    cloud.call("GET", "/v2/droplets/101", None).await.answers(200);
    for (status, id) in [
        (400, "bad_request"),
        (403, "forbidden"),
        (418, "client_error"),
        (500, "server_error"),
        (503, "service_unavailable"),
        (599, "server_error"),
    ] {
        let effect = Effect::Status { status, retry_after_s: None };
        let fault = Fault { matching: on(Op::LbList), effect, calls: Some(1), for_ms: None };
        cloud.driver.inject(&fault).await.expect("in force");
        cloud.call("GET", "/v2/load_balancers", None).await.fails(status, id);
    }
    cloud.inject(on(Op::InstanceList), Effect::Malformed).await;
    let broken = cloud.call("GET", "/v2/droplets", None).await;
    assert!(broken.status == 200 && serde_json::from_str::<Value>(&broken.text).is_err());
}

#[tokio::test]
async fn a_fault_finds_a_load_balancer_by_its_name() {
    let cloud = start().await;
    let id = created(&cloud, "a1").await;
    cloud
        .inject(
            Match { resource: Some("a1".to_owned()), ..on(Op::LbGet) },
            Effect::Status { status: 500, retry_after_s: None },
        )
        .await;
    cloud.call("GET", &format!("/v2/load_balancers/{id}"), None).await.fails(500, "server_error");
    let journal = cloud.journal().await;
    assert!(journal.iter().all(|entry| entry.owner.as_deref() == Some("a1")));
    assert_eq!(journal[0].resource.as_deref(), Some(id.as_str()));
}

#[tokio::test]
async fn a_body_has_to_make_sense() {
    let cloud = start().await;
    let id = created(&cloud, "a").await;
    let paths = [
        (Method::POST, "/v2/load_balancers".to_owned()),
        (Method::PUT, format!("/v2/load_balancers/{id}")),
        (Method::POST, "/v2/tags".to_owned()),
        (Method::POST, "/v2/tags/t/resources".to_owned()),
        (Method::POST, "/v2/firewalls".to_owned()),
        (Method::POST, "/v2/certificates".to_owned()),
    ];
    for (method, path) in paths {
        for bad in ["", "{", "{\"name\": \"a\"", "nonsense", "\u{feff}{}"] {
            let answer = Answer::of(cloud.request(method.clone(), &path).body(bad)).await;
            answer.fails(400, "bad_request");
        }
        for bad in ["[]", "\"a\"", "7", "null", "{\"name\": 7, \"resources\": 7}"] {
            let answer = Answer::of(cloud.request(method.clone(), &path).body(bad)).await;
            answer.fails(422, "unprocessable_entity");
        }
    }
    let long = Answer::of(cloud.request(Method::POST, "/v2/tags").body("x".repeat(1 << 21))).await;
    long.fails(413, "request_entity_too_large");
}
