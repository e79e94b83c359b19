//! The meaning of calls, and their entries in the journal.

use super::support::Proxied;
use fake_cloud_driver::{DriverFacility, Op, Outcome};

#[tokio::test]
async fn a_call_is_journalled_by_what_it_means_and_by_its_port() {
    let proxied = Proxied::start().await;
    assert_eq!(proxied.get("/v1/instances?name=node-1").await.status(), 200);
    let by_b = proxied.http.get(proxied.url("b", "/v1/instances?page=2"));
    assert_eq!(proxied.ask(by_b).await.expect("an answer").status(), 200);
    let id = proxied.balancer("web", "uid-1").await;
    assert_eq!(proxied.get(&format!("/v1/load-balancers/{id}")).await.status(), 200);
    assert_eq!(proxied.get("/v1/firewalls").await.status(), 200);
    let seen: Vec<_> = proxied
        .journal()
        .await
        .into_iter()
        .map(|entry| {
            (
                entry.credential.unwrap_or_default(),
                entry.op,
                entry.resource,
                entry.owner,
                entry.unknown.is_some(),
            )
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        seen,
        [
            ("a".to_owned(), Op::InstanceGet, some("name=node-1"), None, false),
            ("b".to_owned(), Op::InstanceList, None, None, false),
            ("a".to_owned(), Op::LbCreate, some(&id), some("uid-1"), false),
            ("a".to_owned(), Op::LbGet, some(&id), some("uid-1"), false),
            ("a".to_owned(), Op::Other, None, None, true),
        ]
    );
    let outcomes: Vec<Outcome> = proxied.journal().await.into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes[2], Outcome::Answered { status: 201 });
}

#[tokio::test]
async fn the_driver_reports_the_owner_of_a_load_balancer() {
    let proxied = Proxied::start().await;
    let lb = r#"{"id": "lb-7", "name": "old", "owner": "uid-7", "frontends": [], "backends": [], "addresses": [],
        "state": "active"}"#;
    let lb = serde_json::from_str(lb).expect("a load balancer");
    // Without the proxy, which then has to query the driver.
    let behind = fake_cloud_driver::Client::new(
        &format!("http://{}", proxied.cloud.driver_addr()),
        proxied.cloud.driver_token(),
    );
    behind.expect("a client").put_load_balancer(&lb).await.expect("put");
    let gone = proxied.ask(proxied.http.delete(proxied.url("a", "/v1/load-balancers/lb-7"))).await;
    assert_eq!(gone.expect("an answer").status(), 204);
    assert_eq!(proxied.get("/v1/load-balancers/lb-8").await.status(), 404);
    let owners: Vec<_> = proxied.journal().await.into_iter().map(|entry| entry.owner).collect();
    assert_eq!(owners, [Some("uid-7".to_owned()), None]);
}

#[tokio::test]
async fn its_driver_api_is_the_drivers_and_its_own() {
    let proxied = Proxied::start().await;
    let can = proxied.driver.capabilities().await.expect("it says");
    assert_eq!(can.name, "fake-cloud (native) behind the recording proxy");
    assert_eq!(can.facilities, DriverFacility::ALL.iter().copied().collect());
    assert_eq!(can.endpoint.as_deref(), Some(proxied.url("a", "").as_str()));
    assert_eq!(proxied.driver.inventory().await.expect("an inventory").instances.len(), 1);
    let absent = proxied.driver.delete_instance("i-9").await.expect_err("there is none");
    assert!(absent.is_not_found(), "{absent}");
    let stranger =
        fake_cloud_driver::Client::new(&format!("http://{}", proxied.proxy.driver_addr().expect("one")), "x");
    assert_eq!(stranger.expect("a client").inventory().await.expect_err("refused").status(), Some(401));
}
