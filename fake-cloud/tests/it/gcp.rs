//! What is special about the dialect `gcp`: load balancers that consist of several resources, and a metadata server with
//! a header of its own. Its individual calls are tested with the vendor's own client (`tests/clients/gcp`).

use crate::support::{TestCloud, about};
use fake_cloud::Unknown;
use fake_cloud_driver::{Address, Effect, Instance, InstanceState, Match, Op};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PROJECT: &str = "/compute/v1/projects/conformance-project";
const REGION: &str = "/compute/v1/projects/conformance-project/regions/us-central1";
const ONE: &str = "a0000000000000000000000000000001";
const TWO: &str = "a0000000000000000000000000000002";

fn machine(number: u8) -> Instance {
    Instance {
        id: format!("node-{number}"),
        name: format!("node-{number}"),
        provider_id: None,
        instance_type: "n1-standard-2".to_owned(),
        zone: "us-central1-a".to_owned(),
        region: "us-central1".to_owned(),
        addresses: vec![Address { kind: "InternalIP".to_owned(), address: format!("10.128.0.{number}") }],
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

fn firewall(owner: &str, address: &Value, port: &str, source: &str) -> Value {
    json!({"name": format!("k8s-fw-{owner}"), "destinationRanges": [address], "sourceRanges": [source],
        "allowed": [{"IPProtocol": "tcp", "ports": [port]}]})
}

/// Makes a load balancer as the CCM does; returns its address.
async fn serve(cloud: &TestCloud, owner: &str) -> Value {
    cloud.post(&format!("{REGION}/addresses"), json!({"name": owner})).await.answers(200);
    let address = cloud.get(&format!("{REGION}/addresses/{owner}")).await.answers(200)["address"].clone();
    let firewall = firewall(owner, &address, "80", "192.0.2.0/24");
    cloud.post(&format!("{PROJECT}/global/firewalls"), firewall).await.answers(200);
    let pool = json!({"name": owner, "instances": ["/zones/us-central1-a/instances/node-1"]});
    cloud.post(&format!("{REGION}/targetPools"), pool).await.answers(200);
    let rule = json!({"name": owner, "IPAddress": address, "portRange": "80-80",
        "target": format!("https://www.googleapis.com{REGION}/targetPools/{owner}")});
    cloud.post(&format!("{REGION}/forwardingRules"), rule).await.answers(200);
    address
}

#[tokio::test]
async fn a_change_of_one_load_balancer_leaves_what_the_driver_has_changed_at_another() {
    let cloud = TestCloud::speaking("gcp", Unknown::Refused, &[machine(1), machine(2)]).await;
    serve(&cloud, ONE).await;
    serve(&cloud, TWO).await;
    let of = async |owner: &str| {
        let held = cloud.driver.inventory().await.expect("an inventory").owned_by(owner);
        held.load_balancers.first().cloned().expect("its load balancer")
    };
    let mut changed = of(TWO).await;
    changed.backends.clear();
    changed.frontends[0].port = 81;
    cloud.driver.put_load_balancer(&changed).await.expect("put");
    let joins = json!({"instances": [{"instance": "/zones/us-central1-a/instances/node-2"}]});
    cloud.post(&format!("{REGION}/targetPools/{ONE}/addInstance"), joins).await.answers(200);
    assert_eq!(of(ONE).await.backends, ["node-1", "node-2"]);
    assert_eq!(of(TWO).await, changed);
    let pool = cloud.get(&format!("{REGION}/targetPools/{TWO}")).await.answers(200);
    assert_eq!(pool["instances"], Value::Null, "the pool shows what the driver has changed");
}

#[tokio::test]
async fn the_parts_of_a_load_balancer_go_with_it_if_the_driver_removes_it_with_all_that_belongs_to_it() {
    let cloud = TestCloud::speaking("gcp", Unknown::Refused, &[machine(1)]).await;
    serve(&cloud, ONE).await;
    let held = cloud.driver.inventory().await.expect("an inventory");
    cloud.driver.delete_load_balancer(&held.load_balancers[0].id, true).await.expect("removed");
    let left = cloud.driver.inventory().await.expect("an inventory").auxiliaries;
    let left: Vec<&str> = left.iter().map(|aux| aux.kind.as_str()).collect();
    assert_eq!(left, ["address"], "an address is there before its load balancer and after it");
}

#[tokio::test]
async fn source_ranges_outlast_a_moment_in_which_no_port_is_open() {
    let cloud = TestCloud::speaking("gcp", Unknown::Refused, &[machine(1)]).await;
    let address = serve(&cloud, ONE).await;
    // The CCM changes the firewall first, and then replaces the forwarding rule.
    let patch = firewall(ONE, &address, "8080", "192.0.2.0/24");
    let path = format!("{PROJECT}/global/firewalls/k8s-fw-{ONE}");
    let request = cloud.request(reqwest::Method::PATCH, &path).json(&patch);
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 200);
    let held = cloud.driver.inventory().await.expect("an inventory").load_balancers.remove(0);
    assert!(held.frontends.is_empty());
    assert_eq!(held.source_ranges, ["192.0.2.0/24"]);
}

#[tokio::test]
async fn a_fault_for_a_service_meets_the_creation_of_its_forwarding_rule() {
    let cloud = TestCloud::speaking("gcp", Unknown::Refused, &[machine(1)]).await;
    let matching = Match { ops: vec![Op::LbCreate], ..about(ONE) };
    cloud.inject(matching, Effect::Status { status: 503, retry_after_s: None }).await;
    let rule = json!({"name": ONE, "target": format!("{REGION}/targetPools/{ONE}")});
    let refused = cloud.post(&format!("{REGION}/forwardingRules"), rule).await.answers(503);
    assert_eq!(refused["error"]["errors"][0]["reason"], "backendError");
}

#[tokio::test]
async fn the_metadata_server_asks_for_its_header() {
    let cloud = TestCloud::speaking("gcp", Unknown::Refused, &[machine(1)]).await;
    let service = cloud.running.metadata_addr().expect("it has one");
    let ask = async |path: &str, flavor: Option<&str>| {
        let request = cloud.http.get(format!("http://{service}{path}")).basic_auth("node-1", None::<&str>);
        let request =
            flavor.into_iter().fold(request, |request, flavor| request.header("Metadata-Flavor", flavor));
        let answer = request.send().await.expect("an answer");
        let flavor = answer.headers().get("metadata-flavor").cloned();
        (answer.status().as_u16(), flavor.is_some(), answer.text().await.expect("text"))
    };
    let hostname = "/computeMetadata/v1/instance/hostname";
    assert_eq!(
        ask(hostname, Some("Google")).await,
        (200, true, "node-1.c.conformance-project.internal".to_owned())
    );
    assert_eq!(ask(hostname, None).await.0, 403);
    let zone = ask("/computeMetadata/v1/instance/zone", Some("Google")).await;
    assert_eq!(zone.2, "projects/420000000042/zones/us-central1-a");
    assert_eq!(
        ask("/computeMetadata/v1/instance/network-interfaces/0/ip", Some("Google")).await.2,
        "10.128.0.1"
    );
}
