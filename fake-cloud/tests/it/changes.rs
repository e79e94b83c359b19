//! The journal records how a call changes load balancers.

use crate::support::{TestCloud, firewall, load_balancer};
use fake_cloud_driver::{Effect, Entry, LbParts, Match, Op};
use serde_json::json;

fn ports_of(parts: &LbParts) -> usize {
    parts.auxiliaries.iter().map(|aux| aux.spec["ports"].as_array().map_or(0, Vec::len)).sum()
}

#[tokio::test]
async fn a_write_is_recorded_with_what_was_there_before_and_after_it() {
    let cloud = TestCloud::start().await;
    let id = cloud.load_balancer("web", "u-1").await;
    let backends = format!("/v1/load-balancers/{id}/backends");
    cloud.put(&backends, json!({"backends": []})).await.answers(200);
    cloud.put(&backends, json!({"backends": []})).await.answers(200);
    cloud.get(&format!("/v1/load-balancers/{id}")).await.answers(200);
    let changes: Vec<_> = cloud.journal().await.into_iter().map(|entry| entry.change).collect();
    let created = changes[0].as_ref().expect("it was made");
    assert!(created.before.load_balancers.is_empty());
    assert_eq!(created.after.load_balancers[0].backends, ["i-1", "i-2"]);
    let emptied = changes[1].as_ref().expect("it was changed");
    assert_eq!(emptied.before, created.after);
    assert!(emptied.after.load_balancers[0].backends.is_empty());
    assert_eq!(changes[2..], [None, None], "nothing changed, and nothing was written");
}

#[tokio::test]
async fn a_firewall_is_shown_next_to_its_load_balancer() {
    let cloud = TestCloud::start().await;
    let id = cloud.load_balancer("web", "u-1").await;
    let made = cloud.post("/v1/firewalls", firewall("web", "u-1", Some(&id))).await.answers(201);
    let path = format!("/v1/firewalls/{}", made["id"].as_str().expect("an id"));
    let mut closed = firewall("web", "u-1", Some(&id));
    closed["ports"] = json!([]);
    cloud.put(&path, closed).await.answers(200);
    cloud.delete(&path).await.answers(204);
    let of = |entry: &Entry| {
        entry.change.as_deref().map(|change| (ports_of(&change.before), ports_of(&change.after)))
    };
    let journal = cloud.journal().await;
    let firewalls: Vec<_> = journal.iter().filter(|entry| entry.op != Op::LbCreate).collect();
    let ports: Vec<_> = firewalls.iter().map(|entry| of(entry)).collect();
    assert_eq!(ports, [Some((0, 1)), Some((1, 0)), Some((0, 0))]);
    let last = firewalls[2].change.as_ref().expect("it was deleted");
    assert_eq!((last.before.auxiliaries.len(), last.after.auxiliaries.len()), (1, 0));
    assert!(firewalls.iter().all(|entry| {
        entry.change.as_ref().is_some_and(|change| change.after.load_balancers.iter().any(|lb| lb.id == id))
    }));
}

#[tokio::test]
async fn a_change_with_a_lost_answer_is_recorded_and_a_refused_one_is_not() {
    let cloud = TestCloud::start().await;
    let ops = Match { ops: vec![Op::LbCreate], ..Match::default() };
    let refusal = cloud.inject(ops.clone(), Effect::Status { status: 503, retry_after_s: None }).await;
    cloud.post("/v1/load-balancers", load_balancer("web", "u-1")).await.answers(503);
    cloud.driver.clear_fault(refusal).await.expect("it ends");
    cloud.inject(ops, Effect::LoseAnswer { ms: None }).await;
    let lost = cloud.request(reqwest::Method::POST, "/v1/load-balancers").json(&load_balancer("web", "u-1"));
    assert!(lost.send().await.is_err());
    let journal = cloud.journal().await;
    assert_eq!(journal[0].change, None);
    assert_eq!(journal[1].change.as_ref().expect("it was made").after.load_balancers.len(), 1);
}
