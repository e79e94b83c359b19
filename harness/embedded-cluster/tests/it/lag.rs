//! A watch cache that is behind, as a service account sees it.

use super::account;
use embedded_cluster::{Cluster, ClusterSpec};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams, VersionMatch, WatchEvent, WatchParams};
use serde_json::json;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

async fn create(cluster: &Cluster, name: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = serde_json::from_value(json!({"metadata": {"name": name, "labels": {"of": "test"}}}));
    maps.create(&PostParams::default(), &map.expect("a map")).await.expect("created");
}

async fn names(maps: &Api<ConfigMap>, params: &ListParams) -> Vec<String> {
    let list = maps.list(&params.clone().labels("of=test")).await.expect("a list");
    list.items.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_and_cached_lists_show_the_past_until_they_catch_up() {
    let cluster = Cluster::start(ClusterSpec::api_server()).await.expect("a cluster");
    let of_account: Api<ConfigMap> = Api::default_namespaced(account(&cluster).await);
    let of_admin: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    create(&cluster, "a").await;
    let version = of_account.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
    let version = version.expect("a version");
    let watch = WatchParams::default().labels("of=test");
    let mut open = of_account.watch(&watch, &version).await.expect("a watch").boxed();

    cluster.begin_lag();
    create(&cluster, "b").await;
    create(&cluster, "c").await;
    let cached = ListParams { version_match: Some(VersionMatch::NotOlderThan), ..ListParams::default() };
    let cached = ListParams { resource_version: Some("0".to_owned()), ..cached };
    assert_eq!(names(&of_account, &cached).await, ["a"], "a list from the cache is old");
    assert_eq!(names(&of_account, &ListParams::default()).await, ["a", "b", "c"], "any other list is not");
    assert_eq!(names(&of_admin, &cached).await, ["a", "b", "c"], "nor is that of another user");
    let mut new = of_account.watch(&watch, "0").await.expect("a watch").boxed();
    let first = tokio::time::timeout(LIMIT, new.try_next()).await.expect("at once").expect("an event");
    assert!(matches!(first, Some(WatchEvent::Added(map)) if map.name_any() == "a"));
    for watch in [&mut open, &mut new] {
        let early = tokio::time::timeout(Duration::from_millis(300), watch.try_next()).await;
        assert!(early.is_err(), "a change is seen too early: {early:?}");
    }

    cluster.end_lag();
    for watch in [&mut open, &mut new] {
        for expected in ["b", "c"] {
            let next = tokio::time::timeout(LIMIT, watch.try_next()).await.expect("in time");
            let Ok(Some(WatchEvent::Added(map))) = next else { panic!("expected {expected}, got {next:?}") };
            assert_eq!(map.name_any(), expected, "in order");
        }
    }
    assert_eq!(names(&of_account, &cached).await, ["a", "b", "c"]);
    cluster.stop().await;
}
