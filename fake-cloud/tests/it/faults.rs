//! Faults: every effect, and which calls they hit.

use crate::support::{OTHER_TOKEN, Reply, TestCloud, about, answered, load_balancer, on, until};
use fake_cloud_driver::{Effect, Fault, Match, Op, Outcome, Settings};
use reqwest::Method;
use serde_json::Value;
use std::time::Duration;

fn status(status: u16) -> Effect {
    Effect::Status { status, retry_after_s: None }
}

#[tokio::test]
async fn every_status_comes_in_the_dialects_form() {
    let cloud = TestCloud::start().await;
    let codes = [
        (400, "refused"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
        (418, "refused"),
        (422, "invalid"),
        (500, "unavailable"),
        (503, "unavailable"),
        (599, "unavailable"),
    ];
    for (code, word) in codes {
        let fault = cloud.inject(Match::default(), status(code)).await;
        cloud.get("/v1/instances/i-1").await.fails(code, word);
        let entry = cloud.journal().await.pop().expect("an entry");
        assert_eq!(entry.outcome, Outcome::Faulted { status: Some(code), fault });
        cloud.driver.clear_fault(fault).await.expect("cleared");
    }
    cloud.get("/v1/instances/i-1").await.answers(200);
}

#[tokio::test]
async fn rate_limits_say_when_to_come_back() {
    let cloud = TestCloud::start().await;
    cloud.inject(Match::default(), Effect::Status { status: 429, retry_after_s: Some(17) }).await;
    let reply = cloud.get("/v1/instances").await;
    assert_eq!(reply.retry_after.as_deref(), Some("17"));
    reply.fails(429, "rate_limited");
}

#[tokio::test]
async fn a_malformed_answer_is_a_200_without_valid_json() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(on(Op::InstanceGet), Effect::Malformed).await;
    let reply = cloud.get("/v1/instances/i-1").await;
    assert_eq!((reply.status, reply.content_type.as_str()), (200, "application/json"));
    assert!(serde_json::from_str::<Value>(&reply.text).is_err());
    let entry = cloud.journal().await.pop().expect("an entry");
    assert_eq!(entry.outcome, Outcome::Faulted { status: Some(200), fault });
}

#[tokio::test]
async fn an_accepted_change_that_fails_is_reported_by_its_operation() {
    let cloud = TestCloud::start().await;
    let id = cloud.load_balancer("web", "u-1").await;
    let fault = cloud.inject(Match::default(), Effect::FailAction { code: "server_error".into() }).await;
    cloud.set(Settings { action_ms: Some(400), ..Settings::default() }).await;
    let path = format!("/v1/load-balancers/{id}");
    let begun = cloud.delete(&path).await.answers(202);
    assert_eq!(
        (&begun["operation"]["state"], &begun["operation"]["error"]),
        (&"running".into(), &Value::Null)
    );
    let operation = format!("/v1/operations/{}", begun["operation"]["id"].as_str().expect("an id"));
    let failed = until(async || {
        let seen = cloud.get(&operation).await.answers(200);
        (seen["operation"]["state"] == "failed").then_some(seen)
    });
    assert_eq!(failed.await["operation"]["error"]["code"], "server_error");
    assert_eq!(cloud.get(&path).await.answers(200)["state"], "active", "nothing was changed");
    let outcomes: Vec<Outcome> = cloud.journal().await.into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(outcomes[1], Outcome::Faulted { status: Some(202), fault });
    assert_eq!(outcomes[2], answered(200), "a call that begins nothing is carried out as usual");
    cloud.driver.clear_fault(fault).await.expect("cleared");
    cloud.delete(&path).await.answers(204);
    cloud.get("/v1/operations/action-99").await.fails(404, "not_found");
}

#[tokio::test]
async fn refusing_closes_the_connection_without_effect() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(on(Op::LbCreate), Effect::Refuse).await;
    let request = cloud.request(Method::POST, "/v1/load-balancers").json(&load_balancer("a", "u-1"));
    let error = request.send().await.expect_err("no answer");
    assert!(error.is_request(), "{error:?}");
    let entry = cloud.journal().await.pop().expect("an entry");
    assert_eq!(entry.outcome, Outcome::Faulted { status: None, fault });
    assert!(entry.took_ms.is_some());
    assert!(cloud.driver.inventory().await.expect("inventory").load_balancers.is_empty());
}

