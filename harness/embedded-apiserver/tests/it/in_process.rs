//! The server as `kube` sees it, in process and over TLS.

use std::collections::BTreeSet;

use embedded_apiserver::User;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::json;

use crate::client::Cluster;

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

async fn use_client(client: Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let names: BTreeSet<String> = namespaces
        .list(&ListParams::default())
        .await
        .expect("a list")
        .items
        .into_iter()
        .filter_map(|namespace| namespace.metadata.name)
        .collect();
    assert!(
        ["default", "kube-system", "kube-public", "kube-node-lease"].iter().all(|name| names.contains(*name))
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("a")).await.expect("created");
    let stream = watcher(maps.clone(), watcher::Config::default()).applied_objects();
    let mut stream = std::pin::pin!(stream);
    let merge = Patch::Merge(json!({"data": {"k": "v"}}));
    maps.patch("a", &PatchParams::default(), &merge).await.expect("patched");
    let seen = loop {
        let object = stream.try_next().await.expect("a watch").expect("an object");
        if object.data.is_some() {
            break object;
        }
    };
    assert_eq!(seen.metadata.name.as_deref(), Some("a"));
    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    let gone = maps.get("a").await.expect_err("it is gone");
    assert!(matches!(gone, kube::Error::Api(status) if status.code == 404 && status.reason == "NotFound"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_works_in_process() {
    let cluster = Cluster::start().await;
    use_client(cluster.server.client(User::admin())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_works_with_the_kubeconfig() {
    let cluster = Cluster::start().await;
    let text = cluster.server.kubeconfig().expect("a kubeconfig");
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).expect("a kubeconfig that parses");
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.expect("a config");
    use_client(Client::try_from(config).expect("a client")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streaming_lists_end_with_a_bookmark() {
    let cluster = Cluster::start().await;
    let nodes: Api<Node> = Api::all(cluster.server.client(User::admin()));
    for at in 0..600 {
        let node = Node {
            metadata: ObjectMeta { name: Some(format!("n{at}")), ..ObjectMeta::default() },
            ..Node::default()
        };
        nodes.create(&PostParams::default(), &node).await.expect("created");
    }
    let events = watcher(nodes, watcher::Config::default().streaming_lists());
    let until_done = events
        .map(|event| event.expect("an event"))
        .take_while(|event| futures::future::ready(!matches!(event, watcher::Event::InitDone)))
        .filter(|event| futures::future::ready(matches!(event, watcher::Event::InitApply(_))));
    assert_eq!(until_done.count().await, 600);
}
