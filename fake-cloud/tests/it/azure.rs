//! What is special about the dialect `azure`: one load balancer, one security group and one route table that all
//! Services and Nodes share. Its individual calls are tested with the vendor's own clients (`tests/clients/azure`).

use crate::support::{TestCloud, about, on};
use fake_cloud::Unknown;
use fake_cloud_driver::{Address, Effect, Instance, InstanceState, Match, Op};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NETWORK: &str =
    "/subscriptions/fa4ec10d-0000-4000-8000-00000000000b/resourceGroups/cluster/providers/Microsoft.Network";
const ONE: &str = "a0000000000000000000000000000001";
const TWO: &str = "a0000000000000000000000000000002";

fn machine(number: u8) -> Instance {
    Instance {
        id: format!("node-{number}"),
        name: format!("node-{number}"),
        provider_id: None,
        instance_type: "Standard_D2s_v5".to_owned(),
        zone: "eastus-1".to_owned(),
        region: "eastus".to_owned(),
        addresses: vec![Address { kind: "InternalIP".to_owned(), address: format!("10.0.0.{number}") }],
        labels: BTreeMap::new(),
        state: InstanceState::Running,
    }
}

fn path(resource: &str) -> String {
    format!("{NETWORK}/{resource}?api-version=2025-05-01")
}

fn part(kind: &str, name: &str) -> Value {
    json!({"id": format!("{NETWORK}/loadBalancers/kubernetes/{kind}/{name}")})
}

fn balancer(owners: &[&str]) -> Value {
    let rule = |owner: &&str| {
        json!({"name": format!("{owner}-TCP-80"), "properties": {"protocol": "Tcp", "frontendPort": 80, "backendPort": 80,
            "frontendIPConfiguration": part("frontendIPConfigurations", owner),
            "backendAddressPool": part("backendAddressPools", "kubernetes")}})
    };
    let frontend = |owner: &&str| {
        let address = format!("{NETWORK}/publicIPAddresses/kubernetes-{owner}");
        json!({"name": owner, "properties": {"publicIPAddress": {"id": address}}})
    };
    json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": owners.iter().map(frontend).collect::<Vec<_>>(),
        "backendAddressPools": [{"name": "kubernetes"}],
        "loadBalancingRules": owners.iter().map(rule).collect::<Vec<_>>()}})
}

fn interface(number: u8, joins: bool) -> Value {
    let pools = if joins { json!([part("backendAddressPools", "kubernetes")]) } else { json!([]) };
    json!({"name": format!("node-{number}-nic"), "properties": {"ipConfigurations": [{"name": "ipconfig1",
        "properties": {"primary": true, "loadBalancerBackendAddressPools": pools}}]}})
}

/// Two Services whose load balancers have both machines as backends.
async fn served() -> TestCloud {
    let cloud = TestCloud::speaking("azure", Unknown::Refused, &[machine(1), machine(2)]).await;
    for owner in [ONE, TWO] {
        let address = path(&format!("publicIPAddresses/kubernetes-{owner}"));
        cloud.put(&address, json!({"location": "eastus"})).await.answers(201);
    }
    cloud.put(&path("loadBalancers/kubernetes"), balancer(&[ONE])).await.answers(201);
    for number in [1, 2] {
        let interface = interface(number, true);
        cloud.put(&path(&format!("networkInterfaces/node-{number}-nic")), interface).await.answers(200);
    }
    cloud.put(&path("loadBalancers/kubernetes"), balancer(&[ONE, TWO])).await.answers(200);
    cloud
}

#[tokio::test]
async fn a_new_frontend_has_the_members_of_its_pool() {
    let cloud = served().await;
    let inventory = cloud.driver.inventory().await.expect("an inventory");
    let both = ["node-1".to_owned(), "node-2".to_owned()];
    assert!(inventory.load_balancers.iter().all(|lb| lb.backends == both), "{:?}", inventory.load_balancers);
    assert_eq!(inventory.owned_by(ONE).load_balancers.len(), 1);
    cloud.driver.delete_instance("node-2").await.expect("deleted");
    let shown = cloud.get(&path("loadBalancers/kubernetes")).await.answers(200);
    let members = &shown["properties"]["backendAddressPools"][0]["properties"]["backendIPConfigurations"];
    assert_eq!(members.as_array().map(Vec::len), Some(1), "its interface went with the machine");
}

#[tokio::test]
async fn what_the_driver_takes_out_is_out_of_the_pool() {
    let cloud = served().await;
    let mut lb = cloud.driver.inventory().await.expect("an inventory").load_balancers.remove(0);
    lb.backends.retain(|id| id != "node-2");
    cloud.driver.put_load_balancer(&lb).await.expect("put");
    let shown = cloud.get(&path("networkInterfaces/node-2-nic")).await.answers(200);
    let pools = &shown["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"];
    assert_eq!(pools, &json!([]));
    cloud.put(&path("networkInterfaces/node-2-nic"), interface(2, true)).await.answers(200);
    let inventory = cloud.driver.inventory().await.expect("an inventory");
    assert!(inventory.load_balancers.iter().all(|lb| lb.backends.len() == 2));
}

#[tokio::test]
async fn a_fault_is_for_the_service_whose_frontend_changes() {
    let cloud = served().await;
    let effect = || Effect::Status { status: 503, retry_after_s: None };
    cloud.inject(Match { ops: vec![Op::LbDelete], ..about(TWO) }, effect()).await;
    cloud.put(&path("loadBalancers/kubernetes"), balancer(&[ONE, TWO])).await.answers(200);
    let refused = cloud.put(&path("loadBalancers/kubernetes"), balancer(&[ONE])).await;
    assert_eq!(refused.status, 503);
    let text: Value = serde_json::from_str(&refused.text).expect("JSON");
    assert_eq!(text["error"]["code"], "ServiceUnavailable");
    let journal = cloud.journal().await;
    assert_eq!(journal.last().and_then(|entry| entry.owner.as_deref()), Some(TWO));
    cloud.driver.clear_faults().await.expect("cleared");
    // A change of the members is one of every Service.
    cloud.inject(Match { ..on(Op::LbUpdate) }, effect()).await;
    assert_eq!(cloud.put(&path("networkInterfaces/node-1-nic"), interface(1, false)).await.status, 503);
}

#[tokio::test]
async fn an_action_that_fails_changes_nothing() {
    let cloud = served().await;
    cloud
        .inject(on(Op::LbDelete), Effect::FailAction { code: "AnotherOperationInProgress".to_owned() })
        .await;
    let accepted = cloud.put(&path("loadBalancers/kubernetes"), balancer(&[ONE])).await.answers(200);
    assert_eq!(accepted["properties"]["provisioningState"], "Updating", "its end is not known yet");
    assert_eq!(cloud.driver.inventory().await.expect("an inventory").load_balancers.len(), 2);
}
