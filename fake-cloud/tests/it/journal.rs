//! The journal: complete, in order, and readable while it grows.

use crate::support::{OTHER_TOKEN, Reply, TOKEN, TestCloud, answered, firewall, load_balancer};
use fake_cloud::{Config, Server};
use fake_cloud_driver::{Match, Op, Outcome};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

#[tokio::test]
async fn an_entry_says_who_did_what_with_what_outcome() {
    let cloud = TestCloud::start().await;
    let body = load_balancer("web", "u-1");
    let request = cloud.http.post(cloud.url("/v1/load-balancers")).bearer_auth(OTHER_TOKEN).json(&body);
    Reply::of(request).await.answers(201);
    cloud.get("/v1/load-balancers/lb-1").await.answers(200);
    cloud.get("/v1/load-balancers?owner=u-1&page=1").await.answers(200);
    cloud.get("/v1/load-balancers/lb-9").await.fails(404, "not_found");
    cloud.post("/v1/load-balancers", load_balancer("web", "u-2")).await.fails(409, "conflict");
    cloud.delete("/v1/load-balancers/lb-1").await.answers(204);
    let journal = cloud.journal().await;
    let first = &journal[0];
    assert_eq!(first.peer, IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert_eq!((first.credential.as_deref(), first.op, first.write), (Some("replica-2"), Op::LbCreate, true));
    assert_eq!(first.request, "POST /v1/load-balancers");
    assert!(first.took_ms.is_some());
    let seen: Vec<_> = journal
        .iter()
        .map(|e| {
            (e.seq, e.op, e.resource.as_deref().unwrap_or("-"), e.owner.as_deref().unwrap_or("-"), &e.outcome)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, Op::LbCreate, "lb-1", "u-1", &answered(201)),
            (2, Op::LbGet, "lb-1", "u-1", &answered(200)),
            (3, Op::LbList, "owner=u-1", "u-1", &answered(200)),
            (4, Op::LbGet, "lb-9", "-", &answered(404)),
            (5, Op::LbCreate, "name=web", "u-2", &answered(409)),
            (6, Op::LbDelete, "lb-1", "u-1", &answered(204)),
        ]
    );
    assert_eq!(journal[2].request, "GET /v1/load-balancers?owner=u-1&page=1");
    assert!(journal.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_order_of_the_journal_is_the_order_of_effects() {
    const CALLERS: u64 = 8;
    const CALLS: u64 = 25;
    let cloud = TestCloud::start().await;
    let mut callers = Vec::new();
    for caller in 0..CALLERS {
        let (http, url) = (cloud.http.clone(), cloud.url("/v1/firewalls"));
        callers.push(tokio::spawn(async move {
            for call in 0..CALLS {
                let body = firewall(&format!("f-{caller}-{call}"), "u-1", None);
                let reply = Reply::of(http.post(&url).bearer_auth(TOKEN).json(&body)).await;
                reply.answers(201);
            }
        }));
    }
    for caller in callers {
        caller.await.expect("no panic");
    }
    let journal = cloud.journal().await;
    let seqs: Vec<u64> = journal.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..=CALLERS * CALLS).collect::<Vec<_>>());
    // Ids are assigned one after the other, so they show the order of effects.
    let ids: Vec<String> = journal.into_iter().filter_map(|entry| entry.resource).collect();
    assert_eq!(ids, (1..=CALLERS * CALLS).map(|number| format!("fw-{number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_long_poll_ends_with_the_first_arrival() {
    let cloud = TestCloud::start().await;
    assert!(cloud.driver.journal(0, Duration::ZERO).await.expect("a journal").is_empty());
    assert!(cloud.driver.journal(0, Duration::from_millis(20)).await.expect("a journal").is_empty());
    let driver = cloud.driver.clone();
    let poll = tokio::spawn(async move { driver.journal(0, Duration::from_secs(3600)).await });
    cloud.driver.raise_barrier(&Match::default()).await.expect("raised");
    let call = tokio::spawn(cloud.request(reqwest::Method::GET, "/v1/instances/i-1").send());
    let entries = crate::support::in_time(poll).await.expect("no panic").expect("a journal");
    assert_eq!(
        (entries.len(), &entries[0].outcome),
        (1, &Outcome::UnderWay),
        "it does not wait for the call's end"
    );
    cloud.driver.release_barriers().await.expect("released");
    crate::support::in_time(call).await.expect("no panic").expect("an answer");
    assert!(cloud.driver.journal(1, Duration::ZERO).await.expect("a journal").is_empty());
    assert!(cloud.driver.journal(u64::MAX, Duration::ZERO).await.expect("a journal").is_empty());
}

#[tokio::test]
async fn an_answer_can_be_limited() {
    let cloud = TestCloud::start().await;
    for _ in 0..3 {
        cloud.get("/v1/instances/i-1").await.answers(200);
    }
    let url = format!("http://{}/driver/v1/journal?after=1&limit=1", cloud.running.driver_addr());
    let reply = Reply::of(cloud.http.get(url).bearer_auth(cloud.running.driver_token())).await.answers(200);
    assert_eq!(
        (&reply["entries"][0]["seq"], reply["entries"].as_array().map(Vec::len)),
        (&2.into(), Some(1))
    );
}

#[tokio::test]
async fn a_shut_down_cloud_does_not_answer() {
    let cloud = Server::start(Config::local("native")).await.expect("it starts");
    let (address, driver) = (cloud.cloud_addr(), cloud.driver_addr());
    let client = fake_cloud_driver::Client::new(&driver.to_string(), cloud.driver_token()).expect("a client");
    client.capabilities().await.expect("it answers");
    cloud.shutdown().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    let error = client.capabilities().await.expect_err("no answer");
    assert!(
        error
            .to_string()
            .starts_with("GET /driver/v1/capabilities: no answer from the driver at http://127.0.0.1:"),
        "{error}"
    );
}
