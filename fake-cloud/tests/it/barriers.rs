//! Barriers: calls wait before they take effect.

use crate::support::{TestCloud, about, answered, in_time, load_balancer, on};
use fake_cloud_driver::{Effect, LoadBalancer, Match, Op, Outcome};
use reqwest::{Method, Response};
use std::time::Duration;
use tokio::task::JoinHandle;

type Call = JoinHandle<Result<Response, reqwest::Error>>;

async fn status(call: Call) -> u16 {
    in_time(call).await.expect("no panic").expect("an answer").status().as_u16()
}

async fn balancers(cloud: &TestCloud) -> Vec<LoadBalancer> {
    cloud.driver.inventory().await.expect("inventory").load_balancers
}

fn create(cloud: &TestCloud, name: &str) -> Call {
    let body = load_balancer(name, &format!("owner-of-{name}"));
    tokio::spawn(cloud.request(Method::POST, "/v1/load-balancers").json(&body).send())
}

#[tokio::test]
async fn a_call_waits_and_takes_effect_on_release() {
    let cloud = TestCloud::start().await;
    let barrier = cloud.driver.raise_barrier(&about("owner-of-a")).await.expect("raised");
    assert_eq!((barrier.waiting, barrier.arrived), (0, 0));
    let call = create(&cloud, "a");
    let entry = cloud.arrival(0).await;
    assert_eq!((entry.outcome, entry.owner.as_deref()), (Outcome::UnderWay, Some("owner-of-a")));
    let status_now = cloud.driver.barrier(barrier.id).await.expect("it stands");
    assert_eq!((status_now.waiting, status_now.arrived), (1, 1));
    assert!(balancers(&cloud).await.is_empty());
    // Other calls are not held.
    assert_eq!(cloud.load_balancer("b", "owner-of-b").await, "lb-1");
    let last = cloud.driver.release_barrier(barrier.id).await.expect("released");
    assert_eq!((last.waiting, last.arrived), (1, 1));
    assert_eq!(status(call).await, 201);
    assert_eq!(balancers(&cloud).await.len(), 2);
    let ended = cloud.ended(entry.seq).await;
    assert_eq!((ended.outcome, ended.resource.as_deref()), (answered(201), Some("lb-2")));
    assert!(cloud.driver.release_barrier(barrier.id).await.expect_err("gone").is_not_found());
    assert!(cloud.driver.barrier(barrier.id).await.expect_err("gone").is_not_found());
}

#[tokio::test]
async fn a_caller_that_leaves_has_changed_nothing() {
    let cloud = TestCloud::start().await;
    let barrier = cloud.driver.raise_barrier(&on(Op::LbCreate)).await.expect("raised");
    let (first, second) = (create(&cloud, "a"), cloud.arrival(0).await);
    first.abort();
    assert_eq!(cloud.ended(second.seq).await.outcome, Outcome::Abandoned);
    let now = cloud.driver.barrier(barrier.id).await.expect("it stands");
    assert_eq!((now.waiting, now.arrived), (0, 1));
    let kept = create(&cloud, "b");
    cloud.arrival(second.seq).await;
    cloud.driver.release_barrier(barrier.id).await.expect("released");
    assert_eq!(status(kept).await, 201);
    let names: Vec<String> = balancers(&cloud).await.into_iter().map(|lb| lb.name).collect();
    assert_eq!(names, ["b"]);
}

#[tokio::test]
async fn barriers_stand_behind_one_another() {
    let cloud = TestCloud::start().await;
    let first = cloud.driver.raise_barrier(&on(Op::LbCreate)).await.expect("raised");
    let second = cloud.driver.raise_barrier(&about("a")).await.expect("raised");
    let call = create(&cloud, "a");
    let entry = cloud.arrival(0).await;
    let waiting = async |id| cloud.driver.barrier(id).await.map(|status| status.waiting).ok();
    assert_eq!((waiting(first.id).await, waiting(second.id).await), (Some(1), Some(0)));
    // Raised after the call has arrived, so it does not hold it.
    let third = cloud.driver.raise_barrier(&Match::default()).await.expect("raised");
    cloud.driver.release_barrier(first.id).await.expect("released");
    crate::support::until(async || (waiting(second.id).await == Some(1)).then_some(())).await;
    assert_eq!(cloud.driver.barriers().await.expect("barriers").len(), 2);
    cloud.driver.release_barrier(second.id).await.expect("released");
    assert_eq!(status(call).await, 201);
    assert_eq!(cloud.driver.barrier(third.id).await.expect("it stands").arrived, 0);
    assert_eq!(cloud.ended(entry.seq).await.outcome, answered(201));
}