#[tokio::test]
async fn losing_the_answer_takes_effect_first() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(on(Op::LbCreate), Effect::LoseAnswer { ms: None }).await;
    let request = cloud.request(Method::POST, "/v1/load-balancers").json(&load_balancer("a", "u-1"));
    request.send().await.expect_err("no answer");
    let entry = cloud.journal().await.pop().expect("an entry");
    assert_eq!(entry.outcome, Outcome::Faulted { status: None, fault });
    assert_eq!(entry.resource.as_deref(), Some("lb-1"));
    assert_eq!(cloud.driver.inventory().await.expect("inventory").load_balancers.len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_withheld_takes_effect_first() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(on(Op::LbCreate), Effect::LoseAnswer { ms: Some(3_600_000) }).await;
    let request = cloud.request(Method::POST, "/v1/load-balancers").json(&load_balancer("a", "u-1"));
    let call = tokio::spawn(request.send());
    let entry = cloud.arrival(0).await;
    assert_eq!((entry.outcome, entry.took_ms), (Outcome::Faulted { status: None, fault }, None));
    assert_eq!(entry.resource.as_deref(), Some("lb-1"));
    assert_eq!(cloud.driver.inventory().await.expect("inventory").load_balancers.len(), 1);
    call.abort();
    assert_eq!(cloud.ended(entry.seq).await.outcome, Outcome::Faulted { status: None, fault });
}

#[tokio::test]
async fn a_hung_call_stays_until_its_caller_gives_up() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(on(Op::LbCreate), Effect::Hang { ms: None }).await;
    let request = cloud.request(Method::POST, "/v1/load-balancers").json(&load_balancer("a", "u-1"));
    let call = tokio::spawn(request.send());
    let entry = cloud.arrival(0).await;
    assert_eq!((entry.outcome, entry.took_ms), (Outcome::Faulted { status: None, fault }, None));
    cloud.driver.clear_faults().await.expect("cleared");
    cloud.get("/v1/instances/i-1").await.answers(200);
    assert_eq!(cloud.arrival(0).await.took_ms, None, "clearing the fault does not wake it");
    call.abort();
    let ended = cloud.ended(entry.seq).await;
    assert_eq!(ended.outcome, Outcome::Faulted { status: None, fault });
    assert!(cloud.driver.inventory().await.expect("inventory").load_balancers.is_empty());
}

#[tokio::test]
async fn a_hang_with_a_limit_ends_in_a_closed_connection() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(on(Op::LbCreate), Effect::Hang { ms: Some(50) }).await;
    let request = cloud.request(Method::POST, "/v1/load-balancers").json(&load_balancer("a", "u-1"));
    request.send().await.expect_err("no answer");
    let entry = cloud.journal().await.pop().expect("an entry");
    assert_eq!(entry.outcome, Outcome::Faulted { status: None, fault });
    assert!(entry.took_ms.expect("it has ended") >= 50);
    assert!(cloud.driver.inventory().await.expect("inventory").load_balancers.is_empty());
}

#[tokio::test]
async fn latency_delays_and_then_answers() {
    let cloud = TestCloud::start().await;
    cloud.inject(on(Op::InstanceGet), Effect::Latency { ms: 60 }).await;
    cloud.get("/v1/instances/i-1").await.answers(200);
    let entry = cloud.journal().await.pop().expect("an entry");
    assert_eq!(entry.outcome, answered(200));
    assert!(entry.took_ms >= Some(60), "{:?}", entry.took_ms);
}

#[tokio::test]
async fn a_slow_call_whose_caller_gives_up_has_no_effect() {
    let cloud = TestCloud::start().await;
    cloud.inject(on(Op::LbCreate), Effect::Latency { ms: 3_600_000 }).await;
    let request = cloud.request(Method::POST, "/v1/load-balancers").json(&load_balancer("a", "u-1"));
    let call = tokio::spawn(request.send());
    let entry = cloud.arrival(0).await;
    assert_eq!(entry.outcome, Outcome::UnderWay);
    call.abort();
    assert_eq!(cloud.ended(entry.seq).await.outcome, Outcome::Abandoned);
    assert!(cloud.driver.inventory().await.expect("inventory").load_balancers.is_empty());
}

