//! The annotations that a cluster sets on CSINodes, claims and volumes (contract CSIM-01, -02).

use futures::future::try_join_all;
use harness_component_testkit::components::CsiDriver;
use harness_component_testkit::components::csi_migration::{
    MIGRATED_PLUGINS, MIGRATED_TO, Moved, PROVISIONED_BY, STORAGE_PROVISIONER, moved,
};
use harness_component_testkit::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    Check::of("CSIM-01", |cx| Box::pin(lists_all_seven(cx))).with_csi_drivers(),
    Check::of("CSIM-02.claim", |cx| Box::pin(marks_claims(cx))).with_csi_drivers(),
    Check::of("CSIM-02.claim-of-before", |cx| Box::pin(marks_claims_of_before(cx))).with_csi_drivers(),
    Check::of("CSIM-02.provisioned", |cx| Box::pin(marks_provisioned(cx))).with_csi_drivers(),
    Check::of("CSIM-02.by-hand", |cx| Box::pin(marks_none_by_hand(cx))).with_csi_drivers(),
];

async fn lists_all_seven(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all: BTreeSet<&str> = CsiDriver::ALL.iter().map(|driver| moved(*driver).in_tree).collect();
    for place in cluster.workers.iter().chain([&cluster.plane]) {
        let promise = format!("the CSINode of {} lists all seven in-tree plugins", place.node);
        let expected = format!("{MIGRATED_PLUGINS} with all of {}", json!(all));
        let path = format!("/apis/storage.k8s.io/v1/csinodes/{}", place.node);
        let lists = |node: &Value| {
            let listed = node["metadata"]["annotations"][MIGRATED_PLUGINS].as_str().unwrap_or_default();
            let has: BTreeSet<&str> = listed.split(',').collect();
            if has.is_superset(&all) { Ok(()) } else { Err(format!("'{listed}'")) }
        };
        cluster.sees((&promise, &expected), cx.limits().watch(), &path, lists).await?;
    }
    Ok(())
}

/// A short name of a driver, used in object names.
pub(super) fn short(moved: &Moved) -> &'static str {
    moved.in_tree.rsplit('/').next().unwrap_or_default()
}

/// The manifest of a StorageClass of an in-tree plugin.
pub(super) fn class(cluster: &CsiCluster<'_>, moved: &Moved, name: &str, more: Value) -> Value {
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": cluster.named(name)},
        "provisioner": moved.in_tree, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        class[key] = value.clone();
    }
    class
}

