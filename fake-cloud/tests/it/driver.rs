//! The driver API itself: its token, its errors, and the inventory.

use crate::support::{OTHER_TOKEN, Reply, TestCloud, firewall, instance};
use fake_cloud::{Config, Server, StartError, Unknown};
use fake_cloud_driver::{
    Client, ClientError, Credential, DriverFacility, Effect, Fault, Instance, InstanceIds, InstanceState,
    Inventory, LbAddressing, Match, OPERATIONS, PROTOCOL, Settings,
};
use reqwest::Method;
use serde_json::{Value, json};

fn driver(cloud: &TestCloud, method: Method, path: &str) -> reqwest::RequestBuilder {
    cloud.http.request(method, format!("http://{}{path}", cloud.running.driver_addr()))
}

fn authorized(cloud: &TestCloud, method: Method, path: &str) -> reqwest::RequestBuilder {
    driver(cloud, method, path).bearer_auth(cloud.running.driver_token())
}

#[track_caller]
fn problem(reply: Reply, status: u16) -> String {
    let body = reply.answers(status);
    body["error"].as_str().unwrap_or_else(|| panic!("no error in {body}")).to_owned()
}

#[tokio::test]
async fn no_call_goes_without_the_token() {
    let cloud = TestCloud::start().await;
    let paths = [
        (Method::GET, "/driver/v1/inventory"),
        (Method::PUT, "/driver/v1/inventory"),
        (Method::POST, "/driver/v1/reset"),
        (Method::GET, "/driver/v1/journal?wait_ms=30000"),
        (Method::PUT, "/driver/v1/credentials"),
        (Method::GET, "/driver/v1/instances/i-1"),
    ];
    for (method, path) in paths {
        let words = "the driver token is missing or wrong";
        assert_eq!(problem(Reply::of(driver(&cloud, method.clone(), path)).await, 401), words);
        let wrong = driver(&cloud, method.clone(), path).bearer_auth(crate::support::TOKEN);
        assert_eq!(problem(Reply::of(wrong).await, 401), words);
        let close = format!("{}x", cloud.running.driver_token());
        assert_eq!(problem(Reply::of(driver(&cloud, method, path).bearer_auth(close)).await, 401), words);
    }
}

#[tokio::test]
async fn capabilities_are_the_dialects_and_every_facility_is_there() {
    for (dialect, ids, names) in
        [("native", InstanceIds::Text, None), ("hcloud", InstanceIds::Number, Some(0))]
    {
        let cloud = TestCloud::speaking(dialect, Unknown::Refused, &[]).await;
        let said = cloud.driver.capabilities().await.expect("capabilities");
        assert_eq!((said.protocol, said.name), (PROTOCOL, format!("fake-cloud ({dialect})")));
        assert_eq!((said.ids, said.shows.names), (ids, names));
        assert!(said.facilities.iter().eq(DriverFacility::ALL));
        assert_eq!(said.endpoint, Some(format!("http://{}", cloud.running.cloud_addr())));
    }
}

#[tokio::test]
async fn every_call_of_the_protocol_is_served_and_is_in_the_document() {
    let cloud = TestCloud::start().await;
    let document = fake_cloud_driver::document();
    let mut described = 0;
    for operation in OPERATIONS {
        let method: Method = operation.method.parse().expect("a method");
        let path = format!("/driver/v1{}", operation.path);
        // A caller without the token learns that the call exists, and nothing else.
        let reply = Reply::of(driver(&cloud, method, &path.replace("{id}", "1"))).await;
        assert_eq!(problem(reply, 401), "the driver token is missing or wrong", "{path}");
        let said = &document["paths"][&path][operation.method.to_lowercase()];
        assert_eq!(said["x-facility"], json!(operation.facility), "{path}");
        described += 1;
    }
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.values().map(|path| path.as_object().expect("methods").len()).sum::<usize>(), described);
}

