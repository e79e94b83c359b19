//! Tests your own controller against an API server alone: only the controller and the test write objects.
//!
//! `cargo run -p embedded-cluster --example controller`

use embedded_cluster::{Cluster, ClusterSpec};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::wait::await_condition;
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// The controller under test: annotates every Deployment with the number of its replicas.
async fn reconcile(deployment: Arc<Deployment>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = deployment.namespace().unwrap_or_default();
    let api: Api<Deployment> = Api::namespaced(Client::clone(&client), &namespace);
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let patch = json!({"metadata": {"annotations": {"example.com/replicas": replicas.to_string()}}});
    api.patch_metadata(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::start(ClusterSpec::api_server()).await?;
    let client = cluster.client();
    let all: Api<Deployment> = Api::all(client.clone());
    let retry = |_: Arc<Deployment>, _: &kube::Error, _: Arc<Client>| Action::requeue(Duration::from_secs(1));
    let controller = Controller::new(all, watcher::Config::default());
    let running = tokio::spawn(
        controller.run(reconcile, retry, Arc::new(client.clone())).for_each(|_| futures::future::ready(())),
    );

    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    let web: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }))?;
    deployments.create(&PostParams::default(), &web).await?;
    let annotated = |object: Option<&Deployment>| {
        object.is_some_and(|web| web.annotations().get("example.com/replicas").is_some_and(|it| it == "3"))
    };
    let limit = Duration::from_secs(10);
    let seen = tokio::time::timeout(limit, await_condition(deployments, "web", annotated)).await??;
    // No Deployment controller runs, so no one writes the status.
    let status = seen.and_then(|web| web.status).and_then(|status| status.observed_generation);
    writeln!(std::io::stdout(), "annotated; observed by a Deployment controller: {}", status.is_some())?;
    running.abort();
    cluster.stop().await;
    Ok(())
}
