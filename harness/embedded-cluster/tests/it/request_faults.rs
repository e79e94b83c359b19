//! Faults of single requests of a service account, as a client on the network sees them.

use super::account;
use embedded_cluster::{Cluster, ClusterSpec, RequestEffect, RequestFault, RequestMatch};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;

fn fault(effect: RequestEffect) -> RequestFault {
    let matching = RequestMatch {
        verb: "patch".to_owned(),
        resource: "configmaps".to_owned(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
    };
    RequestFault { matching, skip: 0, times: 1, effect }
}

async fn patched(maps: &Api<ConfigMap>, value: &str) -> Result<ConfigMap, kube::Error> {
    maps.patch("web", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": value}}))).await
}

async fn value(cluster: &Cluster) -> String {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = maps.get("web").await.expect("it exists");
    map.data.and_then(|data| data.get("a").cloned()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_refused_or_lost_or_its_answer_is() {
    let cluster = Cluster::start(ClusterSpec::api_server()).await.expect("a cluster");
    let maps: Api<ConfigMap> = Api::default_namespaced(account(&cluster).await);
    let map =
        serde_json::from_value(json!({"metadata": {"name": "web"}, "data": {"a": "0"}})).expect("a map");
    maps.create(&PostParams::default(), &map).await.expect("created");

    for code in [409, 500] {
        cluster.set_request_fault(1, fault(RequestEffect::Refuse { code }));
        let refused = patched(&maps, "1").await.expect_err("refused");
        let kube::Error::Api(status) = refused else { panic!("{refused}") };
        assert_eq!((status.code, value(&cluster).await.as_str()), (code, "0"));
        patched(&maps, "0").await.expect("only one request is refused");
    }
    for code in [429, 503, 504] {
        cluster.set_request_fault(1, fault(RequestEffect::Refuse { code }));
        patched(&maps, "0").await.expect("this client itself tries again");
        assert_eq!(cluster.request_fault(1).map(|state| state.hits), Some(1), "{code}");
    }
    cluster.set_request_fault(1, fault(RequestEffect::LoseRequest));
    let lost = patched(&maps, "2").await.expect_err("no answer");
    assert!(!matches!(lost, kube::Error::Api(_)), "{lost}");
    assert_eq!(value(&cluster).await, "0", "it took no effect");

    cluster.set_request_fault(1, fault(RequestEffect::LoseAnswer));
    let lost = patched(&maps, "3").await.expect_err("no answer");
    assert!(!matches!(lost, kube::Error::Api(_)), "{lost}");
    assert_eq!(value(&cluster).await, "3", "it took effect");
    assert_eq!(cluster.request_fault(1).map(|state| state.hits), Some(1));

    cluster.set_request_fault(1, fault(RequestEffect::CutAnswer));
    let cut = patched(&maps, "5").await.expect_err("half an answer");
    assert!(!matches!(cut, kube::Error::Api(_)), "{cut}");
    assert_eq!(value(&cluster).await, "5", "it took effect");
    patched(&maps, "3").await.expect("only one answer is cut");

    // The administrator is never affected.
    cluster.set_request_fault(1, fault(RequestEffect::Refuse { code: 500 }));
    let of_admin: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    patched(&of_admin, "4").await.expect("not affected");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_held_before_or_after_it_takes_effect() {
    let cluster = Cluster::start(ClusterSpec::api_server()).await.expect("a cluster");
    let maps: Api<ConfigMap> = Api::default_namespaced(account(&cluster).await);
    let map =
        serde_json::from_value(json!({"metadata": {"name": "web"}, "data": {"a": "0"}})).expect("a map");
    maps.create(&PostParams::default(), &map).await.expect("created");

    for (effect, meanwhile) in [(RequestEffect::HoldRequest, "0"), (RequestEffect::HoldAnswer, "1")] {
        cluster.set_request_fault(1, fault(effect));
        let held = tokio::spawn({
            let maps = maps.clone();
            async move { patched(&maps, "1").await }
        });
        let waits = async {
            while cluster.request_fault(1).is_none_or(|state| state.waiting == 0) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waits).await.expect("it waits");
        assert_eq!(value(&cluster).await, meanwhile);
        cluster.clear_request_fault(1);
        held.await.expect("no panic").expect("answered");
        assert_eq!(value(&cluster).await, "1");
        patched(&maps, "0").await.expect("as before");
    }

    // A client that goes away while its request is held has changed nothing.
    cluster.set_request_fault(1, fault(RequestEffect::HoldRequest));
    let gone = tokio::time::timeout(Duration::from_millis(300), patched(&maps, "5")).await;
    assert!(gone.is_err(), "it was held");
    let left = async {
        while cluster.request_fault(1).is_some_and(|state| state.waiting > 0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.expect("it waits no longer");
    cluster.clear_request_fault(1);
    assert_eq!(value(&cluster).await, "0");
    cluster.stop().await;
}
