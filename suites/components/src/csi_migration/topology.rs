//! Zones of volumes, and on which Nodes Pods run (contract CSIM-05).

use harness_component_testkit::components::csi_migration::{Moved, ZONE};
use harness_component_testkit::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CSIM-05", |cx| Box::pin(lands(cx))).with_csi_drivers(),
    Check::of("CSIM-05.no-driver", |cx| Box::pin(waits(cx))).with_csi_drivers(),
];

/// The drivers whose volumes have zones.
fn zoned(csi: &CsiMigration<'_>) -> Result<Vec<Moved>, CheckError> {
    let found: Vec<Moved> = csi.moved().into_iter().filter(|moved| moved.zone.is_some()).collect();
    match found.is_empty() {
        true => Err(CheckError::NotObservable("none of the drivers has zones".to_owned())),
        false => Ok(found),
    }
}

/// The ways in which a volume can name its zone.
#[derive(Clone, Copy, Debug)]
enum By {
    Label,
    Affinity,
}

fn volume(cx: &CheckCx, moved: Moved, name: &str, zone: &str, by: By) -> StoredVolume {
    let id = format!("vol-{}-{name}", cx.prefix());
    let (labels, affinity) = match by {
        By::Label => (BTreeMap::from([(ZONE.to_owned(), zone.to_owned())]), Vec::new()),
        By::Affinity => (BTreeMap::new(), vec![zone.to_owned()]),
    };
    StoredVolume { moved, name: name.to_owned(), id, labels, affinity, node: None, rather: None }
}

async fn lands(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let drivers = zoned(&csi)?;
    let cluster = csi.on_a_cluster().await?;
    let mut wanted = Vec::new();
    for (at, moved) in drivers.into_iter().enumerate() {
        for (place, other) in cluster.workers.iter().zip(cluster.workers.iter().rev()) {
            for by in [By::Label, By::Affinity] {
                let by_what = if matches!(by, By::Label) { "label" } else { "affinity" };
                let name = format!("v{at}-{}-{by_what}", place.zone).to_lowercase();
                // Nothing but the volume keeps the Pod from the other machine.
                let rather = Some(other.node.clone());
                let volume = StoredVolume { rather, ..volume(cx, moved, &name, &place.zone, by) };
                wanted.push((place, volume));
            }
        }
    }
    let volumes: Vec<StoredVolume> = wanted.iter().map(|(_, volume)| volume.clone()).collect();
    cluster.makes_with_pods(&volumes).await?;
    let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    let nodes = cluster.pods_run(&names, "Pods run in the zones of their volumes").await?;
    for ((place, volume), node) in wanted.iter().zip(nodes) {
        if node != place.node {
            let (name, plugin, zone) = (&volume.name, volume.moved.in_tree, &place.zone);
            let promise = format!("a Pod with volume {name} of {plugin}, which is in {zone}, lands there");
            return Err(csi.violation(&promise, &format!("Node {}", place.node), format!("Node {node}")));
        }
    }
    Ok(())
}

async fn waits(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let drivers = zoned(&csi)?;
    let cluster = csi.on_a_cluster().await?;
    let moved = drivers[0];
    let plane = &cluster.plane;
    let key = moved.zone.unwrap_or_default();
    let labels = cluster.labels_of(&plane.node).await?;
    if labels.contains_key(key) {
        let why = format!("Node {} has the label {key}, so no zone is without the driver", plane.node);
        return Err(CheckError::NotObservable(why));
    }
    cluster.makes_with_pods(&[volume(cx, moved, "v", &plane.zone, By::Affinity)]).await?;
    let placed = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
    let waiting = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let refused = conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False");
        match (placed(pod), refused.count()) {
            (Some(node), _) => Err(format!("it is on Node {node}")),
            (None, 0) => Err(format!("status {}", pod["status"])),
            (None, _) => Ok(()),
        }
    };
    let promise = format!("a Pod waits whose volume is in {}, where no Node has {key}", plane.zone);
    let about = (promise.as_str(), "condition PodScheduled False");
    let path = cluster.path("pods", "v");
    cluster.sees(about, cluster.limit(), &path, waiting).await?;
    cluster.keeps((&promise, "no Node"), cx.limits().settle(), &path, waiting).await
}