#[tokio::test]
async fn faults_are_used_up_in_order_and_stay_readable() {
    let cloud = TestCloud::start().await;
    let once =
        |code| Fault { matching: Match::default(), effect: status(code), calls: Some(1), for_ms: None };
    let first = cloud.driver.inject(&once(500)).await.expect("a fault");
    let second = cloud.driver.inject(&once(503)).await.expect("a fault");
    assert_eq!((first.hits, first.in_force), (0, true));
    cloud.get("/v1/instances/i-1").await.fails(500, "unavailable");
    cloud.get("/v1/instances/i-1").await.fails(503, "unavailable");
    cloud.get("/v1/instances/i-1").await.answers(200);
    let spent = cloud.driver.fault(first.id).await.expect("readable");
    assert_eq!((spent.hits, spent.in_force), (1, false));
    let ids: Vec<u64> = cloud.driver.faults().await.expect("faults").iter().map(|fault| fault.id).collect();
    assert_eq!(ids, [first.id, second.id]);
    cloud.driver.clear_fault(first.id).await.expect("cleared");
    assert!(cloud.driver.clear_fault(first.id).await.expect_err("gone").is_not_found());
    assert!(cloud.driver.fault(first.id).await.expect_err("gone").is_not_found());
}

#[tokio::test]
async fn a_fault_ends_with_its_time() {
    let cloud = TestCloud::start().await;
    let fault = Fault { matching: Match::default(), effect: status(503), calls: None, for_ms: Some(50) };
    let fault = cloud.driver.inject(&fault).await.expect("a fault");
    until(async || (cloud.get("/v1/instances/i-1").await.status == 200).then_some(())).await;
    assert!(!cloud.driver.fault(fault.id).await.expect("readable").in_force);
}

#[tokio::test]
async fn faults_hit_the_object_by_any_of_its_names() {
    let cloud = TestCloud::start().await;
    let lb = cloud.load_balancer("web", "u-1").await;
    let hit = async |name: &str, path: &str| {
        let fault = cloud.inject(about(name), status(500)).await;
        let reply = cloud.get(path).await;
        cloud.driver.clear_fault(fault).await.expect("cleared");
        reply.status == 500
    };
    for name in ["i-1", "node-i-1", "native://i-1"] {
        assert!(hit(name, "/v1/instances/i-1").await, "{name}");
        assert!(hit(name, "/v1/instances?name=node-i-1").await, "{name}");
        assert!(hit(name, "/v1/instances?provider_id=native%3A%2F%2Fi-1").await, "{name}");
        assert!(!hit(name, "/v1/instances/i-2").await, "{name}");
        assert!(!hit(name, "/v1/instances").await, "{name}");
    }
    for name in [lb.as_str(), "web", "u-1"] {
        assert!(hit(name, "/v1/load-balancers/lb-1").await, "{name}");
        assert!(hit(name, "/v1/load-balancers?owner=u-1").await, "{name}");
        assert!(!hit(name, "/v1/load-balancers?owner=u-2").await, "{name}");
    }
    assert!(
        hit("nobody", "/v1/instances/nobody").await,
        "what the cloud does not know, by what the call says"
    );
    cloud.inject(Match { ops: vec![Op::LbCreate], ..about("u-7") }, status(409)).await;
    cloud.post("/v1/load-balancers", load_balancer("new", "u-7")).await.fails(409, "conflict");
    cloud.post("/v1/load-balancers", load_balancer("new", "u-8")).await.answers(201);
}

#[tokio::test]
async fn faults_can_be_for_one_caller() {
    let cloud = TestCloud::start().await;
    cloud.inject(Match { credential: Some("replica-2".to_owned()), ..Match::default() }, status(403)).await;
    cloud.get("/v1/instances/i-1").await.answers(200);
    let other = cloud.http.get(cloud.url("/v1/instances/i-1")).bearer_auth(OTHER_TOKEN);
    Reply::of(other).await.fails(403, "forbidden");
    cloud.driver.clear_faults().await.expect("cleared");
    let stranger = "192.0.2.200".parse().expect("an address");
    cloud.inject(Match { peer: Some(stranger), ..Match::default() }, status(500)).await;
    cloud.get("/v1/instances/i-1").await.answers(200);
    let mapped = "::ffff:127.0.0.1".parse().expect("an address");
    cloud.inject(Match { peer: Some(mapped), ..Match::default() }, status(500)).await;
    cloud.get("/v1/instances/i-1").await.fails(500, "unavailable");
}

#[tokio::test]
async fn calls_with_unknown_credentials_do_not_use_up_faults() {
    let cloud = TestCloud::start().await;
    let fault = cloud.inject(Match::default(), status(500)).await;
    Reply::of(cloud.http.get(cloud.url("/v1/instances/i-1"))).await.fails(401, "unauthorized");
    assert_eq!(cloud.driver.fault(fault).await.expect("readable").hits, 0);
    assert!(cloud.driver.journal(0, Duration::ZERO).await.is_ok());
}
