//! Pods whose volume has no driver on their Node (contract CSIM-08).

use harness_component_testkit::components::CsiDriver;
use harness_component_testkit::components::csi_migration::{Moved, moved};
use harness_component_testkit::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::of("CSIM-08", |cx| Box::pin(waits(cx))).with_csi_drivers()];

/// How long a kube-controller-manager waits for the attacher of a driver that is not installed (kubernetes
/// pkg/volume/csi, 2 min), plus the time for its Event.
const ATTACHED: Duration = Duration::from_secs(150);

/// Finds a driver for a volume that the Node of its Pod lacks: one that is missing only there, or else one
/// that no Node has. Returns the driver, the Node, and how long the Event about it may take.
async fn lacking(
    cx: &CheckCx,
    cluster: &CsiCluster<'_>,
    drivers: &[Moved],
) -> Result<(Moved, String, Duration), CheckError> {
    let there = cluster.drivers_of(&cluster.plane.node).await?;
    if let Some(absent) = drivers.iter().find(|moved| !there.iter().any(|name| name == moved.driver.as_str()))
    {
        return Ok((*absent, cluster.plane.node.clone(), cx.limits().event()));
    }
    let unused = CsiDriver::ALL.iter().find(|driver| drivers.iter().all(|moved| moved.driver != **driver));
    let driver = unused.ok_or_else(|| {
        CheckError::NotObservable(
            "all seven drivers are on every machine, so nothing is without its driver".to_owned(),
        )
    })?;
    Ok((moved(*driver), cluster.workers[0].node.clone(), ATTACHED))
}

async fn waits(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let (moved, node, limit) = lacking(cx, &cluster, &csi.moved()).await?;
    let driver = moved.driver.as_str();
    let since = cluster.processes(&node).await?;
    let id = format!("vol-{}", cx.prefix());
    let wanted =
        StoredVolume { node: Some(node.clone()), ..StoredVolume::on(moved, "v", id, &cluster.plane) };
    cluster.makes_with_pods(&[wanted]).await?;
    let promise = format!("an Event of a Pod that waits names {driver}");
    let expected = format!("a warning about Pod v with {driver}");
    let names = |events: &Value| {
        let items = events["items"].as_array().into_iter().flatten();
        let of_it =
            items.filter(|event| event["involvedObject"]["name"] == "v" && event["type"] == "Warning");
        let messages: Vec<&str> = of_it.filter_map(|event| event["message"].as_str()).collect();
        match messages.iter().find(|message| message.contains(driver)) {
            Some(message) => Ok((*message).to_owned()),
            None => Err(json!(messages).to_string()),
        }
    };
    let path = format!("/api/v1/namespaces/{}/events", cluster.namespace());
    let message = cluster.sees((&promise, &expected), limit, &path, names).await?;
    cx.record("said", message);
    let waiting = |pod: &Value| match pod["status"]["phase"].as_str() {
        Some("Pending") => Ok(()),
        phase => Err(format!("phase {}", phase.unwrap_or("none"))),
    };
    let promise = format!("a Pod waits on {node}, where {driver} is not");
    let path = cluster.path("pods", "v");
    cluster.keeps((&promise, "phase Pending"), cx.limits().settle(), &path, waiting).await?;
    let now = cluster.processes(&node).await?;
    if now != since {
        let promise = "kubelet and kube-controller-manager run on";
        return Err(csi.violation(promise, &json!(since).to_string(), json!(now).to_string()));
    }
    Ok(())
}