#[test]
fn the_document_in_the_repository_is_made_of_the_types() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/driver/openapi.json");
    let made = format!("{:#}\n", fake_cloud_driver::document());
    if std::env::var_os("REWRITE_DOCUMENTS").is_some() {
        std::fs::write(file, &made).expect("the document is ours");
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(kept == made, "out of date; REWRITE_DOCUMENTS=1 cargo test -p fake-cloud --test it document");
    // Everything that it refers to exists.
    let text = made.replace("~1", "/");
    for reference in text.split("\"$ref\": \"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(fake_cloud_driver::document().pointer(reference).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn nonsense_is_refused_with_words() {
    let cloud = TestCloud::start().await;
    let send = async |method: Method, path: &str, body: &str| {
        Reply::of(authorized(&cloud, method, path).body(body.to_owned())).await
    };
    assert_eq!(
        problem(send(Method::GET, "/driver/v1/nothing", "").await, 404),
        "the driver API has no such path"
    );
    assert_eq!(problem(send(Method::GET, "/", "").await, 404), "the driver API has no such path");
    problem(send(Method::PATCH, "/driver/v1/inventory", "").await, 405);
    let cases = [
        (Method::PUT, "/driver/v1/instances/i-1", "{"),
        (Method::PUT, "/driver/v1/instances/i-1", "{\"id\":\"i-2\",\"name\":\"x\"}"),
        (Method::PUT, "/driver/v1/instances/i-1", "{\"id\":\"i-1\",\"name\":\"x\",\"zome\":\"a\"}"),
        (Method::POST, "/driver/v1/instances", "{}"),
        (Method::PUT, "/driver/v1/inventory", "{}"),
        (Method::PUT, "/driver/v1/load-balancers/lb-1", "{}"),
        (Method::DELETE, "/driver/v1/load-balancers/lb-1?cascade=maybe", ""),
        (Method::DELETE, "/driver/v1/load-balancers/lb-1?cascading=true", ""),
        (Method::POST, "/driver/v1/routes", "[]"),
        (Method::PUT, "/driver/v1/routes/r-1", "{\"id\":\"r-2\",\"destination\":\"\"}"),
        (Method::PUT, "/driver/v1/faults/1", "{\"effect\":{\"kind\":\"explode\"}}"),
        (Method::PUT, "/driver/v1/faults/1", "{\"effect\":{\"kind\":\"status\",\"status\":200}}"),
        (Method::PUT, "/driver/v1/faults/1", "{\"effect\":{\"kind\":\"hang\"},\"calls\":0}"),
        (Method::PUT, "/driver/v1/faults/1", "{\"effect\":{\"kind\":\"hang\"},\"mathing\":{}}"),
        (Method::PUT, "/driver/v1/barriers/1", "{\"ops\":[\"lb.crate\"]}"),
        (Method::GET, "/driver/v1/journal?after=x", ""),
        (Method::GET, "/driver/v1/journal?afer=1", ""),
        (Method::PUT, "/driver/v1/settings", "{\"page_size\":0}"),
        (Method::PUT, "/driver/v1/settings", "{\"pagesize\":1}"),
        (Method::PUT, "/driver/v1/credentials", "{\"name\":\"a\",\"token\":\"\"}"),
        (Method::PUT, "/driver/v1/credentials", "{\"name\":\"\",\"token\":\"t\"}"),
    ];
    for (method, path, body) in cases {
        let reply = send(method.clone(), path, body).await;
        assert_eq!(reply.status, 422, "{method} {path} {body}: {}", reply.text);
        assert!(!problem(reply, 422).is_empty());
    }
    for path in ["faults/x", "faults/9", "barriers/x", "barriers/-1", "instances/i-9"] {
        problem(send(Method::GET, &format!("/driver/v1/{path}"), "").await, 404);
    }
    problem(send(Method::DELETE, "/driver/v1/credentials/nobody", "").await, 404);
    problem(send(Method::POST, "/driver/v1/barriers/9/release", "").await, 404);
}

#[tokio::test]
async fn instances_are_put_read_and_deleted() {
    let cloud = TestCloud::start().await;
    let stopped = Instance { state: InstanceState::Stopped, ..instance("i-1") };
    cloud.driver.put_instance(&stopped).await.expect("put");
    assert_eq!(cloud.driver.get_instance("i-1").await.expect("there"), stopped);
    cloud.driver.delete_instance("i-1").await.expect("deleted");
    let error = cloud.driver.delete_instance("i-1").await.expect_err("gone");
    assert!(error.is_not_found() && error.status() == Some(404));
    let address = cloud.running.driver_addr();
    let words = format!(
        "DELETE /driver/v1/instances/i-1: the driver at http://{address} answered 404: instance i-1 does not exist"
    );
    assert_eq!(error.to_string(), words);
    let twice = cloud.driver.put_instances(&[instance("i-5"), instance("i-5")]).await.expect_err("twice");
    assert_eq!(twice.status(), Some(422));
    assert!(cloud.driver.get_instance("i-5").await.is_err());
}

#[tokio::test]
async fn the_inventory_is_compared_and_restored() {
    let cloud = TestCloud::start().await;
    cloud.load_balancer("kept", "u-0").await;
    let baseline = cloud.driver.inventory().await.expect("inventory");
    let lb = cloud.load_balancer("web", "u-1").await;
    cloud.post("/v1/firewalls", firewall("web", "u-1", Some(&lb))).await.answers(201);
    let route = json!({"destination": "10.244.1.0/24", "target_instance": "i-1"});
    cloud.post("/v1/routes", route).await.answers(201);
    cloud.delete("/v1/load-balancers/lb-1").await.answers(204);
    let stopped = Instance { state: InstanceState::Stopped, ..instance("i-2") };
    cloud.driver.put_instance(&stopped).await.expect("put");
    let later = cloud.driver.inventory().await.expect("inventory");
    assert_eq!(
        baseline.diff(&later).to_string(),
        "added load balancer lb-2 (name web, owner u-1)\n\
         added auxiliary fw-1 (firewall for lb-2, name web, owner u-1)\n\
         added route r-1 (10.244.1.0/24 to i-1)\n\
         removed load balancer lb-1 (name kept, owner u-0)\n\
         changed instance i-2: state \"running\" -> \"stopped\""
    );
    let owned = later.owned_by("u-1");
    assert_eq!((owned.load_balancers.len(), owned.auxiliaries.len(), owned.routes.len()), (1, 1, 0));
    cloud.driver.restore(&baseline).await.expect("restored");
    let restored = cloud.driver.inventory().await.expect("inventory");
    assert!(baseline.diff(&restored).is_empty(), "{}", baseline.diff(&restored));
    assert_eq!(cloud.load_balancer("web", "u-1").await, "lb-3", "ids are not given out twice");
}

#[tokio::test]
async fn a_reset_leaves_credentials_and_journal() {
    let cloud = TestCloud::start().await;
    cloud.load_balancer("web", "u-1").await;
    cloud.set(Settings { page_size: Some(3), provisioning_ms: Some(5), ..Settings::default() }).await;
    cloud.inject(Match::default(), Effect::Hang { ms: None }).await;
    cloud.driver.reset().await.expect("reset");
    assert_eq!(cloud.driver.inventory().await.expect("inventory"), Inventory::default());
    let defaults = Settings {
        page_size: Some(50),
        provisioning_ms: Some(0),
        deletion_ms: Some(0),
        stale_ms: Some(0),
        action_ms: Some(0),
        latency_ms: Some(0),
        addresses: Some(LbAddressing::Usual),
    };
    assert_eq!(cloud.driver.settings().await.expect("settings"), defaults);
    assert!(cloud.driver.faults().await.expect("faults").is_empty());
    cloud.get("/v1/instances/i-1").await.fails(404, "not_found");
    assert_eq!(cloud.last_seq().await, 2);
}

#[tokio::test]
async fn a_slow_cloud_lets_every_call_wait() {
    let cloud = TestCloud::start().await;
    cloud.set(Settings { latency_ms: Some(300), ..Settings::default() }).await;
    let began = std::time::Instant::now();
    cloud.get("/v1/instances/absent").await.fails(404, "not_found");
    assert!(began.elapsed() >= std::time::Duration::from_millis(300), "{:?}", began.elapsed());
    cloud.set(Settings { latency_ms: Some(0), ..Settings::default() }).await;
    cloud.get("/v1/instances/absent").await.fails(404, "not_found");
}

#[tokio::test]
async fn credentials_come_and_go() {
    let cloud = TestCloud::start().await;
    let call = async |token: &str| {
        let request = cloud.http.get(cloud.url("/v1/instances/i-1")).bearer_auth(token);
        Reply::of(request).await.status
    };
    let credential = |name: &str, token: &str| Credential { name: name.to_owned(), token: token.to_owned() };
    assert_eq!(call("fresh-token").await, 401);
    cloud.driver.put_credential(&credential("replica-3", "fresh-token")).await.expect("put");
    assert_eq!(call("fresh-token").await, 200);
    cloud.driver.put_credential(&credential("replica-3", "newer-token")).await.expect("put");
    assert_eq!((call("fresh-token").await, call("newer-token").await), (401, 200));
    cloud.driver.delete_credential("replica-3").await.expect("deleted");
    assert_eq!(call("newer-token").await, 401);
    assert!(cloud.driver.delete_credential("replica-3").await.expect_err("gone").is_not_found());
    let shared = cloud.driver.put_credential(&credential("replica-4", OTHER_TOKEN)).await.expect_err("taken");
    assert_eq!(shared.status(), Some(409));
    let names: Vec<Option<String>> =
        cloud.journal().await.into_iter().map(|entry| entry.credential).collect();
    let third = Some("replica-3".to_owned());
    assert_eq!(names, [None, third.clone(), None, third, None]);
}

#[tokio::test]
async fn settings_that_are_absent_stay() {
    let cloud = TestCloud::start().await;
    let set = cloud
        .driver
        .set_settings(&Settings { deletion_ms: Some(7), ..Settings::default() })
        .await
        .expect("set");
    assert_eq!((set.deletion_ms, set.page_size), (Some(7), Some(50)));
    let set = cloud
        .driver
        .set_settings(&Settings { page_size: Some(9), ..Settings::default() })
        .await
        .expect("set");
    assert_eq!((set.deletion_ms, set.page_size), (Some(7), Some(9)));
    assert_eq!(cloud.driver.settings().await.expect("settings"), set);
}

#[tokio::test]
async fn a_client_says_what_is_wrong_with_its_address() {
    for address in ["https://127.0.0.1:1", "", "http://", "ftp://x", "not an address", "127.0.0.1:99999"] {
        let error = Client::new(address, "token").expect_err(address);
        assert!(matches!(error, ClientError::Unusable { .. }), "{error:?}");
    }
    let error = Client::new("127.0.0.1:1", "secret\nline").expect_err("a line feed");
    assert!(!error.to_string().contains("secret"), "{error}");
    let cloud = TestCloud::start().await;
    // The address of another API.
    let other = Client::new(&cloud.running.cloud_addr().to_string(), "token").expect("a client");
    let error = other.inventory().await.expect_err("refused");
    assert_eq!(error.status(), Some(401));
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let unknown = Server::start(Config::local("nimbus")).await.expect_err("unknown");
    let known = fake_cloud_dialects::NAMES.join(", ");
    assert_eq!(unknown.to_string(), format!("dialect nimbus is not known; there are: {known}"));
    let running = Server::start(Config::local("native")).await.expect("it starts");
    let taken = Config { listen: running.cloud_addr(), ..Config::local("native") };
    let error = Server::start(taken).await.expect_err("taken");
    let words = format!(
        "cannot listen on {} for the cloud API: it is in use; choose another with --listen, or port 0 for any free one",
        running.cloud_addr()
    );
    assert_eq!(error.to_string(), words);
    let taken = Config { driver_listen: running.cloud_addr(), ..Config::local("native") };
    let error = Server::start(taken).await.expect_err("taken");
    assert!(error.to_string().contains("--driver-listen"), "{error}");
    for token in ["", "two words"] {
        let config = Config { driver_token: Some(token.to_owned()), ..Config::local("native") };
        assert!(matches!(Server::start(config).await, Err(StartError::DriverToken)));
    }
}

#[tokio::test]
async fn faults_read_back_as_they_were_ordered() {
    let cloud = TestCloud::start().await;
    let body = json!({
        "matching": {"ops": ["lb.create"], "resource": "u-1"},
        "effect": {"kind": "status", "status": 429, "retry_after_s": 3},
        "calls": 2,
        "for_ms": 60_000,
    });
    let request = authorized(&cloud, Method::PUT, "/driver/v1/faults/1").json(&body);
    let active: Value = Reply::of(request).await.answers(200);
    assert_eq!((&active["hits"], &active["in_force"]), (&json!(0), &json!(true)));
    let fault: Fault = serde_json::from_value(body).expect("a fault");
    let id = active["id"].as_u64().expect("an id");
    assert_eq!(cloud.driver.fault(id).await.expect("readable").fault, fault);
}
