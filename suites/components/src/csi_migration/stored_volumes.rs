//! What is stored, and where the translation is visible: attachments and calls (contract CSIM-03, -07).

use super::annotations::short;
use harness_component_testkit::components::csi_migration::Moved;
use harness_component_testkit::prelude::*;
use serde_json::{Value, json};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

pub(super) const CHECKS: &[Check] = &[
    Check::of("CSIM-03", |cx| Box::pin(stays_as_written(cx))).with_csi_drivers(),
    Check::of("CSIM-03.attachment", |cx| Box::pin(is_attached_by_the_driver(cx))).with_csi_drivers(),
    Check::of("CSIM-07", |cx| Box::pin(attaches_inline(cx))).with_csi_drivers(),
];

async fn stays_as_written(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all = csi.moved();
    let volumes: Vec<StoredVolume> = all
        .iter()
        .map(|moved| {
            let id = format!("vol-{}-{}", cx.prefix(), short(moved));
            StoredVolume::on(*moved, short(moved), id, &cluster.workers[0])
        })
        .collect();
    cluster.makes_with_pods(&volumes).await?;
    let names: Vec<&str> = all.iter().map(short).collect();
    cluster.pods_run(&names, "Pods with in-tree volumes run by the drivers").await?;
    for (moved, volume) in all.iter().zip(&volumes) {
        let written = cluster.volume(volume)["spec"][moved.source].clone();
        let promise = format!("a volume of {} stays as it was written", moved.in_tree);
        let path = cluster.path_of_volume(&volume.name);
        let same = |stored: &Value| {
            let spec = &stored["spec"];
            let kept = written.as_object().into_iter().flatten().all(|(key, value)| {
                // A field that is false is left out of the stored object.
                spec[moved.source][key] == *value || *value == json!(false)
            });
            if kept && spec["csi"].is_null() { Ok(()) } else { Err(format!("spec {spec}")) }
        };
        let expected = format!("spec.{} {written} and no spec.csi", moved.source);
        cluster.sees((&promise, &expected), cx.limits().watch(), &path, same).await?;
    }
    Ok(())
}

/// Waits for the attachment that fits, and returns it.
async fn attachment(
    cluster: &CsiCluster<'_>,
    about: (&str, &str),
    fits: impl Fn(&Value) -> bool,
    judge: impl Fn(&Value) -> Result<(), String>,
) -> Result<Value, CheckError> {
    let found = |list: &Value| {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        match items.into_iter().find(|item| fits(&item["spec"]["source"])) {
            None => Err("no VolumeAttachment of it".to_owned()),
            Some(item) => judge(&item).map(|()| item),
        }
    };
    let limit = cluster.limit();
    cluster.sees(about, limit, ATTACHMENTS, found).await
}

async fn is_attached_by_the_driver(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all = cluster.attached().await?;
    let volumes = all.iter().map(|moved| {
        let id = format!("vol-{}-{}", cx.prefix(), short(moved));
        StoredVolume::on(*moved, short(moved), id, &cluster.workers[0])
    });
    cluster.makes_with_pods(&volumes.collect::<Vec<_>>()).await?;
    for moved in &all {
        let (name, driver) = (cluster.named(short(moved)), moved.driver.as_str());
        let promise = format!("a volume of {} is attached by {driver}", moved.in_tree);
        let expected = format!("a VolumeAttachment with spec.attacher {driver}, attached");
        let judge =
            |item: &Value| match item["spec"]["attacher"] == driver && item["status"]["attached"] == true {
                true => Ok(()),
                false => Err(format!("spec {}, status {}", item["spec"], item["status"])),
            };
        let fits = |source: &Value| source["persistentVolumeName"] == name.as_str();
        attachment(&cluster, (&promise, &expected), fits, judge).await?;
    }
    let names: Vec<&str> = all.iter().map(short).collect();
    cluster.pods_run(&names, "Pods with volumes that are attached run").await.map(drop)
}

async fn attaches_inline(cx: &CheckCx) -> Verdict {
    let csi = CsiMigration::of(cx)?;
    let cluster = csi.on_a_cluster().await?;
    let all = cluster.attached().await?;
    let id = |moved: &Moved| format!("vol-{}-{}", cx.prefix(), short(moved));
    let pods = all.iter().map(|moved| {
        let volume = json!({"name": "v", moved.source: moved.source_of(&id(moved))});
        cluster.pod(short(moved), &volume, Some(&cluster.workers[0].node))
    });
    cluster.makes_inside(pods.collect()).await?;
    for moved in &all {
        let (id, driver) = (id(moved), moved.driver.as_str());
        let promise = format!("a volume of {} inline in a Pod is attached by {driver}", moved.in_tree);
        let expected = "a VolumeAttachment with spec.source.inlineVolumeSpec of the driver, attached";
        let ours = |source: &Value| {
            let handle = source["inlineVolumeSpec"]["csi"]["volumeHandle"].as_str();
            handle.is_some_and(|handle| handle.contains(&id))
        };
        let judge = |item: &Value| {
            let (spec, source) = (&item["spec"], &item["spec"]["source"]);
            let named = source["persistentVolumeName"].is_null() && spec["attacher"] == driver;
            let by_driver = source["inlineVolumeSpec"]["csi"]["driver"] == driver;
            match named && by_driver && item["status"]["attached"] == true {
                true => Ok(()),
                false => Err(format!("spec {spec}, status {}", item["status"])),
            }
        };
        attachment(&cluster, (&promise, expected), ours, judge).await?;
    }
    let names: Vec<&str> = all.iter().map(short).collect();
    cluster.pods_run(&names, "Pods with inline volumes run").await.map(drop)
}
