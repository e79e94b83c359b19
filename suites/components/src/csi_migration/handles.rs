//! The handles with which drivers identify volumes (contract CSIM-04).

use harness_component_testkit::components::csi_migration::{Moved, Place, Vector, moved, vectors};
use harness_component_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CSIM-04", |cx| Box::pin(kubelets_know_handles(cx))).with_csi_drivers(),
    Check::of("CSIM-04.attached", |cx| Box::pin(controllers_know_handles(cx))).with_csi_drivers(),
];

/// A test vector, with the values that its placeholders stand for.
struct Case {
    vector: Vector,
    name: String,
    place: Place,
}

/// The test vectors of these drivers.
fn cases(cluster: &CsiCluster<'_>, drivers: Vec<Moved>) -> Vec<Case> {
    let chosen = drivers.into_iter().flat_map(|moved| vectors(moved.driver)).enumerate();
    chosen
        .map(|(at, vector)| {
            let name = format!("v{at}");
            let place = Place {
                id: cluster.named(&name),
                here: cluster.workers[0].zone.clone(),
                there: cluster.workers[1].zone.clone(),
                volume: cluster.named(&name),
                namespace: cluster.namespace().to_owned(),
            };
            Case { vector, name, place }
        })
        .collect()
}

async fn have_pods(cluster: &CsiCluster<'_>, cases: &[Case]) -> Verdict {
    let volumes: Vec<StoredVolume> = cases
        .iter()
        .map(|Case { vector, name, place }| {
            let labels = vector.labels.iter().map(|(key, value)| ((*key).to_owned(), place.fill(value)));
            let id = place.fill(vector.id);
            let on = StoredVolume::on(moved(vector.driver), name, id, &cluster.workers[0]);
            StoredVolume { labels: labels.collect(), ..on }
        })
        .collect();
    cluster.makes_with_pods(&volumes).await?;
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    cluster.pods_run(&names, "Pods with in-tree volumes run by the drivers").await.map(drop)
}

/// Checks that a call of each method came with the handle of each vector.
async fn are_called(
    cx: &CheckCx,
    cluster: &CsiCluster<'_>,
    cases: &[Case],
    methods: &[&str],
) -> Result<(), CheckError> {
    for Case { vector, place, .. } in cases {
        let handle = place.fill(vector.handle);
        for method in methods {
            let promise = format!("{}: {method} of {} has the library's handle", vector.what, vector.driver);
            let expected = format!("volume_id '{handle}'");
            let driver = vector.driver.as_str();
            let fits = |call: &CsiCall| call.driver == driver && call.volume() == handle;
            let about = |call: &CsiCall| call.driver == driver && call.volume().contains(&place.id);
            cluster.is_called((&promise, &expected), method, fits, about).await?;
        }
    }
    cx.record("handles", cases.len());
    Ok(())
}

async fn kubelets_know_handles(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let cases = cases(&cluster, csi.moved());
    have_pods(&cluster, &cases).await?;
    are_called(cx, &cluster, &cases, &["NodeStageVolume", "NodePublishVolume"]).await
}

async fn controllers_know_handles(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let cases = cases(&cluster, cluster.attached().await?);
    have_pods(&cluster, &cases).await?;
    are_called(cx, &cluster, &cases, &["ControllerPublishVolume"]).await
}