/// The manifest of a claim of the class with this name.
pub(super) fn claim(cluster: &CsiCluster<'_>, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": cluster.named(name),
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

/// Creates a class and a claim for each driver.
async fn claims(cluster: &CsiCluster<'_>, all: &[Moved]) -> Verdict {
    let classes = all.iter().map(|moved| class(cluster, moved, short(moved), json!({})));
    cluster.makes(classes.collect()).await?;
    cluster.makes_inside(all.iter().map(|moved| claim(cluster, short(moved))).collect()).await
}

/// Checks that the annotations are the expected ones; the error shows the actual ones.
fn annotated(object: &Value, expected: &[(&str, &str)]) -> Result<(), String> {
    let annotations = &object["metadata"]["annotations"];
    match expected.iter().all(|(key, value)| annotations[key] == *value) {
        true => Ok(()),
        false => Err(format!("annotations {annotations}")),
    }
}

/// Checks that a claim of a class of the plugin names the driver that it moved to; the error shows what it says.
pub(super) fn names_driver(claim: &Value, moved: &Moved) -> Result<(), String> {
    let driver = moved.driver.as_str();
    let of_before = [(STORAGE_PROVISIONER, moved.in_tree), (MIGRATED_TO, driver)];
    annotated(claim, &[(STORAGE_PROVISIONER, driver)]).or_else(|_| annotated(claim, &of_before))
}

async fn marks_claims(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all = csi.moved();
    claims(&cluster, &all).await?;
    for moved in all {
        let (name, driver) = (short(&moved), moved.driver.as_str());
        let promise = format!("a claim of a class of {} names {driver}", moved.in_tree);
        let expected =
            format!("{STORAGE_PROVISIONER}: {driver}; or {}, and {MIGRATED_TO}: {driver}", moved.in_tree);
        let marked = |claim: &Value| names_driver(claim, &moved);
        let path = cluster.path("persistentvolumeclaims", name);
        cluster.sees((&promise, &expected), cx.limits().watch(), &path, marked).await?;
    }
    Ok(())
}

async fn marks_claims_of_before(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all = csi.moved();
    let volumes = all.iter().map(|moved| {
        let id = format!("{}-{}", cx.prefix(), short(moved));
        cluster.volume(&StoredVolume::on(*moved, short(moved), id, &cluster.workers[0]))
    });
    cluster.makes(volumes.collect()).await?;
    // A claim that already has its volume is not provisioned again.
    let claims = all.iter().map(|moved| {
        let mut claim = claim(&cluster, short(moved));
        claim["metadata"]["annotations"] = json!({STORAGE_PROVISIONER: moved.in_tree});
        claim["spec"]["storageClassName"] = json!("");
        claim["spec"]["volumeName"] = json!(cluster.named(short(moved)));
        claim
    });
    cluster.makes_inside(claims.collect()).await?;
    for moved in all {
        let driver = moved.driver.as_str();
        let promise = format!("a claim that names {} names {driver}, too", moved.in_tree);
        let expected = format!("{MIGRATED_TO}: {driver}");
        let marked = |claim: &Value| annotated(claim, &[(MIGRATED_TO, driver)]);
        let path = cluster.path("persistentvolumeclaims", short(&moved));
        cluster.sees((&promise, &expected), cluster.limit(), &path, marked).await?;
    }
    Ok(())
}

async fn marks_provisioned(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    csi.has_provisioner()?;
    let cluster = csi.on_a_cluster().await?;
    let all = csi.moved();
    claims(&cluster, &all).await?;
    for moved in all {
        let (name, driver) = (short(&moved), moved.driver.as_str());
        let bound =
            |claim: &Value| match (claim["status"]["phase"].as_str(), claim["spec"]["volumeName"].as_str()) {
                (Some("Bound"), Some(volume)) => Ok(volume.to_owned()),
                _ => Err(format!("the claim: {}", claim["status"])),
            };
        let promise = format!("a claim of a class of {} gets a volume", moved.in_tree);
        let path = cluster.path("persistentvolumeclaims", name);
        let limit = cx.limits().watch() + cx.limits().event();
        let volume = cluster.sees((&promise, "a claim that is bound"), limit, &path, bound).await?;
        let promise = format!("a volume provisioned for {} names it and {driver}", moved.in_tree);
        let expected = format!("{PROVISIONED_BY}: {}, {MIGRATED_TO}: {driver}", moved.in_tree);
        let marked =
            |volume: &Value| annotated(volume, &[(PROVISIONED_BY, moved.in_tree), (MIGRATED_TO, driver)]);
        let path = format!("/api/v1/persistentvolumes/{volume}");
        cluster.sees((&promise, &expected), cx.limits().watch(), &path, marked).await?;
    }
    Ok(())
}

async fn marks_none_by_hand(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all = csi.moved();
    let volumes = all.iter().map(|moved| {
        let id = format!("{}-{}", cx.prefix(), short(moved));
        cluster.volume(&StoredVolume::on(*moved, short(moved), id, &cluster.workers[0]))
    });
    cluster.makes(volumes.collect()).await?;
    for moved in &all {
        let phase = |volume: &Value| match volume["status"]["phase"].as_str() {
            Some("Available" | "Bound") => Ok(()),
            _ => Err(format!("status {}", volume["status"])),
        };
        let about = ("a volume made by hand can be claimed", "phase Available");
        let path = cluster.path_of_volume(short(moved));
        cluster.sees(about, cx.limits().watch(), &path, phase).await?;
    }
    let names = |volume: &Value| {
        let annotations = &volume["metadata"]["annotations"];
        match annotations[MIGRATED_TO].is_null() && annotations[PROVISIONED_BY].is_null() {
            true => Ok(()),
            false => Err(format!("annotations {annotations}")),
        }
    };
    let kept = all.iter().map(async |moved| {
        let promise = format!("a volume of {} made by hand names no driver", moved.in_tree);
        let about = (promise.as_str(), "neither annotation");
        cluster.keeps(about, cx.limits().settle(), &cluster.path_of_volume(short(moved)), names).await
    });
    try_join_all(kept).await.map(drop)
}
