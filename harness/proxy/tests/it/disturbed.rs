//! Faults and barriers.

use super::support::Proxied;
use fake_cloud_driver::{Effect, Fault, Match, Op, Outcome};
use std::time::Duration;

fn fault(ops: &[Op], resource: Option<&str>, effect: Effect) -> Fault {
    let resource = resource.map(str::to_owned);
    Fault {
        matching: Match { ops: ops.to_vec(), resource, ..Match::default() },
        effect,
        calls: Some(1),
        for_ms: None,
    }
}

#[tokio::test]
async fn a_fault_meets_an_object_by_any_of_its_names() {
    let proxied = Proxied::start().await;
    let id = proxied.balancer("web", "uid-1").await;
    let refused = Effect::Status { status: 429, retry_after_s: Some(3) };
    let by_owner =
        proxied.driver.inject(&fault(&[Op::LbDelete], Some("uid-1"), refused)).await.expect("injected");
    let path = format!("/v1/load-balancers/{id}");
    let delete = || proxied.ask(proxied.http.delete(proxied.url("a", &path)));
    let answer = delete().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (429, &b"3"[..]));
    assert_eq!(answer.text().await.expect("a body"), r#"{"error": {"code": "code-429"}}"#);
    assert_eq!(proxied.driver.fault(by_owner.id).await.expect("it is there").hits, 1);
    assert_eq!(delete().await.expect("an answer").status(), 204);
    let of_a_machine = fault(&[], Some("native://i-1"), Effect::Malformed);
    proxied.driver.inject(&of_a_machine).await.expect("injected");
    assert_eq!(proxied.get("/v1/instances/i-2").await.status(), 404);
    let answer = proxied.get("/v1/instances?name=node-1").await;
    assert_eq!(answer.status(), 200);
    assert!(answer.json::<serde_json::Value>().await.is_err());
    let last = proxied.journal().await.pop().expect("a call");
    assert!(matches!(last.outcome, Outcome::Faulted { status: Some(200), .. }), "{last:?}");
}

#[tokio::test]
async fn an_unclassified_call_is_matched_by_method_and_path() {
    let proxied = Proxied::start().await;
    let matching = Match { request: Some("GET /v1/firewalls".to_owned()), ..Match::default() };
    let effect = Effect::Status { status: 503, retry_after_s: None };
    proxied.driver.inject(&Fault { matching, effect, calls: None, for_ms: None }).await.expect("injected");
    assert_eq!(proxied.get("/v1/firewalls?owner=x").await.status(), 503);
    assert_eq!(proxied.get("/v1/routes").await.status(), 200);
}

#[tokio::test]
async fn answers_are_refused_lost_or_never_given() {
    let proxied = Proxied::start().await;
    proxied.driver.inject(&fault(&[Op::InstanceGet], None, Effect::Refuse)).await.expect("injected");
    let ask = |path: &str| proxied.ask(proxied.http.get(proxied.url("a", path)));
    assert!(ask("/v1/instances/i-1").await.is_err());
    proxied
        .driver
        .inject(&fault(&[Op::LbCreate], None, Effect::LoseAnswer { ms: None }))
        .await
        .expect("injected");
    let wanted = serde_json::json!({"name": "web", "frontends": [], "backends": []});
    let url = proxied.url("a", "/v1/load-balancers");
    assert!(proxied.ask(proxied.http.post(url).json(&wanted)).await.is_err());
    // It took effect, and the journal knows what it made.
    let held = proxied.driver.inventory().await.expect("an inventory").load_balancers;
    let lost = proxied.journal().await.pop().expect("a call");
    assert_eq!((held.len(), lost.resource), (1, Some(held[0].id.clone())));
    assert!(matches!(lost.outcome, Outcome::Faulted { status: None, .. }));
    let withheld = fault(&[Op::LbDelete], None, Effect::LoseAnswer { ms: Some(50) });
    proxied.driver.inject(&withheld).await.expect("injected");
    let url = proxied.url("a", &format!("/v1/load-balancers/{}", held[0].id));
    assert!(proxied.ask(proxied.http.delete(url)).await.is_err());
    assert!(proxied.driver.inventory().await.expect("an inventory").load_balancers.is_empty());
    let withheld = proxied.journal().await.pop().expect("a call");
    assert!(withheld.took_ms >= Some(50), "{withheld:?}");
    proxied.driver.inject(&fault(&[], None, Effect::Hang { ms: Some(50) })).await.expect("injected");
    assert!(ask("/v1/instances/i-1").await.is_err());
    proxied.driver.inject(&fault(&[], None, Effect::Hang { ms: None })).await.expect("injected");
    assert!(tokio::time::timeout(Duration::from_millis(100), ask("/v1/instances/i-1")).await.is_err());
}

#[tokio::test]
async fn behaviour_of_the_cloud_is_requested_from_its_driver() {
    let proxied = Proxied::start().await;
    let slow = fault(&[Op::LbCreate], None, Effect::SlowProvisioning { ms: 60_000 });
    let slow = proxied.driver.inject(&slow).await.expect("injected");
    proxied.balancer("web", "uid-1").await;
    assert!(proxied.driver.inventory().await.expect("an inventory").load_balancers[0].addresses.is_empty());
    assert_eq!(proxied.driver.fault(slow.id).await.expect("it is there").hits, 1);
    proxied.driver.clear_fault(slow.id).await.expect("cleared");
    assert!(proxied.driver.clear_fault(slow.id).await.expect_err("cleared before").is_not_found());
}

#[tokio::test]
async fn a_barrier_holds_a_call_before_it_takes_effect() {
    let proxied = Proxied::start().await;
    let matching = Match { ops: vec![Op::LbCreate], credential: Some("a".to_owned()), ..Match::default() };
    let barrier = proxied.driver.raise_barrier(&matching).await.expect("raised");
    let held = proxied.balancer("web", "uid-1");
    let watched = async {
        while proxied.driver.barrier(barrier.id).await.expect("it stands").waiting == 0 {}
        assert!(proxied.driver.inventory().await.expect("an inventory").load_balancers.is_empty());
        proxied.driver.release_barrier(barrier.id).await.expect("released")
    };
    let (id, released) = tokio::join!(held, watched);
    assert_eq!((released.waiting, released.arrived), (1, 1));
    assert!(!id.is_empty());
}
