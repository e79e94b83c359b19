//! The metadata service: how it recognises its caller, and its answers about a machine.

use crate::support::{TestCloud, instance};
use fake_cloud::Unknown;
use fake_cloud_driver::{Address, Effect, Instance, Match, Op};
use std::time::Duration;

/// A machine with this address.
fn machine(id: &str, address: &str) -> Instance {
    let own = Address { kind: "InternalIP".to_owned(), address: address.to_owned() };
    Instance {
        name: format!("node-{id}"),
        region: format!("region-{id}"),
        addresses: vec![own],
        ..instance(id)
    }
}

/// Status and body of the answer for `user`, or for a caller from this address.
async fn asked(cloud: &TestCloud, path: &str, user: Option<&str>) -> (u16, String) {
    let service = cloud.running.metadata_addr().expect("it has one");
    let mut request = cloud.http.get(format!("http://{service}{path}"));
    if let Some(user) = user {
        request = request.basic_auth(user, None::<&str>);
    }
    let answer = request.send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

#[tokio::test]
async fn each_machine_gets_its_own_metadata() {
    let machines = [machine("1", "127.0.0.1"), machine("2", "10.0.0.2")];
    let cloud = TestCloud::speaking("digitalocean", Unknown::Refused, &machines).await;
    const REGION: &str = "/metadata/v1/region";
    // By the address of the caller, and by its name, which takes precedence.
    assert_eq!(asked(&cloud, REGION, None).await, (200, "region-1".to_owned()));
    assert_eq!(asked(&cloud, REGION, Some("node-2")).await, (200, "region-2".to_owned()));
    assert_eq!(asked(&cloud, "/metadata/v1/id", Some("node-2")).await, (200, "2".to_owned()));
    let (status, why) = asked(&cloud, REGION, Some("node-3")).await;
    assert_eq!((status, why.as_str()), (404, "no machine of this cloud asks: 'node-3' at 127.0.0.1\n"));
    cloud.driver.delete_instance("1").await.expect("it goes");
    assert_eq!(asked(&cloud, REGION, None).await.0, 404);
    // It gives no access to the API, and the API gives none to it.
    assert_eq!(asked(&cloud, "/v2/droplets", Some("node-2")).await.0, 501);
    assert_eq!(cloud.get(REGION).await.status, 501);
    let journal = cloud.driver.journal(0, Duration::ZERO).await.expect("it is kept");
    let first = &journal[0];
    assert_eq!((first.op, first.request.as_str()), (Op::Other, "GET /metadata/v1/region"));
}

#[tokio::test]
async fn a_fault_of_the_whole_cloud_is_none_of_the_metadata_service() {
    const REGION: &str = "/metadata/v1/region";
    let cloud = TestCloud::speaking("digitalocean", Unknown::Refused, &[machine("1", "127.0.0.1")]).await;
    let refused = || Effect::Status { status: 503, retry_after_s: None };
    cloud.inject(Match::default(), refused()).await;
    assert_eq!(cloud.get("/v2/droplets/1").await.status, 503);
    assert_eq!(asked(&cloud, REGION, None).await.0, 200);
    // One that names the call is meant.
    let named = Match { request: Some(format!("GET {REGION}")), ..Match::default() };
    cloud.inject(named, refused()).await;
    assert_eq!(asked(&cloud, REGION, None).await.0, 503);
}

/// Like a client that uses the service as its HTTP proxy.
#[tokio::test]
async fn it_is_reached_by_way_of_a_proxy_with_the_machines_name() {
    let cloud = TestCloud::speaking("hcloud", Unknown::Refused, &[machine("1", "10.0.0.1")]).await;
    let service = cloud.running.metadata_addr().expect("it has one");
    let proxy = reqwest::Proxy::http(format!("http://node-1@{service}")).expect("a URL");
    let client = reqwest::Client::builder().proxy(proxy).build().expect("a client");
    let url = "http://169.254.169.254/hetzner/v1/metadata/private-networks";
    let answer = client.get(url).send().await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["content-type"].as_bytes()),
        (200, &b"text/yaml"[..])
    );
    let text = answer.text().await.expect("text");
    assert_eq!(text, "- ip: 10.0.0.1\n  network_id: 1\n  network_name: fake-network\n");
}

#[tokio::test]
async fn a_cloud_without_one_says_so() {
    let cloud = TestCloud::start().await;
    assert_eq!(cloud.running.metadata_addr(), None);
    assert_eq!(cloud.driver.capabilities().await.expect("it answers").metadata, None);
}