#[tokio::test]
async fn all_barriers_can_be_released_at_once() {
    let cloud = TestCloud::start().await;
    for op in [Op::LbCreate, Op::InstanceGet] {
        cloud.driver.raise_barrier(&on(op)).await.expect("raised");
    }
    let calls: Vec<Call> = ["a", "b", "c"].map(|name| create(&cloud, name)).into();
    let read = tokio::spawn(cloud.request(Method::GET, "/v1/instances/i-1").send());
    crate::support::until(async || (cloud.last_seq().await == 4).then_some(())).await;
    let total: u64 =
        cloud.driver.barriers().await.expect("barriers").iter().map(|barrier| barrier.waiting).sum();
    assert_eq!(total, 4);
    cloud.driver.release_barriers().await.expect("released");
    for call in calls {
        assert_eq!(status(call).await, 201);
    }
    assert_eq!(status(read).await, 200);
    assert!(cloud.driver.barriers().await.expect("barriers").is_empty());
}

#[tokio::test]
async fn faults_come_before_barriers() {
    let cloud = TestCloud::start().await;
    cloud.driver.raise_barrier(&on(Op::LbCreate)).await.expect("raised");
    let fault = cloud.inject(about("a"), Effect::Status { status: 503, retry_after_s: None }).await;
    assert_eq!(status(create(&cloud, "a")).await, 503);
    cloud.driver.clear_fault(fault).await.expect("cleared");
    // A slow call reaches the barrier after its delay, and one whose answer will be lost waits as well.
    cloud.inject(about("b"), Effect::Latency { ms: 1 }).await;
    let fault = cloud.inject(about("c"), Effect::LoseAnswer { ms: None }).await;
    let (slow, lost) = (create(&cloud, "b"), create(&cloud, "c"));
    let waiting = async || cloud.driver.barriers().await.expect("barriers")[0].waiting;
    crate::support::until(async || (waiting().await == 2).then_some(())).await;
    assert!(balancers(&cloud).await.is_empty());
    cloud.driver.release_barriers().await.expect("released");
    assert_eq!(status(slow).await, 201);
    in_time(lost).await.expect("no panic").expect_err("no answer");
    assert_eq!(balancers(&cloud).await.len(), 2);
    let outcomes: Vec<Outcome> = cloud.journal().await.into_iter().map(|entry| entry.outcome).collect();
    assert!(outcomes.contains(&Outcome::Faulted { status: None, fault }), "{outcomes:?}");
}

#[tokio::test]
async fn the_world_may_change_while_a_call_waits() {
    let cloud = TestCloud::start().await;
    let lb = cloud.load_balancer("a", "u-1").await;
    let seq = cloud.last_seq().await;
    let barrier = cloud.driver.raise_barrier(&on(Op::LbDelete)).await.expect("raised");
    let path = format!("/v1/load-balancers/{lb}");
    let call = tokio::spawn(cloud.request(Method::DELETE, &path).send());
    cloud.arrival(seq).await;
    cloud.driver.delete_load_balancer(&lb, true).await.expect("deleted");
    cloud.driver.release_barrier(barrier.id).await.expect("released");
    assert_eq!(status(call).await, 404);
}

#[tokio::test]
async fn a_reset_lets_everybody_go() {
    let cloud = TestCloud::start().await;
    cloud.driver.raise_barrier(&Match::default()).await.expect("raised");
    let call = tokio::spawn(cloud.request(Method::GET, "/v1/instances/i-1").send());
    cloud.arrival(0).await;
    cloud.driver.reset().await.expect("reset");
    assert_eq!(status(call).await, 404);
    assert_eq!(
        cloud.driver.journal(0, Duration::ZERO).await.expect("a journal").len(),
        1,
        "the journal stays"
    );
}
